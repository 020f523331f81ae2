"""Notions over time as inline SVG: where their points stand."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from sb3_fair.audit.result import Series

_FLOORS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 2.0)


class Chart:
    """A notion over time: x from the first row or time to the last one, y from 0 down to the ``floor``, in pixels."""

    width, height = 420, 170
    left, right, top, bottom = 44, 410, 10, 146

    def __init__(self, series: Series) -> None:
        drawn = (*series.low, *series.values, *series.lowest, series.limit)
        lowest_drawn = min((value for value in drawn if not math.isnan(value)), default=-0.1)
        self.floor = next((-end for end in _FLOORS if lowest_drawn >= -end), lowest_drawn)
        self.lowest = min((value for value in series.lowest if not math.isnan(value)), default=math.nan)
        self.names = series.times or [f"row {row:,}" for row in series.rows]
        steps = range(len(series.rows)) if series.times else [row - series.rows[0] for row in series.rows]
        self._x = [self.left + (self.right - self.left) * step / max(1, steps[-1]) for step in steps]

    def y(self, value: float) -> float:
        """Where a value stands."""
        return self.top + (self.bottom - self.top) * value / self.floor

    def points(self, indices: Iterable[int], values: Sequence[float]) -> str:
        """The ``points`` of an SVG line through some of the values."""
        return " ".join(f"{self._x[index]:.1f},{self.y(values[index]):.1f}" for index in indices)

    @staticmethod
    def parts(values: Sequence[float]) -> Iterator[list[int]]:
        """Indices of successive values that are defined."""
        for undefined, part in groupby(range(len(values)), key=lambda index: math.isnan(values[index])):
            if not undefined:
                yield list(part)
