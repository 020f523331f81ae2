"""Are the gaps between the returns of groups those of the formulas, agent by agent?"""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal, assert_equal

from sb3_fair.fairness import Welfare
from sb3_fair.fairness.disparity.returns import (
    average,
    conditional_disparity,
    counterfactual_disparity,
    demographic_disparity,
    gini,
    nash_welfare,
    pairwise_disparity,
    twin_disparity,
    value_disparity,
)
from sb3_fair.fairness.notions.frequencies import action_counts

R = [8, 4, 5, 6]
TWINS = [5, 4, 2, 7]
GROUPS = [0, 1, 0, 1]
COLOURS = ["red", "red", "blue", "blue"]


def test_the_demographic_disparity_of_a_worked_example():
    assert demographic_disparity(R, GROUPS) == 3
    assert demographic_disparity(R, GROUPS, normalise="sum") == pytest.approx(3 / 23)
    assert demographic_disparity(R, GROUPS, normalise="abs") == pytest.approx(3 / 23)
    assert demographic_disparity(R, GROUPS, per_capita=True) == 1.5
    assert demographic_disparity(R, GROUPS, per_capita=True, normalise="sum") == pytest.approx(3 / 23)


def test_the_conditional_disparity_of_a_worked_example():
    assert conditional_disparity(R, GROUPS, COLOURS, per_capita=False) == {"red": 4, "blue": -1}
    shares = conditional_disparity(R, GROUPS, COLOURS, per_capita=False, normalise="sum")
    assert shares["red"] == pytest.approx(4 / 12) and shares["blue"] == pytest.approx(-1 / 11)


def test_the_pairs_of_a_worked_example():
    assert pairwise_disparity(R, GROUPS, aggregate="sum") == 8
    assert pairwise_disparity(R, GROUPS) == 2


def test_the_twins_of_a_worked_example():
    assert counterfactual_disparity(R, TWINS) == 5
    assert counterfactual_disparity(R, TWINS, normalise="sum") == pytest.approx(5 / 41)
    assert counterfactual_disparity(R, TWINS, per_capita=True) == 1.25
    assert twin_disparity(R, TWINS) == 1.75


def test_the_welfare_of_a_worked_example():
    assert gini(R) == pytest.approx(0.1413, abs=5e-5)
    assert Welfare("jain")(R) == pytest.approx(0.9379, abs=5e-5)
    assert nash_welfare(R) == pytest.approx(5.5663, abs=5e-5)
    assert nash_welfare(R, normalise=True) == pytest.approx(0.9681, abs=5e-5)


def test_totals_of_unequal_groups_differ_where_their_members_do_not():
    given = [6, 6, 6, 6], [0, 0, 0, 1], ["red"] * 4
    assert conditional_disparity(*given, per_capita=False) == {"red": 12}
    assert conditional_disparity(*given, per_capita=False, normalise="sum") == {"red": 0.5}
    assert conditional_disparity(*given) == conditional_disparity(*given, normalise="sum") == {"red": 0}


def test_negative_returns_leave_one_normal_form_and_not_the_other():
    assert demographic_disparity([-4, 2], [0, 1], normalise="sum") == -6
    assert demographic_disparity([-4, 2], [0, 1], normalise="abs") == -1


@pytest.mark.parametrize("returns", [[-1, -3], [3, 1], [1, -3]])
def test_means_normalised_by_their_sum_keep_the_sign_of_the_gap(returns):
    assert demographic_disparity(returns, [0, 1], per_capita=True, normalise="sum") > 0
    assert value_disparity(returns, [1, 0], normalise="sum") < 0


def test_who_swaps_the_attribute_is_compared_with_the_attribute_against_without():
    assert counterfactual_disparity(R, TWINS, GROUPS) == (8 - 5) - (4 - 4) + (5 - 2) - (6 - 7)
    assert counterfactual_disparity(R, TWINS, [0] * 4) == counterfactual_disparity(R, TWINS)
    assert counterfactual_disparity(R, TWINS, [1] * 4) == -counterfactual_disparity(R, TWINS)


