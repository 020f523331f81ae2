"""LegacyCloud: the published comparison of F-PPO on the same episodes.

Its long-term disparity is the distance between two clouds of points, the distributions of the two groups in all
episodes. Its short-term disparity in lending is the gap between true positive rates averaged over episodes. Both depend
on the number of episodes, and hide unfairness whose direction differs between episodes. Use them only for comparison
with the publication.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sb3_fair.fairness.intervals import mean_and_interval

Array = NDArray[np.float64]
MOST_STEPS = 201
"""How many steps of an episode are looked at."""


@dataclass(frozen=True, eq=False)
class LegacyCloud:
    """The published measures of some episodes.

    :param steps: (m,) int, the steps looked at, from 1 on
    :param distance: (m,), long-term disparity: :func:`cloud_distance`
    :param gap_of_mean_tpr: (m,), short-term disparity, None if the environment publishes no true positive rates
    """

    steps: NDArray[np.int64]
    distance: Array
    gap_of_mean_tpr: Array | None


def steps_of(n_steps: int) -> NDArray[np.int64]:
    """The steps looked at, from 1 on, the first and the last among them."""
    return np.unique(np.linspace(1, n_steps, MOST_STEPS).round().astype(np.int64))


def cloud_distance(groups: ArrayLike) -> float:
    """Mean Euclidean distance between the episodes' vectors of two groups, episodes paired so that it is smallest.

    :param groups: (n, G, M) vectors of G groups in n episodes; of several pairs of groups the largest distance counts
    """
    vectors = np.asarray(groups, dtype=np.float64)
    return max(_paired(vectors[:, one], vectors[:, other]) for one, other in combinations(range(vectors.shape[1]), 2))


def _paired(one: Array, other: Array) -> float:
    distances = cdist(one, other)
    return float(distances[linear_sum_assignment(distances)].mean())


def gap_of_means(rates: ArrayLike) -> float:
    """Largest gap between two groups' rates (n, G) averaged over the n episodes; NaN counts as not there."""
    means = mean_and_interval(rates).mean
    return float(means.max() - means.min())
