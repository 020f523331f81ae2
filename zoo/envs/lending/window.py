"""The latest decisions of a bank."""

import numpy as np
from numpy.typing import NDArray

GRANTED, REPAYING, EXPECTED = 0, 1, 2
"""Kinds of counts: would-repay applicants with a loan; all of them; and how many of the rejected should be some."""


class DecisionWindow:
    """The latest decisions of n copies, counted.

    A decision is a code: 4 * cell + 2 * (would repay) + (loan granted), where cell = group * scores + score. Sums do
    not depend on their order: estimates are multiples of :attr:`grain`.

    :param n: copies
    :param size: decisions that are remembered
    :param n_groups: G
    :param n_scores: M
    """

    def __init__(self, n: int, size: int, n_groups: int, n_scores: int) -> None:
        self.grain = 2.0 ** ((size + 1).bit_length() - 52)
        """Unit of the estimates: the sum of a window of them, and of whole numbers, is exact."""
        self._rows = np.arange(n)
        self._nobody = 4 * n_groups * n_scores  # a code in a cell of its own
        code = np.arange(self._nobody + 1)
        cell, repays, granted = code >> 2, code & 2 > 0, code & 1 > 0
        kinds = np.stack([repays & granted, repays, ~granted])  # in the order of the kinds of counts
        counted = kinds[:, None] & (cell // n_scores == np.arange(n_groups)[:, None])
        self._counted = counted.reshape(-1, len(code)).astype(np.float64)
        self._codes = np.full((size, n), self._nobody, dtype=np.min_scalar_type(self._nobody))
        self._estimates = np.zeros((size, n))
        self._place = 0
        self.counts = np.zeros((3, n_groups, n))
        """By kind and group; never changed in place."""
        self._scores = np.zeros((n_groups * n_scores + 1, n), dtype=np.float32)
        self.sizes = np.zeros(n, dtype=np.float32)
        """Decisions in each window (n,)."""

    @property
    def scores(self) -> NDArray[np.float32]:
        """Decisions by cell (G * M, n)."""
        return self._scores[:-1]

    def add(self, codes: NDArray[np.int64], estimates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Takes in one decision of every copy, then drops the oldest one where the window is full.

        :param codes: (n,)
        :param estimates: (n,) expected outcome, which counts where no loan was granted
        :return: the counts (3, G, n) before the oldest one is dropped
        """
        oldest = self._codes[self._place].astype(np.int64)
        counts = self.counts + self._counts_of(codes, estimates)
        self.counts = counts - self._counts_of(oldest, self._estimates[self._place])
        scores, n = self._scores.reshape(-1), len(self._rows)
        scores[(codes >> 2) * n + self._rows] += 1
        scores[(oldest >> 2) * n + self._rows] -= 1
        self.sizes = np.minimum(self.sizes + 1, np.float32(len(self._codes)))
        self._codes[self._place] = codes
        self._estimates[self._place] = estimates
        self._place = (self._place + 1) % len(self._codes)
        return counts

    def clear(self, which: NDArray[np.intp]) -> None:
        """Forgets what the copies ``which`` decided."""
        self.counts = self.counts.copy()
        self.counts[:, :, which] = 0
        self._scores[:, which] = 0
        self.sizes[which] = 0
        self._codes[:, which] = self._nobody

    def _counts_of(self, codes: NDArray[np.int64], estimates: NDArray[np.float64]) -> NDArray[np.float64]:
        counts = self._counted.take(codes, axis=1).reshape(self.counts.shape)
        counts[EXPECTED] *= estimates
        return counts
