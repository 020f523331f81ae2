"""Unfairness and balance of whole episodes, step by step, for audits.

Unlike the score of a scheme, these compare the stakeholders with their mean at every step. They are for audits, not for
rewards.

Source: Alamdari, Klassen, Creager, McIlraith, *Remembering to Be Fair*.
"""

import numpy as np

from sb3_fair.fairness.arguments import MaybeNumbers, Numbers, checked
from sb3_fair.fairness.schemes.statuses import Array, status_array, within


@checked
def unfairness(status: MaybeNumbers) -> Array:
    """U_i - mean(U) after each step, (..., T, n): negative is unfair to i, positive in favour of i.

    :param status: (..., T, n)
    """
    array = status_array(status)
    return array - array.mean(axis=-1, keepdims=True)


@checked
def overall_unfairness(status: MaybeNumbers, lengths: int | Numbers | None = None) -> Array:
    """Unfairness, summed over the steps of each episode: (..., n).

    :param status: (..., T, n)
    :param lengths: (...) number of steps of each episode, the rest is padding; None: T
    """
    each = unfairness(status)
    return np.where(within(lengths, each.shape[:-1])[..., None], each, 0.0).sum(axis=-2)


@checked
def balance(status: MaybeNumbers, lengths: int | Numbers | None = None) -> Array:
    """Minus the sum of the squares of the overall unfairness: (...), 0 is fair, negative is unfair.

    Arguments as for :func:`overall_unfairness`.
    """
    return -np.square(overall_unfairness(status, lengths)).sum(axis=-1)
