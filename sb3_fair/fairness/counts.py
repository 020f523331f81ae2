"""How do the counts behind the group notions follow a history, in O(1) per step?

Per copy a ring remembers the *code* of each recent decision: its group column and its cell in one integer, 0 where
the slot is empty. A decision adds one at its code, takes one away at the code it overwrites, and late feedback moves
one from code to code. Codes of column 0 are counted as well and never looked at: no case is special.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.history import History
from sb3_fair.fairness.notions import CELLS
from sb3_fair.fairness.partition import Partition

Rows: TypeAlias = Any  # the copies concerned: slice(None), or their indices (m,)


class GroupCounts:
    """Counts of one partition per copy, group and cell.

    :param n: number of copies
    :param history: equal weights; :class:`DiscountedCounts` has the others
    """

    def __init__(self, n: int, history: History, partition: Partition) -> None:
        self.partition = partition
        self.capacity = history.decisions
        self._forgets = history.forgets
        self._n = n
        self._codes = np.zeros(n * self.capacity, dtype=np.int32)
        self._slots = np.arange(n) * self.capacity
        self._shape(max(3, partition.size))

    def _shape(self, columns: int) -> None:
        """Room for ``columns`` groups in ``counts`` (n, columns, CELLS); what was counted stays."""
        counts = np.zeros((self._n, columns, CELLS))
        if hasattr(self, "counts"):
            counts[:, : self.counts.shape[1]] = self.counts
        self.counts = counts
        self._flat = counts.reshape(-1)
        self._copies = np.arange(self._n) * (columns * CELLS)

    @property
    def compared(self) -> NDArray[np.float64]:
        """Counts (n, groups, CELLS) without column 0."""
        return self.counts[:, 1:]

    def add(
        self, rows: Rows, order: NDArray[np.int64], cells: NDArray[np.int8], columns: NDArray[np.intp]
    ) -> None:
        """One decision for each of the copies ``rows``.

        :param order: (m,) how many decisions the copy has seen before since its reset
        :param cells: (m,), see :func:`cells_of`
        :param columns: (m,) from the partition
        """
        if self.partition.size > self.counts.shape[1]:
            self._shape(2 * self.partition.size)
        codes = columns * CELLS + cells
        slots = self._slots[rows] + order % self.capacity
        self._count(rows, self._copies[rows], codes, self._codes.take(slots))
        self._codes[slots] = codes

    def _count(self, rows: Rows, copies: NDArray[Any], codes: NDArray[Any], gone: NDArray[Any]) -> None:
        flat = self._flat
        if self._forgets:
            flat[copies + gone] -= 1
        flat[copies + codes] += 1

    def move(self, copy: int, age: int, order: int, cell: int) -> None:
        """The decision number ``order`` of a copy, ``age`` decisions ago, now belongs into ``cell``."""
        slot = self._slots[copy] + order % self.capacity
        code = self._codes[slot]
        self._codes[slot] = code - code % CELLS + cell
        self._flat[self._copies[copy] + code] -= 1
        self._flat[self._copies[copy] + self._codes[slot]] += 1

    def reset(self, rows: Rows, seen: int) -> None:
        """Empties the copies ``rows``, which have seen at most ``seen`` decisions."""
        self._codes.reshape(self._n, self.capacity)[rows, :seen] = 0
        self.counts[rows] = 0


class DiscountedCounts(GroupCounts):
    """Sums of factor ** age instead of numbers; ``members`` has the numbers, so that what is empty is exactly 0."""

    def __init__(self, n: int, history: History, partition: Partition) -> None:
        self._factor = history.factor
        super().__init__(n, history, partition)

    def _shape(self, columns: int) -> None:
        super()._shape(columns)
        members = np.zeros(self.counts.shape, dtype=np.int64)
        if hasattr(self, "members"):
            members[:, : self.members.shape[1]] = self.members
        self.members = members

    def _count(self, rows: Rows, copies: NDArray[Any], codes: NDArray[Any], gone: NDArray[Any]) -> None:
        self.counts[rows] *= self._factor
        self._flat[copies + codes] += 1
        self.members.reshape(-1)[copies + codes] += 1
        self._take_away(copies + gone, self._factor**self.capacity)

    def _take_away(self, codes: NDArray[Any], weights: Any) -> None:
        np.subtract.at(self._flat, codes, weights)
        np.subtract.at(self.members.reshape(-1), codes, 1)
        self.counts[self.members == 0] = 0.0

    def drop(self, seen: NDArray[np.int64], kept: NDArray[np.int64], keep: NDArray[np.int64]) -> None:
        """Forgets all but the ``keep`` newest decisions of each copy.

        :param seen: (n,) decisions since reset
        :param kept: (n,) decisions that were still counted
        """
        dropped = kept - keep
        copies = np.repeat(np.arange(self._n), dropped)
        age = np.repeat(kept, dropped) - 1 - (np.arange(len(copies)) - np.repeat(np.cumsum(dropped) - dropped, dropped))
        slots = self._slots[copies] + (seen[copies] - 1 - age) % self.capacity
        codes = self._copies[copies] + self._codes[slots]
        self._codes[slots] = 0
        self._take_away(codes, self._factor**age)

    def move(self, copy: int, age: int, order: int, cell: int) -> None:
        """As for equal weights, but summed anew: the largest weight may leave a cell of tiny ones."""
        super().move(copy, age, order, cell)
        codes = self._codes.reshape(self._n, self.capacity)[copy]
        slots = np.flatnonzero(codes)
        ages = (order + age - slots) % self.capacity
        weights = self._factor ** ages.astype(float)
        shape = self.counts.shape[1:]
        self.counts[copy] = np.bincount(codes[slots], weights, self.counts[copy].size).reshape(shape)
        self.members[copy] = np.bincount(codes[slots], minlength=self.counts[copy].size).reshape(shape)
