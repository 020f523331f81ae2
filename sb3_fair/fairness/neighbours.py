"""Who are the k nearest people of everyone, exactly, while people come and go?

A w x w matrix of distances would answer, at O(w^2) memory. Instead each person keeps a sorted list of its nearest
others, a few times k of them: by raw distance in whole units of 1e-12 (ties are the rule with discrete features), then
older first. Everyone outside a list is at least ``bound`` away, and those at exactly ``bound`` are older than any
newcomer. So

- a newcomer enters the lists whose bound exceeds its distance, behind its equals, and may push out the last,
  whose distance becomes the bound (infinite until then: the list holds everybody);
- a leaver is taken out of the lists that hold it;
- only a list that falls below k while people remain outside is built anew from the features.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]

_UNITS = 1e12  # distances are compared in units of 1e-12
_SPARE = 4  # length of the lists, in units of k
_BLOCK = 64  # lists that are built anew at once


def in_units(raw: Array) -> Array:
    """Raw distances in whole units of 1e-12; overwrites ``raw``."""
    raw *= _UNITS
    return np.rint(raw, out=raw)


class Neighbours:
    """The lists of the people of n copies, and each person's term of the consistency score.

    People are known by their row, copy * capacity + slot. In a list a person is one integer: twice (slot + 1), plus 1
    if its action was favourable; 0 is nobody.

    :param k: number of neighbours in the score
    :param capacity: slots for people in each copy
    """

    def __init__(self, n: int, k: int, capacity: int) -> None:
        self._n, self._k, self._capacity = n, k, capacity
        self._length = _SPARE * k
        self._places = np.arange(self._length + 1)
        self._kinds = 2 * capacity + 2
        people = n * capacity
        self._terms = np.zeros(people)
        self._bounds = np.full(people, np.inf)
        self._person = np.zeros(people, dtype=np.int32)
        self._tags = np.zeros((n, capacity))  # id * kinds + person: orders by age, and tells who it is
        # one place in front of each list and one behind it spare its ends a case of their own
        self._distances = np.full((people, self._length + 2), np.inf)
        self._distances[:, 0] = -np.inf
        self._persons = np.zeros((people, self._length + 2), dtype=np.int32)
        self._changed: list[Index] = []

    @property
    def terms(self) -> Array:
        """|A_i - mean of the A of i's neighbours| (n, capacity); without meaning for empty slots."""
        return self._terms.reshape(self._n, self._capacity)

    def insert(
        self, copies: Index, slots: Index, ids: NDArray[np.int64], accepted: NDArray[np.bool_], distances: Array
    ) -> None:
        """One person enters each of the ``copies``, into an empty slot.

        :param ids: (m,), larger than those before
        :param distances: (m, capacity), in units of 1e-12, inf for empty slots and itself
        """
        own = copies * self._capacity + slots
        persons = 2 * slots + (2 + accepted)
        self._person[own] = persons
        self._tags[copies, slots] = ids * self._kinds + persons
        self._build(copies, own, distances)
        reached = np.flatnonzero(distances < self._bounds.reshape(self._n, -1)[copies])
        which = reached // self._capacity
        rows = reached + (copies * self._capacity)[which] - which * self._capacity
        self._enter(rows, distances.reshape(-1)[reached], persons.astype(np.int32)[which])
        self._changed += [own, rows]

    def _enter(self, rows: Index, distances: Array, persons: NDArray[np.int32]) -> None:
        """Puts one person into each of the lists ``rows``, behind its equals."""
        old = self._distances[rows]
        self._bounds[rows] = np.minimum(self._bounds[rows], np.maximum(old[:, -2], distances))
        distances = distances[:, None]
        nearer = old <= distances
        self._distances[rows, 1:-1] = np.maximum(old[:, :-2], np.minimum(old[:, 1:-1], distances))
        others = self._persons[rows]
        behind = np.where(nearer[:, :-2], persons[:, None], others[:, :-2])
        self._persons[rows, 1:-1] = np.where(nearer[:, 1:-1], others[:, 1:-1], behind)

    def remove(self, copies: Index, slots: Index) -> None:
        """One person leaves each of the ``copies``."""
        own = copies * self._capacity + slots
        leavers = np.full((self._n, 1), -1, dtype=np.int32)
        leavers[copies, 0] = self._person[own]
        found = np.flatnonzero(self._persons.reshape(self._n, -1) == leavers)
        rows = found // (self._length + 2)
        first = rows * (self._length + 2)
        closed = first[:, None] + (self._places + (self._places >= (found - first)[:, None]))
        self._distances[rows, :-1] = self._distances.take(closed)
        self._persons[rows, :-1] = self._persons.take(closed)
        self._changed.append(rows)
        self._clear(own)

    def _clear(self, rows: Index) -> None:
        self._distances[rows, 1:] = np.inf
        self._persons[rows] = 0
        self._person[rows] = 0
        self._bounds[rows] = np.inf

    def settle(self, distances_of: Callable[[int, Index], Array]) -> None:
        """Rebuilds the lists that ran short and updates the terms of all that changed.

        :param distances_of: (copy, slots) -> distances (len(slots), capacity) as in :meth:`insert`
        """
        rows = np.concatenate(self._changed)
        self._changed.clear()
        nearest = self._persons[rows, 1 : self._k + 1]
        number: Any = self._k
        short = nearest[:, -1] == 0
        if short.any():
            short = rows[short]
            self._rebuild(np.unique(short[self._bounds[short] < np.inf]), distances_of)
            nearest = self._persons[rows, 1 : self._k + 1]
            number = np.maximum(np.add.reduce(nearest > 0, axis=1), 1)
        mean = np.add.reduce(nearest & 1, axis=1) / number
        self._terms[rows] = np.abs((self._person[rows] & 1) - mean)

    def _rebuild(self, rows: Index, distances_of: Callable[[int, Index], Array]) -> None:
        copies = rows // self._capacity
        for copy in np.unique(copies).tolist():
            mine = rows[copies == copy]
            for start in range(0, len(mine), _BLOCK):
                block = mine[start : start + _BLOCK]
                distances = distances_of(copy, block - copy * self._capacity)
                self._build(np.full(len(block), copy), block, distances)

    def _build(self, copies: Index, rows: Index, distances: Array) -> None:
        """Fills the lists ``rows`` of people of ``copies`` with the nearest by (distance, id)."""
        length = self._length
        nearest = np.full((len(rows), max(self._capacity, length + 1)), np.inf, dtype=np.complex128)
        nearest.real[:, : self._capacity] = distances  # complex numbers are ordered by real, then by imaginary part
        nearest.imag[:, : self._capacity] = self._tags[copies]
        nearest = np.partition(nearest, length, axis=1)[:, : length + 1]
        nearest.sort(axis=1)
        far = nearest.real
        self._bounds[rows] = far[:, -1]
        self._distances[rows, 1:-1] = far[:, :-1]
        self._persons[rows, 1:-1] = np.where(far < np.inf, nearest.imag % self._kinds, 0.0)[:, :-1]

    def rearrange(self, order: Index, capacity: int) -> None:
        """The person in slot ``order[copy, new]`` moves to slot ``new``; from now on there are ``capacity`` slots."""
        n, old = order.shape
        rows = (np.arange(n)[:, None] * old + order).ravel()
        ids = np.take_along_axis(self._tags, order, axis=1) // self._kinds
        slots = np.zeros((n, 1 + old), dtype=np.int32)
        np.put_along_axis(slots[:, 1:], order, np.arange(1, 1 + old, dtype=np.int32)[None], axis=1)

        def renumbered(persons: NDArray[np.int32]) -> NDArray[np.int32]:
            persons = persons[rows].reshape(n, -1)
            return 2 * np.take_along_axis(slots, persons >> 1, axis=1) + (persons & 1)

        before = self._distances[rows], self._bounds[rows], self._terms[rows]
        person, persons = renumbered(self._person), renumbered(self._persons)
        self.__init__(n, self._k, capacity)  # type: ignore[misc]
        self._tags[:, :old] = ids * self._kinds + person
        arrays = self._distances, self._bounds, self._terms, self._person, self._persons
        for array, values in zip(arrays, (*before, person, persons), strict=True):
            tail = array.shape[1:]
            array.reshape(n, capacity, *tail)[:, :old] = values.reshape(n, old, *tail)

    def reset(self, copies: Index) -> None:
        """Nobody is left in these copies."""
        self._clear((copies[:, None] * self._capacity + np.arange(self._capacity)).ravel())
