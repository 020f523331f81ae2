"""Is the chance level what a group-blind policy shows?"""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

from sb3_fair.fairness import chance_level, group_notion
from sb3_fair.fairness.notions import chance


def blind_gap(n, seed):
    """Mean |SP| of many coin tosses in two groups of n / 2."""
    rng = np.random.default_rng(seed)
    return np.mean([abs(np.diff(rng.binomial(n // 2, 0.5, 2) / (n // 2)))[0] for _ in range(4000)])


def test_it_is_the_mean_gap_of_coin_tosses():
    rng = np.random.default_rng(0)
    actions, groups = rng.permutation([0, 1] * 50), [0, 1] * 50
    assert chance_level("SP", actions=actions, groups=groups, n_permutations=3000) == pytest.approx(
        blind_gap(100, 1), abs=0.005
    )


def test_the_labels_are_permuted_not_the_decisions():
    """The most unfair history has the same level as a fair one."""
    unfair = chance_level("SP", actions=[0, 1] * 100, groups=["m", "w"] * 100, n_permutations=500)
    assert group_notion("SP", actions=[0, 1] * 100, groups=["m", "w"] * 100) == -1
    assert unfair == pytest.approx(
        chance_level("SP", actions=[0, 0, 1, 1] * 50, groups=["m", "w"] * 100, n_permutations=500), abs=0.01
    )


def test_it_is_the_mean_over_permuted_labels():
    """Labels that are not compared take part in the permutations."""
    rng = np.random.default_rng(0)
    actions, feedback = rng.integers(0, 2, (2, 24))
    groups = np.array(["a", "b", "b", "c"] * 6)
    values = [group_notion("EO", actions, feedback, rng.permutation(groups), compared=("a", "b")) for _ in range(4000)]
    level = chance_level("EO", actions, groups, feedback=feedback, compared=("a", "b"), n_permutations=9000)
    assert level == pytest.approx(-np.nanmean(values), abs=0.01)


def test_the_order_in_which_groups_are_met_does_not_matter():
    actions, groups = [0, 1, 1, 0, 1, 1, 0], ["a", "b", "b", "c", "a", "b", "b"]
    swapped = [{"a": "b", "b": "a"}.get(group, group) for group in groups]
    assert chance_level("SP", actions, groups) == chance_level("SP", actions, swapped)
    assert chance_level("SP", actions, groups) == chance_level("SP", actions, groups, compared=("c", "b", "a"))


def test_importing_the_notions_does_not_wait_for_what_only_levels_need():
    code = "import sys, sb3_fair.fairness; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_errors_of_similar_histories_are_independent():
    """A mean of many levels is more exact than each of them."""
    rng = np.random.default_rng(0)
    histories = [{"actions": rng.random(100) < 0.25, "groups": rng.random(100) < 0.4} for _ in range(300)]
    few, many = (
        np.array([chance_level("SP", **history, n_permutations=n) for history in histories]) for n in (20, 2000)
    )
    off = few - many
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(len(off))


def test_a_level_that_is_drawn_in_parts_is_the_mean_of_all(monkeypatch):
    history = {"actions": [0, 1, 1, 0, 1, 1, 0], "groups": list("abbcabb"), "n_permutations": 2001}
    whole = chance_level("SP", **history)
    monkeypatch.setattr(chance, "_ENTRIES", 64_000)  # a thousand tables
    assert chance_level("SP", **history) == pytest.approx(whole, abs=0.02)


def test_levels_of_few_decisions_are_larger():
    rng = np.random.default_rng(0)
    actions, groups, feedback = rng.integers(0, 2, (3, 2000))
    levels = [chance_level("EO", actions[:n], groups[:n], feedback=feedback[:n]) for n in (20, 100, 500, 2000)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] > 3 * levels[2]


def test_seeds_and_undefined_levels():
    assert chance_level("SP", actions=[0, 1] * 9, groups=[0, 1] * 9, seed=3) == chance_level(
        "SP", actions=[0, 1] * 9, groups=[0, 1] * 9, seed=3
    )
    assert math.isnan(chance_level("SP", actions=[0, 1], groups=[0, 0]))
    assert math.isnan(chance_level("EO", actions=[0, 1], groups=[0, 1]))
    assert math.isnan(chance_level("SP", actions=[], groups=[]))
    other = chance_level(
        "SP", actions=[0, 1, 1, 0], groups=["a", "b", "c", "c"], compared=("a", "b"), n_permutations=400
    )
    assert other == pytest.approx(2 / 3, abs=0.06)  # of the pairs of decisions 4 in 6 differ


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"notion": "CSC"}, "'CSC' is not a group notion"),
        ({"n_permutations": 0}, "n_permutations must be a positive integer, got 0"),
        ({"seed": -1}, "seed must be a non-negative integer, got -1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        chance_level(**{"notion": "SP", "actions": [0, 1], "groups": [0, 1], **arguments})


@pytest.mark.parametrize(("actions", "groups"), [([0, 1, 1], "aaa"), ([1, 1, 1], "aba")])
def test_a_single_group_or_kind_of_decision_leaves_nothing_to_chance(actions, groups):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        level = chance_level("SP", actions=actions, groups=list(groups), compared=["a", "b"])
    np.testing.assert_equal(level, np.nan if groups == "aaa" else 0.0)
