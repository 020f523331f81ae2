"""Disparities of epidemic control.

Source of all formulas: "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning"
(arXiv 2401.06318), case study of epidemic control.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.disparity.measures import Array, Candidates, Facts, Measures, Rows, by_probability

SUSCEPTIBLE, INFECTED, RECOVERED = 0, 1, 2
"""States of a node; in this order the last axis of counts and proportions."""


def short_term(vaccines: NDArray[Any], new_infections: NDArray[Any]) -> NDArray[np.float64]:
    """Largest difference (...) between two communities in vaccines / (new infections + 1) (Eq. 10); 0 is fair.

    :param vaccines: (..., communities), given in the window
    :param new_infections: (..., communities), in the same window
    """
    shares = vaccines / (new_infections + 1)
    return shares.max(axis=-1) - shares.min(axis=-1)


def long_term(states: NDArray[np.float64], distance: str = "l2") -> NDArray[np.float64]:
    """Largest distance (n,) between two communities' states; 0 is fair.

    :param states: (n, communities, 3), shares of the susceptible, infected and recovered, or their numbers
    :param distance: ``"l2"``, at most sqrt(2) for shares; ``"w1"``: 1-Wasserstein, at most 1 for shares, where all
        states are equally far from each other
    """
    first, second = _pairs(states.shape[1])
    gaps = states[:, first] - states[:, second]
    apart = np.sqrt(np.square(gaps).sum(axis=-1)) if distance == "l2" else np.abs(gaps).sum(axis=-1) / 2
    return apart.max(axis=1)


@cache
def _pairs(groups: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(groups, 1)


@dataclass(frozen=True)
class EpidemicMeasures(Measures):
    """Short- and long-term disparity of epidemic control (:class:`~sb3_fair.fairness.disparity.measures.Measures`).

    :param communities: the community of each node
    :param count_wasted: whether a vaccine for somebody who is not susceptible counts as given
    :param massage_allow_wasted: whether those who are not susceptible are candidates
    """

    communities: tuple[int, ...]
    count_wasted: bool = True
    massage_allow_wasted: bool = False

    reported: ClassVar[Mapping[str, str]] = {
        "utility": "reward",
        "short_term": "d_s",
        "long_term": "d_l_next",
        "counts": "d_l_counts",
    }

    @cached_property
    def _receivers(self) -> NDArray[np.int64]:
        """The community that each action serves, the number of communities for nobody's."""
        return np.array([*self.communities, max(self.communities) + 1])

    def threshold(self, iteration: int) -> float:
        """0 in the first 50 rollouts, then from 0.01 on a fifth more each time, at most 0.35."""
        return 0.0 if iteration < 50 else min(0.35, 0.01 * 1.2 ** min(iteration - 50, 20))

    def candidates(self, massage: Facts, actions: Array, probabilities: Rows) -> Candidates:
        """All other susceptible nodes and nobody, by falling probability and then by number.

        :param massage: ``susceptible`` (n, nodes)
        :param actions: (n,), a node or, one above, nobody
        :param probabilities: (n, nodes + 1)
        :raises ValueError: if there are no probabilities
        """
        if probabilities is None:
            raise ValueError("probabilities must be those of all actions (n, nodes + 1), got None")
        allowed = np.ones(probabilities.shape, dtype=bool)
        if not self.massage_allow_wasted:
            allowed[:, :-1] = massage["susceptible"]
        return by_probability(np.asarray(actions), probabilities, allowed)

    def would_be(self, massage: Facts, candidates: Array) -> NDArray[np.float64]:
        """Short-term disparity (n, k) with one vaccine more and the infections so far.

        :param massage: ``vaccines`` and ``new_infections`` (n, communities) that will be in the coming step's window,
            ``susceptible`` (n, nodes)
        :param candidates: (n, k)
        """
        vaccines = massage["vaccines"]
        communities = vaccines.shape[1]
        receivers = self._receivers[candidates]
        if not self.count_wasted:
            nobody = np.zeros((len(candidates), 1), dtype=bool)
            effective = np.concatenate((massage["susceptible"], nobody), axis=1)
            receivers = np.where(np.take_along_axis(effective, candidates, axis=1), receivers, communities)
        one_more = vaccines[:, None] + np.eye(communities + 1, communities)
        by_receiver = short_term(one_more, massage["new_infections"][:, None])
        return np.take_along_axis(by_receiver, receivers, axis=1)
