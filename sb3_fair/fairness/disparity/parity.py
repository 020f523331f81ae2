"""Demographic parity as measures for F-PPO: short- and long-term disparity, fairer actions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.disparity.measures import Array, Candidates, Facts, Measures, Rows, by_probability
from sb3_fair.fairness.notions.table import among
from sb3_fair.fairness.tracking.partition import check_groups
from sb3_fair.fairness.validation import actions as action_numbers


@checked
@dataclass(frozen=True)
class DemographicParity(Measures):
    """Measures for any fairness MDP with Discrete actions whose individuals have a group.

    Disparity is the largest difference between two groups in the share of favourable actions among their decisions;
    a group without decisions is left out, and with fewer than two groups left it is 0. Short-term disparity looks at
    the last ``window`` + 1 decisions of the history (minus statistical parity, ``SP``, with a sliding window of that
    size), long-term disparity at all of them.
    :class:`~sb3_fair.wrappers.disparity.VecDisparity` keeps the counts.

    ``massage`` has ``decided`` (n, groups), the decisions that will still be in the window after the coming one,
    ``favoured`` (n, groups), the favourable ones among them, and ``column`` (n,), the coming individual's group among
    these, -1 if it is not compared.

    :param window: decisions before the present one that short-term disparity looks at
    :param favourable: the favourable actions
    :param groups: the labels to compare, None: all that occur
    :param massage_threshold: how far apart the probabilities of two actions may be for one to replace the other. The
        default of 0.1 leaves all but near ties to the policy: of two actions, the one taken with probability 0.45 to
        0.55.
    :raises ValueError: if an argument is not allowed
    """

    window: int = 300
    favourable: Iterable[int] = (1,)
    groups: Iterable[Any] | None = None
    massage_threshold: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "favourable", action_numbers("favourable", self.favourable))
        if self.groups is not None:
            object.__setattr__(self, "groups", check_groups(self.groups))

    def threshold(self, iteration: int) -> float:
        """``massage_threshold``, in every rollout."""
        return self.massage_threshold

    def candidates(self, massage: Facts, actions: Array, probabilities: Rows) -> Candidates:
        """All other actions, the most probable first, of equally probable ones the lowest.

        :param actions: (n,)
        :param probabilities: (n, n_actions)
        :return: actions (n, n_actions - 1)
        :raises ValueError: if ``probabilities`` have another shape
        """
        actions = np.asarray(actions)
        chances = np.asarray(probabilities, dtype=np.float64)
        if actions.ndim != 1 or chances.ndim != 2 or len(chances) != len(actions):
            shapes = f"{chances.shape} for actions of shape {actions.shape}"
            raise ValueError(f"probabilities must be (n, n_actions) for Discrete actions (n,), got shape {shapes}")
        listed, closeness, others = by_probability(actions, chances)
        shape = len(actions), chances.shape[1] - 1
        return Candidates(listed[others].reshape(shape), closeness[others].reshape(shape), np.ones(shape, dtype=bool))

    def would_be(self, massage: Facts, candidates: Array) -> NDArray[np.float64]:
        """Short-term disparity (n, k) after the coming step, if the actions ``candidates`` (n, k) were executed."""
        decided, favoured = np.asarray(massage["decided"]), np.asarray(massage["favoured"])
        own = np.asarray(massage["column"])[:, None] == np.arange(decided.shape[1])
        either = rate_gap(np.stack((favoured, favoured + own), axis=1), (decided + own)[:, None])
        return np.where(self.favours(candidates), either[:, 1:], either[:, :1])

    def favours(self, actions: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the actions are favourable."""
        return among(np.asarray(actions), tuple(self.favourable))


def rate_gap(hits: ArrayLike, people: ArrayLike) -> NDArray[np.float64]:
    """Largest difference between two of the rates hits / people, over the leading axes.

    :param hits: (..., groups)
    :param people: (..., groups); groups of nobody are left out
    :return: (...), 0 where fewer than two groups are left
    """
    hits, people = np.asarray(hits), np.asarray(people)
    known = people > 0
    rates = hits / np.where(known, people, 1)
    highest, lowest = rates.max(axis=-1, where=known, initial=0.0), rates.min(axis=-1, where=known, initial=np.inf)
    return np.maximum(highest - lowest, 0.0)
