"""Group notions over time: of the latest decisions at every row, and the moments where one leaves its limit."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.audit.decisions import Attribute
from sb3_fair.audit.limits import below
from sb3_fair.audit.resampling import Array, notion_intervals
from sb3_fair.fairness.notions.table import CELLS, FeedbackMissing, GapTable, GroupNotion

MOST_OVER_TIME = 50
"""Groups of an attribute that is followed over time."""
_BLOCK = 2**13
"""RollingNotions computed at once: their counts fit into the cache of a core."""


class Run(NamedTuple):
    """Successive rows at which a notion is below its limit, and its lowest value there."""

    first: int
    last: int
    worst: float


class RollingNotions:
    """Group notions of the latest ``window`` decisions at every row.

    Nothing is kept but the codes of the log: values are computed when they are asked for, block by block.

    :param attributes: whose groups are compared
    :param cells: (n,) of the decisions in order of time
    :param notions: the group notions
    :param window: number of decisions
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        cells: NDArray[np.uint8],
        notions: Sequence[GroupNotion],
        window: int,
        feedback_missing: FeedbackMissing = "undefined",
    ) -> None:
        self.window = window
        self.notions = [notion.name for notion in notions]
        self._attributes = {attribute.name: attribute for attribute in attributes}
        self._cells = cells
        self._table = GapTable(notions, feedback_missing)

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes."""
        return list(self._attributes)

    def __len__(self) -> int:
        return len(self._cells)

    def values(self, attribute: str) -> Array:
        """Values (n, notions) at every row; NaN where undefined. The first rows see fewer than ``window`` decisions."""
        return np.concatenate([values for _, _, values in self._blocks(attribute)])

    def _blocks(self, attribute: str) -> Iterator[tuple[int, Array, Array]]:
        """First row, counts (m, groups, CELLS) and values (m, notions) of successive windows."""
        one = self._attributes[attribute]
        width = (len(one.labels) + 1) * CELLS
        used = np.zeros(width, dtype=bool)
        for start in range(0, len(self), 2**20):
            used[self._codes(one, start, min(start + 2**20, len(self)))] = True
        columns = np.flatnonzero(used)
        place = np.cumsum(used) - 1
        shown = columns[columns >= CELLS]  # without those in no group
        of_group = np.searchsorted(columns, CELLS)
        carry = np.zeros(len(columns), dtype=np.int64)
        for start in range(0, len(self), _BLOCK):
            stop = min(start + _BLOCK, len(self))
            change = np.zeros((stop - start, len(columns)), dtype=np.int32)
            change[np.arange(stop - start), place[self._codes(one, start, stop)]] = 1
            gone = np.arange(max(start, self.window), stop)
            if len(gone):
                old = place[self._codes(one, gone[0] - self.window, stop - self.window)]
                change[gone - start, old] -= 1
            change[0] += carry
            inside = np.cumsum(change, axis=0, out=change)
            carry = inside[-1]
            flat = np.zeros((stop - start, width - CELLS))
            flat[:, shown - CELLS] = inside[:, of_group:]
            counts = flat.reshape(stop - start, -1, CELLS)
            yield start, counts, self._table(counts)

    def _codes(self, attribute: Attribute, start: int, stop: int) -> NDArray[np.int64]:
        return attribute.codes[start:stop].astype(np.int64) * CELLS + self._cells[start:stop]

    def course(
        self,
        attribute: str,
        points: int,
        limits: Mapping[str, float],
        n_boot: int,
        rng: np.random.Generator,
        confidence: float,
    ) -> tuple[NDArray[np.int64], Array, dict[str, list[Run]]]:
        """Up to ``points`` rows (m,) with a whole window; there the values, both ends of their confidence intervals,
        and the lowest values since the row before, (4, m, notions); and where notions are below their ``limits``.

        :param n_boot: draws of each interval
        """
        first = self.window - 1
        rows = np.unique(np.linspace(first, len(self) - 1, points).astype(np.int64))
        shown = np.full((4, len(rows), len(self.notions)), np.nan)
        lowest = shown[3]
        runs: dict[str, list[Run]] = {name: [] for name in limits if name in self.notions}
        for start, counts, found in self._blocks(attribute):
            begin, end = np.searchsorted(rows, (start, start + len(found)))
            here = rows[begin:end] - start
            shown[0, begin:end] = found[here]
            for place, row in enumerate(here, start=begin):
                shown[1:3, place] = notion_intervals(counts[row], self._table, n_boot, rng, confidence).T
            skip = max(0, first - start)
            if skip < len(found):
                last = np.searchsorted(rows, start + len(found) - 1)
                edges = np.maximum(rows[begin:last] + 1 - start, skip)  # a row shown ends its bucket
                cut = np.unique(np.concatenate([[skip], edges]))
                buckets = np.searchsorted(rows, start + cut)
                lowest[buckets] = np.fmin(lowest[buckets], np.fmin.reduceat(found, cut, axis=0))
                for name, own in runs.items():
                    _add_runs(own, start + skip, found[skip:, self.notions.index(name)], limits[name], self.window)
        return rows, shown, runs


def _add_runs(runs: list[Run], start: int, values: Array, limit: float, window: int) -> None:
    """Appends those of the values at rows from ``start`` on. Two that are less than a window apart are one: they share
    decisions."""
    fell = np.concatenate([[False], below(values, limit), [False]])
    edges = np.flatnonzero(fell[1:] != fell[:-1]).reshape(-1, 2)
    for first, past in edges.tolist():
        run = Run(start + first, start + past - 1, float(values[first:past].min()))
        if runs and run.first - runs[-1].last < window:
            before = runs.pop()
            run = Run(before.first, run.last, min(before.worst, run.worst))
        runs.append(run)
