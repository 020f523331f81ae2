"""Counterfactual twin worlds of the Allelopathic Harvest."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sb3_fair.fairness.validation import integer, one_of
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from sb3_fair.zoo.envs.world import Array

MODES = ("none_vs_all", "swap")


class CounterfactualHarvest(HarvestWorld):
    """Pairs of worlds that differ in nothing but who is slow: 2k is the factual one, 2k + 1 its twin.

    Both begin each episode from the same seed, a new one every time: field, turn orders and growth have the same
    chances. From the first action that differs they go their own ways. ``pair`` links each agent with the same one in
    the twin. Copies are restarted in pairs; a pair is seeded by its factual copy.

    :param n_pairs: half the number of copies
    :param mode: ``"none_vs_all"``: nobody is slow in the factual world and everybody in its twin, whatever
        ``sensitive_share`` or a layout says; ``"swap"``: those are slow in the twin who are not in the factual world
    :param settings: further arguments of :class:`~sb3_fair.zoo.envs.harvest.world.HarvestWorld`
    :raises ValueError: if ``mode`` is unknown, or one copy of a pair is to be restarted without the other
    """

    _STATE = (*HarvestWorld._STATE, "_pair_streams")

    def __init__(self, n_pairs: int, mode: str = "none_vs_all", **settings: Any) -> None:
        integer("n_pairs", n_pairs, 1)
        one_of("mode", mode, MODES)
        self.mode = mode
        self._pair_streams: dict[int, np.random.Generator] = {}
        super().__init__(2 * n_pairs, **settings)
        copies = np.arange(2 * n_pairs)
        self.pair = (copies ^ 1)[:, None] * self.config.n_agents + self.agent_id

    def seed(self, rngs: Sequence[tuple[int, np.random.Generator]]) -> None:
        for index, rng in rngs:
            self.reset_streams[index] = rng
            if index % 2 == 0:
                self._pair_streams[index // 2] = rng

    def restart(self, which: Array) -> Array:
        pairs = np.unique(which // 2)
        if 2 * len(pairs) != len(which):
            raise ValueError(f"which must name both copies of each pair, got {which.tolist()}")
        seeds = [(pair, self._pair_streams[pair].integers(np.iinfo(np.int64).max)) for pair in pairs.tolist()]
        super().seed([(2 * pair + twin, np.random.default_rng(seed)) for pair, seed in seeds for twin in (0, 1)])
        return super().restart(which)

    def _begin(self, which: Array, lf: Array, group: Array) -> Array:
        twins = (which % 2 == 1)[:, None]
        return super()._begin(which, lf, np.asarray(group, dtype=np.bool_) ^ twins if self.mode == "swap" else twins)
