"""From many policies to a few: which are the same, which are alike, and about five to begin with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.report.measures import differ
from sb3_fair.report.selection import kind

ROLES = {"performance": "best performance", "group": "fairest to groups", "individual": "fairest to individuals"}
COMPROMISE = "best compromise"


def same(policies: Sequence[EvaluatedPolicy]) -> list[int]:
    """For each policy the first that had the very same episodes: its own number if it is the first."""
    first: dict[bytes, int] = {}
    return [first.setdefault(policy.returns.tobytes(), index) for index, policy in enumerate(policies)]


def bands(policies: Sequence[EvaluatedPolicy]) -> list[int]:
    """For each policy the first from which it does not differ beyond the confidence intervals in any objective."""
    if not policies:
        return []
    apart: NDArray[Any] = np.abs(differ(policies, policies)).max(axis=2)
    leaders: list[int] = []
    found = []
    for index in range(len(policies)):
        alike = [leader for leader in leaders if not apart[index, leader]]
        if not alike:
            leaders.append(index)
        found.append(alike[0] if alike else index)
    return found


def beaten(policies: Sequence[EvaluatedPolicy], others: Sequence[EvaluatedPolicy]) -> NDArray[np.bool_]:
    """Which policies are dominated by which others beyond the confidence intervals, (n, m): the other has means that
    are nowhere lower, and somewhere beyond the intervals higher."""
    if not (policies and others):
        return np.zeros((len(policies), len(others)), dtype=bool)
    lower = np.array([policy.mean for policy in policies])[:, None] > np.array([other.mean for other in others])
    worse: NDArray[np.bool_] = (differ(policies, others) < 0).max(axis=2) > lower.max(axis=2)
    return worse


def short_list(front: Front, rules: Sequence[EvaluatedPolicy] = ()) -> tuple[dict[int, list[str]], int | None]:
    """Policies to begin with and what each of them is best at; and the rule that comes closest to the best of all.

    The best policy of each type of objective has the largest mean over its objectives, the best compromise is nearest
    to the ideal that has the best of each objective; all are compared on scales from the worst to the best policy, on
    which a rule counts as the best at most.

    :return: number of a policy -> its roles, none if there is but one policy; number of the rule, None without rules
        for the same objectives
    """
    if not len(front):
        return {}, None
    comparable = [rule.objectives == front.objectives for rule in rules]
    excluded = beaten(front, front).any(axis=1)
    low, high = front.means.min(axis=0), front.means.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    learned = (front.means - low) / span
    known = [np.minimum((rule.mean - low) / span, 1) for rule, fits in zip(rules, comparable, strict=True) if fits]
    kinds = np.array([kind(name) for name in front.objectives])
    chosen: dict[int, list[str]] = {}
    for type_ in dict.fromkeys(kinds.tolist()):
        score = np.where(excluded, -np.inf, learned[:, kinds == type_].mean(axis=1))
        chosen.setdefault(int(score.argmax()), []).append(ROLES[type_])
    if len(kinds) > 1:
        away = np.where(excluded, np.inf, np.linalg.norm(1 - learned, axis=1))
        chosen.setdefault(int(away.argmin()), []).append(COMPROMISE)
    closest = int(np.linalg.norm(1 - np.array(known), axis=1).argmin()) if known else None
    roles = chosen if len(front) > 1 else {}
    return roles, None if closest is None else int(np.flatnonzero(comparable)[closest])
