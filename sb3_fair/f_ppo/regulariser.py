"""Advantage regularisation of F-PPO and A-PPO: terms for short- and long-term disparity."""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Scaling = Literal["none", "std", "minmax"]
SMALLEST_RANGE = 1e-8
ROUNDING = 1e-12


class Columns(NamedTuple):
    """Disparities of the steps of a rollout, arrays of one shape.

    :param d_s: short-term disparity after the step
    :param d_s_prev: after the step before, 0 at an episode's first step unless histories are carried over
    :param d_l: long-term disparity before the action took effect
    :param d_l_next: after it
    """

    d_s: Array
    d_s_prev: Array
    d_l: Array
    d_l_next: Array


def regulariser(columns: Columns, delta: float) -> Array:
    """R: the decrease of long-term disparity if decisions were fair, minus its increase if they were unfair.

    0 in the other two cases, in which short and long term are in conflict. (arXiv 2401.06318, Eq. 7.)

    :param delta: largest short-term disparity that is called fair
    """
    penalty, bonus = _parts(columns, delta)
    return penalty + bonus


def _parts(columns: Columns, delta: float) -> tuple[Array, Array]:
    change = columns.d_l - columns.d_l_next
    unfair = columns.d_s > delta
    return np.where(unfair, np.minimum(change, 0.0), 0.0), np.where(unfair, 0.0, np.maximum(change, 0.0))


def regularise_advantages(
    advantages: NDArray[np.floating],
    columns: Columns,
    *,
    reg_lambda: float = 0.0,
    delta: float = 0.05,
    scaling: Scaling = "none",
    minmax_weights: tuple[float, float] | None = None,
    beta1: float = 0.0,
    beta2: float = 0.0,
    omega: float = 0.05,
    credit: Array | None = None,
    reward_scale: float = 1.0,
) -> NDArray[np.floating]:
    """Advantages plus weighted terms for the effect on disparities; with all weights 0 they are returned unchanged.

    F-PPO (arXiv 2401.06318, Eq. 4) adds ``reg_lambda`` times :func:`regulariser`. A-PPO (Yu et al., "Policy
    Optimization with Advantage Regularization for Long-Term Fairness in Decision Systems", NeurIPS 2022) adds
    ``beta1`` min(0, ``omega`` - d_s) and, where d_s > ``omega``, ``beta2`` min(0, d_s_prev - d_s).

    :param advantages: of any shape, which the columns share
    :param scaling: ``"none"``: weights are units of reward per unit of disparity; ``"std"``: advantages are divided by
        their standard deviation, what is added by its root mean square, so that weights are relative; ``"minmax"``:
        everything is stretched to [0, 1], penalty and bonus of R apart, added up and standardised (the authors' code)
    :param minmax_weights: of R's penalty and bonus with ``"minmax"``; None: ``reg_lambda`` for both
    :param credit: what stands in R's place, but for ``"minmax"``; None: R
    :param reward_scale: what the rewards in the advantages were multiplied by, as the terms are with ``"none"``
    """
    penalty, bonus = _parts(columns, delta)
    excess = np.minimum(0.0, omega - columns.d_s)
    worsening = np.where(columns.d_s > omega, np.minimum(0.0, columns.d_s_prev - columns.d_s), 0.0)
    terms = [(beta1, excess), (beta2, worsening)]
    if reg_lambda and scaling == "minmax":
        weights = (reg_lambda, reg_lambda) if minmax_weights is None else minmax_weights
        terms += zip(weights, (penalty, bonus), strict=True)
    else:
        terms += [(reg_lambda, penalty + bonus if credit is None else credit)]
    terms = [(weight, term) for weight, term in terms if weight]
    if not terms:
        return advantages
    if scaling == "none":
        return advantages + reward_scale * sum(weight * term for weight, term in terms)
    if scaling == "std":
        spread = np.std(advantages, dtype=np.float64)
        return _over(advantages, spread) + sum(
            weight * _over(term, np.sqrt(np.mean(term**2))) for weight, term in terms
        )
    total = _stretched(advantages) + sum(weight * _stretched(term) for weight, term in terms)
    return (total - total.mean()) / (total.std(ddof=1) + SMALLEST_RANGE) if total.size > 1 else total


def _over(values: NDArray[np.floating], scale: np.floating) -> Array:
    """``values`` / ``scale``, unless that is 0 but for rounding errors."""
    matters = scale > ROUNDING * np.abs(values).max()
    return values / scale if matters else np.asarray(values, dtype=np.float64)


def _stretched(values: NDArray[np.floating]) -> Array:
    low, high = values.min(), values.max()
    return np.asarray((values - low) / (high - low + SMALLEST_RANGE), dtype=np.float64)
