"""Who got the favourable decision: rates of each group with intervals, and a sentence that compares them."""

from collections.abc import Mapping
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.group_counts import rates_of
from sb3_fair.fairness.descriptions import NO_WORDS, Words
from sb3_fair.fairness.intervals import Interval, rate_and_interval, rate_difference
from sb3_fair.fairness.proportions import newcombe, wilson

PERMUTATIONS = 2_000


def group_rates(policy: EvaluatedPolicy, words: Words = NO_WORDS) -> list[dict[str, Any]]:
    """For each attribute its groups with the numbers of decisions and the rates, and a sentence.

    :return: :data:`~sb3_fair.common.people.RATES` are (share, low, high) in [0, 1]; None: of nobody, and
        without an interval
    """
    return [
        {
            "attribute": attribute,
            "sentence": sentence(attribute, groups, words),
            "groups": [
                {
                    "name": policy.group_title(attribute, str(words.get("groups", {}).get(label, label))),
                    "decisions": float(counts[:, 0].sum()),
                    "rates": {name: _told(rate(*numbers)) for name, numbers in rates_of(counts).items()},
                }
                for label, counts in groups.items()
            ],
        }
        for attribute, groups in policy.groups.items()
    ]


def sentence(attribute: str, groups: Mapping[str, NDArray[Any]], words: Words = NO_WORDS) -> str:
    """The groups with the lowest and the highest rate compared: the difference with its 95 % confidence interval, and
    what a policy blind to the groups shows by chance. Empty with fewer than two groups of people.

    These two were chosen for their difference: the interval is as wide as if it were to hold for all pairs of groups at
    once (Bonferroni).

    :param groups: label -> :data:`~sb3_fair.common.people.COUNTS` per episode, (m, len(COUNTS))
    """
    people = {label: counts for label, counts in groups.items() if counts[:, 0].any()}
    if len(people) < 2:
        return ""
    rates = {label: counts[:, 1].sum() / counts[:, 0].sum() for label, counts in people.items()}
    low, high = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    decision = words.get("favourable", "given the favourable decision")
    compared = attribute.replace("+", " and ")
    if rates[low] == rates[high]:
        every = f"By {compared}, every group" if compared else "Every group"
        return f"{every} was {decision} equally often, in {_percent(rates[low])} % of cases."
    highest, lowest = (people[label].T[[1, 0]] for label in (high, low))
    apart = difference(highest, lowest, 1 - 0.05 / comb(len(people), 2))
    first = _named(low, words)
    told = f"{first[:1].upper()}{first[1:]} were {decision} in {_percent(rates[low])} % of cases, "
    told += f"{_named(high, words)} in {_percent(rates[high])} %: "
    points = f"{_percent(rates[high] - rates[low])} percentage points"
    interval = "" if np.isnan(apart.low) else f" (95 % interval {_percent(apart.low)} to {_percent(apart.high)})"
    told += f"{points} less{interval}." if apart.low > 0 else f"{points} apart, which may be chance{interval}."
    decisions, favourable = np.array([counts[:, :2] for counts in people.values()]).T
    level = _percent(chance_gap(favourable, decisions))
    return f"{told} A policy blind to {compared or 'the groups'} shows {level} by chance."


def chance_gap(favourable: NDArray[Any], decisions: NDArray[Any]) -> float:
    """The mean gap between the largest and the smallest rate over all episodes if the favourable decisions of each
    episode are dealt out blindly among its people: whoever is blind to the groups may still decide differently in
    different episodes, which may have different people.

    :param favourable: numbers of favourable decisions, (m, n groups)
    :param decisions: numbers of decisions, (m, n groups), of each group at least 1 in some episode
    """
    rng = np.random.default_rng(0)
    dealt = sum(
        rng.multivariate_hypergeometric(people, given, size=PERMUTATIONS, method="marginals")
        for people, given in zip(decisions.astype(np.int64), favourable.sum(axis=1).astype(np.int64), strict=True)
    )
    return float(np.ptp(dealt / decisions.sum(axis=0), axis=1).mean())


def rate(hits: NDArray[Any], people: NDArray[Any], confidence: float = 0.95) -> Interval:
    """The share of ``hits`` among ``people`` over all episodes and its confidence interval, in [0, 1]; NaN where it is
    unknown, as the ends are if all people are in one episode.

    :param hits: of a group in each episode, (m,)
    """
    found = rate_and_interval(hits, people, confidence)
    if _the_same_in_all(found):
        found = wilson(hits.sum(), people.sum(), confidence)
    return Interval(found.mean, *np.clip(found[1:], 0, 1))


def difference(first: NDArray[Any], second: NDArray[Any], confidence: float = 0.95) -> Interval:
    """The rate of one group less that of another over all episodes and its confidence interval, in [-1, 1]; NaN where
    it is unknown, as the ends are if all people of a group are in one episode.

    :param first: hits and people in each episode, (2, m)
    """
    (hits, people), (other_hits, other_people) = first, second
    if any(_the_same_in_all(rate_and_interval(*group)) for group in (first, second)):
        return newcombe(rate(hits, people, confidence), rate(other_hits, other_people, confidence))
    found = rate_difference(hits, people, other_hits, other_people, confidence)
    return Interval(found.mean, *np.clip(found[1:], -1, 1))


def _the_same_in_all(found: Interval) -> bool:
    """Whether a rate is the same in every episode, as where all or nobody are hit: that does not make it certain."""
    return bool(np.isclose(found.low, found.high))


def _told(found: Interval) -> list[float | None] | None:
    return None if np.isnan(found.mean) else [None if np.isnan(number) else float(number) for number in found]


def _named(label: str, words: Words) -> str:
    named = words.get("groups", {}).get(label)
    return str(named) if named else f"{words.get('people', 'people')} of group {label}"


def _percent(share: Any) -> str:
    return f"{round(100 * share, 1) + 0:.1f}".replace("-", "−")
