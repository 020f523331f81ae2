"""Who are the k nearest people of everyone, exactly, while people come and go?

A w x w matrix of distances would answer, at O(w^2) memory. Instead each person keeps a sorted list of the nearest
``4 k`` others: by raw distance in whole units of 1e-12 (ties are the rule with discrete features), then older first.
Everyone outside a list is at least ``bound`` away, and those at exactly ``bound`` are older than any newcomer. So

- a newcomer enters the lists whose bound exceeds its distance, behind its equals, and may push out the last,
  whose distance becomes the bound (infinite until then: the list holds everybody);
- a leaver is taken out of the lists that hold it;
- only a list that falls below k while people remain outside is built anew from the features.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]

_UNITS = 1e12  # distances are compared in units of 1e-12
_SPARE = 4  # length of the lists, in units of k
_BLOCK = 64  # lists that are built anew at once
_FINITE = np.finfo(np.float64).max


def in_units(raw: Array) -> Array:
    """Raw distances in whole units of 1e-12; overwrites ``raw``."""
    raw *= _UNITS
    return np.rint(raw, out=raw)


class Neighbours:
    """The lists of n copies with ``capacity`` slots for people each, and each person's term of the consistency score.

    A person in a list is one integer: twice (slot + 1), plus 1 if its action was favourable; 0 is nobody.

    :param k: number of neighbours in the score
    """

    def __init__(self, n: int, k: int, capacity: int) -> None:
        self.k = k
        self._length = k * _SPARE
        self._places = np.arange(self._length + 1)
        self._empty(n, capacity)

    def _empty(self, n: int, capacity: int) -> None:
        self._n, self._capacity = n, capacity
        people = n * capacity
        self._person = np.zeros(people, dtype=np.int32)
        self._ids = np.zeros((n, capacity))
        self._terms = np.zeros(people)
        self._bounds = np.full(people, np.inf)
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
        persons = ((slots + 1) * 2 + accepted).astype(np.int32)
        own = copies * self._capacity + slots
        self._person[own] = persons
        self._ids[copies, slots] = ids
        self._build(copies, own, distances)
        bounds = self._bounds.reshape(self._n, -1)[copies]
        which, reached = np.divmod(np.flatnonzero(distances < bounds), self._capacity)
        rows = copies[which] * self._capacity + reached
        distance = distances[which, reached]
        old = self._distances[rows]
        self._bounds[rows] = np.minimum(bounds[which, reached], np.maximum(old[:, -2], distance))
        distance = distance[:, None]
        nearer = old <= distance
        self._distances[rows, 1:-1] = np.maximum(old[:, :-2], np.minimum(old[:, 1:-1], distance))
        others = self._persons[rows]
        behind = np.where(nearer[:, :-2], persons[which, None], others[:, :-2])
        self._persons[rows, 1:-1] = np.where(nearer[:, 1:-1], others[:, 1:-1], behind)
        self._changed += [own, rows]

    def remove(self, copies: Index, slots: Index) -> None:
        """One person leaves each of the ``copies``."""
        own = copies * self._capacity + slots
        leavers = np.full((self._n, 1), -1, dtype=np.int32)
        leavers[copies, 0] = self._person[own]
        found = np.flatnonzero(self._persons.reshape(self._n, -1) == leavers)
        rows, places = np.divmod(found, self._length + 2)
        closed = (found - places)[:, None] + (self._places + (self._places >= places[:, None]))
        self._distances[rows, :-1] = self._distances.take(closed)
        self._persons[rows, :-1] = self._persons.take(closed)
        self._clear(own)
        self._changed.append(rows)

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
        nearest = self._persons[rows, 1 : self.k + 1]
        number: Any = self.k
        short = nearest[:, -1] == 0
        if short.any():
            depleted = rows[short]
            self._rebuild(np.unique(depleted[np.isfinite(self._bounds[depleted])]), distances_of)
            nearest = self._persons[rows, 1 : self.k + 1]
            number = np.maximum(np.add.reduce(nearest > 0, axis=1), 1)
        mean = np.add.reduce(nearest & 1, axis=1) / number
        self._terms[rows] = np.abs((self._person[rows] & 1) - mean)

    def _rebuild(self, rows: Index, distances_of: Callable[[int, Index], Array]) -> None:
        copies, slots = np.divmod(rows, self._capacity)
        for copy in np.unique(copies):
            mine = np.flatnonzero(copies == copy)
            for start in range(0, len(mine), _BLOCK):
                block = mine[start : start + _BLOCK]
                self._build(copies[block], rows[block], distances_of(int(copy), slots[block]))

    def _build(self, copies: Index, rows: Index, distances: Array) -> None:
        """Fills the lists ``rows`` of people of ``copies`` with the nearest by (distance, id)."""
        kinds = 2 * self._capacity + 2
        # numpy orders complex numbers by real, then by imaginary part
        nearest = np.full((len(rows), max(self._capacity, self._length + 1)), np.inf, dtype=np.complex128)
        nearest.real[:, : self._capacity] = distances
        nearest.imag[:, : self._capacity] = (self._ids * kinds + self._person.reshape(self._n, -1))[copies]
        nearest = np.partition(nearest, self._length, axis=1)[:, : self._length + 1]
        nearest.sort(axis=1)
        self._bounds[rows] = nearest.real[:, -1]
        self._distances[rows, 1:-1] = nearest.real[:, :-1]
        self._persons[rows, 1:-1] = np.where(np.isfinite(nearest.real), nearest.imag % kinds, 0)[:, :-1]

    def value(self, weight: Array) -> Array:
        """Minus the weighted mean of the terms, (n,); without meaning for fewer than 2 people."""
        total = np.add.reduce(weight, axis=1)
        return -dot(weight, self.terms) / (total + (total == 0))

    def rearrange(self, order: Index, capacity: int) -> None:
        """The person in slot ``order[copy, new]`` moves to slot ``new``; from now on there are ``capacity`` slots."""
        n, old = order.shape
        rows = (np.arange(n)[:, None] * old + order).ravel()
        slots = np.zeros((n, 1 + old), dtype=np.int32)
        np.put_along_axis(slots[:, 1:], order, np.arange(1, 1 + old, dtype=np.int32)[None], axis=1)

        def renumbered(persons: NDArray[np.int32]) -> NDArray[np.int32]:
            persons = persons[rows].reshape(n, -1)
            return 2 * np.take_along_axis(slots, persons >> 1, axis=1) + (persons & 1)

        before = self._distances[rows], self._bounds[rows], self._terms[rows], self._ids.reshape(-1)[rows]
        person, persons = renumbered(self._person), renumbered(self._persons)
        self._empty(n, capacity)
        arrays = self._distances, self._bounds, self._terms, self._ids, self._person, self._persons
        for array, values in zip(arrays, (*before, person, persons), strict=True):
            tail = array.shape[1:] if len(array) == n * capacity and array is not self._ids else ()
            array.reshape(n, capacity, *tail)[:, :old] = values.reshape(n, old, *tail)

    def reset(self, copies: Index) -> None:
        """Nobody is left in these copies."""
        self._clear((copies[:, None] * self._capacity + np.arange(self._capacity)).ravel())


def dot(weights: Array, values: Array) -> Array:
    """Row by row: sum of weights * values, (n, w) -> (n,)."""
    products: Array = np.matmul(weights[:, None, :], values[:, :, None])[:, 0, 0]
    return products
