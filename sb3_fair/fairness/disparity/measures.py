"""Measures of a scenario: short- and long-term disparity and F-PPO's fairer actions.

The interface between environments and algorithms that keep both kinds of disparity small (F-PPO: "Striking a Balance in
Fairness for Dynamic Systems Through Reinforcement Learning", arXiv 2401.06318).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Facts: TypeAlias = Mapping[str, Any]
"""What ``info["massage"]`` says before a decision, by name."""
Rows: TypeAlias = NDArray[np.float64] | None
"""Probabilities of the policy; None for Box actions."""


class Candidates(NamedTuple):
    """Actions that may replace the sampled ones; of equally fair ones, the first in a row is preferred.

    :param actions: (n, k, ...) in the form in which the policy gives them
    :param closeness: (n, k) float64, how far their probabilities are from those of the sampled actions
    :param valid: (n, k) bool, False where there is no such candidate
    """

    actions: NDArray[Any]
    closeness: NDArray[np.float64]
    valid: NDArray[np.bool_]


@runtime_checkable
class Measures(Protocol):
    """Short- and long-term disparity of a scenario: ``env.unwrapped.fairness_spec.measures``.

    Disparities are 0 if everything is fair, and grow with unfairness. All arrays have the copies of the environment as
    first axis (n). ``massage`` is what ``info["massage"]`` says before a decision, a dict of arrays.

    Measures may also have

    * ``short_term_prev``, a key: short-term disparity after the step before, 0 at an episode's first step unless
      histories are carried over; without it the key is ``"d_s_prev"``;
    * ``reported``, what evaluations report: ``"utility"``, ``"short_term"``, ``"long_term"`` and further names -> keys
      of numbers in ``info["fairness"]``, which may know what is hidden from the decision maker; ``"reward"`` stands
      for the reward. Without it these are the reward, ``short_term`` and ``long_term_next``;
    * ``close_candidates(massage, actions, probabilities, threshold)``: ``candidates`` without those that are not closer
      than the threshold, to save the work of finding them.
    """

    short_term: str = "d_s"
    """Key in ``info["fairness"]``: short-term disparity after a step, as far as a decision maker may know it."""
    long_term: str = "d_l"
    """Key: long-term disparity before the step's action took effect."""
    long_term_next: str = "d_l_next"
    """Key: long-term disparity after it."""

    def threshold(self, iteration: int) -> float:
        """How far apart the probabilities of two actions may be for one to replace the other, by rollout 0, 1, ..."""
        ...

    def candidates(self, massage: Facts, actions: Array, probabilities: Rows) -> Candidates:
        """What could be done instead of ``actions`` (n, ...).

        :param probabilities: of the policy: (n, n_actions), (n, parts, n_actions) for MultiDiscrete actions of equal
            parts, None for Box actions
        """
        ...

    def would_be(self, massage: Facts, candidates: Array) -> NDArray[np.float64]:
        """Short-term disparity (n, k) after the coming step, if ``candidates`` (n, k, ...) were executed."""
        ...


def keys_of(measures: Measures) -> tuple[str, str, str, str]:
    """Where the disparities of a step are in ``info["fairness"]``: short-term, the one before, long-term, the next."""
    before = getattr(measures, "short_term_prev", "d_s_prev")
    return measures.short_term, before, measures.long_term, measures.long_term_next


def reported_by(measures: Measures) -> Mapping[str, str]:
    """What evaluations report: names -> keys of ``info["fairness"]``, or ``"reward"``."""
    usual = {"utility": "reward", "short_term": measures.short_term, "long_term": measures.long_term_next}
    reported: Mapping[str, str] = getattr(measures, "reported", usual)
    return reported


def candidates_within(
    measures: Measures, massage: Facts, actions: Array, probabilities: Rows, threshold: float
) -> Candidates:
    """Candidates, at least all those that are closer than the threshold."""
    if hasattr(measures, "close_candidates"):
        return Candidates(*measures.close_candidates(massage, actions, probabilities, threshold))
    return Candidates(*measures.candidates(massage, actions, probabilities))


def by_probability(
    actions: NDArray[Any], probabilities: NDArray[np.float64], allowed: NDArray[np.bool_] | None = None
) -> Candidates:
    """All discrete actions but the sampled ones as candidates, probable ones preferred, then low ones.

    :param actions: (n,)
    :param probabilities: (n, n_actions)
    :param allowed: (n, n_actions), which actions may be candidates; None: all
    :return: actions (n, n_actions); the sampled one is there, but not valid
    """
    sampled = actions[:, None]
    order = np.argsort(-probabilities, axis=1, kind="stable")
    closeness = np.abs(probabilities - np.take_along_axis(probabilities, sampled, axis=1))
    valid = order != sampled
    if allowed is not None:
        valid &= np.take_along_axis(allowed, order, axis=1)
    return Candidates(order.astype(actions.dtype), np.take_along_axis(closeness, order, axis=1), valid)
