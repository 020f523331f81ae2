"""Reservoir sampling."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.histories.history import History


class Reservoir:
    """Vitter's algorithm R. Each copy has its own stream of random numbers, as if it were alone."""

    def __init__(self, n: int, history: History) -> None:
        seed: int = getattr(history, "seed", 0)
        self._size = history.people
        self._generators = [np.random.default_rng(seed) for _ in range(n)]

    def choose(self, copies: NDArray[np.intp], seen: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Which of the newcomers are kept, and in which slot: indices and slots, both (number kept,).

        :param seen: (m,) how many people each of the ``copies`` (m,) has seen before
        """
        slots = seen.copy()
        for index in np.flatnonzero(seen >= self._size):
            slots[index] = self._generators[copies[index]].integers(seen[index] + 1)
        chosen = np.flatnonzero(slots < self._size)
        return chosen, slots[chosen]
