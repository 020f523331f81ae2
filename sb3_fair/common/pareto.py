"""Pareto fronts: dominance, crowding distance, hypervolume, sparsity, generational distance.

Points are rows, objectives are columns, and more is better in every column.
"""

from collections.abc import Iterable

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.common.front import EvaluatedPolicy, Front

Array = NDArray[np.float64]


def _finite(name: str, points: ArrayLike) -> Array:
    """As a float64 matrix. moocore gives wrong answers without a word where a number is not finite."""
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a matrix (points, objectives) of finite numbers, got {points!r}")
    return array


def _some(name: str, points: ArrayLike) -> Array:
    """As a float64 matrix of at least one row."""
    array = _finite(name, points)
    if not len(array):
        raise ValueError(f"{name} must have at least one row, got none")
    return array


def nondominated(points: ArrayLike) -> NDArray[np.bool_]:
    """Which points no other point matches in all objectives and exceeds in one; of equal points only the first. (m,)"""
    points = _finite("points", points)
    if not len(points):
        return np.zeros(0, dtype=bool)
    return np.asarray(moocore.is_nondominated(points, maximise=True), dtype=bool)


def nondominated_ranks(points: ArrayLike) -> NDArray[np.int64]:
    """0 for the non-dominated points, 1 for those non-dominated among the rest, and so on. (m,)"""
    points = _finite("points", points)
    ranks = np.zeros(len(points), dtype=np.int64)
    left = np.arange(len(points))
    rank = 0
    while len(left):
        front = nondominated(points[left])
        ranks[left[front]] = rank
        left = left[~front]
        rank += 1
    return ranks


def min_max(points: ArrayLike) -> Array:
    """Each objective scaled to [0, 1]; 0 where all points agree.

    :raises ValueError: if there are no points
    """
    points = _some("points", points)
    low = points.min(axis=0)
    width = points.max(axis=0) - low
    return np.asarray((points - low) / np.where(width > 0, width, 1.0))


def crowding_distance(points: ArrayLike) -> Array:
    """How far apart the neighbours of each point are along the objectives, averaged; 1 at an extreme. (m,)

    Deb et al., NSGA-II (2002), on min-max normalised objectives.
    """
    points = _finite("points", points)
    m, k = points.shape
    if not m:
        return np.zeros(0)
    low = points.min(axis=0)
    scaled = (points - low) / (points.max(axis=0) - low + 1e-8)
    order = np.argsort(scaled, axis=0, kind="stable")
    ascending = np.take_along_axis(scaled, order, axis=0)
    gaps = np.ones((m, k))
    gaps[1:-1] = ascending[2:] - ascending[:-2]
    distance = np.empty((m, k))
    np.put_along_axis(distance, order, gaps, axis=0)
    return np.asarray(distance.mean(axis=1))


def hypervolume(points: ArrayLike, ref_point: ArrayLike) -> float:
    """Volume that the points dominate above ``ref_point``; points that do not exceed it add nothing.

    :raises ValueError: if a number is not finite
    """
    points = _finite("points", points)
    ref_point = _finite("ref_point", np.atleast_2d(ref_point))[0]
    return float(moocore.hypervolume(points, ref=ref_point, maximise=True)) if len(points) else 0.0


def sparsity(points: ArrayLike) -> float:
    """Mean squared gap between neighbours of the non-dominated points, summed over objectives; 0 for fewer than two.

    Xu et al., Prediction-Guided MORL (2020).
    """
    points = _finite("points", points)
    front = points[nondominated(points)]
    if len(front) < 2:
        return 0.0
    return float((np.diff(np.sort(front, axis=0), axis=0) ** 2).sum() / (len(front) - 1))


def generational_distance(points: ArrayLike, front: ArrayLike) -> float:
    """How far, on average, the points of ``front`` are from the nearest of ``points``: IGD, 0 is best, inf if there
    are none.

    Coello Coello and Reyes Sierra (2004). Distances are Euclidean: scale the objectives first.

    :raises ValueError: if ``front`` has no points
    """
    points, front = _finite("points", points), _some("front", front)
    return float(moocore.igd(points, ref=front, maximise=True)) if len(points) else float("inf")


def expected_utility(points: ArrayLike, n_weights: int = 1000, seed: int = 0) -> float:
    """What the best point is worth to somebody whose weights are drawn uniformly from all that sum to 1, on average;
    -inf if there are no points.

    Zintgraf et al. (2015), for linear utilities. Scale the objectives first.

    :param n_weights: people asked
    :param seed: of their weights
    """
    points = _finite("points", points)
    weights = np.random.RandomState(seed).dirichlet(np.ones(points.shape[1]), n_weights)
    return float((weights @ points.T).max(axis=1, initial=-np.inf).mean())


def misses(desired: ArrayLike, reached: ArrayLike, *, floor: ArrayLike = 0.0) -> Array:
    """By how much each command was missed, (m, k), in units of the range of the commands per objective.

    :param desired: (m, k) returns asked for
    :param reached: (m, k) mean returns reached under these commands
    :param floor: smallest unit per objective, for objectives in which the commands hardly differ
    """
    desired, reached = _finite("desired", desired), _finite("reached", reached)
    if desired.shape != reached.shape or not len(desired):
        raise ValueError(f"desired and reached must have one row per command, got {desired.shape} and {reached.shape}")
    unit = np.maximum(np.ptp(desired, axis=0), floor)
    missed: Array = np.abs(reached - desired) / np.where(unit > 0, unit, 1.0)
    return missed


def epsilon_metric(desired: ArrayLike, reached: ArrayLike, *, floor: ArrayLike = 0.0) -> tuple[float, float]:
    """The largest of a command's :func:`misses` over the objectives; mean and maximum over the commands."""
    worst = misses(desired, reached, floor=floor).max(axis=1)
    return float(worst.mean()), float(worst.max())


def reference_point(returns: ArrayLike) -> Array:
    """The worst of the returns in each objective, less 10 % of their range (of 1 where all agree). (k,)

    :raises ValueError: if there are none
    """
    returns = _some("returns", returns)
    worst = returns.min(axis=0)
    width = returns.max(axis=0) - worst
    return np.asarray(worst - 0.1 * np.where(width > 0, width, 1.0), dtype=np.float64)


def front_of(policies: Iterable[EvaluatedPolicy]) -> Front:
    """The policies that no other policy dominates in its mean returns, best in the first objective first.

    Means are compared to 12 digits of the largest of their objective: beyond these, those of equal episodes may differ,
    as sums in another order do.
    """
    policies = list(policies)
    if not policies:
        return Front(())
    means = _finite("policies", [policy.mean for policy in policies])
    sizes = np.abs(means).max(axis=0)
    means = np.round(means / np.where(sizes > 0, sizes, 1.0), 12)
    best = np.flatnonzero(nondominated(means))
    return Front(tuple(policies[index] for index in best[np.argsort(-means[best, 0], kind="stable")]))
