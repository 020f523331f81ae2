"""How much has been counted lately?"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Recent:
    """Sums over the last steps of n episodes.

    :param shape: (n, ...) of what is counted in a step
    :param window: how many steps before the last one count too; None: all since the episode began
    """

    def __init__(self, shape: tuple[int, ...], window: int | None) -> None:
        self.total = np.zeros(shape)
        """Over the window of the last step (n, ...)."""
        self._past = None if window is None else np.zeros((window + 1, *shape))
        self._steps = 0

    @property
    def staying(self) -> NDArray[np.float64]:
        """What of the total will be in the coming step's window too (n, ...)."""
        return self.total.copy() if self._past is None else self.total - self._past[self._steps % len(self._past)]

    def add(self, counted: NDArray[Any]) -> None:
        """Goes on by a step in which ``counted`` (n, ...) came up."""
        self.total = self.staying + counted
        if self._past is not None:
            self._past[self._steps % len(self._past)] = counted
        self._steps += 1

    def restart(self, which: NDArray[np.intp]) -> None:
        """Nothing has been counted in ``which`` (k,)."""
        self.total[which] = 0
        if self._past is not None:
            self._past[:, which] = 0
