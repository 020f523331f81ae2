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
    clouds = (cdist(vectors[:, one], vectors[:, other]) for one, other in combinations(range(vectors.shape[1]), 2))
    return max(float(distances[linear_sum_assignment(distances)].mean()) for distances in clouds)
