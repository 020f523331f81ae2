"""LongRunCredit: credit for what an action does to the groups in the long run, not only in the step itself."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.f_ppo.linear_critic import LinearCritic
from sb3_fair.wrappers.infos import stack

Array: TypeAlias = NDArray[np.float64]
BEFORE, AFTER, BEHIND = "outlook_before", "outlook", "behind"
NOT_WITHOUT = {BEFORE: "be 'step'", AFTER: "be 'step'", BEHIND: "not be 'uplift'"}
"""What ``reg_credit`` must be where the environment does not tell these."""


class LongRunCredit:
    """Credits a step with the whole discounted decrease of long-term disparity that it leads to.

    A critic sees the true state of the groups, which policies do not see. The credit of a step is the decrease in the
    step itself, plus ``gamma`` times the critic's value of the groups after it, minus the value of the groups before.

    Groups change slowly, by a hundredth in a step of lending, and the data hardly distinguish directions. So the critic
    is linear in the numbers that describe the groups, not a network: in directions that were never seen its slope is 0.
    The disparity itself is not an input: it is often linear in the other numbers, and would then replace them.

    With ``uplift`` only gains count, and only those of decisions about members of a group that is behind. (Mittelstadt,
    Wachter and Russell, "The Unfairness of Fair Machine Learning: Levelling Down and Strict Egalitarianism by Default",
    2023, say why one may want that.)

    :param gamma: discount factor
    :param uplift: whether gaps are to close from below alone
    """

    def __init__(self, gamma: float, uplift: bool = False) -> None:
        self.critic = LinearCritic(gamma)
        self.uplift = uplift
        self.begin()

    def begin(self) -> None:
        """A rollout begins; steps of one that was broken off are forgotten."""
        self.before: list[Array] = []
        self.after: list[Array] = []
        self.ended: list[NDArray[np.bool_]] = []
        self.behind: list[NDArray[np.bool_]] = []

    def note(self, infos: Sequence[Mapping[str, Any]], dones: NDArray[np.bool_]) -> None:
        """A step of all copies, in which episodes ended where ``dones`` (n,); time limits only cut them off."""
        for kept, key in ((self.before, BEFORE), (self.after, AFTER)):
            kept.append(np.asarray(_detail(infos, key), dtype=np.float64).reshape(len(infos), -1))
        if self.uplift:
            self.behind.append(np.asarray(_detail(infos, BEHIND), dtype=np.bool_))
        cut_off = [infos[copy].get("TimeLimit.truncated", False) for copy in np.flatnonzero(dones).tolist()]
        ended = dones.copy()
        ended[dones] = ~np.array(cut_off, dtype=bool)
        self.ended.append(ended)

    def credit(self, d_l: Array, d_l_next: Array) -> Array:
        """The credit (T, n) of the steps noted since the rollout began, from which the critic learns first.

        :param d_l: (T, n) long-term disparity before each step
        :param d_l_next: (T, n) after it
        """
        before, after = np.concatenate(self.before), np.concatenate(self.after)
        fall, ended = d_l - d_l_next, np.stack(self.ended)
        self.critic.fit(before, after, fall.ravel(), ended.ravel())
        values, following = (self.critic.values(states).reshape(d_l.shape) for states in (before, after))
        if self.uplift:  # by how much the groups' outlook became better in the step, not than was to be expected
            gain = fall + self.critic.gamma * np.where(ended, 0, following - values)
            return np.where(np.stack(self.behind), np.maximum(gain, 0), 0)
        return np.asarray(fall + self.critic.gamma * np.where(ended, 0, following) - values)


def _detail(infos: Sequence[Mapping[str, Any]], key: str) -> Any:
    try:
        return stack(infos, "detail")[key]
    except KeyError:
        raise ValueError(
            f"reg_credit must {NOT_WITHOUT[key]} for an environment without info['detail'][{key!r}]: scenarios "
            "of this package tell what they can if they are made with detail=True"
        ) from None
