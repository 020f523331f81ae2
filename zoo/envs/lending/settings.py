"""Settings of lending."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.validation import number
from sb3_fair.zoo.envs.lending.measures import UNDEFINED
from sb3_fair.zoo.envs.settings import COUNT, SHARE, Settings, choice, parameter, require_not_negative, switch

PAPER = '"Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning" (arXiv 2401.06318)'
GRAIN = 2.0**-50
"""Masses of scores are multiples of this, so that moving them is exact: each group's sum to 1 for ever."""


@dataclass(frozen=True)
class LendingConfig(Settings):
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

    initial_distribution: Sequence[Sequence[float]] = parameter(
        ((0, 0.1, 0.1, 0.2, 0.3, 0.3, 0), (0.1, 0.1, 0.2, 0.3, 0.3, 0, 0)), "probability", PAPER
    )
    repay_probability: Sequence[float] | Sequence[Sequence[float]] = parameter(
        (0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7), "probability", "the published code"
    )
    group_probability: Sequence[float] = parameter((0.5, 0.5), "probability", PAPER)
    loan_amount: float = parameter(1.0, "money", PAPER)
    interest_rate: float = parameter(1.0, "share of the loan", PAPER, require_not_negative)
    starting_cash: float = parameter(10_000.0, "money", PAPER)
    score_shift: float = parameter(0.01, "probability", PAPER, SHARE)
    episode_length: int | None = parameter(2_000, "steps", "the published code; evaluations take 10,000", COUNT)
    window: int = parameter(300, "decisions", PAPER, COUNT)
    observation: str = choice("full", ("full", "basic"), "ours; basic is nearest to the paper's")
    oracle_outcomes: bool = switch(False, "ours; True in the paper")
    long_term_source: str = choice("exact", ("exact", "expected", "window"), "ours; window in the paper")
    undefined_tpr: str = choice("zero", UNDEFINED, "the published code")
    repay_estimator: Callable[[Any], Any] | None = parameter(None, "function", "ours")  # noqa: RUF009 (a field)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_tables()
        if number("loan_amount", self.loan_amount) <= 0:
            raise ValueError(f"loan_amount must be positive, got {self.loan_amount!r}")
        if number("starting_cash", self.starting_cash) < self.loan_amount:
            raise ValueError(f"starting_cash must be at least a loan ({self.loan_amount}), got {self.starting_cash!r}")
        if self.repay_estimator is not None and not callable(self.repay_estimator):
            raise ValueError(f"repay_estimator must be a callable or None, got {self.repay_estimator!r}")

    def _check_tables(self) -> None:
        masses = _probabilities("initial_distribution", self.initial_distribution, 2)
        if min(masses.shape) < 2:
            raise ValueError(
                "initial_distribution must have a row for each of at least two groups and a column for each of at "
                f"least two scores, got {self.initial_distribution!r}"
            )
        _sums_to_one("initial_distribution", masses)
        groups = _probabilities("group_probability", self.group_probability, 1)
        if len(groups) != len(masses):
            raise ValueError(
                f"group_probability must have one number for each of {len(masses)} groups, "
                f"got {self.group_probability!r}"
            )
        _sums_to_one("group_probability", groups)
        repays = _probabilities("repay_probability", self.repay_probability, 1, 2)
        if repays.shape not in (masses.shape, masses.shape[1:]):
            raise ValueError(
                f"repay_probability must have one number for each of {masses.shape[1]} scores, or such a row for each "
                f"of {len(masses)} groups, got {self.repay_probability!r}"
            )

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


def _probabilities(name: str, value: Any, *dimensions: int) -> NDArray[np.float64]:
    try:
        table = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.full((), np.nan)
    if table.ndim not in dimensions or not ((table >= 0) & (table <= 1)).all():
        shapes = " or ".join({1: "a row of", 2: "rows of equally many"}[ndim] for ndim in dimensions)
        raise ValueError(f"{name} must be {shapes} probabilities in [0, 1], got {value!r}")
    return table


def _sums_to_one(name: str, table: NDArray[np.float64]) -> None:
    sums = table.sum(axis=-1)
    if (np.abs(sums - 1) > 1e-9).any():
        raise ValueError(f"{name} must sum to 1 within 1e-9{' in every row' * (table.ndim > 1)}, got {table.tolist()}")
