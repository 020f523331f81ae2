"""Relabels steps with other memories and checks the rewards of real steps."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.wrappers.events import FairEvent, told_events
from sb3_fair.wrappers.memories import Memory
from sb3_fair.wrappers.recompute import Recompute

Array: TypeAlias = NDArray[Any]
TOLERANCE = 1e-3
"""Rewards and memories are stored as float32, so what is recomputed differs from them a little."""


def events_of_all(infos: Sequence[dict[str, Any]]) -> FairEvent:
    """The events of all copies, arrays (n,).

    :raises ValueError: if there are none, or flags are neither 0 nor 1
    """
    try:
        event = told_events(infos)
    except KeyError as error:
        raise ValueError(
            "infos must have a 'fair_event' at every step: wrap the environment in FairnessScheme(env, scheme)"
        ) from error
    for name in ("granted", "mask"):
        flags = np.asarray(getattr(event, name))
        if not ((flags == 0) | (flags == 1)).all():
            raise ValueError(f"{name} of the fair_event must be 0 or 1, got {flags.tolist()}")
    return event


def relabelled(recompute: Recompute, memory: Array, action: Array, event: Array) -> tuple[Array, Array]:
    """Next memories (m, dim) and rewards (m,) of transitions that begin with the memories (m, dim).

    :raises ValueError: if the memory misbehaves
    """
    following, rewards = recompute(memory, action, event)
    name, low, high = recompute.memory.name, recompute.memory.low, recompute.memory.high
    if following.shape != memory.shape or rewards.shape != memory.shape[:1]:
        raise ValueError(f"update of the memory {name!r} must return {memory.shape}, got {following.shape}")
    for numbers in (memory, following):
        if not ((numbers >= low) & (numbers <= high)).all():
            raise ValueError(f"memory {name!r} must stay between low {low} and high {high}, got {numbers.tolist()}")
    if not np.isfinite(rewards).all():
        raise ValueError(f"welfare must be finite for every memory from {low} to {high}, got {rewards.tolist()}")
    return following, rewards


def check_real(memory: Memory, following: Array, rewards: Array, next_memory: Array, paid: Array) -> None:
    """:raises ValueError: if real transitions are not what the memory and the scheme say"""
    for name, computed, real in (("next memories", following, next_memory), ("rewards", rewards, paid)):
        wrong = np.abs(computed - real) > TOLERANCE + TOLERANCE * np.abs(real)
        if wrong.any():
            row = np.flatnonzero(wrong.any(axis=tuple(range(1, wrong.ndim))))[0]
            raise ValueError(
                f"memory {memory.name!r} and scheme must be the environment's, whose reward is base + mask * B * W(U) "
                f"of info['fair_event']: {name} such as {real[row].tolist()} are recomputed as {computed[row].tolist()}"
            )
