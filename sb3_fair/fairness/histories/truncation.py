"""Truncation of discounted histories: the age from which on interactions no longer matter."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.histories.history import DiscountedHistory


def settled(sums: NDArray[np.float64], size: NDArray[np.int64], history: DiscountedHistory) -> NDArray[np.int64]:
    """How many of the newest interactions each copy keeps, (n,), at most ``size`` (n,).

    Cimpean et al. (FAReL), section 5: with F_m = IF of the m newest, the first m* from ``min_window`` on at which
    ``delay`` consecutive changes |F_m - F_(m-1)|, ending at m*, were at most ``threshold``.

    :param sums: (n, M), newest first: the sum of each person's pair terms with all later people
    """
    ages = np.arange(sums.shape[1])
    weight = history.factor ** ages.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):  # F_1 has no pairs
        fairness = np.cumsum(weight * sums, axis=1) / np.cumsum(weight * ages)
    start = history.min_window - history.delay + 1
    changes = np.abs(np.diff(fairness[:, start - 2 :], axis=1))  # column c is m = start + c
    small = (changes <= history.threshold) & (start + np.arange(changes.shape[1]) <= size[:, None])
    total = np.cumsum(small, axis=1)
    runs = total.copy()
    runs[:, history.delay :] = total[:, history.delay :] - total[:, : -history.delay]
    steady = runs == history.delay
    first = history.min_window + np.argmax(steady[:, history.delay - 1 :], axis=1)
    kept: NDArray[np.int64] = np.where(steady.any(axis=1), first, size)
    return kept
