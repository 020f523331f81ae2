"""Action frequencies by group."""

from collections.abc import Hashable, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import Numbers, Range, checked
from sb3_fair.fairness.tracking.partition import aligned, compared_labels


@checked
def action_counts(
    actions: Numbers, groups: ArrayLike, n_actions: int, *, compared: Sequence[Hashable] | None = None
) -> NDArray[np.int64]:
    """How many agents of each group take each action: (..., groups, n_actions).

    :param actions: (..., n) int, negative where an agent takes none
    :param groups: labels, (n,) or (..., n)
    :param n_actions: number of actions
    :param compared: labels of the groups, who has another one is not counted; None: 0 and 1, or where other labels
        occur and they are two, these in order
    :raises ValueError: if shapes do not fit, an action is too large, or the labels to compare do not occur
    """
    array = np.asarray(actions)
    labels = aligned(array, groups, "groups", "actions")
    if array.dtype.kind not in "iu" or (array.size and array.max() >= n_actions):
        raise ValueError(f"actions must be integers below n_actions ({n_actions}), got {array!r}")
    rows = np.arange(array[..., 0].size).reshape(array.shape[:-1])[..., None]
    counts = []
    for label in compared_labels(np.asarray(groups), compared):
        counted = (labels == label) & (array >= 0)
        cells = (rows * n_actions + array)[counted]
        counts.append(np.bincount(cells, minlength=rows.size * n_actions).reshape(*array.shape[:-1], n_actions))
    return np.stack(counts, axis=-2)


@checked
def action_frequencies(counts: Annotated[ArrayLike, Range("[0, inf)")]) -> NDArray[np.float64]:
    """Shares of the counts (..., groups, n_actions) that each group's actions have; NaN for a group that took none."""
    array = np.asarray(counts, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(array / array.sum(axis=-1, keepdims=True))
