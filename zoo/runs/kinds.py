"""Settings of an algorithm from the command line or a YAML file, checked as its constructor's type hints say."""

import re
from collections.abc import Callable
from math import isfinite
from types import NoneType
from typing import Any

from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness.arguments import described, fits, hints
from sb3_fair.zoo.names import InputError

SCHEDULE = re.compile(r"lin(_\d[\d.]*(e-?\d+)?){1,2}")
"""A number that falls linearly to 0, as in rl-zoo: ``"lin_0.001"``; or to another one: ``"lin_0.3_0.02"``."""

_WORDS = {NoneType: "null", bool: "true or false", Callable: "a schedule such as lin_0.001", dict: "settings by name"}


def of_its_kind(cls: type, name: str, value: Any, what: str = "hyperparameter") -> Any:
    """``value`` for the argument ``name`` of an algorithm, a whole number as int where one is wanted.

    :raises InputError: if it is of another kind than the constructor says, or out of its range
    """
    if name.endswith("_kwargs") and not _is_finite(value):
        raise InputError(f"{what} {name!r} must be finite, got {value!r}")
    hint = hints(vars(cls)["__init__"], VecEnv=VecEnv).get(name, Any)  # SB3's aliases name VecEnv
    if isinstance(value, str) and SCHEDULE.fullmatch(value) and fits(name, SCHEDULE.fullmatch, hint):
        return value
    if isinstance(value, float) and value.is_integer() and not fits(name, value, hint):
        value = int(value)
    if not fits(name, value, hint):
        raise InputError(f"{what} {name!r} must be {described(name, value, hint, _WORDS)}, got {value!r}")
    return value


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict | list | tuple):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or isfinite(value)
