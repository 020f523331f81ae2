"""Shares of people: Wilson and Newcombe intervals, p-values of differences, Holm's correction.

Sources: Wilson 1927; Newcombe 1998, *Interval estimation for the difference between independent proportions*, method
10; Holm 1979.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from sb3_fair.fairness.intervals import Interval

SMALL = 5.0
"""Expected counts below this make the normal approximation of a test too rough."""


def wilson(hits: ArrayLike, people: ArrayLike, confidence: float = 0.95, variance: ArrayLike | None = None) -> Interval:
    """Shares of ``hits`` among ``people`` with Wilson's score interval, all of one shape; NaN where nobody is.

    :param variance: between people, who may each be a part of a hit; None: that of yes and no, share * (1 - share)

    >>> round(float(wilson(0, 10).high), 3)
    0.278
    """
    hits, people = np.asarray(hits, dtype=np.float64), np.asarray(people, dtype=np.float64)
    z2 = ndtri((1 + confidence) / 2) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        share = hits / people
        between = share * (1 - share) if variance is None else np.asarray(variance)
        centre = (hits + z2 / 2) / (people + z2)
        half = np.sqrt(z2 * (between * people + z2 / 4)) / (people + z2)
    return Interval(share, np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0))


def newcombe(first: Interval, second: Interval) -> Interval:
    """Difference ``first`` minus ``second`` of two shares with Newcombe's interval.

    :param first: a share with its interval, see :func:`wilson`
    """
    difference = first.mean - second.mean
    below = np.hypot(first.mean - first.low, second.high - second.mean)
    above = np.hypot(first.high - first.mean, second.mean - second.low)
    return Interval(difference, np.maximum(difference - below, -1.0), np.minimum(difference + above, 1.0))


def p_value(hits: tuple[float, float], people: tuple[float, float]) -> float:
    """Two-sided p-value of "both shares are equal"; NaN if one of them is undefined.

    The score test, or Fisher's exact test where a count is expected to be below 5.
    """
    total, among = sum(hits), sum(people)
    if not min(people) > 0:
        return math.nan
    share = total / among
    if min(people) * min(share, 1 - share) < SMALL:
        from scipy.stats import fisher_exact  # slow to import

        table = [[round(hit), round(size - hit)] for hit, size in zip(hits, people, strict=True)]
        return float(fisher_exact(table)[1])
    error = math.sqrt(share * (1 - share) * (1 / people[0] + 1 / people[1]))
    return float(2 * ndtr(-abs(hits[0] / people[0] - hits[1] / people[1]) / error))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values (n,), raised so that the chance of one or more false findings stays below the level; NaN stays NaN.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    array = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(array)[: np.count_nonzero(~np.isnan(array))]
    raised = np.full(array.shape, np.nan)
    steps = len(order) - np.arange(len(order))
    raised[order] = np.minimum(np.maximum.accumulate(array[order] * steps), 1.0)
    return raised
