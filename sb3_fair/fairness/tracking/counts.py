"""Counts behind the group notions, updated in O(1) per step.

Per copy a ring remembers the *code* of each recent decision: its group column and its cell in one integer, 0 where
the slot is empty. A decision adds one at its code, takes one away at the code it overwrites, and late feedback moves
one from code to code. Codes of column 0 are counted as well and never looked at: no case is special.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.histories.history import History
from sb3_fair.fairness.notions.table import CELLS
from sb3_fair.fairness.tracking.partition import Partition

Rows: TypeAlias = Any  # the copies concerned: slice(None), or their indices (m,)
_TINY = np.finfo(np.float64).tiny  # what is smaller has lost digits: times 0.9, the smallest number stays as it is


class GroupCounts:
    """Counts of one partition per copy, group and cell, with equal weights."""

    def __init__(self, n: int, history: History, partition: Partition) -> None:
        self.partition = partition
        self._forgets = history.forgets
        self._n = n
        self._codes = np.zeros(n * history.decisions, dtype=np.int64)
        self.counts = np.zeros((n, 0, CELLS))
        self._shape(max(3, partition.size))

    def _shape(self, columns: int) -> None:
        """Room for ``columns`` groups in ``counts`` (n, columns, CELLS); what was counted stays."""
        counts = np.zeros((self._n, columns, CELLS))
        counts[:, : self.counts.shape[1]] = self.counts
        self.counts = counts
        self._copies = np.arange(self._n) * (columns * CELLS)

    @property
    def _flat(self) -> NDArray[np.float64]:
        """The counts end to end; made each time, since copies and pickles would part a kept view from them."""
        return self.counts.reshape(-1)

    @property
    def compared(self) -> NDArray[np.float64]:
        """Counts (n, groups, CELLS) without column 0."""
        return self.counts[:, 1:]

    def add(self, rows: Rows, slots: NDArray[np.intp], cells: NDArray[np.uint8], columns: NDArray[np.intp]) -> None:
        """One decision for each of the copies ``rows``, at the places ``slots`` (m,) of all rings end to end."""
        if self.partition.size > self.counts.shape[1]:
            self._shape(2 * self.partition.size)
        codes = columns * CELLS + cells
        self._count(rows, self._copies[rows], codes, self._codes.take(slots))
        self._codes[slots] = codes

    def _count(self, rows: Rows, copies: NDArray[Any], codes: NDArray[Any], gone: NDArray[Any]) -> None:
        if self._forgets:
            np.subtract.at(self._flat, copies + gone, 1.0)
        np.add.at(self._flat, copies + codes, 1.0)

    def move(self, copy: int, slot: int, cell: int, newest: int) -> None:
        """The decision in a slot now belongs into ``cell``; ``newest`` is the slot of the newest decision."""
        code = self._codes[slot]
        self._codes[slot] = code - code % CELLS + cell
        self._flat[self._copies[copy] + code] -= 1
        self._flat[self._copies[copy] + self._codes[slot]] += 1

    def reset(self, copies: NDArray[np.intp], seen: int) -> None:
        """Empties the copies, which have seen at most ``seen`` decisions."""
        self._codes.reshape(self._n, -1)[copies, :seen] = 0
        self.counts[copies] = 0


class DiscountedCounts(GroupCounts):
    """Sums of factor ** age instead of numbers; ``members`` has the numbers, so that what is empty is exactly 0."""

    def __init__(self, n: int, history: History, partition: Partition) -> None:
        self._factor = history.factor
        self.members = np.zeros((n, 0, CELLS), dtype=np.int64)
        super().__init__(n, history, partition)

    def _shape(self, columns: int) -> None:
        super()._shape(columns)
        members = np.zeros(self.counts.shape, dtype=np.int64)
        members[:, : self.members.shape[1]] = self.members
        self.members = members

    def _count(self, rows: Rows, copies: NDArray[Any], codes: NDArray[Any], gone: NDArray[Any]) -> None:
        self.counts[rows] *= self._factor
        np.add.at(self._flat, copies + codes, 1.0)
        np.add.at(self.members.reshape(-1), copies + codes, 1)
        self._take_away(copies + gone, self._factor ** (len(self._codes) // self._n))

    def _take_away(self, codes: NDArray[Any], weights: Any) -> None:
        np.subtract.at(self._flat, codes, weights)
        np.subtract.at(self.members.reshape(-1), codes, 1)
        self.counts[(self.members == 0) | (self.counts < _TINY)] = 0.0

    def reset(self, copies: NDArray[np.intp], seen: int) -> None:
        """Empties the copies, which have seen at most ``seen`` decisions."""
        super().reset(copies, seen)
        self.members[copies] = 0

    def drop(self, copies: NDArray[np.intp], slots: NDArray[np.intp], ages: NDArray[np.int64]) -> None:
        """Forgets the decisions in ``slots``, of ``copies``, so many decisions old; all (number of them,)."""
        codes = self._copies[copies] + self._codes[slots]
        self._codes[slots] = 0
        self._take_away(codes, self._factor ** ages.astype(float))

    def move(self, copy: int, slot: int, cell: int, newest: int) -> None:
        """As for equal weights, but then summed anew: the largest weight may have left a cell of tiny ones."""
        super().move(copy, slot, cell, newest)
        codes = self._codes.reshape(self._n, -1)[copy]
        slots = np.flatnonzero(codes)
        ages = (newest - slots) % len(codes)
        shape, size = self.counts[copy].shape, self.counts[copy].size
        self.counts[copy] = np.bincount(codes[slots], self._factor ** ages.astype(float), size).reshape(shape)
        self.members[copy] = np.bincount(codes[slots], minlength=size).reshape(shape)
