"""From many policies to a few: which are the same, which differ, and about five to begin with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.report.measures import differ, goals, means
from sb3_fair.report.selection import colours, kind, representative_set

ROLES = {"performance": "best performance", "group": "fairest to groups", "individual": "fairest to individuals"}
COMPROMISE = "best compromise"


def same(policies: Sequence[EvaluatedPolicy]) -> list[int]:
    """For each policy the first that had the very same episodes: its own number if it is the first."""
    first: dict[bytes, int] = {}
    episodes = (np.array(list(policy.table().values()), dtype=np.float64).tobytes() for policy in policies)
    return [first.setdefault(content, index) for index, content in enumerate(episodes)]


def representatives(front: Front) -> dict[int, NDArray[np.uint8]]:
    """The policies that stand for the others, and their colours."""
    reached = means(front, goals(front))
    chosen = representative_set(reached)
    return dict(zip(chosen, colours(reached[chosen], front.objectives), strict=True)) if chosen else {}


def told_apart(front: Front) -> list[int]:
    """Policies that all differ from each other beyond confidence intervals; there may be more."""
    apart = np.any(differ(front, front), axis=2)
    found: list[int] = []
    for index in range(len(front)):
        if apart[index, found].all():
            found.append(index)
    return found


def beaten(front: Front, others: Sequence[EvaluatedPolicy]) -> NDArray[np.bool_]:
    """Which policies are dominated by which others beyond the confidence intervals, (n, m): the other has means that
    are known and nowhere lower, and somewhere beyond the intervals higher."""
    shown = goals(front)
    reached = means(others, shown) >= means(front, shown)[:, None]
    worse: NDArray[np.bool_] = np.any(differ(front, others) < 0, axis=2) & np.all(reached, axis=2)
    return worse


def short_list(front: Front, rules: Sequence[EvaluatedPolicy] = ()) -> tuple[dict[int, list[str]], int | None]:
    """Policies to begin with and what each of them is best at; and the rule that comes closest to the best of all.

    The best policy of each type of objective has the largest mean over its objectives, the best compromise is nearest
    to the ideal that has the best of each objective; all are compared on scales from the worst to the best policy, on
    which a rule counts as the best at most. What has an objective that is undefined has no part in this objective.

    :return: number of a policy -> its roles, none if there is but one policy; number of the rule, None without rules
        that have all objectives
    """
    if not len(front):
        return {}, None
    shown = goals(front)
    reached = means(front, shown)
    low, high = np.fmin.reduce(reached), np.fmax.reduce(reached)
    span = np.where(high > low, high - low, 1.0)
    learned, known = (reached - low) / span, np.minimum((means(rules, shown) - low) / span, 1)
    kinds = np.array([kind(name) for name in front.objectives])
    scores = {ROLES[type_]: learned[:, kinds == type_].mean(axis=1) for type_ in dict.fromkeys(kinds.tolist())}
    if len(kinds) > 1:
        scores[COMPROMISE] = -np.linalg.norm(1 - learned, axis=1)
    excluded = beaten(front, front).any(axis=1)
    chosen: dict[int, list[str]] = {}
    for role, score in scores.items():
        best = _largest(np.where(excluded, np.nan, score))
        if best is not None:
            chosen.setdefault(best, []).append(role)
    return chosen if len(set(same(front))) > 1 else {}, _largest(-np.linalg.norm(1 - known, axis=1))


def _largest(scores: NDArray[np.float64]) -> int | None:
    return None if np.isnan(scores).all() else int(np.nanargmax(scores))
