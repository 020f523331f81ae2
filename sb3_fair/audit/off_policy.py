"""What another policy would have earned on the logged people: inverse propensity, self-normalised, doubly robust.

One decision at a time: what a decision changes for later people is not replayed.

Sources: Horvitz and Thompson 1952; Hájek 1971; Dudík, Langford, Li 2011, *Doubly robust policy evaluation and
learning*; cross-fitting as in Chernozhukov et al. 2018.
"""

import math
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sb3_fair.common.extras import extra
from sb3_fair.fairness.arguments import MaybeNumbers, Numbers, Range, checked

Array = NDArray[np.float64]
LEAST = 50
"""Effective sample size below which nothing is estimated."""
LEAST_SHARE = 0.01
"""The same as a share of the rows."""
KINDS = ("unfavourable", "favourable")
_OFF = 4.0
"""Standard errors that the mean weight may be away from 1."""


@dataclass(frozen=True)
class Estimated:
    """Mean reward of a decision with its confidence interval."""

    name: str
    title: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class OffPolicy:
    """What another policy would have earned per decision.

    :param n: decisions
    :param effective: effective sample size: so many decisions of the other policy itself would say as much
    :param mean_weight: near 1 if the propensities are right and the log has what the other policy does
    :param logged: mean reward of the logged decisions
    :param estimates: of the other policy; none if they are refused
    :param refused: why there are none; empty otherwise
    """

    n: int
    effective: float
    mean_weight: float
    logged: Estimated
    estimates: list[Estimated]
    refused: str = ""

    @property
    def all(self) -> list[Estimated]:
        """The logged decisions, then the estimates."""
        return [self.logged, *self.estimates]


@checked
def off_policy(
    rewards: MaybeNumbers,
    accepted: Any,
    propensity: Annotated[ArrayLike, Range("(0, 1]")],
    target: Annotated[ArrayLike, Range("[0, 1]")],
    *,
    features: Numbers | None = None,
    regressor: Any = None,
    folds: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
) -> OffPolicy:
    """Mean reward of a decision if another policy had decided, with intervals (normal approximation).

    :param rewards: (n,) of the logged decisions; NaN where unknown: known ones also stand for the unknown ones of their
        kind, favourable or unfavourable, which is right where rewards are missing at random among these
    :param accepted: (n,) whether each was favourable
    :param propensity: (n,) probability, in (0, 1], with which the decision that was made had been made
    :param target: (n,) probability with which the other policy makes the favourable decision
    :param features: (n, d) for the model of the reward that the doubly robust estimate takes; None: ``target`` alone
    :param regressor: anything with ``fit`` and ``predict``, as in scikit-learn; None: a linear model of
        scikit-learn, which the extra ``[audit]`` installs
    :param folds: parts of the log; the reward of each is predicted from the others
    :return: without estimates if the effective sample is smaller than 50 or 1 % of the rows, the mean weight is far
        from 1, or no reward of a kind of decision is known: then the log does not have enough of what the other policy
        does; NaN for the logged decisions if no reward of a kind that was made is known
    :raises ValueError: if shapes differ or a probability is out of range
    :raises MissingExtra: if no ``regressor`` is given and scikit-learn is not installed
    """
    reward, chance, wanted = (np.asarray(each, dtype=np.float64) for each in (rewards, propensity, target))
    took = np.asarray(accepted, dtype=bool)
    for name, array in (("accepted", took), ("propensity", chance), ("target", wanted)):
        if array.shape != reward.shape or array.ndim != 1:
            raise ValueError(f"{name} must have the shape of rewards {reward.shape}, (n,), got {array.shape}")
    known, kind = ~np.isnan(reward), took.astype(np.intp)
    if not known.any():
        raise ValueError("rewards must hold at least one number, got none")
    n = len(reward)
    made, seen = by_kind(took, known)
    stands_for = np.where(known, (made / np.maximum(seen, 1))[kind], 0.0)

    def filled(terms: Array) -> Array:
        """Terms (n,) whose mean is that of all decisions, although those without a reward are NaN."""
        usual = (np.bincount(kind, np.where(known, terms, 0.0), 2) / np.maximum(seen, 1))[kind]
        return usual + stands_for * np.where(known, terms - usual, 0.0)

    weights = np.where(took, wanted, 1 - wanted) / chance
    mean = float(weights.mean())
    total = (weights * stands_for).sum()
    effective = float(total**2 / np.square(weights * stands_for).sum()) if total else 0.0
    whole = filled(reward) if seen[made > 0].all() else np.full(n, np.nan)
    logged = _estimated("logged", "the logged decisions", whole, confidence)
    least, refused = max(LEAST, LEAST_SHARE * n), ""
    lacking = [KINDS[each] for each, asked in enumerate((1 - wanted, wanted)) if asked.any() and not seen[each]]
    if lacking:
        refused = f"no reward of {lacking[0]} decisions is known, and the other policy makes some"
    elif effective < least:
        refused = f"the overlap is too small: the effective sample is {effective:.0f}, at least {least:.0f} is needed"
    elif not averages_one(weights):
        refused = (
            f"the mean weight is {mean:.2f}, not 1: the propensities are wrong, or the log lacks decisions that the "
            "other policy makes"
        )
    if refused:
        return OffPolicy(n, effective, mean, logged, [], refused)
    predicted = _predicted(reward, took, wanted if features is None else features, regressor, folds, seed)
    own = np.where(took, predicted[:, 1], predicted[:, 0])
    direct = wanted * predicted[:, 1] + (1 - wanted) * predicted[:, 0]
    typical = filled(weights).mean()
    ratio = filled(weights * reward).mean() / typical
    estimates = [
        _estimated("ips", "inverse propensity", filled(weights * reward), confidence),
        _estimated("snips", "self-normalised", ratio + filled(weights * (reward - ratio)) / typical, confidence),
        _estimated("dr", "doubly robust", direct + filled(weights * (reward - own)), confidence),
    ]
    return OffPolicy(n, effective, mean, logged, estimates)


