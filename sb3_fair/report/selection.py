"""Representative policies of a front, and their colours."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.descriptions import DISPARITY, RETURN
from sb3_fair.fairness.notions.table import NOTIONS

Array = NDArray[np.float64]

AXES = ("R", DISPARITY, *NOTIONS)
"""Order of the objectives around a radar plot."""

ANCHORS = {"performance": (228, 26, 28), "group": (77, 175, 74), "individual": (55, 126, 184)}
"""RGB colour of a policy that is best in one type of objective and worst in the others."""


def kind(objective: str) -> str:
    """``"performance"``, ``"group"`` or ``"individual"``, for names such as R, d_s, SP@gender, IF@heom."""
    name = base(objective)
    if name not in AXES[1:]:
        return "performance"
    return "group" if name == DISPARITY or NOTIONS[name].needs_groups else "individual"


def base(objective: str) -> str:
    """The notion without its attribute or distance: SP for SP@gender; one for all disparities."""
    if objective.startswith(DISPARITY):
        return DISPARITY
    return objective.removesuffix(RETURN).partition("@")[0]


def axis_order(objectives: Sequence[str]) -> list[str]:
    """The objectives sorted as they go around a radar plot; names it does not know come first, as they were."""
    return sorted(objectives, key=lambda name: AXES.index(base(name)) if base(name) in AXES else -1)


def min_max(values: ArrayLike) -> Array:
    """Each column of (n, k) mapped to [0, 1]; a constant column becomes 0.5, NaN 0: what is unknown is not good."""
    values = np.asarray(values, dtype=np.float64)
    low = np.fmin.reduce(values)
    width = np.fmax.reduce(values) - low
    scaled = np.where(width > 0, (values - low) / np.where(width > 0, width, 1.0), 0.5)
    return np.where(np.isnan(values), 0.0, scaled)


def representative_set(values: ArrayLike, size: int = 10) -> list[int]:
    """Row numbers of policies that span the trade-off, in the order in which they were chosen.

    First the best policy of each objective, then, one at a time, the policy that is far from the chosen ones in every
    objective: the largest mean - 0.25 sd over the objectives of its summed distance to them (FAReL, Appendix C), each
    objective mapped to [0, 1].

    :param values: (n, k) mean return of each policy and objective
    """
    values = np.asarray(values, dtype=np.float64)
    if len(values) == 0:
        return []
    scaled = min_max(values)
    known = np.where(np.isnan(values), -np.inf, values)
    chosen = list(dict.fromkeys(int(best) for best in known.argmax(axis=0)))[:size]
    while len(chosen) < min(size, len(values)):
        distance = np.abs(scaled[:, None, :] - scaled[chosen]).sum(axis=1)
        score = distance.mean(axis=1) - 0.25 * distance.std(axis=1)
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
    return chosen


def colours(values: ArrayLike, objectives: Sequence[str]) -> NDArray[np.uint8]:
    """RGB colour (n, 3) of each policy: red for performance, green for group and blue for individual fairness.

    The anchors are mixed by how good a policy is, among these policies, in each type of objective (FAReL, Appendix C).

    :param values: (n, k) mean return of each policy and objective
    """
    scaled = min_max(values)
    kinds = np.array([kind(objective) for objective in objectives])
    present = [name for name in ANCHORS if name in kinds]
    quality = np.stack([scaled[:, kinds == name].mean(axis=1) for name in present], axis=1)
    total = quality.sum(axis=1, keepdims=True)
    weights = np.where(total > 0, quality / np.where(total > 0, total, 1.0), 1 / len(present))
    mixed: Array = weights @ np.array([ANCHORS[name] for name in present])
    return np.rint(mixed).astype(np.uint8)
