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

    People are known by their row, copy * capacity + slot. In a list a person is one number: row + 1 if its action was
    favourable, -(row + 1) if not; 0 is nobody.

    :param k: number of neighbours in the score
    :param capacity: slots for people in each copy
    """

    def __init__(self, n: int, k: int, capacity: int) -> None:
        self._n, self._k, self._capacity = n, k, capacity
        self._length = min(_SPARE * k, capacity - 1)
        people = n * capacity
        self._terms = np.zeros(people)
        self._bounds = np.full(people, np.inf)
        self._persons = np.zeros(people)
        # (id + 1) * kinds + person + nobody: orders by age, empty slots first, and tells who it is
        self._kinds, self._nobody = 2 * people + 1, people
        self._tags = np.full((n, capacity), float(people))
        # the distances and the persons; a place before and one behind each list spare its ends a case of their own
        self._lists = np.zeros((2, people, self._length + 2))
        self._lists[0] = np.inf
        self._lists[0, :, 0] = -np.inf
        self._leavers = np.full((n, 1), np.nan)  # equals nobody
        # row p: from place p on
        self._after = np.arange(self._length + 1) >= np.arange(self._length + 2)[:, None]
        self._changed: list[Index] = []

    @property
    def terms(self) -> Array:
        """|A_i - mean of the A of i's neighbours| (n, capacity); without meaning for empty slots."""
        terms: Array = self._terms.reshape(self._n, self._capacity)
        return terms

    def insert(
        self, copies: Index, own: Index, ids: NDArray[np.int64], accepted: NDArray[np.bool_], distances: Array
    ) -> None:
        """One person enters each of the ``copies``, into rows ``own`` that nobody has or that were just removed.

        :param ids: (m,), larger than those before
        :param distances: (m, capacity), in units of 1e-12, inf for empty slots and itself
        """
        persons = np.where(accepted, own + 1.0, -1.0 - own)
        self._persons[own] = persons
        self._tags.reshape(-1)[own] = ids * self._kinds + (persons + (self._kinds + self._nobody))
        self._build(copies, own, distances)
        reached = np.flatnonzero(distances < self._bounds.reshape(self._n, -1).take(copies, axis=0))
        which = reached // self._capacity
        rows = reached + ((copies - np.arange(len(copies))) * self._capacity).take(which)
        self._enter(rows, np.array([distances.take(reached), persons.take(which)])[:, :, None])
        self._changed += [own, rows]

    def _enter(self, rows: Index, newcomers: Array) -> None:
        """Puts one person into each of the lists ``rows``, behind its equals; ``newcomers``: (2, m, 1) as in lists."""
        old = self._lists.take(rows, axis=1)
        distances = newcomers[0]
        self._bounds[rows] = np.minimum(self._bounds.take(rows), np.maximum(old[0, :, -2], distances[:, 0]))
        nearer = old[0] <= distances
        new = old[:, :, :-2].copy()
        np.copyto(new, newcomers, where=nearer[:, :-2])
        np.copyto(new, old[:, :, 1:-1], where=nearer[:, 1:-1])
        self._lists[:, rows, 1:-1] = new

    def remove(self, own: Index) -> None:
        """The people in rows ``own``, at most one of each copy, leave the lists of others."""
        copies = own // self._capacity
        self._leavers[copies, 0] = self._persons.take(own)
        found = np.flatnonzero(self._lists[1].reshape(self._n, -1) == self._leavers)
        self._leavers[copies] = np.nan
        rows = found // (self._length + 2)
        old = self._lists.take(rows, axis=1)
        new = old[:, :, :-1].copy()
        np.copyto(new, old[:, :, 1:], where=self._after.take(found - rows * (self._length + 2), axis=0))
        self._lists[:, rows, :-1] = new
        self._changed.append(rows)

    def clear(self, own: Index) -> None:
        """Nobody is in the rows ``own`` any more."""
        self._lists[0, own, 1:] = np.inf
        self._lists[1, own] = 0.0
        self._persons[own] = 0.0
        self._tags.reshape(-1)[own] = self._nobody
        self._bounds[own] = np.inf

    def settle(self, distances_of: Callable[[int, Index], Array]) -> None:
        """Rebuilds the lists that ran short and updates the terms of all that changed.

        :param distances_of: (copy, slots) -> distances (len(slots), capacity) as in :meth:`insert`
        """
        rows = np.concatenate(self._changed)
        self._changed.clear()
        nearest = self._lists[1].take(rows, axis=0)[:, 1 : self._k + 1]
        number: Any = self._k
        if np.count_nonzero(nearest[:, -1]) < len(rows):
            short = rows[nearest[:, -1] == 0]
            self._rebuild(np.unique(short[self._bounds[short] < np.inf]), distances_of)
            nearest = self._lists[1].take(rows, axis=0)[:, 1 : self._k + 1]
            number = np.maximum(np.add.reduce(nearest != 0, axis=1), 1)
        mean = np.add.reduce(nearest > 0, axis=1) / number
        self._terms[rows] = np.abs((self._persons.take(rows) > 0) - mean)

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
        nearest = np.empty(distances.shape, dtype=np.complex128)  # ordered by real, then by imaginary part
        nearest.real, nearest.imag = distances, self._tags.take(copies, axis=0)
        nearest = np.partition(nearest, length, axis=1)[:, : length + 1]
        nearest.sort(axis=1)
        self._bounds[rows] = nearest.real[:, length]
        self._lists[0, rows, 1:-1] = nearest.real[:, :length]
        self._lists[1, rows, 1:-1] = nearest.imag[:, :length] % self._kinds - self._nobody

    def rearrange(self, order: Index, capacity: int) -> None:
        """The person in slot ``order[copy, new]`` moves to slot ``new``; from now on there are ``capacity`` slots."""
        n, old = order.shape
        rows = (np.arange(n)[:, None] * old + order).ravel()  # the old row of each person
        new_rows = np.zeros(1 + n * old)
        new_rows[1 + rows] = (1 + np.arange(n)[:, None] * capacity + np.arange(old)).ravel()

        def renumbered(persons: Array) -> Array:
            return np.sign(persons) * new_rows[np.abs(persons).astype(np.intp)]

        ages = self._tags.reshape(-1)[rows] // self._kinds
        lists, bounds, terms = self._lists[:, rows, 1:-1], self._bounds[rows], self._terms[rows]
        lists[1], persons = renumbered(lists[1]), renumbered(self._persons[rows])
        length = self._length
        self.__init__(n, self._k, capacity)  # type: ignore[misc]
        at = (np.arange(n)[:, None] * capacity + np.arange(old)).ravel()
        self._lists[:, at, 1 : 1 + length] = lists
        self._bounds[at], self._terms[at], self._persons[at] = bounds, terms, persons
        self._tags.reshape(-1)[at] = ages * self._kinds + persons + self._nobody

    def reset(self, copies: Index) -> None:
        """Nobody is left in these copies."""
        self.clear((copies[:, None] * self._capacity + np.arange(self._capacity)).ravel())
