"""Checks that an environment fits FairQCM: memory, raw observations, time."""

from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.memories import Memory, MemoryLike
from sb3_fair.wrappers.memory import MEMORY, VecMemoryAugmentation


def memory_of(venv: VecEnv) -> Memory | None:
    """The memory in the environment's observations, None if there is none."""
    found = attribute(venv, "memory")
    return found if isinstance(found, Memory) else None


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


def check_time(venv: VecEnv, memory: Memory, scheme: Scheme) -> None:
    """Does everything that depends on time see the time? Counterfactual memories do not give it away as real ones do.

    :raises ValueError: if episodes terminate at a time, or fairness is assessed at times, that nothing shows
    """
    if attribute(venv, "clock", False):
        return
    parts = getattr(memory, "parts", (memory,))
    periods = [getattr(part, "period", None) for part in parts if getattr(part, "ticking", False)]
    clock, when = None in periods, scheme.when
    if attribute(venv, "end") == "terminated" and not clock:
        raise ValueError(
            "end must be 'truncated' unless the time is in the observation (clock=True) or in the memory "
            f"(memory='{memory.name}+clock'), got 'terminated': targets of last steps would spoil the others"
        )
    if when == "end" and not clock:
        raise ValueError(f"memory must have a clock for a scheme assessed at the end, as '{memory.name}+clock'")
    if isinstance(when, tuple) and not clock and all(period % when[1] for period in periods):
        raise ValueError(
            f"memory must have a counter for a scheme assessed every {when[1]} steps, as "
            f"'{memory.name}+counter({when[1]})'"
        )
