"""Settings of a scenario: dataclass fields with unit and source, checked by their type hints when they are made."""

from collections.abc import Sequence
from dataclasses import field, fields
from typing import Annotated, Any, TypeAlias, TypeGuard, TypeVar

import numpy as np

from sb3_fair.fairness.arguments import Range
from sb3_fair.fairness.validation import did_you_mean

Config = TypeVar("Config")
TwoOrMore: TypeAlias = Annotated[int, Range("[2, 1_000_000]")]
"""A number of people, places or countries to be fair among."""


def parameter(default: Any, unit: str, source: str) -> Any:
    """A dataclass field with its unit and where its default comes from."""
    return field(default=default, metadata={"unit": unit, "source": source})


def configure(config: type[Config], settings: dict[str, Any]) -> Config:
    """``config(**settings)``; an unknown name is a TypeError that names the nearest known one."""
    known = [entry.name for entry in fields(config)]  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            raise TypeError(f"unknown setting {name!r}{did_you_mean(name, known)}; known are {', '.join(known)}")
    return config(**settings)


def several(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether a setting is a sequence of values, rather than one."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
