"""Penalty critics: an ``ExtraCritic`` per group."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from torch import nn

from sb3_fair.common.extra_critic import Critic, ExtraCritic
from sb3_fair.wrappers.observations import rows_of


class PenaltyCritic(Critic):
    """An :class:`ExtraCritic` per group, each for the observations of its own group.

    :param observation_space: that of the policy
    :param n_groups: number of critics
    :param groups: observations (n, ...) -> groups (n,); not asked if there is one critic
    :param seed: of the first critic; the next ones count on. None: PyTorch's current one for all
    :param settings: further arguments of :class:`ExtraCritic`
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        n_groups: int,
        groups: Callable[[Any], NDArray[np.int64]],
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.groups = groups
        self.members = nn.ModuleList(
            ExtraCritic(observation_space, seed=None if seed is None else seed + index, **settings)
            for index in range(n_groups)
        )

    def _parts(self, obs: Any) -> list[tuple[ExtraCritic, NDArray[np.int64]]]:
        """The critics and the rows of the observations that are theirs."""
        n = len(next(iter(obs.values()))) if isinstance(obs, dict) else len(obs)
        groups = self.groups(obs) if len(self.members) > 1 else np.zeros(n, dtype=np.int64)
        parts = [(cast(ExtraCritic, member), np.flatnonzero(groups == g)) for g, member in enumerate(self.members)]
        return [(member, rows) for member, rows in parts if len(rows)]

    def values(self, obs: Any) -> NDArray[np.float32]:
        parts = self._parts(obs)
        values = np.empty(sum(len(rows) for _, rows in parts), dtype=np.float32)
        for member, rows in parts:
            values[rows] = member.values(rows_of(obs, rows))
        return values

    def fit(self, observations: Any, returns: NDArray[Any], epochs: int, batch_size: int) -> None:
        for member, rows in self._parts(observations):
            member.fit(rows_of(observations, rows), returns[rows], epochs, batch_size)
