"""VecEnv of all agents of many Allelopathic Harvests."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from sb3_fair.fairness.validation import integer
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.twins import CounterfactualHarvest
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from sb3_fair.zoo.envs.world import WorldVecEnv


class HarvestVecEnv(WorldVecEnv):
    """Allelopathic Harvests as a Stable-Baselines3 VecEnv in which every agent has a slot: world * N + agent.

    A policy that trains on it is shared by all agents, and trains on all of their experience.

    :param n_worlds: number of worlds; with ``counterfactual`` an even number
    :param config: the rules; None: the default ones; or fields of
        :class:`~sb3_fair.zoo.envs.harvest.settings.HarvestConfig` in a dict
    :param seed: of the first reset; world i is seeded with ``seed + i``
    :param counterfactual: None, or the mode of
        :class:`~sb3_fair.zoo.envs.harvest.twins.CounterfactualHarvest`: worlds are pairs of twins
    :param settings: ``render_mode``, and further arguments of :class:`~sb3_fair.zoo.envs.harvest.world.HarvestWorld`
    :raises ValueError: if an argument is not allowed

    Example:
        >>> venv = HarvestVecEnv(2, seed=0)
        >>> venv.reset().shape
        (80, 10)
        >>> venv.slot_group.reshape(2, 40).sum(axis=1)                  # slow agents of each world
        array([20, 20])
    """

    world: HarvestWorld
    LABELS: ClassVar[tuple[str, ...]] = ("slot_group", "slot_lf", "slot_world", "slot_agent", "slot_pair")
    """Arrays (slots,); of single slots they are told by ``get_attr``."""

    def __init__(
        self,
        n_worlds: int,
        config: HarvestConfig | Mapping[str, Any] | None = None,
        seed: int | None = None,
        counterfactual: str | None = None,
        **settings: Any,
    ) -> None:
        integer("n_worlds", n_worlds, 1)
        if counterfactual is None:
            super().__init__(HarvestWorld, n_worlds, config=config, **settings)
        else:
            super().__init__(_twins, n_worlds, config=config, mode=counterfactual, **settings)
        if seed is not None:
            self.seed(seed)

    @property
    def slot_group(self) -> NDArray[Any]:
        """1 for slow agents, else 0; as they are for the observations returned last."""
        return self.world.group.reshape(-1)

    @property
    def slot_lf(self) -> NDArray[Any]:
        """Legitimate factor: 1 for agents who prefer red, 2 for those who prefer blue."""
        return self.world.lf.reshape(-1)

    @property
    def slot_world(self) -> NDArray[np.int64]:
        """Number of the world."""
        return np.arange(self.num_envs) // self._agents

    @property
    def slot_agent(self) -> NDArray[np.int64]:
        """Number of the agent in its world."""
        return np.arange(self.num_envs) % self._agents

    @property
    def slot_pair(self) -> NDArray[np.int64]:
        """Slot of the same agent in the twin world; -1: there is none."""
        return self.world.pair.reshape(-1)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        if attr_name in self.LABELS:
            return getattr(self, attr_name)[list(self._get_indices(indices))].tolist()
        return super().get_attr(attr_name, indices)


class HarvestTwinsVecEnv(HarvestVecEnv):
    """Pairs of twin worlds, in which every agent of both has a slot.

    :param n_pairs: number of pairs
    :param counterfactual: see :class:`HarvestVecEnv`
    :param settings: further arguments of :class:`HarvestVecEnv`
    """

    def __init__(self, n_pairs: int, *, counterfactual: str = "none_vs_all", **settings: Any) -> None:
        super().__init__(2 * integer("n_pairs", n_pairs, 1), counterfactual=counterfactual, **settings)


def _twins(n_worlds: int, **settings: Any) -> CounterfactualHarvest:
    if n_worlds % 2:
        raise ValueError(f"n_worlds must be even for pairs of twins, got {n_worlds}")
    return CounterfactualHarvest(n_worlds // 2, **settings)
