"""Means and their confidence intervals (Student t), the same for tables, reports, schemes and studies."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Interval(NamedTuple):
    """A mean and the ends of its confidence interval, all of one shape."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def mean_of_known(values: ArrayLike) -> float:
    """The mean of all values that are not NaN; NaN if there are none."""
    array = np.asarray(values, dtype=np.float64)
    known = array[~np.isnan(array)]
    return float(known.mean()) if known.size else float("nan")


@np.errstate(invalid="ignore", divide="ignore")
def mean_and_interval(values: ArrayLike, axis: int = 0, confidence: float = 0.95) -> Interval:
    """Means over an axis and their confidence intervals (Student t).

    :param values: NaN stands for a value that is not there; a mean of none is NaN, the ends are of fewer than two
    :param confidence: of the intervals, in (0, 1)
    """
    array = np.asarray(values, dtype=np.float64)
    there = ~np.isnan(array)
    n = there.sum(axis=axis)
    mean = np.where(there, array, 0.0).sum(axis=axis) / n
    off = np.where(there, array - np.expand_dims(mean, axis), 0.0)
    return _interval(mean, off, n, axis, confidence)


@np.errstate(invalid="ignore", divide="ignore")
def rate_and_interval(hits: ArrayLike, people: ArrayLike, confidence: float = 0.95) -> Interval:
    """The share of ``hits`` among ``people`` over all episodes and its confidence interval; the ends are NaN if all
    people are in one episode.

    People of one episode are not independent: the interval is over the m episodes of ``hits`` and ``people``, (m, ...)
    each (ratio estimator, Student t). Those with few people count less, those with none do not count.

    :param confidence: of the interval, in (0, 1)
    """
    rate, off, n = _rate(hits, people)
    return _interval(rate, n * off, n, confidence=confidence)


@np.errstate(invalid="ignore", divide="ignore")
def rate_difference(
    hits: ArrayLike, people: ArrayLike, other_hits: ArrayLike, other_people: ArrayLike, confidence: float = 0.95
) -> Interval:
    """The rate of one group less that of another over the same episodes, and its confidence interval (ratio estimators
    of both, Student t over the episodes of the group that is in fewer; the groups of an episode need not be
    independent).

    :param hits: of the first group in each episode, (m, ...); the others alike
    :param confidence: of the interval, in (0, 1)
    """
    rate, off, n = _rate(hits, people)
    other_rate, other_off, other_n = _rate(other_hits, other_people)
    fewer = np.minimum(n, other_n)
    return _interval(rate - other_rate, fewer * (off - other_off), fewer, confidence=confidence)


def _rate(hits: ArrayLike, people: ArrayLike) -> tuple[Any, Any, Any]:
    """The rate over all episodes, how much each episode adds to its error, and how many episodes with the same number
    of people each would tell as much (Kish's effective sample size)."""
    hits, people = np.asarray(hits, dtype=np.float64), np.asarray(people, dtype=np.float64)
    everybody = people.sum(axis=0)
    rate = hits.sum(axis=0) / everybody
    return rate, (hits - rate * people) / everybody, everybody**2 / (people**2).sum(axis=0)


def _interval(mean: Any, off: Any, n: Any, axis: int = 0, confidence: float = 0.95) -> Interval:
    from scipy.special import stdtrit  # slow to import

    half = stdtrit(n - 1, (1 + confidence) / 2) * np.sqrt((off * off).sum(axis=axis) / (n - 1) / n)
    return Interval(mean, mean - half, mean + half)
