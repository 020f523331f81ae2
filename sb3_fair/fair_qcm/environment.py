"""Checks that an environment and its steps fit counterfactual memories: memory, raw observations, time, rewards."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_fair.common.interruption import mark_of_reset
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.events import FairEvent, told_events
from sb3_fair.wrappers.layer import attribute, max_steps_of, shows_time
from sb3_fair.wrappers.memories import Memory, MemoryLike, bounds, parts_of
from sb3_fair.wrappers.memory import MEMORY, VecMemoryAugmentation
from sb3_fair.wrappers.recompute import Recompute

Array: TypeAlias = NDArray[Any]
TOLERANCE = 1e-3
"""Rewards and memories are stored as float32, so what is recomputed differs from them a little."""
CERTAIN = 10
"""If so many first episodes all terminate at the limit of steps, it is a time limit and no goal that ends them."""


def memory_of(venv: VecEnv) -> Memory | None:
    """The memory in the environment's observations, None if there is none."""
    return attribute(venv, "memory", kind=Memory)


def remembering(venv: VecEnv, memory: MemoryLike | None = None) -> VecEnv:
    """``venv``, a memory added to its observations if there is none.

    :param memory: which one; None: the environment's ``default_memory``, else ``"full"``
    :raises ValueError: if the environment has another memory already, or VecNormalize inside
    """
    own = memory_of(venv)
    if own is not None:
        if memory is not None and _name(memory) != own.name:
            raise ValueError(
                f"memory must be None for an environment that has one already ({own.name!r}), got {_name(memory)!r}"
            )
        return venv
    if unwrap_vec_normalize(venv) is not None:
        raise ValueError(
            "env must have its memory inside VecNormalize: VecNormalize(VecMemoryAugmentation(venv), "
            "norm_obs_keys=['state'])"
        )
    return VecMemoryAugmentation(venv, memory or attribute(venv, "default_memory") or "full")


def _name(memory: Any) -> str:
    if isinstance(memory, str):
        return memory.replace(" ", "")
    return memory.name if isinstance(memory, Memory) else "+".join(_name(part) for part in memory)


def check_raw(normaliser: VecNormalize | None) -> None:
    """:raises ValueError: if ``normaliser`` changes the memory, whose raw numbers are relabelled and encoded"""
    if normaliser is not None and normaliser.norm_obs and MEMORY in (normaliser.norm_obs_keys or (MEMORY,)):
        raise ValueError(
            f"norm_obs_keys of VecNormalize must leave out {MEMORY!r}, whose raw numbers are needed, got "
            f"{normaliser.norm_obs_keys}"
        )


class TimedEnds:
    """Notices episodes that terminate at a time which nothing shows, in environments that do not say how they end.

    :param limit: the limit of steps; None: the time is shown, or there is no limit
    :param venv: may be in the middle of its episodes, which do not count then
    """

    def __init__(self, limit: int | None, venv: VecEnv) -> None:
        self.limit = limit
        self._steps = np.zeros(venv.num_envs, dtype=np.int64)
        self._watched = np.zeros(venv.num_envs, dtype=np.bool_)
        """Whether the episode was seen from its beginning."""
        self._reset = mark_of_reset(venv)
        self._found = 0

    def look(self, venv: VecEnv, infos: Sequence[dict[str, Any]], dones: NDArray[np.bool_]) -> None:
        """Takes note of a step of all copies.

        :raises ValueError: if all episodes so far terminated at the limit
        """
        if self.limit is None:
            return
        if mark_of_reset(venv) is not self._reset:
            self._reset = mark_of_reset(venv)
            self._steps[:], self._watched[:] = 0, True
        self._steps += 1
        truncated = [infos[index].get("TimeLimit.truncated", False) for index in np.flatnonzero(dones).tolist()]
        whole = dones & self._watched
        if any(truncated) or (self._steps[whole] != self.limit).any():
            self.limit = None
            return
        self._steps[dones], self._watched[dones] = 0, True
        self._found += int(np.count_nonzero(whole))
        if self._found >= CERTAIN:
            raise ValueError(
                f"env must truncate episodes at its limit of {self.limit} steps unless the time is in the memory "
                "(memory='full+clock') or in the observation (tell so by its attribute clock = True), got "
                f"{self._found} that terminated there: targets of last steps would spoil the others"
            )


def check_time(venv: VecEnv, memory: Memory, scheme: Scheme) -> TimedEnds:
    """Does everything that depends on time see the time? Counterfactual memories do not give it away as real ones do.

    :return: what looks at the ends of episodes in training, for environments that do not say how theirs end
    :raises ValueError: if nothing shows the time, and episodes terminate at a time or fairness is assessed at times
    """
    if shows_time(venv):
        return TimedEnds(None, venv)
    periods: list[Any] = [getattr(part, "period", None) for part in parts_of(memory) if getattr(part, "ticking", False)]
    clock, when = None in periods, scheme.when
    if attribute(venv, "end", kind=str) == "terminated" and not clock:
        raise ValueError(
            "end must be 'truncated' unless the time is in the observation (clock=True) or in the memory "
            f"(memory='{memory.name}+clock'), got 'terminated': targets of last steps would spoil the others"
        )
    if when == "end" and not clock:
        raise ValueError(
            f"memory must have a clock for a scheme assessed at the end, as '{memory.name}+clock' (of an object: "
            "(object, 'clock'))"
        )
    if isinstance(when, tuple) and not clock and all(period % when[1] for period in periods):
        raise ValueError(
            f"memory must have a counter for a scheme assessed every {when[1]} steps, as "
            f"'{memory.name}+counter({when[1]})' (of an object: (object, 'counter({when[1]})'))"
        )
    return TimedEnds(None if clock else max_steps_of(venv), venv)


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


def relabelled(
    recompute: Recompute, memory: Array, action: Array, event: Array, real: Any, next_memory: Array, paid: Array
) -> tuple[Array, Array]:
    """Next memories (m, dim) and rewards (m,) of transitions that begin with the memories (m, dim).

    :param real: index of those that happened, with ``next_memory`` (r, dim) and the reward ``paid`` (r,)
    :raises ValueError: if the memory misbehaves, or real transitions are not what the memory and the scheme say
    """
    following, rewards = recompute(memory, action, event)
    name, (low, high) = recompute.memory.name, bounds(recompute.memory)
    if following.shape != memory.shape or rewards.shape != memory.shape[:1]:
        raise ValueError(f"update of the memory {name!r} must return {memory.shape}, got {following.shape}")
    for numbers in (memory, following):
        if not ((numbers >= low) & (numbers <= high)).all():
            raise ValueError(f"memory {name!r} must stay between low {low} and high {high}, got {numbers.tolist()}")
    if not np.isfinite(rewards).all():
        raise ValueError(f"welfare must be finite for every memory from {low} to {high}, got {rewards.tolist()}")
    compared = (("next memories", following[real], next_memory), ("rewards", rewards[real], paid))
    for what, computed, found in compared:
        wrong = np.abs(computed - found) > TOLERANCE + TOLERANCE * np.abs(found)
        if wrong.any():
            row = np.flatnonzero(wrong.any(axis=tuple(range(1, wrong.ndim))))[0]
            raise ValueError(
                f"memory {name!r} and scheme must be the environment's, whose reward is base + mask * B * W(U) of "
                f"info['fair_event']: {what} such as {found[row].tolist()} are recomputed as {computed[row].tolist()} "
                "(the same happens if something resets the environment during learning, as an EvalCallback on it does)"
            )
    return following, rewards
