"""Sums over the last steps of each episode."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Recent:
    """Sums over the last steps of n episodes. The arrays that it hands out are never changed afterwards.

    :param shape: (n, ...) of what comes up in a step
    :param window: how many steps before the last one count too; None: all since the episode began
    :param dtype: of the sums
    """

    def __init__(self, shape: tuple[int, ...], window: int | None, dtype: DTypeLike = np.float64) -> None:
        self.total: NDArray[Any] = np.zeros(shape, dtype)
        """Over the window of the last step (n, ...)."""
        self._past = None if window is None else np.zeros((window + 1, *shape), dtype)
        self._oldest = 0

    @property
    def staying(self) -> NDArray[Any]:
        """What of the total will be in the coming step's window too (n, ...)."""
        return self.total if self._past is None else self.total - self._past[self._oldest]

    def add(self, counts: NDArray[Any]) -> None:
        """Goes on by a step in which ``counts`` (n, ...) came up."""
        self.total = self.staying + counts
        if self._past is not None:
            self._past[self._oldest] = counts
            self._oldest = (self._oldest + 1) % len(self._past)

    def restart(self, which: NDArray[np.intp], counts: Any = 0) -> None:
        """Nothing has come up in the episodes ``which`` (k,) but, in one step, ``counts`` (k, ...)."""
        self.total = self.total.copy()
        self.total[which] = counts
        if self._past is not None:
            self._past[:, which] = 0
            self._past[self._oldest - 1, which] = counts
