"""What another policy would have done on the people of a log: its rates per group, and what it would have earned."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sb3_fair.audit.decisions import Decisions
from sb3_fair.audit.log import Log
from sb3_fair.audit.off_policy import LEAST, OffPolicy, off_policy
from sb3_fair.audit.resampling import Array
from sb3_fair.fairness.notions.table import ACCEPTED, DESERVING, KNOWN

_MOST = 50
"""Groups of an attribute that the model of the reward knows."""


class OtherRate(NamedTuple):
    """How often another policy gives a group the favourable decision, beside the log; NaN where undefined, or where
    people of known outcome stand for too many others.

    :param among: "everybody", or "deserving"
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
) -> tuple[list[OtherRate], OffPolicy | None]:
    """Rates and the mean reward if decisions had been made by the policy whose probabilities are ``target``.

    Rates among everybody are means of the probabilities: nothing is estimated but the people. Those among the deserving
    are means over the people of known outcome. If outcomes are known after one kind of decision only, each such person
    stands for 1 / propensity people like them, one of whom got the same decision; without propensities, the rates among
    the deserving are left out.
    """
    if "target" not in log.numbers:
        return [], None
    target = log.numbers["target"][decided.rows]
    accepted = ACCEPTED[decided.cells]
    chance = log.numbers["propensity"][decided.rows] if "propensity" in log.numbers else None
    there = ~np.isnan(target) & (True if chance is None else ~np.isnan(chance))
    known, right = KNOWN[decided.cells], DESERVING[decided.cells]
    weights = np.ones(len(target))
    if decided.selective and chance is not None:
        weights = np.divide(1.0, chance, out=np.zeros(len(target)), where=known & there)
    among = {"everybody": (there, np.ones(len(target)))}
    if known.any() and not (decided.selective and chance is None):
        among["deserving"] = (there & right, weights)
    rates = []
    for attribute in decided.compared:
        for name, (who, weight) in among.items():
            for code, label in enumerate(attribute.labels, start=1):
                rows = np.flatnonzero(who & (attribute.codes == code))
                total = weight[rows].sum()
                # of the people whom somebody stands for, one got the same decision, the others the other one
                hits = np.where(accepted[rows], 1.0, weight[rows] - 1)
                logged = float(hits.sum() / total) if total else np.nan
                estimate = _mean(target[rows], weight[rows], confidence)
                rates.append(OtherRate(attribute.name, label, name, logged, *estimate))
    if "reward" not in log.numbers or chance is None:
        return rates, None
    reward = log.numbers["reward"][decided.rows]
    rows = np.flatnonzero(there & ~np.isnan(reward))
    few = [attribute for attribute in decided.attributes if len(attribute.labels) <= _MOST]
    described = [one.codes[rows] == code for one in few for code in range(2, len(one.labels) + 1)]
    features = np.column_stack([target[rows], *described]).astype(float)
    given = reward[rows], accepted[rows], chance[rows], target[rows]
    return rates, off_policy(*given, features=features, confidence=confidence, seed=seed) if len(rows) else None


def _mean(values: Array, weights: Array, confidence: float) -> tuple[float, float, float, float]:
    total = weights.sum()
    effective = float(total**2 / np.square(weights).sum()) if total else 0.0
    if not total or (effective < LEAST and (weights != 1).any()):
        return np.nan, np.nan, np.nan, effective
    mean = float((weights * values).sum() / total)
    half = float(ndtri((1 + confidence) / 2) * np.sqrt(np.square(weights * (values - mean)).sum()) / total)
    return mean, max(mean - half, 0.0), min(mean + half, 1.0), effective
