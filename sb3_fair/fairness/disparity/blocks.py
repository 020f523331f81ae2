"""Arrays of many small populations, padded to one block."""

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
ROUNDING = 1e-6
"""Figures that differ by no more than this share of the largest may be equal sums of rewards in single precision."""


class Blocks:
    """S slots sorted into B blocks of up to n members, in each of which at least two of G groups are compared.

    Shorter blocks are padded with members of no group, which do not count. All methods take figures with any
    leading axes.

    :param world: (S,) number of the slot's world
    :param key: (S,) what else tells blocks of a world apart; -1: the slot is in no block
    :param group: (S,) number of the slot's group; -1: the slot is in no block, nor is one that meets its own group only
    :param worlds: W, how many worlds there are
    :param groups: G, how many groups there are; at least 2 are made
    """

    def __init__(self, world: Ints, key: Ints, group: Ints, worlds: int, groups: int) -> None:
        slots = np.flatnonzero((key >= 0) & (group >= 0))
        slots = slots[np.lexsort((key[slots], world[slots]))]
        begins = np.ones(len(slots), dtype=bool)
        begins[1:] = (np.diff(world[slots]) != 0) | (np.diff(key[slots]) != 0)
        block = np.cumsum(begins) - 1
        met = np.zeros((begins.sum(), max(groups, 2)))
        met[block, group[slots]] = 1
        compared = (met.sum(axis=1) > 1)[block]
        slots, begins = slots[compared], begins[compared]
        first, block = np.flatnonzero(begins), np.cumsum(begins) - 1
        lengths = np.diff(np.r_[first, len(slots)])
        place = np.arange(len(slots)) - np.repeat(first, lengths)
        shape = len(first), int(lengths.max(initial=1))
        self.slots, self.place = slots, block * shape[1] + place
        self.members = np.zeros(shape, dtype=np.int64)
        """(B, n) slots, 0 where there is padding."""
        self.members[block, place] = slots
        self.belongs = np.zeros((*shape, max(groups, 2)))
        """(B, n, G) 1 where a member is in a group."""
        self.belongs[block, place, group[slots]] = 1
        self.sizes: Array = self.belongs.sum(axis=1)
        """(B, G) members of each group."""
        self._larger = np.maximum(self.sizes[:, :, None], self.sizes[:, None, :])
        present = self.sizes > 0
        self._different = present[:, :, None] & present[:, None, :] & ~np.eye(max(groups, 2), dtype=bool)
        self._others = others(self.sizes)[..., None, None]
        self.world, self.key = world[slots[first]], key[slots[first]]
        """(B,) what is common to the members of a block."""
        self.worlds, self.n_slots = worlds, len(world)
        self._occupied, self._starts = np.unique(self.world, return_index=True)

    @cached_property
    def larger(self) -> Array:
        """(B, G, G) size of the larger of two different groups with members, over the number of others that one has."""
        return self._larger * self._different / self._others

    @cached_property
    def per_pair(self) -> Array:
        """(B, G, G) what a pair of members counts: 1 / size of the larger group, over the same number."""
        return self._different / np.maximum(self._larger, 1) / self._others

    @cached_property
    def per_partner(self) -> Array:
        """(B, G, G) 1 / number of members of all other groups."""
        partners = self.sizes.sum(axis=-1, keepdims=True) - self.sizes
        return self._different / np.maximum(partners, 1)[:, :, None]

    def gather(self, figures: Array) -> Array:
        """Figures (..., S) of the slots as (..., B, n)."""
        return figures[..., self.members]

    def scatter(self, figures: Array) -> Array:
        """Figures (..., B, n) of the members as (..., S), 0 for slots in no block."""
        spread = np.zeros((*figures.shape[:-2], self.n_slots))
        spread[..., self.slots] = figures.reshape(*figures.shape[:-2], -1)[..., self.place]
        return spread

    def per_world(self, figures: Array) -> Array:
        """Figures (..., B) of the blocks summed to (..., W), 0 for worlds without blocks."""
        sums = np.zeros((*figures.shape[:-1], self.worlds))
        if len(self._starts):
            sums[..., self._occupied] = np.add.reduceat(figures, self._starts, axis=-1)
        return sums

    def means(self, figures: Array) -> Array:
        """Mean figure (..., B, G) of each group, 0 of one without members."""
        return np.einsum("...bn,bng->...bg", self.gather(figures), self.belongs) / np.maximum(self.sizes, 1)

    def gaps(self, figures: Array) -> Array:
        """Mean figure of one group less that of another, (..., B, G, G), 0 where one has no members."""
        return gaps(self.means(figures), self.sizes > 0)

    def standing(self, figures: Array) -> tuple[Array, Array]:
        """How many of each group have less, and how many have more, than a member: (..., B, n, G) each, from
        :meth:`gather`'s figures (..., B, n)."""
        order = np.argsort(figures, axis=-1)
        rising = np.take_along_axis(figures, order, axis=-1)
        belongs = self.belongs[np.arange(len(self.world))[:, None], order]
        upto = np.cumsum(belongs, axis=-2)
        # Equals share the places of the first and the last of them.
        first = np.broadcast_to(np.arange(order.shape[-1]), order.shape).copy()
        last = first.copy()
        equal = rising[..., 1:] == rising[..., :-1]
        first[..., 1:][equal] = 0
        last[..., :-1][equal] = order.shape[-1]
        first = np.maximum.accumulate(first, axis=-1)
        last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
        less = np.take_along_axis(upto - belongs, first[..., None], axis=-2)
        more = upto[..., -1:, :] - np.take_along_axis(upto, last[..., None], axis=-2)
        back = np.argsort(order, axis=-1)[..., None]
        return np.take_along_axis(less, back, axis=-2), np.take_along_axis(more, back, axis=-2)


def equalised(figures: Array) -> Array:
    """Figures (..., n) of which each that may differ from the next lower one by rounding alone is that one."""
    order = np.argsort(figures, axis=-1)
    rising = np.take_along_axis(figures, order, axis=-1)
    near = ROUNDING * np.abs(figures).max(axis=-1, keepdims=True)
    first = np.broadcast_to(np.arange(order.shape[-1]), order.shape).copy()
    first[..., 1:][np.diff(rising, axis=-1) <= near] = 0
    found = np.empty_like(figures)
    np.put_along_axis(found, order, np.take_along_axis(rising, np.maximum.accumulate(first, axis=-1), axis=-1), axis=-1)
    return found


def others(sizes: NDArray[Any]) -> Ints:
    """How many other groups a group with members has (...), by the sizes (..., G) of groups; 1 if there is none."""
    return np.maximum((sizes > 0).sum(axis=-1) - 1, 1)


def gaps(means: Array, known: NDArray[np.bool_]) -> Array:
    """Mean (..., G) of one group less that of another, (..., G, G), 0 where one of the two is not known."""
    both = known[..., :, None] & known[..., None, :]
    return np.where(both, means[..., :, None] - means[..., None, :], 0.0)
