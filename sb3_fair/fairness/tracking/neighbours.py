"""Exact k nearest neighbours while individuals come and go.

A w x w matrix of distances would need O(w^2) memory. Instead each person has a sorted list of a few times k nearest
others: by raw distance in whole units of 1e-12 (ties are common with discrete features), then older first. Everyone
outside a list is at least ``bound`` away, and those at exactly ``bound`` are older than any newcomer. So

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
Lists: TypeAlias = NDArray[np.complex128]
Index: TypeAlias = NDArray[np.intp]

_UNITS = 1e12  # distances are compared in units of 1e-12
_SPARE = 3  # length of the lists, in units of k
_BLOCK = 64  # lists that are built anew at once
_NOBODY = complex(np.inf, 0.0)  # in a place of a list that is empty
_NUMBER = np.array([1.0, 1.5])  # of the person with id 0, by action


def in_units(raw: Array) -> Array:
    """Raw distances in whole units of 1e-12; overwrites ``raw``."""
    raw *= _UNITS
    return np.rint(raw, out=raw)


class Neighbours:
    """The lists of the people of n copies, and each person's term of the consistency score.

    People are known by their row, copy * capacity + slot. In a list a person is one complex number, distance + i *
    (id + 1, and a half more if its action was favourable): numpy sorts these by distance, then by age.

    :param k: number of neighbours in the score
    :param capacity: slots for people in each copy
    """

    def __init__(self, n: int, k: int, capacity: int) -> None:
        self._n, self._k, self._capacity = n, k, capacity
        self._length = min(_SPARE * k, capacity - 1)
        people = n * capacity
        self._terms = np.zeros(people)
        self._bounds = np.full(people, np.inf)
        self._numbers = np.zeros(people)
        # one place more than a list is long: there a newcomer steps in, and after sorting whoever is pushed out
        self._lists = np.full((people, self._length + 1), _NOBODY)
        self._members = np.zeros(self._lists.shape)  # the imaginary parts once more, where a leaver is looked for
        self._leavers = np.full((n, 1), np.nan)  # equals nobody
        self._last = min(k, self._length + 1) - 1  # the place of the k-th neighbour, if there are so many
        self._first = (np.arange(self._length + 1) < k).astype(float)
        self._changed: list[Index] = []

    @property
    def terms(self) -> Array:
        """|A_i - mean of the A of i's neighbours| (n, capacity); without meaning for empty slots."""
        return self._terms.reshape(self._n, self._capacity)

    def insert(
        self, copies: Index, own: Index, ids: NDArray[np.int64], accepted: NDArray[np.bool_], distances: Array
    ) -> None:
        """One person enters each of the ``copies``, into rows ``own`` that nobody has or that were just removed.

        :param ids: (m,), larger than those before
        :param distances: (m, capacity), in units of 1e-12, inf for empty slots and itself
        """
        numbers = ids + _NUMBER.take(accepted)
        self._numbers.put(own, numbers)
        self._build(copies, own, distances)
        reached = (distances < self._bounds.reshape(self._n, -1).take(copies, axis=0)).ravel().nonzero()[0]
        which, slots = np.divmod(reached, self._capacity)
        rows = (copies * self._capacity).take(which) + slots
        lists = self._lists.take(rows, axis=0)
        lists.real[:, -1], lists.imag[:, -1] = distances.take(reached), numbers.take(which)
        lists.sort(axis=1)
        self._bounds.put(rows, np.minimum(self._bounds.take(rows), lists.real[:, -1]))
        self._store(rows, lists)
        self._changed += [own, rows]

    def _store(self, rows: Index, lists: Lists) -> None:
        """Sorted ``lists`` of the people in ``rows``; nobody stays in the last place."""
        lists[:, -1] = _NOBODY
        self._lists[rows] = lists
        self._members[rows] = lists.imag

    def remove(self, own: Index) -> None:
        """The people in rows ``own``, at most one of each copy, leave the lists of others."""
        copies = own // self._capacity
        self._leavers.put(copies, self._numbers.take(own))
        found = (self._members.reshape(self._n, -1) == self._leavers).ravel().nonzero()[0]
        self._leavers.put(copies, np.nan)
        rows = found // (self._length + 1)
        self._lists.put(found, _NOBODY)
        lists = self._lists.take(rows, axis=0)
        lists.sort(axis=1)
        self._store(rows, lists)
        self._changed.append(rows)

    def clear(self, own: Index) -> None:
        """Nobody is in the rows ``own`` any more."""
        self._lists[own] = _NOBODY
        self._members[own] = 0.0
        self._numbers[own] = 0.0
        self._bounds[own] = np.inf

    def settle(self, distances_of: Callable[[Index, Index], Array]) -> None:
        """Rebuilds the lists that ran short and updates the terms of all that changed.

        :param distances_of: copies (m,) in rising order, slots (m,) -> distances (m, capacity) as in :meth:`insert`
        """
        rows = np.concatenate(self._changed)
        self._changed.clear()
        nearest = self._members.take(rows, axis=0)
        number: Any = self._k
        if np.count_nonzero(nearest[:, self._last]) < len(rows):
            short = rows[nearest[:, self._last] == 0]
            short = np.unique(short[self._bounds[short] < np.inf])
            for start in range(0, len(short), _BLOCK):
                block = short[start : start + _BLOCK]
                copies, slots = np.divmod(block, self._capacity)
                self._build(copies, block, distances_of(copies, slots))
            nearest = self._members.take(rows, axis=0)
            number = np.maximum(np.dot(nearest != 0, self._first), 1)
        mean = np.dot(_favourable(nearest), self._first) / number
        self._terms.put(rows, np.abs(_favourable(self._numbers.take(rows)) - mean))

    def _build(self, copies: Index, rows: Index, distances: Array) -> None:
        """Fills the lists ``rows`` of people of ``copies`` with the nearest by (distance, id)."""
        lists = np.empty(distances.shape, dtype=np.complex128)
        lists.real, lists.imag = distances, self._numbers.reshape(self._n, -1).take(copies, axis=0)
        lists.partition(self._length, axis=1)
        lists = lists[:, : self._length + 1]
        lists.sort(axis=1)
        self._bounds.put(rows, lists.real[:, -1])
        self._store(rows, lists)

    def rearrange(self, order: Index, capacity: int) -> None:
        """The person in slot ``order[copy, new]`` moves to slot ``new``; from now on there are ``capacity`` slots."""
        n, old = order.shape
        rows = (np.arange(n)[:, None] * old + order).ravel()  # the old row of each person
        lists, bounds, terms, numbers = self._lists[rows], self._bounds[rows], self._terms[rows], self._numbers[rows]
        self.__init__(n, self._k, capacity)  # type: ignore[misc]
        at = (np.arange(n)[:, None] * capacity + np.arange(old)).ravel()
        self._lists[at, : lists.shape[1]], self._members[at, : lists.shape[1]] = lists, lists.imag
        self._bounds[at], self._terms[at], self._numbers[at] = bounds, terms, numbers

    def reset(self, copies: Index) -> None:
        """Nobody is left in these copies."""
        self.clear((copies[:, None] * self._capacity + np.arange(self._capacity)).ravel())


def _favourable(numbers: Array) -> Array:
    """1 for people whose action was favourable, 0 for others and nobody."""
    halves: Array = numbers - np.floor(numbers)
    halves += halves
    return halves
