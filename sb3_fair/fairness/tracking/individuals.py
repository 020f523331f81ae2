"""Individual notions (IF, LIP, CSC) updated in O(w d) per step.

For each retained person j the sum s_j of its pair terms with *later* people is stored. A newcomer adds one term to
every s_j, and the oldest person's s_j is removed with that person. Nothing is recomputed and no rounding errors add up:
the total is the sum of the present s_j, weighted with the weight of the older member of each pair.

Arrays have the copies first and the people last, (n, d, w): reductions run over a short middle axis of long rows.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.distances import Metric
from sb3_fair.fairness.histories.history import DiscountedHistory, History
from sb3_fair.fairness.notions.table import PairNotion
from sb3_fair.fairness.tracking.neighbours import Neighbours, in_units

Array: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = Any  # the copies concerned: slice(None), or their indices (m,)
_SMALLEST = 128  # slots to begin with
_TINY = np.finfo(np.float64).tiny  # divides 0 without a warning


class View:
    """The notions that are computed with one distance: pair notions, and the consistency score if there is a ``k``."""

    def __init__(self, n: int, capacity: int, metric: Metric, pairs: Sequence[PairNotion], k: int | None) -> None:
        self.metric = metric
        self.sums = {pair: np.zeros((n, capacity)) for pair in pairs}
        self.neighbours = None if k is None else Neighbours(n, k, capacity)


class Individuals:
    """The retained people of n copies; ``views`` are (metric, pair notions, k or None) for each distance."""

    def __init__(
        self, n: int, history: History, views: Sequence[tuple[Metric, Sequence[PairNotion], int | None]]
    ) -> None:
        self.history = history
        self._n = n
        self._limit = history.people
        self._capacity = min(self._limit, _SMALLEST)
        self._room = self._capacity  # so many additions surely fit
        seed: int = getattr(history, "seed", 0)
        self._generators = [np.random.default_rng(seed) for _ in range(n)] if history.samples else None
        self._copies = np.arange(n)
        self._base = np.zeros(n, dtype=np.int64)  # the id that went or will go to slot 0
        self.size = np.zeros(n, dtype=np.int64)
        self._newest = np.full(n, -1, dtype=np.int64)
        self.weight = np.zeros((n, self._capacity))
        self._ids = np.zeros((n, self._capacity), dtype=np.int64)
        self._absent = np.full((n, self._capacity), np.inf)
        self._features = np.zeros((n, 0, self._capacity))
        self._roots = np.zeros((n, 0, self._capacity))
        self.views = [View(n, self._capacity, *view) for view in views]
        self._neighbours = [(view, view.neighbours) for view in self.views if view.neighbours is not None]
        self._resized()
        self.needs_roots = any(view.sums for view in self.views)

    def add(
        self, rows: Rows, ids: NDArray[np.int64], features: Array, roots: Array | None, accepted: NDArray[np.bool_]
    ) -> None:
        """One person for each of the copies ``rows``: ids (m,), features (m, d) and, if a pair notion is followed,
        :func:`half_roots` (m, n_actions)."""
        self._make_room(features, roots)
        copies = self._copies[rows]
        self._newest[rows] = ids
        slots = (ids - self._base[rows]) % self._capacity
        if self._generators is not None:
            slots = ids - self._base[rows]
            for index in np.flatnonzero(slots >= self._limit):  # Vitter's algorithm R
                slots[index] = self._generators[copies[index]].integers(slots[index] + 1)
            chosen = np.flatnonzero(slots < self._limit)
            slots = slots[chosen]
            if len(chosen) < len(copies):
                if not len(chosen):
                    return
                rows = copies = copies[chosen]
                ids, features, accepted = ids[chosen], features[chosen], accepted[chosen]
                roots = None if roots is None else roots[chosen]
        own = copies * self._capacity + slots
        vacant = self._absent.take(own)  # inf or 0
        new = np.count_nonzero(vacant)
        if new < len(own):
            leaving = own[vacant == 0] if new else own
            self._forget(leaving)
            self._absent.put(leaving, np.inf)
        if new or self.history.factor != 1:
            self.size[rows] += vacant > 0
            self.weight[rows] *= self.history.factor
            self.weight.put(own, 1.0)
        self._ids.put(own, ids)
        if new or self.history.factor != 1:
            self._resized()
        self._features[copies, :, slots] = features
        if roots is not None:
            self._roots[copies, :, slots] = roots
        # The newcomers meet everyone who is present, which they are not yet themselves.
        people, absent = self._features[rows], self._absent[rows]
        apart = None if roots is None else _hellinger(roots, self._roots[rows])
        for view in self.views:
            raw = view.metric.raw(features, people, absent)
            if apart is not None and view.sums:
                terms = view.metric.value(raw, features.shape[1])
                terms -= apart
                for pair, sums in view.sums.items():
                    sums[rows] += np.minimum(terms, 0.0) if pair.violations_only else terms
                    sums.put(own, 0.0)
            if view.neighbours is not None:
                distances = in_units(raw)
                distances += absent
                view.neighbours.insert(copies, own, ids, accepted, distances)
        self._absent.put(own, 0.0)
        self._settle()

    def _settle(self) -> None:
        for view, neighbours in self._neighbours:
            neighbours.settle(partial(self._distances, view.metric))

    def _distances(self, metric: Metric, copies: Index, slots: Index) -> Array:
        """From the people in ``slots`` of ``copies`` to all others of theirs, infinite to nobody and to themselves."""
        whose = copies[:1] if copies[0] == copies[-1] else copies  # all of one: no need to repeat its people
        absent, people = self._absent[whose], self._features[whose]
        distances: Array = in_units(metric.raw(self._features[copies, :, slots], people, absent)) + absent
        distances[np.arange(len(slots)), slots] = np.inf
        return distances

    def _forget(self, own: Index) -> None:
        """Whoever is in these rows leaves, one person per copy: what others know of it is forgotten."""
        if self._generators is not None and self.needs_roots:
            self._subtract(*np.divmod(own, self._capacity))
        for _, neighbours in self._neighbours:
            neighbours.remove(own)

    def _subtract(self, copies: Index, slots: Index) -> None:
        """Takes the pair terms of leavers out of the sums of their older partners."""
        features, roots = self._features[copies, :, slots], self._roots[copies, :, slots]
        people, absent = self._features[copies], self._absent[copies]
        older = (absent == 0) & (self._ids[copies] < self._ids[copies, slots][:, None])
        apart = _hellinger(roots, self._roots[copies])
        for view in self.views:
            terms = view.metric.value(view.metric.raw(features, people, absent), features.shape[1]) - apart
            terms *= older
            for pair, sums in view.sums.items():
                sums[copies] -= np.minimum(terms, 0.0) if pair.violations_only else terms

    def truncate(self) -> NDArray[np.int64] | None:
        """Drops what no longer moves IF of the first distance, see :class:`DiscountedHistory`: sizes (n,) before, None
        if nothing was dropped."""
        history: Any = self.history
        if not history.truncates or self.size.max() < history.min_window:
            return None
        sums = next(sums for pair, sums in self.views[0].sums.items() if not pair.violations_only)
        ages = np.arange(self.size.max())
        slots = (self._newest[:, None] - ages - self._base[:, None]) % self._capacity
        keep = settled(np.take_along_axis(sums, slots, axis=1), self.size, history)
        if (keep == self.size).all():
            return None
        before = self.size.copy()
        while (self.size > keep).any():
            copies = np.flatnonzero(self.size > keep)
            oldest = (self._newest[copies] + 1 - self.size[copies] - self._base[copies]) % self._capacity
            own = copies * self._capacity + oldest
            self._forget(own)
            self.size[copies] -= 1
            self.weight[copies, oldest] = 0.0
            self._absent[copies, oldest] = np.inf
            for _, neighbours in self._neighbours:
                neighbours.clear(own)
        self._settle()
        self._resized()
        return before

    def values(self, view: View) -> dict[str, Array]:
        """Values (n,) of the notions followed with one distance."""
        results: dict[str, Array] = {}
        for pair, sums in view.sums.items():
            results[pair.name] = values = dot(self.weight, sums) / self._pairs + pair.offset
            values[self._fewer[pair.smallest]] = 0.0
        if view.neighbours is not None:
            results["CSC"] = values = dot(self.weight, view.neighbours.terms) / -self._people
            values[self._fewer[2]] = 0.0
        return results

    def _resized(self) -> None:
        """The weight of all people and of all pairs, (n,), and the copies with fewer than 2 or 3 people."""
        size = self.size
        self._people, self._pairs = size, size * (size - 1) * 0.5
        if self.history.factor != 1:
            self._people = np.add.reduce(self.weight, axis=1)
            later = (self._newest[:, None] - self._ids).astype(float)
            self._pairs = dot(self.weight, later)
        self._people, self._pairs = np.maximum(self._people, _TINY), np.maximum(self._pairs, _TINY)
        self._fewer = {number: np.flatnonzero(size < number) for number in (2, 3)}

    def reset(self, copies: Index, next_id: NDArray[np.int64]) -> None:
        """Nobody is left in these copies; their next ids are ``next_id`` (m,)."""
        self._base[copies] = next_id
        self._newest[copies] = next_id - 1
        self.size[copies] = 0
        self.weight[copies] = 0.0
        self._absent[copies] = np.inf
        for view in self.views:
            for sums in view.sums.values():
                sums[copies] = 0.0
        for _, neighbours in self._neighbours:
            neighbours.reset(copies)
        self._resized()

    def _make_room(self, features: Array, roots: Array | None) -> None:
        if not self._features.shape[1]:
            self._features = np.zeros((self._n, features.shape[1], self._capacity))
            if roots is not None:
                self._roots = np.zeros((self._n, roots.shape[1], self._capacity))
        self._room -= 1
        if self._room < 0:
            if self.size.max() == self._capacity < self._limit:
                self._grow(min(2 * self._capacity, self._limit))
            self._room = self._capacity - int(self.size.max()) - 1 if self._capacity < self._limit else 2**62

    def _grow(self, capacity: int) -> None:
        """Doubles the slots; people are put in order of age from slot 0 on."""
        order = np.argsort(self._ids + self._absent, axis=1)
        old = self._capacity

        def moved(array: NDArray[Any], empty: float = 0) -> NDArray[Any]:
            larger = np.full((*array.shape[:-1], capacity), empty, dtype=array.dtype)
            index = order if array.ndim == 2 else order[:, None, :]
            larger[..., :old] = np.take_along_axis(array, index, axis=-1)
            return larger

        self._base = self._newest + 1 - self.size
        self.weight = moved(self.weight)
        self._ids = moved(self._ids)
        self._absent = moved(self._absent, np.inf)
        self._features = moved(self._features)
        self._roots = moved(self._roots)
        for view in self.views:
            view.sums = {pair: moved(sums) for pair, sums in view.sums.items()}
        for _, neighbours in self._neighbours:
            neighbours.rearrange(order, capacity)
        self._capacity = capacity


def _hellinger(roots: Array, others: Array) -> Array:
    """Hellinger distances (m, w) of m newcomers (m, a) to people (m, a, w)."""
    differences = others - roots[:, :, None]
    np.square(differences, out=differences)
    squares = np.add.reduce(differences, axis=1)
    return np.sqrt(squares, out=squares)


def _matmul(weights: Array, values: Array) -> Array:
    return np.matmul(weights[:, None, :], values[:, :, None])[:, 0, 0]


dot: Any = getattr(np, "vecdot", _matmul)  # row by row, (n, w) -> (n,); twice as fast from numpy 2 on


def settled(sums: Array, size: NDArray[np.int64], history: DiscountedHistory) -> NDArray[np.int64]:
    """How many of the newest interactions each copy keeps, (n,), at most ``size`` (n,).

    Cimpean et al. (FAReL), section 5: with F_m = IF of the m newest, the first m* from ``min_window`` on at which
    ``delay`` consecutive changes |F_m - F_(m-1)|, ending at m*, were at most ``threshold``.

    :param sums: (n, M), newest first: the sum of each person's pair terms with all later people
    """
    ages = np.arange(sums.shape[1])
    weight = history.factor ** ages.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):  # F_1 has no pairs
        fairness = np.cumsum(weight * sums, axis=1) / np.cumsum(weight * ages)
    start = history.min_window - history.delay + 1
    changes = np.abs(np.diff(fairness[:, start - 2 :], axis=1))  # column c is m = start + c
    small = (changes <= history.threshold) & (start + np.arange(changes.shape[1]) <= size[:, None])
    total = np.cumsum(small, axis=1)
    runs = total.copy()
    runs[:, history.delay :] = total[:, history.delay :] - total[:, : -history.delay]
    steady = runs == history.delay
    first = history.min_window + np.argmax(steady[:, history.delay - 1 :], axis=1)
    return np.where(steady.any(axis=1), first, size)
