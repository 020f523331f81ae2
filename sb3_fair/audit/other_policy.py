"""What another policy would have done on the people of a log: its rates per group, and what it would have earned."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.audit.decisions import Decisions
from sb3_fair.audit.log import Log
from sb3_fair.audit.off_policy import KINDS, LEAST, OffPolicy, averages_one, by_kind, off_policy
from sb3_fair.audit.resampling import Array
from sb3_fair.audit.words import few
from sb3_fair.fairness.notions.table import ACCEPTED, DESERVING, KNOWN
from sb3_fair.fairness.proportions import wilson

_MOST = 50
"""Groups of an attribute that the model of the reward knows."""
_OTHERS = 0.1
"""How many others each person of known outcome may stand for on average, where there are few of them."""

_WRONG = (
    "The propensities do not fit the decisions on {}: their weights are not 1 on average. How another policy would "
    "treat the deserving among them is left out."
)


@dataclass(frozen=True)
class OtherRate:
    """How often another policy gives a group the favourable decision, beside the log; NaN where undefined, or where
    people of known outcome stand for too many others.

    :param among: "everybody", or "deserving"
    :param low: of the interval: Wilson's, with the variance of the probabilities
    :param effective: effective number of people it is estimated from
    """

    attribute: str
    group: str
    among: str
    logged: float
    other: float
    low: float
    high: float
    effective: float


def other_policy(
    log: Log, decided: Decisions, confidence: float, seed: int
) -> tuple[list[OtherRate], OffPolicy | None, list[str]]:
    """Rates and the mean reward if decisions had been made by the policy whose probabilities are ``target``.

    Rates among everybody are means of the probabilities: nothing is estimated but the people. Those among the deserving
    are means over the people of known outcome. With propensities, each of them stands for 1 / (chance that the outcome
    would be known) people like them; if outcomes are known after one kind of decision only, that is 1 / propensity.
    Without propensities, the rates among the deserving of a group with such outcomes are left out, as they are where
    the propensities do not fit the decisions, of which the warnings tell.
    """
    if "target" not in log.numbers:
        return [], None, []
    target = log.numbers["target"][decided.rows]
    accepted = ACCEPTED[decided.cells]
    chance = log.numbers["propensity"][decided.rows] if "propensity" in log.numbers else None
    there = ~np.isnan(target) & (True if chance is None else ~np.isnan(chance))
    known, right = KNOWN[decided.cells], DESERVING[decided.cells]
    rates, wrong = [], []
    for attribute in decided.compared:
        groups = [np.flatnonzero(there & (attribute.codes == code)) for code in range(1, len(attribute.labels) + 1)]
        for label, rows in zip(attribute.labels, groups, strict=True):
            found = _rate(target[rows], np.ones(len(rows)), accepted[rows], confidence)
            rates.append(OtherRate(attribute.name, label, "everybody", *found))
        for label, rows in zip(attribute.labels, groups, strict=True):
            others = _others(accepted[rows], known[rows], None if chance is None else chance[rows])
            if others is None:
                continue
            weights, took, part = others
            if averages_one(weights / part):
                deserving = right[rows]
                found = _rate(target[rows[deserving]], weights[deserving], took[deserving], confidence)
                rates.append(OtherRate(attribute.name, label, "deserving", *found))
            else:
                wrong.append(f"{label} ({attribute.name})")
    warnings = [_WRONG.format(few(wrong))] if wrong else []
    if "reward" not in log.numbers or chance is None:
        return rates, None, warnings
    rows = np.flatnonzero(there)
    reward = log.numbers["reward"][decided.rows][rows]
    if np.isnan(reward).all():
        return rates, None, warnings
    warnings += _unknown(log.columns.reward, accepted[rows], ~np.isnan(reward))
    small = [attribute for attribute in decided.attributes if len(attribute.labels) <= _MOST]
    described = [one.codes[rows] == code for one in small for code in range(1, len(one.labels) + 1)]
    features = np.column_stack([target[rows], *described]).astype(float)
    given = reward, accepted[rows], chance[rows], target[rows]
    return rates, off_policy(*given, features=features, confidence=confidence, seed=seed), warnings


def _unknown(column: str | None, accepted: NDArray[np.bool_], known: NDArray[np.bool_]) -> list[str]:
    """What unknown rewards mean, in a sentence; none where all are known."""
    if known.all():
        return []
    made, seen = by_kind(accepted, known)
    if (seen[made > 0] == 0).any():
        return [
            f"Selective reward: {column!r} is known after {KINDS[seen.argmax()]} decisions only. What the others "
            "brought, nobody knows: the mean reward of the log is undefined. If they brought nothing, write 0."
        ]
    return [
        f"{column!r} is unknown for {made[0] - seen[0]:,} of {made[0]:,} unfavourable decisions and "
        f"{made[1] - seen[1]:,} of {made[1]:,} favourable ones: for the mean reward, known ones stand for them, which "
        "is right only if rewards are missing at random among decisions of a kind."
    ]


def _others(
    accepted: NDArray[np.bool_], known: NDArray[np.bool_], chance: Array | None
) -> tuple[Array, NDArray[Any], float] | None:
    """How many people of a group each one of known outcome stands for (n,), how many of those were accepted, and what
    the former are on average, if the propensities are right.

    None if no outcome is known, or none after one kind of decision and there are no propensities to make up for it.

    :param chance: (n,) propensities, or None
    """
    made, seen = by_kind(accepted, known)
    if not seen.any():
        return None
    if chance is None:
        return (np.ones(len(known)), accepted, 1.0) if seen[made > 0].all() else None
    share = np.divide(seen, made, out=np.zeros(2), where=made > 0)
    after = np.where(made > 0, share / share.max(), 1.0)  # chance of a known outcome, as a part of the better kind's
    kind = accepted.astype(np.intp)
    same, other = after[kind], after[1 - kind]
    weights = np.divide(1.0, other + chance * (same - other), out=np.zeros(len(known)), where=known)
    took = accepted if after[1] == 1 else np.where(accepted, weights, weights - 1)
    return weights, took, float(share.max())


def _rate(
    target: Array, weights: Array, accepted: NDArray[Any], confidence: float
) -> tuple[float, float, float, float, float]:
    """Logged rate, that of the other policy with its interval, and effective number of people."""
    total = weights.sum()
    if not total:
        return np.nan, np.nan, np.nan, np.nan, 0.0
    logged, effective = float(accepted.sum() / total), float(total**2 / np.square(weights).sum())
    if effective < LEAST and total > (1 + _OTHERS) * len(target):
        return logged, np.nan, np.nan, np.nan, effective
    mean = (weights * target).sum() / total
    variance = effective * np.square(weights * (target - mean)).sum() / total**2
    found = wilson(mean * effective, effective, confidence, variance)
    return logged, float(found.mean), float(found.low), float(found.high), effective
