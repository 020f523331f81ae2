"""Is the value of a setting of the kind that the constructor of an algorithm says?"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import isfinite, isnan
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.zoo.names import InputError

SCHEDULE = re.compile(r"lin_\d[\d.]*(e-?\d+)?")
"""A number that falls linearly to 0, as in rl-zoo: ``"lin_0.001"``."""

ENDLESS = ("max_grad_norm", "max_return")
"""Settings that may be infinite: there is no bound then."""

_IS_A: dict[Any, Callable[[Any], bool]] = {
    NoneType: lambda value: value is None,
    bool: lambda value: isinstance(value, bool),
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    float: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    str: lambda value: isinstance(value, str),
    Callable: lambda value: isinstance(value, str) and bool(SCHEDULE.fullmatch(value)),
    **dict.fromkeys((dict, Mapping), lambda value: isinstance(value, dict)),
    **dict.fromkeys((tuple, list, Sequence), lambda value: isinstance(value, list | tuple)),
}


def of_its_kind(cls: type, name: str, value: Any) -> Any:
    """``value`` for the argument ``name`` of an algorithm, a whole number as int where one is wanted.

    :raises InputError: if it is of another kind than the constructor says, or is NaN or infinite
    """
    if not _is_finite(value, endless=name in ENDLESS):
        raise InputError(f"hyperparameter {name!r} must be finite, got {value!r}")
    hint = _hints(cls).get(name, Any)
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if _fits_any(value, kinds):
        return value
    if isinstance(value, float) and value.is_integer() and int in kinds:
        return int(value)
    raise InputError(f"hyperparameter {name!r} must be {' or '.join(map(_named, kinds))}, got {value!r}")


def _is_finite(value: Any, endless: bool) -> bool:
    if isinstance(value, dict):
        return all(_is_finite(entry, endless) for entry in value.values())
    if isinstance(value, list | tuple):
        return all(_is_finite(entry, endless) for entry in value)
    return not isinstance(value, float) or isfinite(value) or (endless and not isnan(value))


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls.__init__, localns={"VecEnv": VecEnv})  # type: ignore[misc]  # SB3's aliases name it


def _fits_any(value: Any, kinds: Sequence[Any]) -> bool:
    return any(_fits(value, kind) for kind in kinds)


def _fits(value: Any, kind: Any) -> bool:
    """What is no plain kind of YAML, such as a class, is left to the constructor."""
    origin = get_origin(kind) or kind
    if origin is Literal:
        return value in get_args(kind)
    if origin in (Union, UnionType):
        return _fits_any(value, get_args(kind))
    return _IS_A[origin](value) if origin in _IS_A else True


def _named(kind: Any) -> str:
    words = {NoneType: "null", bool: "true or false", int: "an integer", float: "a number", str: "a name"}
    if kind in words:
        return words[kind]
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    origin = get_origin(kind) or kind
    if origin is Callable:
        return "a schedule such as lin_0.001"
    return "settings by name" if origin in (dict, Mapping) else "a list"
