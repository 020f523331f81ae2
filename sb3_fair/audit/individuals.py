"""Individual notions on a sample of the people of a log."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from sb3_fair.audit.log import Log
from sb3_fair.audit.result import NotionValue
from sb3_fair.fairness.notions.table import NOTIONS
from sb3_fair.fairness.notions.whole import consistency, individual_fairness, lipschitz_violation

FOLDS = 10


def individual_notions(
    log: Log, accepted: NDArray[np.bool_], names: list[str], distance: str, confidence: float
) -> list[NotionValue]:
    """IF, LIP and CSC, as far as asked for, of the people in the log's sample.

    Numerical features are scaled to [0, 1] by the range they have in the log. Without a score, a person's chances are
    1 for the decision that was made and 0 for the other one. Intervals are jackknife intervals over 10 parts of the
    sample, which is in random order (Student t). In CSC, people who are equally similar share the places of neighbours.

    :param accepted: (rows of the log,) whether the decision was favourable
    """
    sample = log.sample
    if sample is None or not len(sample.rows):
        return []
    features = log.columns.features
    span = np.where(sample.high > sample.low, sample.high - sample.low, 1.0)
    nominal = [index for index, name in enumerate(features) if name in log.columns.nominal]
    scaled = np.clip((sample.features - sample.low) / span, 0.0, 1.0)
    scaled[:, nominal] = sample.features[:, nominal]
    actions = accepted[sample.rows].astype(np.int64)
    score = actions.astype(float) if sample.scores is None else sample.scores
    chances = np.column_stack([1 - score, score])
    formulas: dict[str, Callable[[NDArray[np.intp]], float]] = {
        "IF": lambda rows: individual_fairness(scaled[rows], chances[rows], distance=distance, nominal=nominal),
        "LIP": lambda rows: lipschitz_violation(scaled[rows], chances[rows], distance=distance, nominal=nominal),
        "CSC": lambda rows: consistency(scaled[rows], actions[rows], distance=distance, nominal=nominal, ties="shared"),
    }
    fold = np.arange(len(scaled)) % FOLDS
    found = []
    for name in names:
        value = formulas[name](np.arange(len(scaled)))
        half = math.nan
        if len(scaled) >= 2 * FOLDS:
            parts = np.array([formulas[name](np.flatnonzero(fold != part)) for part in range(FOLDS)])
            half = float(stdtrit(FOLDS - 1, (1 + confidence) / 2) * np.sqrt((FOLDS - 1) * parts.var()))
        bottom, top = NOTIONS[name].bounds
        ends = max(value - half, bottom), min(value + half, top)
        found.append(NotionValue("", name, NOTIONS[name].title, value, *ends, math.nan, None, len(scaled)))
    return found
