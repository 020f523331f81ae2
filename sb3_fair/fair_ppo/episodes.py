"""Figures of the episodes that ended, and their exponential averages."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
MEMORY = 0.95
"""What an average keeps of its value when another episode ends."""


class Episodes(NamedTuple):
    """E worlds whose episodes ended in one step.

    :param disparity: (E,) D
    :param size: (E,) m
    :param level: (E,) mean of abs(R_x) over those who are compared
    :param returns: label of a group -> (members,) returns of its members
    """

    disparity: Array
    size: Array
    level: Array
    returns: Mapping[int, Array]


class Averages:
    """Exponential averages over episodes, each under its own name; an average starts at its first figure."""

    def __init__(self) -> None:
        self._averages: dict[tuple[int, ...], float] = {}

    def learn(self, names: Ints, figures: Array) -> None:
        """Takes figures (n, ...) under names (..., k) in, in their order; undefined ones are passed over."""
        found: dict[tuple[int, ...], list[float]] = {}
        names = np.broadcast_to(names, (*figures.shape, names.shape[-1]))
        for name, figure in zip(_tuples(names), figures.ravel().tolist(), strict=True):
            if not np.isnan(figure):
                found.setdefault(name, []).append(figure)
        for name, several in found.items():
            self._averages[name] = renewed(self._averages.get(name), np.array(several))

    def look_up(self, names: Ints) -> Array:
        """The averages (...) under names (..., k), NaN where there is none."""
        found = [self._averages.get(name, np.nan) for name in _tuples(names)]
        return np.array(found, dtype=np.float64).reshape(names.shape[:-1])


def names_of(*labels: Ints) -> Ints:
    """All combinations of labels (L,), (G,), ... as names, (L, G, ..., k)."""
    return np.stack(np.meshgrid(*labels, indexing="ij"), axis=-1)


def _tuples(names: Ints) -> Iterator[tuple[int, ...]]:
    return map(tuple, names.reshape(-1, names.shape[-1]).tolist())


def renewed(average: float | None, figures: Array) -> float:
    """An exponential average after some more figures (n,), n > 0, in their order; None: they are the first."""
    start = float(figures[0]) if average is None else average
    weights = (1 - MEMORY) * MEMORY ** np.arange(len(figures) - 1, -1, -1.0)
    return float(MEMORY ** len(figures) * start + weights @ figures)
