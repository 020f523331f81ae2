"""Disparity of a population whose episodes end at different times: mean returns of the groups' latest episodes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fair_ppo.episodes import MEMORY, Array, Averages, Episodes
from sb3_fair.fairness.disparity.populations import Disparity, Population

Key: TypeAlias = tuple[int, int]
Finished: TypeAlias = Mapping[Key, Array]
"""(legitimate factor, group) -> number of episodes, sum of their returns, sum of the sizes of these."""


class ApartRun:
    """A rollout of t steps of a population whose slots end their episodes apart.

    The cumulated rewards of running episodes depend on how long these have been running. So C_x is the mean return of
    the latest episodes of all slots with the labels of x (group, and legitimate factor with ``"csp"``). The episodes of
    a rollout count 5 % less with every further rollout. C, D and the slopes dD/dC_x are constant in a rollout: a reward
    r_x adds dD/dC_x r_x. A group without an episode so far is not compared.

    :param disparity: D
    :param opening: rewards so far (S,); None: all episodes begin
    :param rewards: (t, S)
    :param populations: t, the labels of each step
    :param dones: (t, S) whether a step ended its slot's episode
    :param finished: the episodes before this rollout
    """

    def __init__(
        self,
        disparity: Disparity,
        opening: Array | None,
        rewards: Array,
        populations: Sequence[Population],
        dones: NDArray[np.bool_],
        finished: Finished,
    ) -> None:
        self.disparity, self.rewards, self.populations = disparity, rewards, populations
        has = np.zeros(rewards.shape[1]) if opening is None else opening
        self.finished: dict[Key, Array] = {key: MEMORY * figures for key, figures in finished.items()}
        self._returns: dict[int, list[float]] = {}
        for reward, ends, population in zip(rewards, dones, populations, strict=True):
            has = has + reward
            known = ends & (population.group >= 0)
            for key, result in zip(keys_of(disparity, population, known), has[known].tolist(), strict=True):
                self.finished[key] = self.finished.get(key, np.zeros(3)) + [1.0, result, abs(result)]
                self._returns.setdefault(key[1], []).append(result)
            has = np.where(ends, 0.0, has)
        self.closing = has
        self.means = {key: float(total / number) for key, (number, total, _) in self.finished.items()}

    @property
    def disparities(self) -> Array:
        """D (t + 1, S) of each slot's world."""
        return self._with_first(lambda figures, who: who.spread(self.disparity(figures, who)))

    @property
    def units(self) -> Array:
        """m times the level of C (t + 1, S), of which D is a share without units."""
        size, level = self.disparity.size, self.disparity.level
        return self._with_first(lambda figures, who: who.spread(size(who) * level(figures, who)))

    def linear(self, averages: Averages | None = None) -> Array:
        """F (t, S): minus what the rewards add to D."""
        return -weighed(self.rewards, self.populations, self.disparity, self.means)

    def envy(self, averages: Averages | None = None) -> Array:
        """g (t, S): mean sign of the lead of a slot's group."""
        return self._with_first(self.disparity.envy)[1:]

    @property
    def episodes(self) -> Episodes | None:
        """Those that ended, with D as it is now in worlds in which somebody is compared; None if none did, or nobody
        is."""
        who, figures = levelled(self.populations[-1], self.disparity, self.means)
        keys = set(keys_of(self.disparity, who, self.disparity.blocks(who).slots))
        if not self._returns or not keys or not keys <= self.means.keys():
            return None
        size = self.disparity.size(who)
        compared = size > 0
        sizes = [total / number for key, (number, _, total) in self.finished.items() if key in keys]
        return Episodes(
            disparity=self.disparity(figures, who)[compared],
            size=size[compared],
            level=np.full(compared.sum(), np.mean(sizes)),
            returns={group: np.array(self._returns[group]) for group in sorted(self._returns)},
        )

    def _with_first(self, figure: Callable[[Array, Population], Array]) -> Array:
        """A figure of C (S,) and of those who are compared in each step (t + 1, S), that of the first step twice."""
        found = []
        for population, steps in same(self.populations):
            who, levels = levelled(population, self.disparity, self.means)
            found.append(np.tile(figure(levels, who), (steps.stop - steps.start, 1)))
        return np.concatenate([found[0][:1], *found])


def end_apart(populations: Sequence[Population], dones: NDArray[np.bool_], disparity: Disparity) -> bool:
    """Does an episode end while that of another member of the same world, or of twin worlds, goes on?"""
    for step in np.flatnonzero(dones.any(axis=1) & ~dones.all(axis=1)).tolist():
        population = populations[step]
        members = population.group >= 0
        world = population.home[population.world_index] if disparity.fairness == "cf" else population.world_index
        worlds, ends = world[members], dones[step][members]
        ended = np.bincount(worlds, ends)
        if ((ended > 0) & (ended < np.bincount(worlds))).any():
            return True
    return False


def keys_of(disparity: Disparity, population: Population, which: NDArray[Any]) -> list[Key]:
    """(legitimate factor, group) of some of the slots; the factor is 0 where it does not matter.

    :raises ValueError: if it matters and is not told
    """
    factor = population.factor if disparity.by_factor else np.zeros_like(population.group)
    return list(zip(factor[which].tolist(), population.group[which].tolist(), strict=True))


def levelled(population: Population, disparity: Disparity, means: Mapping[Key, float]) -> tuple[Population, Array]:
    """Those of a population whose group has a mean, and that mean for each slot (S,)."""
    everybody = np.ones(len(population), dtype=bool)
    figures = np.array([means.get(key, np.nan) for key in keys_of(disparity, population, everybody)])
    unknown = np.isnan(figures)
    if not unknown.any():
        return population, figures
    if disparity.fairness == "cf":  # twins are compared if both are known
        return population, np.zeros_like(figures)
    group = np.where(unknown, -1, population.group)
    return Population(group, population.lf, population.world, population.pair), np.where(unknown, 0.0, figures)


def weighed(
    figures: Array, populations: Sequence[Population], disparity: Disparity, means: Mapping[Key, float]
) -> Array:
    """Sum (t, S) over each slot's world of dD/dC_x times the figures (t, S), where C are the means of groups."""
    found = np.zeros_like(figures)
    for population, steps in same(populations):
        who, levels = levelled(population, disparity, means)
        world = who.home[who.world_index] if disparity.fairness == "cf" else who.world_index
        products = figures[steps] * disparity.slopes(levels, who)
        sums = np.stack([np.bincount(world, row, len(who.worlds)) for row in products])
        found[steps] = sums[:, world]
    return found


def same(populations: Sequence[Population]) -> Iterator[tuple[Population, slice]]:
    """Each stretch of steps with the same labels."""
    start = 0
    for _, stretch in groupby(populations, key=id):
        members = list(stretch)
        yield members[0], slice(start, start + len(members))
        start += len(members)
