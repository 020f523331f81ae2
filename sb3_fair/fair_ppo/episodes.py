"""Figures of the episodes that ended, and their exponential averages."""

from collections.abc import Mapping
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
    :param level: (E,) mean of abs(R_x)
    :param returns: label of a group -> (members,) returns of its members
    """

    disparity: Array
    size: Array
    level: Array
    returns: Mapping[int, Array]


class Named(NamedTuple):
    """Figures (n, ...), each row of one of L kinds, and what they are of.

    :param names: (L, ..., k) whole numbers
    :param kinds: (n,) which of the L a row is of
    :param figures: (n, ...), NaN where undefined
    """

    names: Ints
    kinds: Ints
    figures: Array


class Averages:
    """Exponential averages over episodes, each under its own name; an average starts at its first figure."""

    def __init__(self) -> None:
        self._averages: dict[tuple[int, ...], float] = {}

    def learn(self, named: Named) -> None:
        """Takes figures in, in their order; undefined ones are passed over."""
        rows = [named.figures[named.kinds == kind] for kind in range(len(named.names))]
        for place in np.ndindex(named.names.shape[:-1]):
            figures = rows[place[0]][(slice(None), *place[1:])]
            figures = figures[~np.isnan(figures)]
            if len(figures):
                name = tuple(named.names[place].tolist())
                self._averages[name] = renewed(self._averages.get(name), figures)

    def look_up(self, names: Ints) -> Array:
        """The averages (L, ...) under names (L, ..., k), NaN where there is none."""
        found = [self._averages.get(tuple(name), np.nan) for name in names.reshape(-1, names.shape[-1]).tolist()]
        return np.array(found, dtype=np.float64).reshape(names.shape[:-1])


def renewed(average: float | None, figures: Array) -> float:
    """An exponential average after some more figures (n,), n > 0, in their order; None: they are the first."""
    start = float(figures[0]) if average is None else average
    weights = (1 - MEMORY) * MEMORY ** np.arange(len(figures) - 1, -1, -1.0)
    return float(MEMORY ** len(figures) * start + weights @ figures)
