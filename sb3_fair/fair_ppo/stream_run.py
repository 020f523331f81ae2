"""Disparity of streams of individuals over the steps of a rollout."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fair_ppo.episodes import Array, Averages, Episodes, Ints, names_of
from sb3_fair.fairness.disparity.blocks import ROUNDING, gaps, others
from sb3_fair.fairness.disparity.populations import Disparity, Population

KEPT = 0.5
"""What counts in the next rollout of what counts in this one, where it is carried over."""
_PAIRS = 2**17
"""Pairs of groups that are looked at together; those of many groups in all steps would not fit into memory."""


class Tally(NamedTuple):
    """What the groups of S streams got in the running episode, or in all that are carried over, by L legitimate factors
    and G groups.

    :param factors: (L,) labels, rising; the first is -1, of nobody
    :param groups: (G,) labels, rising; the first is -1, of nobody
    :param sums: (S, L, G) rewards
    :param counts: (S, L, G) steps
    """

    factors: Ints
    groups: Ints
    sums: Array
    counts: Array

    def extended(self, factors: Ints, groups: Ints) -> "Tally":
        """With room for further labels."""
        every_factor, every_group = np.union1d(self.factors, factors), np.union1d(self.groups, groups)
        if len(every_factor) == len(self.factors) and len(every_group) == len(self.groups):
            return self
        rows = np.searchsorted(every_factor, self.factors)[:, None], np.searchsorted(every_group, self.groups)
        wide = np.zeros((2, len(self.sums), len(every_factor), len(every_group)))
        wide[(slice(None), slice(None), *rows)] = self.sums, self.counts
        return Tally(every_factor, every_group, *wide)

    def faded(self) -> "Tally":
        """As it counts one rollout later, where it is carried over."""
        return self._replace(sums=KEPT * self.sums, counts=KEPT * self.counts)


class StreamRun:
    """t steps of S streams, all inside episodes but for the last, in which some may end.

    D of a stream with two groups is (k_U + k_S) / 2 abs(C_U / k_U - C_S / k_S), where group g got C_g in k_g steps of
    the episode so far; 0 while one had no step. Of ``"csp"`` it is summed over the values of the legitimate factor; of
    more than two groups with a step, all pairs are summed up and divided by the number of other groups that one has.

    :param disparity: ``fairness``, ``include_cross_lf`` and ``sign`` of D
    :param opening: before the steps; None: all episodes begin
    :param rewards: (t, S)
    :param populations: t, the labels of each step
    :raises ValueError: if ``fairness`` is ``"cf"``, or ``"csp"`` without a legitimate factor
    """

    def __init__(
        self, disparity: Disparity, opening: Tally | None, rewards: Array, populations: Sequence[Population]
    ) -> None:
        self.disparity, self.rewards = disparity, rewards
        factor, group = stream_labels(disparity, populations)
        steps, slots = rewards.shape
        nobody = np.array([-1])
        opening = opening or Tally(nobody, nobody, *np.zeros((2, slots, 1, 1)))
        self.opening = opening.extended(np.unique(factor), np.unique(group))
        self.factors, self.groups = self.opening.factors, self.opening.groups
        self._own = (
            *np.ogrid[:steps, :slots],
            np.searchsorted(self.factors, factor),
            np.searchsorted(self.groups, group),
        )
        come = np.zeros((steps, *self.opening.sums.shape))
        come[self._own] = (factor >= 0) & (group >= 0)
        sums, counts = self.opening.sums, self.opening.counts
        self.counts = np.concatenate([counts[None], counts + np.cumsum(come, axis=0)])
        self.sums = np.concatenate([sums[None], sums + np.cumsum(come * rewards[..., None, None], axis=0)])

    @cached_property
    def disparities(self) -> Array:
        """D (t + 1, S), before the first step and after each."""
        return _by_steps(self._disparity, self.sums, self.counts)

    @property
    def units(self) -> Array:
        """m times the level of the groups' sums of rewards (t + 1, S), of which D is a share without units."""
        return self._sizes(self.counts) * self._level(self.sums, self.counts)

    def envy(self, averages: Averages | None) -> Array:
        """g (t, S): mean sign of the lead of a step's group over the others with a step; of groups with an average,
        that."""
        running = _by_steps(self._envies, self.sums[1:], self.counts[1:])[self._own]
        if averages is None:
            return running
        known = averages.look_up(self._group_names)[self._own[2:]]
        return np.where(np.isnan(known), running, known)

    def linear(self, averages: Averages) -> Array:
        """F (t, S): minus the growth of the gaps' lead, by the averages' signs, else by those of the running gaps."""
        known = averages.look_up(self._pair_names)

        def lead(sums: Array, counts: Array) -> Array:
            leads = self.disparity.leads(np.where(np.isnan(known), self._gaps(sums, counts), known))
            both = (counts[..., :, None] > 0) & (counts[..., None, :] > 0)
            shares = np.where(both, _weights(counts) / _divisors(counts)[..., :, None], 0.0)
            return np.asarray((leads * shares).sum(axis=-1))

        return -self.rewards * _by_steps(lead, self.sums[1:], self.counts[1:])[self._own]

    def episodes(self, ended: NDArray[np.bool_]) -> Episodes | None:
        """Those of the streams (S,) that end theirs with the last step, and in which somebody is compared; None if
        there are none. A group's sum of rewards is a return."""
        compared = np.flatnonzero(ended & _compared(self.counts[-1]).any(axis=(-2, -1)))
        if not len(compared):
            return None
        sums, counts = self.sums[-1][compared], self.counts[-1][compared]
        by_group, present = sums.sum(axis=1), np.asarray(_compared(counts).any(axis=1))
        return Episodes(
            disparity=self.disparities[-1, compared],
            size=self._sizes(counts),
            level=self._level(sums, counts),
            returns={
                label: by_group[present[:, column], column]
                for column, label in enumerate(self.groups.tolist())
                if present[:, column].any()
            },
        )

    def gaps(self, ended: NDArray[np.bool_]) -> tuple[Ints, Array]:
        """Differences of mean rewards between two groups where episodes ended (S,), and (legitimate factor, group,
        group) as their names."""
        sums, counts = self.sums[-1][ended], self.counts[-1][ended]
        both = (counts[..., :, None] > 0) & (counts[..., None, :] > 0)
        return self._pair_names, np.where(both, self._gaps(sums, counts), np.nan)

    def envies(self, ended: NDArray[np.bool_]) -> tuple[Ints, Array]:
        """Envy of groups, by (legitimate factor, group)."""
        sums, counts = self.sums[-1][ended], self.counts[-1][ended]
        return self._group_names, np.where(_compared(counts), self._envies(sums, counts), np.nan)

    def mean_gaps(self) -> Array:
        """The same as D (t, S) after each step, but of the groups' means alone, however many steps they had."""

        def mean(sums: Array, counts: Array) -> Array:
            found = self._gaps(sums, counts)
            leads = self.disparity.leads(found) / others(counts)[..., None, None]
            return np.asarray((found * leads).sum(axis=(-3, -2, -1)) / 2)

        return _by_steps(mean, self.sums[1:], self.counts[1:])

    def sizes(self) -> Array:
        """m (t, S) after each step: 1 for each legitimate factor with two groups that came."""
        return self._sizes(self.counts[1:])

    def closing(self, ended: NDArray[np.bool_]) -> Tally:
        """After the steps, with new episodes where some ended (S,)."""
        goes_on = ~ended[:, None, None]
        return self.opening._replace(sums=self.sums[-1] * goes_on, counts=self.counts[-1] * goes_on)

    def _gaps(self, sums: Array, counts: Array) -> Array:
        return gaps(sums / _divisors(counts), counts > 0)

    def _disparity(self, sums: Array, counts: Array) -> Array:
        found = self._gaps(sums, counts)
        leads = self.disparity.leads(found)
        return (found * leads * _weights(counts)).sum(axis=(-3, -2, -1)) / 2

    def _level(self, sums: Array, counts: Array) -> Array:
        """Mean of the sizes of sums (..., L, G), of groups that are compared."""
        compared = _compared(counts)
        return (np.abs(sums) * compared).sum(axis=(-2, -1)) / np.maximum(compared.sum(axis=(-2, -1)), 1)

    def _sizes(self, counts: Array) -> Array:
        return _compared(counts).sum(axis=(-2, -1)) / 2

    def _envies(self, sums: Array, counts: Array) -> Array:
        found, largest = self._gaps(sums, counts), np.abs(sums / _divisors(counts)).max(axis=-1)
        leads = self.disparity.leads(np.where(np.abs(found) > ROUNDING * largest[..., None, None], found, 0.0))
        return leads.sum(axis=-1) / others(counts)[..., None]

    @property
    def _group_names(self) -> Ints:
        return names_of(self.factors, self.groups)

    @property
    def _pair_names(self) -> Ints:
        return names_of(self.factors, self.groups, self.groups)


