"""Action massaging: fairer actions replace sampled ones if the policy is nearly indifferent between the two."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.disparity.measures import Measures, candidates_within

ROUNDING = 1e-12
"""Disparities that differ by no more are equal."""


class Massaged(NamedTuple):
    """The sampled actions of n environments after massaging.

    :param actions: (n, ...), to be executed
    :param changed: (n,) bool, which ones were replaced
    :param candidates: (n,) bool, for which ones another action was as probable as the threshold asks, fairer or not
    :param gain: (n,) float64, by how much short-term disparity would fall; 0 where nothing changed
    """

    actions: NDArray[Any]
    changed: NDArray[np.bool_]
    candidates: NDArray[np.bool_]
    gain: NDArray[np.float64]


def massage(
    measures: Measures,
    record: Mapping[str, Any],
    actions: NDArray[Any],
    probabilities: NDArray[np.float64] | None,
    threshold: float,
) -> Massaged:
    """The least unfair actions among those whose probability differs from the sampled one's by less than ``threshold``.

    A sampled action is replaced by a strictly fairer one only; the measures say which one is taken among equally fair
    ones. (arXiv 2401.06318, Eq. 6, on action probabilities.)

    :param measures: of the scenario
    :param record: ``info["massage"]`` of all copies, arrays (n, ...)
    :param actions: (n, ...), sampled
    :param probabilities: of the policy: (n, n_actions), (n, parts, n_actions), None for Box actions
    :param threshold: tau; 0: nothing is replaced
    """
    found = candidates_within(measures, record, actions, probabilities, threshold)
    close = found.valid & (found.closeness < threshold)
    candidates = np.count_nonzero(close, axis=1) > 0
    if not candidates.any():
        return Massaged(actions, candidates, candidates, np.zeros(len(actions)))
    options = np.concatenate((actions[:, None], found.actions.astype(actions.dtype, copy=False)), axis=1)
    disparity = measures.would_be(record, options)
    sampled, others = disparity[:, 0], np.where(close, disparity[:, 1:], np.inf)
    least = others.min(axis=1)
    changed = sampled - least > ROUNDING
    chosen = 1 + (others <= least[:, None] + ROUNDING).argmax(axis=1)
    rows = np.arange(len(actions))
    return Massaged(
        options[rows, np.where(changed, chosen, 0)],
        changed,
        candidates,
        np.where(changed, sampled - disparity[rows, chosen], 0.0),
    )
