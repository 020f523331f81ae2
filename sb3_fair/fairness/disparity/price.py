"""Price of Fairness: what a group loses in percent, with a confidence interval."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import Numbers, checked


class Price(NamedTuple):
    """A Price of Fairness in percent and its 95 % confidence interval, all of one shape."""

    percent: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@checked
def price_of_fairness(fair: Numbers, classic: Numbers, *, n_resamples: int = 10_000, seed: int = 0) -> Price:
    """``100 (mean R fair - mean R classic) / |mean R classic|``, in %: negative is a loss.

    Returns of the same training seed are a pair; the interval is the percentile bootstrap over seeds, which draws both
    of a pair together. With few seeds it is too narrow: in simulations it held the true price in 75 % of samples of
    three seeds, 83 % of five, 91 % of ten.

    >>> price_of_fairness([140.0, 140.0], [200.0, 200.0]).percent
    array(-30.)

    :param fair: (seeds, ...) mean returns of a group, or of several, after training with fairness
    :param classic: the same after training without it, seed by seed
    :param n_resamples: samples of the bootstrap
    :param seed: of its random numbers
    :return: (...), the ends NaN for a single seed
    :raises ValueError: if the shapes differ or there is no seed

    Source: La Malfa et al. (arXiv 2502.03953), section 6.2 and table 1.
    """
    ours, theirs = np.asarray(fair, dtype=np.float64), np.asarray(classic, dtype=np.float64)
    if ours.shape != theirs.shape or not len(ours):
        raise ValueError(f"fair and classic must have the same seeds, got shapes {ours.shape} and {theirs.shape}")
    n = len(ours)
    percent = _percent(ours.mean(axis=0), theirs.mean(axis=0))
    if n == 1:
        return Price(percent, np.full_like(percent, np.nan), np.full_like(percent, np.nan))
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_resamples) / n
    prices = _percent(np.tensordot(drawn, ours, axes=1), np.tensordot(drawn, theirs, axes=1))
    low, high = np.percentile(prices, [2.5, 97.5], axis=0)
    return Price(percent, low, high)


def _percent(fair: NDArray[np.float64], classic: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(100 * (fair - classic) / np.abs(classic))
