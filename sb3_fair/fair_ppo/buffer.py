"""Rollout buffers that add a bonus to normalised advantages."""

from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from sb3_fair.common.columns import ColumnDictRolloutBuffer, ColumnRolloutBuffer

BONUS = "bonus"


class PenaltyRolloutBuffer(ColumnRolloutBuffer):
    """A rollout buffer that adds a column ``"bonus"``, if there is one, to the advantages of a minibatch.

    It is added after their normalisation, which replaces the learner's own then; ``normalizes`` says whether there is
    to be one.
    """

    normalizes = True

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
