"""Settings of scenarios as frozen dataclasses, and their checks."""

from dataclasses import field, fields
from typing import Any, TypeVar

import numpy as np

from sb3_fair.fairness.arguments import RANGES, check
from sb3_fair.fairness.validation import did_you_mean, number

Config = TypeVar("Config")


def parameter(default: Any, unit: str, source: str) -> Any:
    """A dataclass field with its unit and where its default comes from."""
    return field(default=default, metadata={"unit": unit, "source": source})


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


def require_one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """:raises ValueError: unless ``value`` is one of ``allowed``"""
    if not any(value is option or (type(value) is type(option) and value == option) for option in allowed):
        raise ValueError(f"{name} must be one of {allowed!r}, got {value!r}")
