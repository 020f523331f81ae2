"""Rewards and statuses of a fairness scheme in running episodes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.schemes.scheme import Scheme, one_each
from sb3_fair.fairness.schemes.statuses import Array


@checked
class SchemeTracker:
    """Status, welfare and assessment of ``n_copies`` episodes that move together.

    After each step the same numbers as :meth:`Scheme.values` gives for the whole episode.

    :param scheme: whose welfare and assessments
    :param n_copies: number of episodes
    :param n: number of stakeholders
    :raises ValueError: if a number is not a positive integer
    """

    def __init__(self, scheme: Scheme, n_copies: int, n: int) -> None:
        self.scheme = scheme
        self._welfare, self._period = scheme.W, scheme.period
        self.status: Array = np.zeros((n_copies, n))
        self._steps = np.zeros(n_copies, dtype=np.int64)

    def restart(self, which: Any = slice(None)) -> None:
        """New episodes in these copies (indices, slice or mask): everybody starts from 0."""
        self.status = self.status.copy()
        self.status[which] = 0.0
        self._steps[which] = 0

    def step(self, increments: ArrayLike, ended: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Each copy makes a step; ``status`` (n_copies, n) is a new array with what everybody has after it.

        :param increments: (n_copies, n) what is added to the status
        :param ended: (n_copies,) bool, whether this was the last step of its episode; :meth:`restart` begins the next
        :return: welfare (n_copies,) after the step, and whether it is assessed, (n_copies,) bool
        :raises ValueError: if the increments have another shape
        """
        before = self.status
        added = np.asarray(increments)
        if added.shape != before.shape:
            raise ValueError(f"increments must have the shape {before.shape}, got {added.shape}")
        if self.scheme.restart and self._period is not None:
            before = np.where((self._steps % self._period == 0)[:, None], 0.0, before)
        self._steps += 1
        self.status = before + added
        welfare = one_each("welfare", self._welfare(self.status), self.status)
        if self._period is not None:
            return welfare, self._steps % self._period == 0
        if self.scheme.when == "end":
            return welfare, np.array(ended, dtype=bool)
        return welfare, self.scheme.holds(self.status, before)
