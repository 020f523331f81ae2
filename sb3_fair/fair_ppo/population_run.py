"""Disparity of a population over the steps of a rollout."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fair_ppo.episodes import Array, Averages, Episodes, Ints, names_of
from sb3_fair.fairness.disparity.blocks import Blocks
from sb3_fair.fairness.disparity.populations import Disparity, Population


class PopulationRun:
    """t steps of one population, all inside episodes but for the last, in which some may end.

    :param disparity: D
    :param opening: rewards so far (S,); None: all episodes begin
    :param rewards: (t, S)
    :param populations: t times the same one
    """

    def __init__(
        self, disparity: Disparity, opening: Array | None, rewards: Array, populations: Sequence[Population]
    ) -> None:
        self.disparity, self.rewards, self.population = disparity, rewards, populations[0]
        before = np.zeros(rewards.shape[1]) if opening is None else opening
        self.cumulated = np.concatenate([before[None], before + np.cumsum(rewards, axis=0)])

    @cached_property
    def disparities(self) -> Array:
        """D (t + 1, S) of each slot's world, before the first step and after each."""
        return self.population.spread(self.disparity(self.cumulated, self.population))

    @property
    def units(self) -> Array:
        """m times the level of the cumulated rewards (t + 1, S), of which D is a share without units."""
        sizes = self.disparity.size(self.population)
        return self.population.spread(sizes * self.disparity.level(self.cumulated, self.population))

    def envy(self, averages: Averages | None) -> Array:
        """g (t, S) of the cumulated rewards; of groups with an average, that."""
        running = self.disparity.envy(self.cumulated[1:], self.population)
        if averages is None:
            return running
        table = averages.look_up(self._group_names)
        of_group = self._blocks.scatter(np.take_along_axis(table, self._blocks.belongs.argmax(axis=-1), axis=1))
        return np.where(np.isnan(of_group), running, of_group)

    def linear(self, averages: Averages) -> Array:
        """F (t, S): minus the growth of the gaps' lead, by the averages' signs, else by those of the running gaps."""
        blocks = self._blocks
        known = averages.look_up(self._pair_names)
        leads = self.disparity.leads(np.where(np.isnan(known), blocks.gaps(self.cumulated[1:]), known))
        growth = (leads * blocks.larger * blocks.gaps(self.rewards)).sum(axis=(-2, -1)) / 2
        return -self.population.spread(self.disparity.tell(blocks, growth, self.population))

    def episodes(self, ended: NDArray[np.bool_]) -> Episodes | None:
        """Those of the slots (S,) that end theirs with the last step, of worlds in which somebody is compared; None if
        there are none."""
        population, returns = self.population, self.cumulated[-1]
        compared = np.intersect1d(np.flatnonzero(ended), self._blocks.slots)
        if not len(compared):
            return None
        worlds, first, which = np.unique(population.world_index[compared], return_index=True, return_inverse=True)
        members = {label: compared[population.group[compared] == label] for label in population.groups.tolist()}
        return Episodes(
            disparity=self.disparities[-1, compared[first]],
            size=self.disparity.size(population)[worlds],
            level=np.bincount(which, np.abs(returns[compared])) / np.bincount(which),
            returns={label: returns[which] for label, which in members.items() if len(which)},
        )

    def gaps(self, ended: NDArray[np.bool_]) -> tuple[Ints, Array]:
        """Differences of mean returns between two groups where episodes ended (S,), and (legitimate factor, group,
        group) as their names."""
        blocks, returns = self._blocks, self.cumulated[-1]
        known = self._concerned(ended)[:, None, None] & (blocks.sizes[:, :, None] > 0) & (blocks.sizes[:, None, :] > 0)
        return self._pair_names, np.where(known, blocks.gaps(returns), np.nan)

    def envies(self, ended: NDArray[np.bool_]) -> tuple[Ints, Array]:
        """Mean envy of a group's members by their returns, by (legitimate factor, group)."""
        blocks = self._blocks
        means = blocks.means(self.disparity.envy(self.cumulated[-1], self.population))
        known = self._concerned(ended)[:, None] & (blocks.sizes > 0)
        return self._group_names, np.where(known, means, np.nan)

    def closing(self, ended: NDArray[np.bool_]) -> Array:
        """Rewards so far (S,) after the steps, with new episodes where some ended."""
        return np.where(ended, 0.0, self.cumulated[-1])

    def _concerned(self, ended: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(B,) blocks with a slot whose episode ended."""
        members = ended[self._blocks.members] & (self._blocks.belongs.sum(axis=-1) > 0)
        return np.asarray(members.any(axis=-1))

    @property
    def _blocks(self) -> Blocks:
        return self.disparity.means(self.population)

    @property
    def _group_names(self) -> Ints:
        return names_of(self._blocks.key, self._group_labels)

    @property
    def _pair_names(self) -> Ints:
        return names_of(self._blocks.key, self._group_labels, self._group_labels)

    @property
    def _group_labels(self) -> Ints:
        """(G,) of the groups that the blocks compare, -1 for one that only fills up."""
        labels = np.full(self._blocks.belongs.shape[-1], -1)
        known = np.arange(2) if self.disparity.fairness == "cf" else self.population.groups
        labels[: len(known)] = known
        return labels
