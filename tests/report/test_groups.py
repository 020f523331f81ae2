"""Do the sentences about groups tell what the counts say?"""

import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_fair.common.group_counts import COUNTS
from sb3_fair.report.groups import chance_gap, difference, group_rates, sentence

WORDS = {"favourable": "hired", "people": "applicants", "groups": {"f": "women"}}


def counts(decisions, favourable, deserving=(0,), hits=(0,)):
    """Counts per episode, with as many decisions on people who deserved it, of which ``hits`` were favourable."""
    columns = dict.fromkeys(COUNTS, np.zeros(len(decisions), dtype=np.int64))
    columns |= {"decisions": np.array(decisions), "favourable": np.array(favourable)}
    columns |= {
        "deserving": np.array(deserving * len(decisions)),
        "deserving, favourable": np.array(hits * len(decisions)),
    }
    return np.stack(list(columns.values()), axis=1)


def test_the_least_favoured_group_is_named_with_the_difference():
    told = sentence("gender", {"m": counts([100] * 20, [50, 52] * 10), "f": counts([100] * 20, [20, 18] * 10)}, WORDS)
    assert told.startswith(
        "Women were hired in 19.0 % of cases, applicants of group m in 51.0 %: "
        "32.0 percentage points less (95 % interval "
    )
    assert "A policy blind to gender shows" in told


def test_a_difference_that_may_be_chance_is_called_so_and_one_group_is_compared_with_nobody():
    told = sentence("", {"m": counts([20] * 5, [10, 3, 12, 1, 9]), "f": counts([20] * 5, [4, 10, 2, 11, 6])})
    assert "which may be chance" in told and "blind to the groups" in told
    assert sentence("", {"m": counts([20], [10]), "f": counts([0], [0])}) == ""
    told = sentence("", {"m": counts([20], [10]), "f": counts([10], [5])}, WORDS)
    assert told == "Every group was hired equally often, in 50.0 % of cases."


def test_rates_are_of_all_decisions_and_unknown_ones_are_none(front):
    told = {"m": counts([100, 100], [50, 30], (20,), (15,)), "f": counts([10, 10], [1, 0])}
    (attribute,) = group_rates(replace(front[0], groups={"gender": told}), WORDS)
    man, woman = attribute["groups"]
    assert (man["rates"]["favourable"][0], man["rates"]["deserving"][0], man["decisions"]) == (0.4, 0.75, 200)
    assert woman["name"] == "women" and woman["rates"]["deserving"] is None
    one = counts([100], [50])
    ((once, _),) = (each["groups"] for each in group_rates(replace(front[0], groups={"": {"m": one, "f": one}})))
    assert once["rates"]["favourable"] == [0.5, None, None], "one episode has no interval"
    nobody = group_rates(replace(front[0], groups={"": {"m": counts([50, 50], [0, 0])}}))[0]["groups"][0]["rates"]
    assert nobody["favourable"][:2] == [0, 0] and 0.03 < nobody["favourable"][2] < 0.04, "100 people are not everybody"
    assert man["rates"]["known otherwise"][0] == 0 and man["rates"]["known"][0] == 0
    share, low, high = woman["rates"]["favourable"]
    assert 0 <= low <= share <= high <= 1


def test_groups_of_several_attributes_are_told_apart(front):
    gender = {"0": counts([4, 4], [1, 1]), "1": counts([4, 4], [1, 1])}
    foreign = {"0": counts([6, 6], [2, 2]), "1": counts([2, 2], [0, 0])}
    policy = replace(front[0], groups={"gender": gender, "foreign": foreign})
    rates = {name: values[0] for name, values in policy.table().items() if name.endswith("favourable rate")}
    assert list(rates.values()) == [1 / 4, 1 / 4, 1 / 3, 0]
    names = [group["name"] for attribute in group_rates(policy) for group in attribute["groups"]]
    assert names == ["gender: 0", "gender: 1", "foreign: 0", "foreign: 1"]
    assert list(rates) == [f"{name}: favourable rate" for name in names]
    assert sentence("gender", gender, WORDS) == "By gender, every group was hired equally often, in 25.0 % of cases."


