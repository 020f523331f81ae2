"""Rollout buffers of FPPO, which add the effects of actions on disparities to the advantages."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecNormalize

from sb3_fair.common.columns import ColumnDictRolloutBuffer, ColumnRolloutBuffer
from sb3_fair.common.extra_critic import ExtraCritic
from sb3_fair.f_ppo.long_run import LongRunCredit
from sb3_fair.f_ppo.regulariser import Columns, regularise_advantages
from sb3_fair.wrappers.observations import steps_of

BASELINE_RATE, BASELINE_EPOCHS, BASELINE_BATCH = 3e-3, 4, 512
"""How the baseline of the credit learns: learning rate, passes over a rollout, steps per minibatch."""


class FairRolloutBuffer(ColumnRolloutBuffer):
    """A rollout buffer that adds the effects of actions on disparities to the advantages.

    Returns, the targets of the value network, are still those of the rewards.

    ``regulariser``: arguments of :func:`~sb3_fair.f_ppo.regulariser.regularise_advantages`; empty: none. Advantages are
    changed once per rollout, with ``"minmax"`` in every minibatch. ``long_run``: credits steps with what they do to the
    groups in the long run, in place of F-PPO's R; None: R. ``baseline``: learns what credit is usual where, which is
    taken off; None: nothing is. ``credit``: those of the last rollout. ``reward_scale``: what its rewards were
    multiplied by.
    """

    regulariser: Mapping[str, Any] = {}
    reward_scale = 1.0
    long_run: LongRunCredit | None = None
    baseline: ExtraCritic | None = None
    credit: NDArray[np.float64] | None = None

    def disparities(self, which: Any = ...) -> Columns:
        """The columns of the measures, or the entries ``which`` of them."""
        return Columns(*(self.columns[name][which] for name in Columns._fields))

    def reshape_advantages(self) -> None:
        """Adds what is to be added once per rollout.

        :raises ValueError: if a disparity was undefined after a step
        """
        self.credit = None
        if not any(self.regulariser.get(weight) for weight in ("reg_lambda", "beta1", "beta2")):
            return
        columns = self.disparities()
        for name, column in columns._asdict().items():
            if np.isnan(column).any():
                raise ValueError(f"{name} must be a number after every step to enter the advantages, got nan")
        if not self._per_minibatch:
            if self.long_run is not None and self.regulariser.get("reg_lambda"):
                credit = self.credit = self.long_run.credit(columns.d_l, columns.d_l_next)
                self.long_run.begin()  # which keeps files of models small
                if self.baseline is not None:
                    observations = steps_of(self.observations)
                    self.credit = credit - self.baseline.values(observations).reshape(credit.shape)
                    self.baseline.fit(observations, credit.ravel(), BASELINE_EPOCHS, BASELINE_BATCH)
            self.advantages = self._regularised(self.advantages, ..., self.credit)

    def _get_samples(self, batch_inds: NDArray[np.int64], env: VecNormalize | None = None) -> Any:
        batch = super()._get_samples(batch_inds, env)
        if not self._per_minibatch:
            return batch
        advantages = self._regularised(self.advantages[batch_inds].flatten(), batch_inds)
        return batch._replace(advantages=self.to_torch(advantages))

    @property
    def _per_minibatch(self) -> bool:
        return self.regulariser.get("scaling") == "minmax"

    def _regularised(self, advantages: NDArray[np.float32], which: Any, credit: Any = None) -> NDArray[np.float32]:
        settings = {"credit": credit, "reward_scale": self.reward_scale, **self.regulariser}
        return regularise_advantages(advantages, self.disparities(which), **settings).astype(np.float32)


class FairDictRolloutBuffer(FairRolloutBuffer, ColumnDictRolloutBuffer):
    """The same for dict observations."""