@pytest.mark.parametrize(
    ("measure", "more"),
    [
        (demographic_disparity, {}),
        (conditional_disparity, {"factors": [1, 1, 1, 2]}),
        (pairwise_disparity, {}),
        (value_disparity, {}),
        (counterfactual_disparity, {"counterfactual": TWINS}),
        (action_counts, {"n_actions": 9}),
    ],
)
def test_the_labels_that_occur_are_compared(measure, more):
    found = measure(R, groups=GROUPS, **more)
    for first, second in (("a", "b"), (1, 2), (-1, 0), (1990, 2000), (False, True), ("0", "1")):
        names = [(first, second)[group] for group in GROUPS]
        assert_equal(measure(R, groups=names, **more), found)
        if measure is not counterfactual_disparity:
            assert_equal(measure(R, groups=names, compared=(first, second), **more), found)
            for missing in ((first, "c"), (7, 8)):
                with pytest.raises(ValueError, match=r"compared must hold labels that occur, some of \[.*\], got \("):
                    measure(R, groups=names, compared=missing, **more)
    with pytest.raises(ValueError, match=r"groups must have two labels, .*, got \['a', 'b', 'c'\]"):
        measure(R, groups=["a", "b", "c", "a"], **more)


def test_what_nobody_expects_is_no_number():
    assert math.isnan(value_disparity([1, np.nan], [0, 1]))


def test_nobody_having_anything_is_fair():
    for normalise in (None, "sum", "abs"):
        for per_capita in (False, True):
            assert demographic_disparity([0, 0], [0, 1], per_capita=per_capita, normalise=normalise) == 0


def test_a_group_without_members_has_no_mean_and_no_pairs():
    assert demographic_disparity([1, 2], [0, 0]) == 3
    assert math.isnan(demographic_disparity([1, 2], [0, 0], per_capita=True))
    assert math.isnan(pairwise_disparity([1, 2], [0, 0]))
    assert pairwise_disparity([1, 2], [0, 0], aggregate="sum") == 0


def episodes(seed, changing, negative=False):
    """Returns (2, 3, n), groups 0, 1 and perhaps 2 and factors, fixed or per episode."""
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 8)
    shape = (2, 3, n) if changing else (n,)
    drawn = rng.integers(-5 if negative else 0, 9, (2, 3, n)) / 2
    groups = rng.integers(0, 3, shape)
    groups[..., :2] = groups[..., :2] % 2  # in each episode one of the two, or both
    groups.flat[:2] = 0, 1
    return drawn, groups, rng.integers(1, 3, shape)


def rows(*arrays):
    """Each episode by itself, as lists."""
    for each in zip(*(np.broadcast_to(array, arrays[0].shape).reshape(6, -1) for array in arrays), strict=True):
        yield [row.tolist() for row in each]


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_gaps_are_those_of_sums_over_agents(seed, changing, negative):
    drawn, groups, factors = episodes(seed, changing, negative)
    sums = demographic_disparity(drawn, groups)
    shares = demographic_disparity(drawn, groups, normalise="sum")
    safe = demographic_disparity(drawn, groups, normalise="abs")
    means = demographic_disparity(drawn, groups, per_capita=True)
    conditional = conditional_disparity(drawn, groups, factors, per_capita=False)
    assert sums.shape == means.shape == (2, 3)
    for place, (each, labels, values) in enumerate(rows(drawn, groups, factors)):
        parts = [[r for r, label in zip(each, labels, strict=True) if label == group] for group in (0, 1)]
        first, second = map(sum, parts)
        assert sums.flat[place] == pytest.approx(first - second)
        assert shares.flat[place] == pytest.approx((first - second) / max(first + second, 1))
        if first or second:
            assert safe.flat[place] == pytest.approx((first - second) / (abs(first) + abs(second)))
        if all(parts):
            assert means.flat[place] == pytest.approx(first / len(parts[0]) - second / len(parts[1]))
        for value, found in conditional.items():
            signs = [(1, -1, 0)[label] * (has == value) for label, has in zip(labels, values, strict=True)]
            assert found.flat[place] == pytest.approx(sum(s * r for s, r in zip(signs, each, strict=True)))
    assert set(conditional) == set(factors.ravel().tolist())
    assert_array_equal(value_disparity(drawn, groups), means)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_pairs_are_counted_pair_by_pair(seed, changing):
    drawn, groups, _ = episodes(seed, changing, negative=True)
    total, mean = pairwise_disparity(drawn, groups, aggregate="sum"), pairwise_disparity(drawn, groups)
    for place, (each, labels) in enumerate(rows(drawn, groups)):
        pairs = [
            abs(each[x] - each[y]) for x, y in product(range(len(each)), repeat=2) if (labels[x], labels[y]) == (0, 1)
        ]
        assert total.flat[place] == pytest.approx(sum(pairs))
        if pairs:
            assert mean.flat[place] == pytest.approx(sum(pairs) / len(pairs))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_twins_are_compared_agent_by_agent(seed, changing):
    drawn, groups, _ = episodes(seed, changing)
    other = np.roll(drawn, 1, axis=0)
    swapped = counterfactual_disparity(drawn, other, groups, per_capita=True)
    for place, (each, twin, labels) in enumerate(rows(drawn, other, groups)):
        effects = [(r - t) * (1 if label == 0 else -1) for r, t, label in zip(each, twin, labels, strict=True)]
        assert swapped.flat[place] == pytest.approx(sum(effects) / len(effects))
        assert twin_disparity(drawn, other).flat[place] == pytest.approx(sum(map(abs, effects)) / len(effects))


