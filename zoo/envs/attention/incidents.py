"""Poisson numbers of incidents from rates and uniforms."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, pdtr

_LARGE = 10.0  # rates from which on the expansion is accurate
_TERMS = 4  # probabilities summed before those who are done are dropped: dropping takes as long as some terms
_ROUNDING = 2.0**-48  # of a sum of probabilities; without it, a uniform next to 1 is never reached


def poisson_quantile(uniforms: NDArray[np.float64], rates: NDArray[np.float64]) -> NDArray[np.int64]:
    """The smallest counts that are not exceeded with a probability of at least ``uniforms``; 0 for the rate 0.

    Turns uniform numbers into Poisson counts (inverse transform), as ``scipy.stats.poisson.ppf`` but for rounding, and
    much faster. Every entry depends on its own number and rate alone.

    :param uniforms: in [0, 1), any shape
    :param rates: non-negative, the same shape
    """
    counts = np.empty(rates.shape, dtype=np.int64)
    large = rates >= _LARGE
    for rule, where in ((_searched, large), (_summed, ~large)):
        if np.count_nonzero(where):
            counts[where] = rule(uniforms[where], rates[where])
    return counts


def _summed(uniforms: NDArray[np.float64], rates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sums the probabilities of 0, 1, ... until they reach the uniform number, wherever they do not yet (m,)."""
    counts = np.zeros(len(rates), dtype=np.int64)
    probability = np.exp(-rates)
    rest = uniforms - probability
    index = np.flatnonzero(rest > _ROUNDING)
    rest, probability, rates = rest[index], probability[index], rates[index]
    count = 0
    while len(index):
        found = np.zeros(len(index), dtype=np.int64)
        for _ in range(_TERMS):
            found += rest > _ROUNDING
            count += 1
            probability *= rates
            probability *= 1 / count
            rest -= probability
        counts[index] += found
        left = np.flatnonzero(rest > _ROUNDING)
        index, rest, probability, rates = index[left], rest[left], probability[left], rates[left]
    return counts


def _searched(uniforms: NDArray[np.float64], rates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Begins with an expansion around the normal quantile and looks at probabilities only where it may be off (m,).

    Expansion, and its error up to 3 standard deviations: Giles, "Algorithm 955: Approximation of the Inverse Poisson
    Cumulative Distribution Function" (ACM Transactions on Mathematical Software 42(1), 2016), Q_N2.
    """
    normal = ndtri(np.maximum(uniforms, 2.0**-54))  # a uniform may be 0, where the normal quantile is infinite
    square, root = normal * normal, np.sqrt(rates)
    guess = rates + root * normal + (2 + square) / 6 - normal * (2 + square) / (72 * root)
    error = (4 + square * (2 + square)) / (160 * rates)
    counts = np.maximum(np.floor(guess), 0)
    unsure = np.flatnonzero((np.floor(guess - error) != np.floor(guess + error)) | (square > 9))
    counts[unsure] = _corrected(counts[unsure], uniforms[unsure], rates[unsure])
    return counts.astype(np.int64)


def _corrected(
    counts: NDArray[np.float64], uniforms: NDArray[np.float64], rates: NDArray[np.float64]
) -> NDArray[np.float64]:
    while np.count_nonzero(low := uniforms > pdtr(counts, rates)):
        counts = counts + low
    while np.count_nonzero(high := (counts > 0) & (uniforms <= pdtr(counts - 1, rates))):
        counts = counts - high
    return counts