def stream_labels(disparity: Disparity, populations: Sequence[Population]) -> tuple[Ints, Ints]:
    """Legitimate factor and group (t, S) of the individuals of t steps; where it does not matter, the factor is 0.

    :raises ValueError: if ``fairness`` is ``"cf"``, or ``"csp"`` without a legitimate factor
    """
    if disparity.fairness == "cf":
        raise ValueError("fairness must be 'dp' or 'csp' for streams of individuals, which have no twins, got 'cf'")
    group = np.stack([population.group for population in populations])
    if not disparity.by_factor:
        return np.zeros_like(group), group
    return np.stack([population.factor for population in populations]), group


def _by_steps(figure: Callable[[Array, Array], Array], sums: Array, counts: Array) -> Array:
    """A figure of the groups' sums and counts (t, S, L, G), some steps at a time."""
    steps = max(1, _PAIRS // max(1, counts[0].size * counts.shape[-1]))
    starts = range(0, len(counts), steps)
    return np.concatenate([figure(sums[start : start + steps], counts[start : start + steps]) for start in starts])


def _weights(counts: Array) -> Array:
    """(..., G, G) mean number of steps of each two groups, over the number of other groups that one has."""
    return (counts[..., :, None] + counts[..., None, :]) / 2 / others(counts)[..., None, None]


def _compared(counts: Array) -> NDArray[np.bool_]:
    """(..., G) whether a group had a step, and another one too."""
    return (counts > 0) & ((counts > 0).sum(axis=-1, keepdims=True) > 1)


def _divisors(counts: Array) -> Array:
    """The counts, which may be fractions where they fade, and 1 instead of 0."""
    return np.where(counts > 0, counts, 1.0)
