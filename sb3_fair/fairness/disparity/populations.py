"""Disparities between the groups of a population, and their slopes for each member.

Source: La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy Optimization" (arXiv 2502.03953).
Its sums over pairs are divided so that one more unit for one member changes a disparity by at most one unit.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.disparity.blocks import Array, Blocks, Ints, equalised
from sb3_fair.fairness.validation import as_array

Fairness: TypeAlias = Literal["dp", "csp", "cf"]
Sign: TypeAlias = Literal["absolute", "one_sided"]
Aggregate: TypeAlias = Literal["pairs", "group_mean"]


class Population:
    """S slots, each with the labels of its agent; agents of one world are compared.

    :param group: (S,) whole numbers, 0 for members of the group that is not sensitive, 1 for sensitive ones, further
        numbers for further groups, -1 for members who are not compared
    :param lf: (S,) value of the legitimate factor, -1: none; None: there is no such factor
    :param world: (S,) its number; None: all are in one world
    :param pair: (S,) slot of the counterfactual twin, -1: none; None: there are no twins
    :raises ValueError: if labels are not one whole number per slot, or twins are not each other's
    """

    def __init__(
        self,
        group: ArrayLike,
        lf: ArrayLike | None = None,
        world: ArrayLike | None = None,
        pair: ArrayLike | None = None,
    ) -> None:
        self.group = whole_numbers("group", group)
        size = len(self.group)
        self.lf = None if lf is None else whole_numbers("lf", lf, size)
        self.world = np.zeros(size, dtype=np.int64) if world is None else whole_numbers("world", world, size)
        self.pair = None if pair is None else whole_numbers("pair", pair, size)
        self.worlds, self.world_index = np.unique(self.world, return_inverse=True)
        if self.pair is not None:
            paired = np.flatnonzero(self.pair >= 0)
            partners = self.pair[paired]
            if (partners >= size).any() or (self.pair[partners] != paired).any() or (partners == paired).any():
                raise ValueError(f"pair must name slots that name each other, got {self.pair.tolist()}")

    def __len__(self) -> int:
        return len(self.group)

    def spread(self, figures: NDArray[Any]) -> NDArray[Any]:
        """Figures (..., W) of the worlds, told for each slot (..., S)."""
        return figures[..., self.world_index]

    @cached_property
    def groups(self) -> Ints:
        """(G,) the labels of groups that occur, rising."""
        return np.unique(self.group[self.group >= 0])

    @cached_property
    def whole(self) -> Blocks:
        """All members of a world."""
        return self._blocks(np.zeros(len(self), dtype=np.int64))

    @property
    def factor(self) -> Ints:
        """(S,) value of the legitimate factor.

        :raises ValueError: if there is none
        """
        if self.lf is None:
            raise ValueError("lf must be given for fairness='csp', which compares members with equal legitimate factor")
        return self.lf

    @cached_property
    def strata(self) -> Blocks:
        """Members of a world with equal legitimate factor."""
        return self._blocks(self.factor)

    @cached_property
    def twins(self) -> Blocks:
        """Each two twins; told for the first of their worlds."""
        return self._blocks_of_versions(np.where(self.partner >= 0, np.minimum(np.arange(len(self)), self.partner), -1))

    @cached_property
    def versions(self) -> Blocks:
        """All who have twins in two worlds, with the factual and the counterfactual ones as groups."""
        return self._blocks_of_versions(np.where(self.partner >= 0, 0, -1))

    def _blocks(self, key: Ints) -> Blocks:
        column = np.where(self.group >= 0, np.searchsorted(self.groups, self.group), -1)
        return Blocks(self.world_index, key, column, len(self.worlds), len(self.groups))

    def _blocks_of_versions(self, key: Ints) -> Blocks:
        """Twins with the lower label stand for group 0, the others for group 1; among equals the lower slot does."""
        slots, partner = np.arange(len(self)), self.partner
        own, other = self.group, self.group[partner]
        second = (own > other) | ((own == other) & (slots > partner))
        column = np.where(partner >= 0, second.astype(np.int64), -1)
        return Blocks(self.home[self.world_index], key, column, len(self.worlds), 2)

    @property
    def partner(self) -> Ints:
        """(S,) slot of the counterfactual twin, -1: none.

        :raises ValueError: if nobody has one
        """
        if self.pair is None or (self.pair < 0).all():
            raise ValueError("pair must be given for fairness='cf', which compares agents with their twins")
        return self.pair

    @cached_property
    def home(self) -> Ints:
        """(W,) number of the world itself, or of its twin if that comes first.

        :raises ValueError: if a world has twins in several worlds
        """
        paired = np.flatnonzero(self.partner >= 0)
        ours, theirs = self.world_index[paired], self.world_index[self.partner[paired]]
        twin = np.arange(len(self.worlds))
        twin[ours] = theirs
        if (twin[ours] != theirs).any():
            raise ValueError("pair must link every world with one other world only")
        return np.minimum(np.arange(len(twin)), twin)


@checked
@dataclass(frozen=True)
class Disparity:
    """D, 0 where no group has more than another. C_x is a figure of member x; with two groups U and S (labels 0 and 1):

    ===========  ================================================================================================
    fairness     D of a world
    ===========  ================================================================================================
    ``"dp"``     demographic parity: sum over x in S, y in U of abs(C_x - C_y), over max(n_U, n_S)
    ``"csp"``    conditional statistical parity: the same among members of equal legitimate factor, summed over these
    ``"cf"``     counterfactual fairness: sum of abs(C_x - C_x') over twins x and x'; the same for both their worlds
    ===========  ================================================================================================

    A group without members contributes 0. Of more than two groups that are compared with each other, all pairs of
    groups are summed up and divided by the number of other groups that one has.

    >>> Disparity("dp")([8.0, 4.0, 5.0, 6.0], Population(group=[0, 1, 0, 1]))
    array([4.])

    :param fairness: ``"dp"``, ``"csp"`` or ``"cf"``
    :param include_cross_lf: ``"csp"`` compares members with different legitimate factors too, which makes it ``"dp"``
        (the equation in the paper, but not its Definition 3)
    :param sign: ``"one_sided"``: only a lead of the group with the lower label counts (max(C_y - C_x, 0), y in U)
    :param aggregate: ``"group_mean"``: max(n_U, n_S) abs(mean_U C - mean_S C), whatever the spread inside the groups;
        of ``"cf"``, all agents of the one world and all of the other
    :raises ValueError: if a name is unknown
    """

    fairness: Fairness = "dp"
    include_cross_lf: bool = False
    sign: Sign = "absolute"
    aggregate: Aggregate = "pairs"

    # ---------------------------------------------------------------- figures of worlds

    def __call__(self, figures: ArrayLike, population: Population) -> Array:
        """D (..., W) of the worlds of a population, in the order of their numbers.

        :param figures: (..., S)
        :raises ValueError: if the shape does not fit, or the population lacks the labels needed
        """
        values, blocks = self._checked(figures, population), self.blocks(population)
        if self.aggregate == "group_mean":
            gaps = blocks.gaps(values)
            return self.tell(blocks, (gaps * self.leads(gaps) * blocks.larger).sum(axis=(-2, -1)) / 2, population)
        members = blocks.gather(values)
        return self.tell(blocks, (members * self._pull(blocks, members, blocks.per_pair)).sum(axis=-1), population)

    def size(self, population: Population) -> Array:
        """m (W,), of which D / (m scale) is of the order of a relative difference: max(n_U, n_S); 0 where nobody is
        compared.

        Of ``"csp"`` the sum of these, of ``"cf"`` the number of twins in a world.
        """
        blocks = self.blocks(population)
        return self.tell(blocks, blocks.larger.sum(axis=(-2, -1)) / 2, population)

    def level(self, figures: ArrayLike, population: Population) -> Array:
        """Mean (..., W) of abs(C_x) over those who are compared in a world, of ``"cf"`` in both twin worlds.

        :param figures: (..., S)
        """
        values, blocks = self._checked(figures, population), self.blocks(population)
        sums = np.einsum("...bn,bng->...b", blocks.gather(np.abs(values)), blocks.belongs)
        members = self.tell(blocks, blocks.sizes.sum(axis=-1), population)
        return self.tell(blocks, sums, population) / np.maximum(members, 1)

    def compares(self, population: Population) -> bool:
        """Whether a world has members of two groups who are compared."""
        return len(self.blocks(population).slots) > 0

    # ---------------------------------------------------------------- figures of slots

    def slopes(self, figures: ArrayLike, population: Population) -> Array:
        """dD/dC_x (..., S), between -1 and 1 for ``"pairs"``. D is the sum of slopes times figures."""
        values, blocks = self._checked(figures, population), self.blocks(population)
        if self.aggregate == "group_mean":
            pull = self.leads(blocks.gaps(values)) * blocks.larger / np.maximum(blocks.sizes, 1)[:, :, None]
            return blocks.scatter((blocks.belongs @ pull.sum(axis=-1)[..., None])[..., 0])
        members = blocks.gather(values)
        return blocks.scatter(self._pull(blocks, members, blocks.per_pair))

    def envy(self, figures: ArrayLike, population: Population) -> Array:
        """g (..., S): mean of sign(C_x - C_y) over all y that x is compared with, 0 without any.

        1: x has more than each of them, -1: less; with ``sign="one_sided"``, only a lead of the lower label counts.
        What may be due to rounding is no lead.
        """
        values, blocks = self._checked(figures, population), self.pairs(population)
        members = equalised(blocks.gather(values) * blocks.belongs.any(axis=-1))
        return blocks.scatter(self._pull(blocks, members, blocks.per_partner))

    def leads(self, gaps: Array) -> Array:
        """Sign of the gaps (..., G, G) that count."""
        signs = np.sign(gaps)
        return signs if self.sign == "absolute" else np.triu(np.maximum(signs, 0)) + np.tril(np.minimum(signs, 0))

    # ---------------------------------------------------------------- who is compared

    @property
    def by_factor(self) -> bool:
        """Whether only members with the same legitimate factor are compared."""
        return self.fairness == "csp" and not self.include_cross_lf

    def pairs(self, population: Population) -> Blocks:
        """The blocks in which every member is compared with every member of other groups; nobody else is compared."""
        if self.fairness == "cf":
            return population.twins
        return population.strata if self.by_factor else population.whole

    def means(self, population: Population) -> Blocks:
        """The blocks in which means of groups are compared."""
        return population.versions if self.fairness == "cf" else self.pairs(population)

    def blocks(self, population: Population) -> Blocks:
        """Those that the ``aggregate`` asks for."""
        return self.pairs(population) if self.aggregate == "pairs" else self.means(population)

    def tell(self, blocks: Blocks, figures: Array, population: Population) -> Array:
        """Figures (..., B) of the blocks summed to (..., W), of ``"cf"`` for both of two twin worlds."""
        worlds = blocks.per_world(figures)
        return worlds[..., population.home] if self.fairness == "cf" else worlds

    def _checked(self, figures: ArrayLike, population: Population) -> Array:
        values = as_array(figures, np.float64)
        if values.shape[-1:] != (len(population),):
            raise ValueError(f"figures must have one entry per slot ({len(population)}), got shape {values.shape}")
        return values

    def _pull(self, blocks: Blocks, members: Array, weights: Array) -> Array:
        """How many of other groups a member has more than, less how many it has less than, (..., B, n), weighted by
        (B, G, G) for each two groups."""
        less, more = blocks.standing(members)
        if self.sign == "absolute":
            return ((less - more) * (blocks.belongs @ weights)).sum(axis=-1)
        ahead, behind = blocks.belongs @ np.triu(weights), blocks.belongs @ np.tril(weights)
        return (less * ahead - more * behind).sum(axis=-1)


def whole_numbers(name: str, labels: ArrayLike, size: int | None = None) -> Ints:
    """Labels (S,) as int64; refuses what is not one whole number of at least -1 per slot."""
    array = as_array(labels)
    if array.ndim != 1 or (size is not None and len(array) != size):
        slots = "one label per slot" if size is None else f"one label for each of the {size} slots"
        raise ValueError(f"{name} must have {slots}, got shape {array.shape}")
    if array.dtype.kind not in "biuf" or not (np.isfinite(array) & (array == np.floor(array)) & (array >= -1)).all():
        raise ValueError(f"{name} must be whole numbers of at least -1, got {labels!r}")
    return array.astype(np.int64)
