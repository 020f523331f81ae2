"""Means and their confidence intervals (Student t), the same for tables, reports, schemes and studies."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit


class Interval(NamedTuple):
    """A mean and the ends of its confidence interval, all of one shape."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def mean_and_interval(values: ArrayLike, axis: int = 0, confidence: float = 0.95) -> Interval:
    """Means over an axis and their confidence intervals (Student t).

    :param values: NaN stands for a value that is not there; a mean of none is NaN, the ends are of fewer than two
    :param confidence: of the intervals, in (0, 1)
    """
    array = np.asarray(values, dtype=np.float64)
    there = ~np.isnan(array)
    n = there.sum(axis=axis)
    known = np.where(there, array, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = known.sum(axis=axis) / n
        off = np.where(there, array - np.expand_dims(mean, axis), 0.0)
        half = stdtrit(n - 1, (1 + confidence) / 2) * np.sqrt((off * off).sum(axis=axis) / (n - 1) / n)
    return Interval(mean, mean - half, mean + half)


def rate_and_interval(hits: ArrayLike, people: ArrayLike, confidence: float = 0.95) -> Interval:
    """The share of ``hits`` among ``people`` over all episodes and its confidence interval.

    People of one episode are not independent: the interval is over episodes (ratio estimator, Student t).

    :param hits: of each episode, (m, ...)
    :param people: of each episode, (m, ...)
    """
    hits, people = np.asarray(hits, dtype=np.float64), np.asarray(people, dtype=np.float64)
    m = len(hits)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = hits.sum(axis=0) / people.sum(axis=0)
        off = (hits - rate * people) / people.mean(axis=0)
        half = stdtrit(m - 1, (1 + confidence) / 2) * np.sqrt((off * off).sum(axis=0) / (m - 1) / m)
    return Interval(rate, rate - half, rate + half)


def rate_difference(
    hits: ArrayLike, people: ArrayLike, other_hits: ArrayLike, other_people: ArrayLike, confidence: float = 0.95
) -> Interval:
    """The rate of one group less that of another over the same episodes, and its confidence interval (ratio estimators
    of both, Student t over episodes; the groups of an episode need not be independent).

    :param hits: of the first group in each episode, (m, ...); the others alike
    """
    of = [np.asarray(values, dtype=np.float64) for values in (hits, people, other_hits, other_people)]
    m = len(of[0])
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = [of[i].sum(axis=0) / of[i + 1].sum(axis=0) for i in (0, 2)]
        off = [(of[i] - rate * of[i + 1]) / of[i + 1].mean(axis=0) for i, rate in zip((0, 2), rates, strict=True)]
        apart = off[0] - off[1]
        half = stdtrit(m - 1, (1 + confidence) / 2) * np.sqrt((apart * apart).sum(axis=0) / (m - 1) / m)
    difference = rates[0] - rates[1]
    return Interval(difference, difference - half, difference + half)
