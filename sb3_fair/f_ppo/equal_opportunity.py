"""Equal opportunity: the loans with the largest profit at equal true positive rates of all groups.

Maximal expected profit of the next decision under equal opportunity (Hardt et al., "Equality of Opportunity in
Supervised Learning", NeurIPS 2016), solved exactly and for many distributions at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
_TIE = 1e-12  # a marginal profit below this is rounding


class Decisions(NamedTuple):
    """The best equal opportunity.

    :param accept: (n, G, M), probability of a loan by group and score
    :param rate: (n,), the true positive rate that all groups share
    :param profit: (n,), expected profit of a decision
    """

    accept: Array
    rate: Array
    profit: Array


def equal_opportunity(
    distributions: ArrayLike,
    repay_probability: ArrayLike,
    group_probability: ArrayLike,
    loan_amount: float = 1.0,
    interest_rate: float = 1.0,
) -> Decisions:
    """The acceptance of each group and score that brings the most among those with one true positive rate for all.

    A group accepts its scores one after the other, the best first. Its profit is then a concave, piecewise linear
    function of its rate, and so is the sum over the groups: it is largest at the first cut between two scores of a
    group beyond which nothing is gained. The other groups accept their own cut score at random. Scores that nobody has
    are accepted where better ones are; scores of which nobody repays never are.

    :param distributions: (n, G, M) probabilities of the scores within each group
    :param repay_probability: (M,) of each score, or (G, M)
    :param group_probability: (G,) of an applicant's group
    :param loan_amount: what a default costs
    :param interest_rate: what a repaid loan brings, per ``loan_amount``
    :raises ValueError: if the shapes do not fit
    """
    masses = np.asarray(distributions, dtype=np.float64)
    if masses.ndim != 3:
        raise ValueError(f"distributions must have the shape (n, groups, scores), got {masses.shape}")
    repays = np.asarray(repay_probability, dtype=np.float64)
    if repays.shape not in (masses.shape[1:], masses.shape[2:]):
        raise ValueError(
            f"repay_probability must have the shape {masses.shape[2:]} or {masses.shape[1:]}, got {repays.shape}"
        )
    weights = np.asarray(group_probability, dtype=np.float64)
    if weights.shape != masses.shape[1:2]:
        raise ValueError(f"group_probability must have the shape {masses.shape[1:2]}, got {weights.shape}")
    repays = np.broadcast_to(repays, masses.shape[1:])
    order = np.argsort(-repays, axis=1, kind="stable")
    repays = np.take_along_axis(repays, order, axis=1)
    masses = np.take_along_axis(masses, order[None], axis=2)
    margins = (repays * interest_rate - (1 - repays)) * loan_amount
    per_rate = np.divide(margins, repays, out=np.zeros_like(margins), where=repays > 0)
    worthy = (masses * repays).cumsum(axis=2)
    total = worthy[..., -1:]
    rates = np.divide(worthy, total, out=np.zeros_like(worthy), where=total > 0)
    slopes = total * per_rate * weights[:, None]  # profit per unit of the rate on the way to each score
    rate = _best_rate(rates, slopes)

    starts = np.concatenate([np.zeros_like(rates[..., :1]), rates[..., :-1]], axis=2)
    widths = rates - starts
    beyond = np.maximum(rate[:, None, None] - starts, 0.0)
    reached = np.minimum(beyond, widths)
    accept = np.divide(reached, widths, out=(beyond > 0).astype(np.float64), where=widths > 0)
    unsorted = np.empty_like(accept)
    np.put_along_axis(unsorted, np.broadcast_to(order, accept.shape), accept, axis=2)
    unsorted *= np.asarray(repay_probability) > 0
    return Decisions(unsorted, rate, np.einsum("ngm,ngm->n", reached, slopes))


def _best_rate(rates: Array, slopes: Array) -> Array:
    """Where the sum of the groups' profits stops to rise, (n,)."""
    n = len(rates)
    cuts = rates.reshape(n, -1)
    rising = np.argsort(cuts, axis=1)
    bends = np.diff(slopes, axis=2, append=slopes[..., -1:]).reshape(n, -1)
    changes = np.take_along_axis(bends, rising, axis=1)
    changes[:, -1] = -np.inf  # nothing lies beyond the last cut
    slope = slopes[..., 0].sum(axis=1, keepdims=True)
    slope_after = np.concatenate([slope, slope + changes.cumsum(axis=1)], axis=1)
    stop = (slope_after <= _TIE).argmax(axis=1)
    cuts = np.concatenate([np.zeros((n, 1)), np.take_along_axis(cuts, rising, axis=1)], axis=1)
    best: Array = cuts[np.arange(n), stop]
    return best