def interval_of(told):
    """The ends in a sentence, in percent."""
    return tuple(float(end.replace("−", "-")) for end in re.search(r"95 % interval (\S+) to ([^)]+)\)", told).groups())


def test_of_many_groups_that_are_alike_two_always_differ_but_not_by_more_than_chance():
    rng = np.random.default_rng(0)
    people, extreme = np.full(25, 10), 0
    for _ in range(200):
        told = sentence("", {str(group): counts(people, rng.binomial(people, 0.5)) for group in range(8)})
        extreme += "which may be chance" not in told
    assert extreme / 200 < 0.08


def test_few_people_who_all_got_the_same_are_not_everybody():
    told = sentence("", {"a": counts([1000, 1000], [1, 1]), "b": counts([1, 1], [0, 0])})
    assert "0.1 percentage points apart, which may be chance" in told and interval_of(told)[0] < -60
    told = sentence("", {"a": counts([2, 1], [0, 0]), "b": counts([1, 1], [1, 1])})
    assert "100.0 percentage points less" in told and interval_of(told)[0] < 20
    told = sentence("", {"a": counts([100] * 3, [29] * 3), "b": counts([100] * 3, [28] * 3)})
    assert "which may be chance" in told, "29 of 100 in every episode is no certain 29 %, however it is rounded"


def test_people_of_a_single_episode_are_no_evidence_of_a_difference():
    """They are alike for whatever made this episode what it is; episodes without such people say nothing of them."""
    few = counts([20] + [0] * 24, [2] + [0] * 24)
    told = sentence("", {"a": counts([50] * 25, [24, 25, 26, 25, 25] * 5), "b": few})
    assert "40.0 percentage points apart, which may be chance. A policy" in told


def test_the_interval_of_a_difference_holds_for_all_pairs_of_groups():
    rng, people = np.random.default_rng(1), np.full(25, 40)
    groups = {str(rate): counts(people, rng.binomial(people, rate)) for rate in (0.2, 0.4, 0.5, 0.7)}
    highest, lowest = (groups[rate].T[[1, 0]] for rate in ("0.7", "0.2"))
    ends = difference(highest, lowest, 1 - 0.05 / 6)[1:]
    assert interval_of(sentence("", groups)) == pytest.approx([100 * end for end in ends], abs=0.051)


def test_no_difference_is_larger_than_all_and_nobody():
    assert interval_of(sentence("", {"a": counts([5, 5], [0, 1]), "b": counts([5, 5], [5, 3])})) == (-100, 100)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=2, max_size=3), st.data())
def test_the_chance_gap_is_the_mean_over_all_ways_to_deal(sizes, data):
    favourable = data.draw(st.integers(0, sum(sizes)))
    deals = set(permutations([1] * favourable + [0] * (sum(sizes) - favourable)))
    ends = np.cumsum(sizes)[:-1]
    exact = np.mean([np.ptp([part.mean() for part in np.split(np.array(deal), ends)]) for deal in deals])
    first = np.minimum(np.cumsum([0, *sizes])[:-1] + np.array(sizes), favourable) - np.minimum(
        np.cumsum([0, *sizes])[:-1], favourable
    )
    assert chance_gap(first[None], np.array([sizes])) == pytest.approx(exact, abs=0.04)


def test_a_policy_blind_to_the_groups_may_decide_differently_in_different_episodes():
    """Everybody is accepted where the first group is common, nobody where it is rare, and half in the third episode."""
    assert chance_gap(np.array([[90, 10], [0, 0]]), np.array([[90, 10], [10, 90]])) == pytest.approx(0.8)
    within = chance_gap(np.array([[90, 10], [0, 0], [50, 50]]), np.array([[90, 10], [10, 90], [100, 100]]))
    assert within == pytest.approx(0.4, abs=0.01)
