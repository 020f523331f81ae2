"""Settings of lending."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import NotNegative, Positive, Proportion, checked
from sb3_fair.zoo.envs.lending.measures import UndefinedTPR
from sb3_fair.zoo.envs.settings import parameter, several

PAPER = '"Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning" (arXiv 2401.06318)'
GRAIN = 2.0**-50
"""Masses of scores are multiples of this, so that moving them is exact: each group's sum to 1 for ever."""


@checked
@dataclass(frozen=True)
class LendingConfig:
    """The parameters of the scenario, for G >= 2 groups and M >= 2 scores.

    :param initial_distribution: (G, M), of the scores 1 to M in each group when an episode begins
    :param repay_probability: (M,) of each score, or (G, M)
    :param group_probability: (G,), of the group of each applicant
    :param loan_amount: what a loan costs if it is not repaid
    :param interest_rate: what a repaid loan brings, per ``loan_amount``
    :param starting_cash: an episode is terminated when the cash is less than a loan
    :param score_shift: the share of the group that a loan moves by one score
    :param episode_length: steps until truncation; None: there is none
    :param window: w, decisions before the present one that short-term disparity counts
    :param observation: ``"full"`` or ``"basic"``, without the scores in the window
    :param oracle_outcomes: whether it is known if a rejected applicant would have repaid
    :param long_term_source: what ``d_l`` and ``d_l_next`` compare: the groups' distributions (``"exact"``); the same,
        ``d_l_next`` as it is expected before the loan is repaid or not (``"expected"``); or the scores of the latest
        w + 1 applicants, the undecided one among them (``"window"``)
    :param undefined_tpr: see :class:`~sb3_fair.zoo.envs.lending.measures.LendingMeasures`
    :param repay_estimator: f(observations (n, d)) -> (n,) probabilities of repayment that the bank believes in, such as
        a fitted credit model; None: ``repay_probability``
    """

    initial_distribution: Sequence[Sequence[Proportion]] = parameter(
        ((0, 0.1, 0.1, 0.2, 0.3, 0.3, 0), (0.1, 0.1, 0.2, 0.3, 0.3, 0, 0)), "probability", PAPER
    )
    repay_probability: Sequence[Proportion] | Sequence[Sequence[Proportion]] = parameter(
        (0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7), "probability", "the published code"
    )
    group_probability: Sequence[Proportion] = parameter((0.5, 0.5), "probability", PAPER)
    loan_amount: Positive = parameter(1.0, "money", PAPER)
    interest_rate: NotNegative = parameter(1.0, "share of the loan", PAPER)
    starting_cash: float = parameter(10_000.0, "money", PAPER)
    score_shift: Proportion = parameter(0.01, "probability", PAPER)
    episode_length: int | None = parameter(2_000, "steps", "the published code; evaluations take 10,000")
    window: int = parameter(300, "decisions", PAPER)
    observation: Literal["full", "basic"] = parameter("full", "name", "ours; basic is nearest to the paper's")
    oracle_outcomes: bool = parameter(False, "yes or no", "ours; True in the paper")
    long_term_source: Literal["exact", "expected", "window"] = parameter("exact", "name", "ours; window in the paper")
    undefined_tpr: UndefinedTPR = parameter("zero", "name", "the published code")
    repay_estimator: Callable[[Any], Any] | None = parameter(None, "function", "ours")

    def __post_init__(self) -> None:
        lengths = {len(row) for row in self.initial_distribution}
        if len(self.initial_distribution) < 2 or len(lengths) > 1 or min(lengths) < 2:
            raise ValueError(
                "initial_distribution must have a row for each of at least two groups and in all of them a column for "
                f"each of at least two scores, got {self.initial_distribution!r}"
            )
        _sums_to_one("initial_distribution", self.initial_distribution)
        groups, scores = self.shape
        if len(self.group_probability) != groups:
            raise ValueError(
                f"group_probability must have one number for each of {groups} groups, got {self.group_probability!r}"
            )
        _sums_to_one("group_probability", self.group_probability)
        repays = self.repay_probability
        if ([len(row) for row in repays if several(row)] or [len(repays)] * groups) != [scores] * groups:
            raise ValueError(
                f"repay_probability must have one number for each of {scores} scores, or such a row for each of "
                f"{groups} groups, got {repays!r}"
            )
        if self.starting_cash < self.loan_amount:
            raise ValueError(f"starting_cash must be at least a loan ({self.loan_amount}), got {self.starting_cash!r}")

    @property
    def shape(self) -> tuple[int, int]:
        """G and M."""
        return len(self.initial_distribution), len(self.initial_distribution[0])


def distribution_function(masses: Any) -> NDArray[np.float64]:
    """Mass below the first score, up to each, and up to the last: (..., M + 1), multiples of :data:`GRAIN`.

    :param masses: (..., M), each row sums to about 1
    """
    rows = np.asarray(masses, dtype=np.float64)
    shares = (rows / rows.sum(axis=-1, keepdims=True)).cumsum(axis=-1)
    up_to = np.round(np.minimum(shares, 1) / GRAIN) * GRAIN  # many rounded shares may sum to more than 1
    return np.concatenate([np.zeros_like(up_to[..., :1]), up_to[..., :-1], np.ones_like(up_to[..., :1])], axis=-1)


def _sums_to_one(name: str, value: Any) -> None:
    table = np.asarray(value, dtype=np.float64)
    if (np.abs(table.sum(axis=-1) - 1) > 1e-9).any():
        raise ValueError(f"{name} must sum to 1 within 1e-9{' in every row' * (table.ndim > 1)}, got {table.tolist()}")
