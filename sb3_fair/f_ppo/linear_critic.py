"""LinearCritic: values of states that are linear in the numbers that describe a state."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
MEMORY = 0.95
"""What earlier transitions count when others come in."""
RIDGE = 5e-5
"""In mean variances of the numbers: keeps slopes small where states hardly vary."""


class LinearCritic:
    """Values w . (x, 1) of states x by least-squares temporal differences, with forgetting.

    Source: Bradtke and Barto, "Linear Least-Squares Algorithms for Temporal Difference Learning", 1996. It has
    no hyperparameters to tune, and learns slopes as soon as states vary, however slowly they change.

    :param gamma: discount factor in [0, 1]
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma
        self.rollouts = 0
        self.moments = self.system = self.signals = np.zeros(1)

    def fit(self, before: Array, after: Array, signal: Array, ended: NDArray[np.bool_]) -> None:
        """Takes transitions in.

        :param before: (n, d) states
        :param after: (n, d) the states after them
        :param signal: (n,) what each transition brought
        :param ended: (n,) whether nothing comes after it
        """
        now = _with_one(before)
        then = _with_one(after) * ~ended[:, None]
        forget = MEMORY if self.rollouts else 0.0
        self.moments = forget * self.moments + now.T @ now
        self.system = forget * self.system + now.T @ (now - self.gamma * then)
        self.signals = forget * self.signals + now.T @ signal
        count, total = self.moments[-1, -1], self.moments[-1, :-1]
        variance = (np.trace(self.moments) - count - total @ total / count) / max(len(total), 1)
        ridge = np.full(len(self.signals), RIDGE * variance + 1e-9)
        ridge[-1] = 1e-9 * count  # for gamma = 1, where any intercept would do
        self.weights = np.linalg.solve(self.system + np.diag(ridge), self.signals)
        self.rollouts += 1

    def values(self, states: Array) -> Array:
        """Of states (n, d), (n,); 0 before the first fit."""
        return _with_one(states) @ self.weights if self.rollouts else np.zeros(len(states))


def _with_one(states: Array) -> Array:
    return np.hstack((states, np.ones((len(states), 1))))