def by_kind(accepted: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.intp]:
    """(2, 2): how many decisions of each of :data:`KINDS` were made, and of how many the reward is known."""
    kinds = accepted.astype(np.intp)
    return np.array([np.bincount(each, minlength=2) for each in (kinds, kinds[known])])


def averages_one(weights: Array) -> bool:
    """Whether the mean of weights (n,) is 1 up to chance, as that of propensities that are right.

    Their spread is that around 1: few weights that happen to be equal have none around their mean.
    """
    spread = math.sqrt(np.square(weights - 1).mean())
    return bool(abs(weights.mean() - 1) <= max(_OFF * spread / math.sqrt(len(weights)), 0.05))


def _estimated(name: str, title: str, terms: Array, confidence: float) -> Estimated:
    """The mean of independent terms (n,)."""
    value = float(terms.mean())
    half = (
        float(ndtri((1 + confidence) / 2) * terms.std(ddof=1) / math.sqrt(len(terms))) if len(terms) > 1 else math.nan
    )
    return Estimated(name, title, value, value - half, value + half)


def _predicted(reward: Array, took: NDArray[np.bool_], features: Any, regressor: Any, folds: int, seed: int) -> Array:
    """Reward (n, 2) of the unfavourable and the favourable decision, predicted for each row from the other folds."""
    if regressor is None:
        with extra("audit", "the doubly robust estimate"):
            from sklearn.linear_model import Ridge
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        regressor = make_pipeline(StandardScaler(), Ridge())
    described = np.asarray(features, dtype=np.float64).reshape(len(reward), -1)
    fold = np.random.default_rng(seed).integers(folds, size=len(reward))
    predicted = np.zeros((len(reward), 2))
    for part, decision in product(range(folds), (0, 1)):
        known, here = (fold != part) & (took == decision) & ~np.isnan(reward), fold == part
        if known.any() and here.any():
            predicted[here, decision] = (
                deepcopy(regressor).fit(described[known], reward[known]).predict(described[here])
            )
    return predicted
