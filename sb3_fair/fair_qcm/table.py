"""Q-table that grows with the states it meets."""

from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Codes: TypeAlias = NDArray[np.int64]

UNSEEN = -1
"""The place of every state that has no entry: the last one, which keeps the initial value."""
EMPTY = -1
SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Fibonacci hashing: multiples of the golden ratio lie far apart."""


class QTable:
    """Q-values and visits of states, which have codes: integers from 0 on.

    As long as codes are small, the code is the place; else places are found by hashing (open addressing, linear
    probing), and only states that were learned about take space.

    :param n_actions: entries per state
    :param initial_value: Q-value of what was never learned
    :param most_dense: largest number of states that have a place of their own each
    """

    def __init__(self, n_actions: int, initial_value: float = 0.0, most_dense: int = 2**22) -> None:
        self.n_actions, self.initial_value, self.most_dense = n_actions, float(initial_value), most_dense
        self._clear()

    def _clear(self) -> None:
        self.keys: Codes | None = None
        self.n_states = 0
        """Where places are hashed: how many are taken."""
        self._allocate(1024)

    def _allocate(self, capacity: int) -> None:
        self.capacity = capacity
        self.values: NDArray[np.float64] = np.full((self.n_actions, capacity + 1), self.initial_value)
        self.visits: NDArray[np.int32] = np.zeros(capacity + 1, dtype=np.int32)
        self._last_row: NDArray[np.int32] = np.zeros(self.values.size, dtype=np.int32)

    # ---------------------------------------------------------------- places

    def find(self, codes: Codes) -> NDArray[np.intp]:
        """Places of the states ``codes`` (k,), ``UNSEEN`` for those that have none."""
        if self.keys is None:
            return np.where(codes < self.capacity, codes, UNSEEN)
        places = self._probe(self.keys, codes)
        return np.where(self.keys[places] == codes, places, UNSEEN)

    def add(self, codes: Codes) -> NDArray[np.intp]:
        """Places of the states ``codes`` (k,), which get one if they have none; earlier places may be void then."""
        if self.keys is None:
            needed = int(codes.max()) + 1
            if needed <= self.most_dense:
                if needed > self.capacity:
                    self._move(min(max(needed, 2 * self.capacity), self.most_dense))
                return codes
            self._move(self.capacity, hashed=True)
        if 2 * (self.n_states + len(codes)) > self.capacity:
            self._move(4 * (self.n_states + len(codes)), hashed=True)
        return self._claim(codes)

    def _probe(self, keys: Codes, codes: Codes) -> NDArray[np.intp]:
        """Where each code is, or the first empty place where it could be."""
        bits = np.uint64(64 - (len(keys).bit_length() - 1))
        places = ((codes.astype(np.uint64) * SPREAD) >> bits).astype(np.intp)
        pending = np.arange(len(codes))
        while len(pending):
            found = keys[places[pending]]
            pending = pending[(found != codes[pending]) & (found != EMPTY)]
            places[pending] = (places[pending] + 1) & (len(keys) - 1)
        return places

    def _claim(self, codes: Codes) -> NDArray[np.intp]:
        assert self.keys is not None
        places = self._probe(self.keys, codes)
        pending = np.flatnonzero(self.keys[places] != codes)
        while len(pending):  # of several states that want the same place one gets it, the others look on
            self.n_states += len(np.unique(places[pending]))
            self.keys[places[pending]] = codes[pending]
            places[pending] = self._probe(self.keys, codes[pending])
            pending = pending[self.keys[places[pending]] != codes[pending]]
        return places

    def _move(self, capacity: int, hashed: bool = False) -> None:
        """All that was learned into a table of at least ``capacity`` places."""
        values, visits = self.values[:, :-1], self.visits[:-1]
        if not hashed:
            old = new = np.arange(self.capacity)
            self._allocate(capacity)
        else:
            codes, old = self._learned()
            self._allocate(1 << max(capacity - 1, 2 * len(old)).bit_length())
            self.keys, self.n_states = np.full(self.capacity, EMPTY, dtype=np.int64), 0
            new = self._claim(codes)
        self.values[:, new], self.visits[new] = values[:, old], visits[old]

    # ---------------------------------------------------------------- as arrays

    def arrays(self) -> dict[str, Array]:
        """Codes (k,), values (n_actions, k) and visits (k,) of the states that were learned about."""
        codes, places = self._learned()
        return {"codes": codes, "values": self.values[:, places], "visits": self.visits[places]}

    def set_arrays(self, arrays: dict[str, Array]) -> None:
        """Takes over what :meth:`arrays` told of a table with the same initial value."""
        self._clear()
        codes = arrays["codes"].astype(np.int64)
        if len(codes):
            places = self.add(codes)
            self.values[:, places], self.visits[places] = arrays["values"], arrays["visits"]

    def _learned(self) -> tuple[Codes, NDArray[np.intp]]:
        """Codes of the states that were learned about, and their places."""
        values, visits, keys = self.values[:, :-1], self.visits[:-1], self.keys
        learned = ((values != self.initial_value).any(axis=0) | (visits > 0)) if keys is None else keys != EMPTY
        places = np.flatnonzero(learned)
        return (places if keys is None else keys[places]), places

    # ---------------------------------------------------------------- learning

    def learn(self, places: NDArray[np.intp], actions: Array, targets: Array, learning_rate: float) -> None:
        """Moves the entries of ``places`` and ``actions`` (k,) towards their targets (k,).

        An entry that occurs once moves as always, Q += learning_rate (target - Q). One that occurs j times moves
        towards the mean of its targets by the share 1 - (1 - learning_rate)^j: the mean over all orders in which its
        targets could be applied in turn.
        """
        entries = actions * (self.capacity + 1) + places
        values = self.values.reshape(-1)
        self._last_row[entries] = np.arange(len(entries), dtype=np.int32)
        group = self._last_row[entries]
        times = np.bincount(group, minlength=len(entries))
        error = np.bincount(group, targets - values[entries], minlength=len(entries))
        often = np.arange(1, times.max() + 1)
        share = np.append(0.0, (1 - (1 - learning_rate) ** often) / often)
        values[entries] += (share[times] * error)[group]

    def best(self, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """Largest Q-value at each place, (k,)."""
        return reduce(np.maximum, (values[places] for values in self.values))
