"""Action distributions: checks and Hellinger distance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import Numbers, checked
from sb3_fair.fairness.validation import as_array

TOLERANCE = 1e-4


def rows_of_distributions(probabilities: Any, n_actions: int | None = None) -> NDArray[np.float64]:
    """``probabilities`` (m, n_actions) as float64, renormalised to sum 1.

    :raises ValueError: if a row has the wrong length, is not finite, is negative somewhere, or does not sum to 1
        within 1e-4 (log-probabilities and Q-values are caught here)
    """
    rows = as_array(probabilities, np.float64)
    if rows.ndim != 2 or not rows.size or (n_actions is not None and rows.shape[1] != n_actions):
        wanted = "n_actions" if n_actions is None else n_actions
        raise ValueError(
            f"probabilities must have one row of {wanted} numbers per individual (n_actions), got shape {rows.shape}"
        )
    sums = np.add.reduce(rows, axis=1)
    lowest, least, most = np.minimum.reduce(rows, axis=None), np.minimum.reduce(sums), np.maximum.reduce(sums)
    if not (lowest >= 0 and least >= 1 - TOLERANCE and most <= 1 + TOLERANCE):
        fine = (np.abs(sums - 1) <= TOLERANCE) & (rows.min(axis=1) >= 0)
        raise ValueError(
            f"probabilities must be finite, not negative and sum to 1 within {TOLERANCE}, got {rows[~fine][0].tolist()}"
        )
    return rows / sums[:, None]


def half_roots(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """sqrt(p / 2): between these the Euclidean distance is the Hellinger distance between the p."""
    return np.sqrt(probabilities * 0.5)


@checked
def hellinger(p: Numbers, q: Numbers) -> float:
    """Hellinger distance between two distributions over the same actions, in [0, 1].

    Computed as (1 / sqrt 2) * ``|sqrt p - sqrt q|``, which is exactly 0 for equal distributions.

    :raises ValueError: if p or q is not a distribution, or their lengths differ
    """
    shapes = np.shape(p), np.shape(q)
    if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
        raise ValueError(f"p and q must be of shape (n_actions,) with the same number, got {shapes[0]} and {shapes[1]}")
    first, second = (rows_of_distributions([each]) for each in (p, q))
    return float(np.linalg.norm(half_roots(first) - half_roots(second)))
