"""What does an action do to the groups in the long run, not only in the step itself?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.common.extra_critic import ExtraCritic, gae
from sb3_fair.wrappers.infos import stack

GAE_LAMBDA = 0.95
"""Of the critic's targets."""
BEFORE, AFTER = "groups_before", "groups"


class LongRunCredit:
    """Credits a step with all the fall of long-term disparity that it leads to, discounted.

    A critic sees what long-term disparity compares, the groups' true state, which policies do not see: a training is a
    simulation, and knows it. The credit of a step is the fall in the step itself plus ``gamma`` times the critic's
    value of the groups after it, minus that of the groups before. So a loan that makes groups less alike at once, but
    puts an applicant's group on a better path, is worth what the path is worth.

    :param inputs: numbers that describe the groups of one copy
    :param gamma: discount factor
    :param n_epochs: passes of the critic over a rollout
    :param batch_size: steps per minibatch
    :param seed: of the critic
    :param device: of the critic
    """

    def __init__(
        self, inputs: int, gamma: float, n_epochs: int, batch_size: int, seed: int | None, device: th.device | str
    ) -> None:
        self.gamma, self.n_epochs, self.batch_size = gamma, n_epochs, batch_size
        self.critic = ExtraCritic(spaces.Box(-np.inf, np.inf, (inputs,)), seed=seed, device=device)
        self.begin()

    def begin(self) -> None:
        """A rollout begins; steps of one that was broken off are forgotten."""
        self.before: list[NDArray[np.float32]] = []
        self.after: list[NDArray[np.float32]] = []
        self.dones: list[NDArray[np.bool_]] = []
        self.ended: list[NDArray[np.bool_]] = []

    def note(self, infos: Sequence[Mapping[str, Any]], dones: NDArray[np.bool_]) -> None:
        """A step of all copies, in which episodes ended where ``dones`` (n,)."""
        before, after = groups_of(infos)
        self.before.append(before)
        self.after.append(after)
        self.dones.append(dones)
        truncated = [infos[copy].get("TimeLimit.truncated", False) for copy in np.flatnonzero(dones).tolist()]
        ended = dones.copy()
        ended[dones] = ~np.array(truncated, dtype=bool)
        self.ended.append(ended)

    def credit(self, fall: NDArray[np.float64]) -> NDArray[np.float64]:
        """The credit (T, n) of the steps noted since the rollout began; then the critic learns from them.

        :param fall: (T, n) of long-term disparity in each step
        """
        shape = fall.shape
        before, after = (np.concatenate(groups) for groups in (self.before, self.after))
        values, following = (self.critic.values(groups).reshape(shape) for groups in (before, after))
        dones, ended = np.stack(self.dones), np.stack(self.ended)
        following = np.where(ended, 0, following)
        starts = np.concatenate([np.zeros((1, shape[1]), dtype=bool), dones[:-1]])
        # gae takes nothing from beyond the end of an episode: what a time limit cut off is added to the last step
        whole = fall + self.gamma * following * dones
        advantages = gae(whole, values, following[-1], dones[-1], starts, self.gamma, GAE_LAMBDA)
        self.critic.fit(before, (advantages + values).ravel(), self.n_epochs, self.batch_size)
        credit: NDArray[np.float64] = fall + self.gamma * following - values
        return credit


def groups_of(infos: Sequence[Mapping[str, Any]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """State of the groups before and after a step (n, inputs).

    :raises ValueError: if the environment does not tell it
    """
    try:
        detail = stack(infos, "detail")
        found = detail[BEFORE], detail[AFTER]
    except KeyError:
        raise ValueError(
            f"reg_credit must be 'step' for an environment without info['detail'][{BEFORE!r}] and [{AFTER!r}], got "
            "'return': scenarios of this package have them if they are made with detail=True"
        ) from None
    before, after = (np.asarray(groups, dtype=np.float32).reshape(len(infos), -1) for groups in found)
    return before, after
