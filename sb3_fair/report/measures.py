"""The measures that a report shows: their figures for each policy, which values are better, and the axes they get."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.fairness.descriptions import DISPARITY, NO_WORDS, Description, Words, describe
from sb3_fair.fairness.intervals import mean_and_interval
from sb3_fair.fairness.notions.table import NOTIONS
from sb3_fair.report.selection import axis_order, base

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """A figure that every policy has.

    :param name: objective or notion
    :param optimised: whether the policies were trained for it
    :param final: True: the fairness figure after an episode's last step; False: the return of the episode
    :param repeats: whether that return is the figure after the last step, and undefined where that is
    :param words: what the environment says of its own measures
    """

    name: str
    optimised: bool
    final: bool
    repeats: bool = False
    words: Words = field(default_factory=dict, compare=False, repr=False)

    @property
    def label(self) -> str:
        """Its name, told apart from that of the return of the same name."""
        return f"final {self.name}" if self.final and self.optimised else self.name

    @property
    def about(self) -> Description:
        """The measure in words. Of returns, more is better whatever they are of."""
        about = describe(self.name, self.words)
        return about if self.final else replace(about, better="higher")

    @property
    def zero_is_fair(self) -> bool:
        """Whether 0 is fair and less is unfair, as of notions and of returns of disparities, which are negated."""
        return self.about.better == "higher" and base(self.name) in (*NOTIONS, DISPARITY)

    def samples(self, policy: EvaluatedPolicy) -> Array:
        """The figure in each evaluation episode that has it, (m,); its size where 0 is best."""
        if self.final:
            values = np.asarray(policy.final.get(self.name, ()), dtype=np.float64)
        elif self.name in policy.objectives:
            values = policy.returns[:, policy.objectives.index(self.name)]
            if self.repeats and self.name in policy.final:
                values = np.where(np.isnan(policy.final[self.name]), np.nan, values)
        else:
            values = np.empty(0)
        sizes: Array = self.about.sizes(values[~np.isnan(values)])
        return sizes

    def mean(self, policy: EvaluatedPolicy) -> float:
        """Mean over the episodes that have the figure, NaN if none has."""
        return float(mean_and_interval(self.samples(policy)).mean)

    def half_width(self, policy: EvaluatedPolicy, confidence: float = 0.95) -> float:
        """Half the width of the confidence interval of the mean, NaN with fewer than two episodes."""
        mean, low, _ = mean_and_interval(self.samples(policy), confidence=confidence)
        return float(mean - low)

    def chance(self, policy: EvaluatedPolicy) -> float:
        """The size of the figure after the last step for a policy blind to the groups; NaN where unknown, and for
        returns other than that figure."""
        return policy.chance.get(self.name, float("nan")) if self.final or self.repeats else float("nan")

    def goodness(self, policies: Sequence[EvaluatedPolicy]) -> Array:
        """The means of policies, (n,), turned so that larger is better; NaN where unknown."""
        values: Array = self.about.goodness(np.array([self.mean(policy) for policy in policies], dtype=np.float64))
        return values

    def ideal(self, policies: Sequence[EvaluatedPolicy]) -> float:
        """The goodness at the rim of a radar: 0 where that is the best there is, else what the best policy reaches."""
        if self.zero_is_fair or self.about.better != "higher":
            return 0.0
        known = self.goodness(policies)
        return float(np.nanmax(known)) if np.isfinite(known).any() else float("nan")

    def span(self, policies: Sequence[EvaluatedPolicy]) -> tuple[float, float]:
        """The goodness at both ends of an axis. What lies within a typical confidence interval is not stretched to a
        whole axis."""
        known = self.goodness(policies)
        known = known[np.isfinite(known)]
        if not len(known):
            return 0.0, 0.0
        halves = [half for policy in policies if np.isfinite(half := self.half_width(policy))]
        more = max(0.0, (float(np.median(halves)) if halves else 0.0) - float(np.ptp(known)) / 2)
        return float(known.min()) - more, float(known.max()) + more


def measures(front: Front, words: Words = NO_WORDS) -> list[Measure]:
    """The optimised objectives, then every figure after the last step that does not repeat one of them: first those of
    which better and worse are known."""
    optimised = {goal.name: goal for goal in goals(front, words)}
    returns = [optimised[name] for name in axis_order(front.objectives)]
    names = dict.fromkeys(name for policy in front for name in policy.final)
    others = axis_order([name for name in names if name not in optimised or not optimised[name].repeats])
    finals = [Measure(name, name in front.objectives, True, words=words) for name in others]
    return returns + sorted(finals, key=lambda final: final.about.better is None)


def goals(front: Front, words: Words = NO_WORDS) -> list[Measure]:
    """The optimised objectives, as the front orders them."""
    return [Measure(name, True, False, _repeats(front, name), words) for name in front.objectives]


def axes(front: Front, words: Words = NO_WORDS) -> list[Measure]:
    """The measures that get an axis in radar and parallel coordinates: one for each name that some policy has and of
    which better and worse are known."""
    found: dict[str, Measure] = {}
    for measure in measures(front, words):
        if measure.about.better and any(len(measure.samples(policy)) for policy in front):
            found.setdefault(measure.name, measure)
    return [found[name] for name in axis_order(list(found))]


def _repeats(front: Front, name: str) -> bool:
    """Is the figure after the last step the return of the episode, as with differences or terminal rewards, which count
    0 for what is undefined?"""
    column = front.objectives.index(name)
    known = [policy for policy in front if name in policy.final]
    return bool(known) and all(
        np.allclose(policy.returns[:, column], np.nan_to_num(policy.final[name]), atol=1e-9) for policy in known
    )


def differ(front: Front, others: Sequence[EvaluatedPolicy]) -> NDArray[Any]:
    """Where the mean returns of policies differ beyond their confidence intervals, which are as wide as if they were to
    hold for all pairs of policies and all objectives at once (Bonferroni).

    :return: (n, m, k), 1 where the policy of the front is better, -1 where the other is, 0 where the difference may be
        chance or one of them is unknown
    """
    shown = goals(front)
    pairs = comb(len(front), 2) if others is front else len(front) * len(others)
    confidence = 1 - 0.05 / max(1, pairs * len(shown))
    apart = means(front, shown)[:, None] - means(others, shown)
    chance = np.hypot(_half_widths(front, shown, confidence)[:, None], _half_widths(others, shown, confidence))
    return np.where(np.abs(apart) > chance, np.sign(apart), 0).astype(np.int8)


def means(policies: Sequence[EvaluatedPolicy], shown: Sequence[Measure]) -> Array:
    """The means of policies, (n, k), NaN where unknown."""
    found = [measure.mean(policy) for policy in policies for measure in shown]
    return np.array(found, dtype=np.float64).reshape(len(policies), len(shown))


def _half_widths(policies: Sequence[EvaluatedPolicy], shown: Sequence[Measure], confidence: float) -> Array:
    """Half the widths of the intervals of these means, (n, k), endless with fewer than two episodes."""
    found = [measure.half_width(policy, confidence) for policy in policies for measure in shown]
    return np.nan_to_num(found, nan=np.inf).reshape(len(policies), len(shown))