@given(st.integers(0, 2**32 - 1))
def test_names_of_groups_and_the_order_of_agents_do_not_matter(seed):
    drawn, groups, _ = episodes(seed, changing=False)
    names = np.array(["fast", "slow", "other"])[groups]
    order = np.random.default_rng(seed).permutation(len(groups))
    for measure in (demographic_disparity, pairwise_disparity):
        found = measure(drawn, groups)
        assert_allclose(measure(drawn, names, compared=("fast", "slow")), found)
        assert_allclose(measure(drawn[..., order], groups[order]), found, atol=1e-12)
    assert_allclose(demographic_disparity(drawn, groups, compared=(1, 0)), -demographic_disparity(drawn, groups))


@pytest.mark.parametrize("measure", [gini, nash_welfare])
def test_welfare_of_negative_returns_is_not_a_number_and_warns(measure):
    with pytest.warns(RuntimeWarning, match="NaN where a return is negative"):
        found = measure([[1, 2], [-1, 2]])
    assert_array_equal(np.isnan(found), [False, True])
    assert found[0] == measure([1, 2])


def test_one_without_anything_has_no_nash_welfare():
    assert nash_welfare([0, 5]) == 0
    assert math.isnan(nash_welfare([0, 0], normalise=True))


def test_opposite_gaps_cancel_in_the_mean_and_not_in_the_absolute_mean():
    found = average([1, -1, 2, np.nan])
    assert found.mean == pytest.approx(2 / 3) and found.absolute == pytest.approx(4 / 3) and found.n == 3
    assert found.mean_error == pytest.approx(np.std([1, -1, 2], ddof=1) / math.sqrt(3))
    assert found.absolute_error == pytest.approx(np.std([1, 1, 2], ddof=1) / math.sqrt(3))
    assert math.isnan(average([3]).mean_error) and math.isnan(average([np.nan]).mean)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: demographic_disparity([1, 2], [0]), r"groups must have one label per agent.*\(2,\), got shape \(1,\)"),
        (
            lambda: demographic_disparity([1, 2], [0, 1], normalise="max"),
            "normalise must be one of 'sum', 'abs' or None",
        ),
        (lambda: conditional_disparity([1, 2], [0, 1], [1]), "factors must have one label per agent"),
        (lambda: pairwise_disparity([1, 2], [0, 1], aggregate="total"), "aggregate must be one of"),
        (lambda: counterfactual_disparity([1, 2], [1]), r"counterfactual must have the shape of factual \(2,\)"),
        (lambda: twin_disparity(1, 1), "factual must be an array"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
