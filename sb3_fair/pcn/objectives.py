"""Objectives that PCN optimises, and settings per objective."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
PerObjective: TypeAlias = float | Sequence[float] | Array | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Objectives:
    """The k optimised ones among the K objectives of an environment.

    :param all_names: of the entries of the vector reward, (K,)
    :param columns: the optimised entries, (k,)
    :param discounts: discount factor of the return-to-go, (k,)
    :param held: which keep their command for the whole episode, (k,)
    """

    all_names: tuple[str, ...]
    columns: NDArray[np.int64]
    discounts: Array
    held: NDArray[np.bool_]

    @classmethod
    def choose(
        cls,
        all_names: Sequence[str],
        chosen: Sequence[str | int] | None = None,
        gamma: float = 1.0,
        held: Mapping[str, float] | None = None,
    ) -> "Objectives":
        """
        :param chosen: names or indices; None: all
        :param held: name -> discount factor of the objectives that keep their command
        :raises ValueError: if an objective does not exist or is named twice, or a discount factor is not in (0, 1]
        """
        all_names = tuple(all_names)
        columns = [_column(objective, all_names) for objective in (range(len(all_names)) if chosen is None else chosen)]
        if not columns or len(set(columns)) < len(columns):
            raise ValueError(f"objectives must be at least one objective, none of them twice, got {chosen!r}")
        names = [all_names[column] for column in columns]
        held = held or {}
        _check_known("held", held, names)
        for argument, discount in (("gamma", gamma), *((f"held[{name!r}]", held[name]) for name in held)):
            if not 0 < discount <= 1:
                raise ValueError(f"{argument} must be in (0, 1], got {discount!r}")
        return cls(
            all_names,
            np.array(columns, dtype=np.int64),
            np.array([held.get(name, gamma) for name in names], dtype=np.float64),
            np.array([name in held for name in names]),
        )

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the optimised objectives."""
        return tuple(self.all_names[column] for column in self.columns)

    def numbers(self, argument: str, value: PerObjective, missing: float = np.nan) -> Array:
        """One number per optimised objective, (k,), from one for all, a sequence, or a dict by name.

        :param missing: stands for what a dict leaves out
        :raises ValueError: if names or shape do not fit, or a number is NaN; names the ``argument``
        """
        numbers: Any = value
        if isinstance(value, Mapping):
            _check_known(argument, value, self.names)
            numbers = [value.get(name, missing) for name in self.names]
        numbers = np.asarray(numbers, dtype=np.float64)
        if numbers.shape not in ((), (len(self),)) or np.isnan(numbers).any():
            raise ValueError(f"{argument} must be one number per optimised objective {self.names}, got {value!r}")
        return np.broadcast_to(numbers, (len(self),)).copy()


def _column(objective: str | int, all_names: tuple[str, ...]) -> int:
    if objective in all_names:
        return all_names.index(str(objective))
    if isinstance(objective, int | np.integer) and 0 <= objective < len(all_names):
        return int(objective)
    raise ValueError(f"objectives must be among {all_names} or their indices, got {objective!r}")


def _check_known(argument: str, named: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = sorted(set(named) - set(names))
    if unknown:
        raise ValueError(f"{argument} must be about the optimised objectives {tuple(names)}, got {unknown}")
