"""Wasserstein gap between two distributions on a line."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import MaybeNumbers, Numbers, checked
from sb3_fair.fairness.validation import as_array


@checked
def wasserstein_gap(first: MaybeNumbers, second: MaybeNumbers, values: Numbers | None = None) -> NDArray[np.float64]:
    """1-Wasserstein distance between distributions on a line, over the leading axes.

    Equals ``scipy.stats.wasserstein_distance`` row by row.

    :param first: (..., m) masses of m values; each row is divided by its sum
    :param second: (..., m)
    :param values: (m,) rising; None: 1, 2, ..., m
    :return: (...), 0 where a row has no mass, NaN where a mass is NaN
    :raises ValueError: if the shapes do not fit, or ``values`` do not rise
    """
    a, b = (as_array(masses, np.float64) for masses in (first, second))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"first and second must have the same number of values, got shapes {a.shape} and {b.shape}")
    if a.shape[-1] < 1:
        raise ValueError(f"first and second must have masses, got shape {a.shape}")
    steps = np.ones(a.shape[-1] - 1) if values is None else np.diff(np.asarray(values, dtype=np.float64))
    if steps.shape != (a.shape[-1] - 1,) or (steps <= 0).any():
        raise ValueError(f"values must be {a.shape[-1]} rising numbers, got {values!r}")
    sums = a.sum(axis=-1, keepdims=True), b.sum(axis=-1, keepdims=True)
    known = ((sums[0] > 0) & (sums[1] > 0))[..., 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.abs((a / sums[0] - b / sums[1]).cumsum(axis=-1)[..., :-1]) @ steps
    unknown = np.isnan(sums[0] + sums[1])[..., 0]
    return np.where(known | unknown, gap, 0.0)
