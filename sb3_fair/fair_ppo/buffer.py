"""Rollout buffers that add penalties to advantages."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from sb3_fair.common.columns import ColumnDictRolloutBuffer, ColumnRolloutBuffer

BONUS = "bonus"


class PenaltyRolloutBuffer(ColumnRolloutBuffer):
    """A rollout buffer that calls its algorithm before returns are computed.

    ``settle(last_values)`` is called as soon as the buffer is full. It may change ``rewards``; set ``penalties``
    (T, n), the advantages that are due to penalties, which are added unless they are in the rewards already; and note a
    column ``"bonus"``, which is added to the advantages of a minibatch after their normalisation. This replaces the
    learner's own then; ``normalizes`` says whether there is to be one.
    """

    settle: Callable[[th.Tensor], None] | None = None
    normalizes = True
    penalties: NDArray[Any] | None
    in_rewards: bool

    def reset(self) -> None:
        """Forgets all steps."""
        super().reset()
        self.penalties = None
        self.in_rewards = False

    def compute_returns_and_advantage(self, last_values: th.Tensor, dones: NDArray[Any]) -> None:
        """SB3's, after ``settle``."""
        if self.settle is not None:
            self.settle(last_values)
        super().compute_returns_and_advantage(last_values, dones)

    def reshape_advantages(self) -> None:
        """Adds the ``penalties``; returns keep to the rewards."""
        if self.penalties is not None and not self.in_rewards:
            self.advantages += self.penalties.astype(np.float32)

    def _get_samples(self, batch_inds: NDArray[np.int64], env: Any = None) -> Any:
        samples: Any = super()._get_samples(batch_inds, env)
        if BONUS not in self.columns:
            return samples
        advantages = normalized(samples.advantages) if self.normalizes else samples.advantages
        return samples._replace(advantages=advantages + self.to_torch(self.columns[BONUS][batch_inds]).float())


class PenaltyDictRolloutBuffer(PenaltyRolloutBuffer, ColumnDictRolloutBuffer):
    """The same for dict observations."""


def normalized(advantages: th.Tensor) -> th.Tensor:
    """Advantages (n,) with mean 0 and standard deviation 1, as PPO does it; a single one as it is (SB3's issue 325)."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8) if len(advantages) > 1 else advantages
