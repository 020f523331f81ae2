"""Settings of a scenario: dataclass fields with unit, source and what is allowed, checked when they are made."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from types import NoneType
from typing import Any, TypeGuard, TypeVar, get_args

import numpy as np

from sb3_fair.fairness.arguments import RANGES, check
from sb3_fair.fairness.validation import did_you_mean, integer, number

Config = TypeVar("Config")


def parameter(default: Any, unit: str, source: str, allowed: Any = None) -> Any:
    """A dataclass field with its unit and where its default comes from.

    :param allowed: the values, as a tuple; or f(name, value) that raises a ValueError unless the value is allowed, such
        as :data:`COUNT`; None is allowed too where the annotation says so
    """
    return field(default=default, metadata={"unit": unit, "source": source, "allowed": allowed})


def choice(default: Any, allowed: tuple[Any, ...], source: str) -> Any:
    """A parameter that is one of a few names."""
    return parameter(default, ", ".join(allowed), source, allowed)


def switch(default: bool | None, source: str) -> Any:
    """A parameter that is True or False."""
    return parameter(default, "yes or no", source, SWITCH)


@dataclass(frozen=True)
class Settings:
    """Base of settings: each is checked by itself; what several of them must fulfil together, a subclass adds.

    :raises ValueError: if a setting is not allowed
    """

    def __post_init__(self) -> None:
        for entry in fields(self):
            value, allowed = getattr(self, entry.name), entry.metadata["allowed"]
            optional = NoneType in get_args(entry.type)
            if allowed is None or (optional and value is None):
                continue
            if isinstance(allowed, tuple):
                require_one_of(entry.name, value, (None, *allowed) if optional else allowed)
            else:
                allowed(entry.name, value)


def configure(config: type[Config], settings: dict[str, Any]) -> Config:
    """``config(**settings)``; an unknown name is a TypeError that names the nearest known one.

    :raises ValueError: if a size would need too much memory, or a setting is not allowed
    """
    known = [entry.name for entry in fields(config)]  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            raise TypeError(f"unknown setting {name!r}{did_you_mean(name, known)}; known are {', '.join(known)}")
        if name in RANGES and isinstance(settings[name], int) and settings[name] > RANGES[name].high:
            check(name, settings[name], int)
    return config(**settings)


def require_number(name: str, value: Any, low: float, high: float) -> None:
    """:raises ValueError: unless ``value`` is a number in [low, high]"""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not low <= value <= high:
        raise ValueError(f"{name} must be a number in [{low:g}, {high:g}], got {value!r}")


def require_not_negative(name: str, value: Any) -> None:
    """:raises ValueError: unless ``value`` is a finite number of at least 0"""
    if number(name, value) < 0:
        raise ValueError(f"{name} must not be negative, got {value!r}")


def several(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether a setting is a sequence of values, rather than one."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def require_each(name: str, values: Any, allowed: Any, meant: str, length: int) -> None:
    """:raises ValueError: unless ``values`` are so many, and each is ``allowed``; ``meant`` says it in words"""
    if not several(values) or len(values) != length:
        raise ValueError(f"{name} must be {meant}, got {values!r}")
    for value in values:
        allowed(f"each of {name}", value)


def require_one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """:raises ValueError: unless ``value`` is one of ``allowed``"""
    if not any(value is option or (type(value) is type(option) and value == option) for option in allowed):
        raise ValueError(f"{name} must be one of {allowed!r}, got {value!r}")


def between(low: float, high: float) -> Any:
    """What :func:`parameter` allows: a number in [low, high]."""
    return partial(require_number, low=low, high=high)


COUNT = partial(integer, low=1)
"""A whole number of at least 1."""
COUNT_OR_0 = partial(integer, low=0)
SHARE = between(0, 1)
"""A number in [0, 1]."""
SWITCH = (False, True)
