"""Is the best equal opportunity the best, and found fast?"""

from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_fair.f_ppo.equal_opportunity import equal_opportunity

LENDING = np.array([[0, 0.1, 0.1, 0.2, 0.3, 0.3, 0], [0.1, 0.1, 0.2, 0.3, 0.3, 0, 0]])
REPAYS = (0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7)
HALVES = (0.5, 0.5)


def test_the_best_rate_of_lending():
    accept, rate, profit = equal_opportunity(LENDING[None], REPAYS, HALVES)
    assert rate[0] == pytest.approx(0.88983, abs=5e-6)
    assert profit[0] == pytest.approx(0.19273, abs=5e-6)
    np.testing.assert_array_equal(accept[0, 0], [0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_allclose(accept[0, 1], [0, 0, 0.7274, 1, 1, 1, 1], atol=5e-5)


def profit_at(rate, distributions, repays, groups):
    """Of the best acceptance with this rate (a number per entry of ``rate``), one group and score after the other."""
    total = np.zeros_like(rate)
    for masses, chances, weight in zip(distributions, repays, groups, strict=True):
        missing = rate * (masses * chances).sum()
        for score in np.argsort(-chances):
            worthy = masses[score] * chances[score]
            if worthy > 0:
                taken = np.minimum(missing, worthy)
                total += weight * taken / worthy * masses[score] * (2 * chances[score] - 1)
                missing = missing - taken
    return total


def test_no_rate_of_a_fine_grid_brings_more():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 10_001)
    distributions = rng.dirichlet(np.full(7, 0.5), (200, 2))
    found = equal_opportunity(distributions, REPAYS, (0.3, 0.7))
    for masses, rate, profit in zip(distributions, found.rate, found.profit, strict=True):
        at_grid = profit_at(grid, masses, np.broadcast_to(REPAYS, (2, 7)), (0.3, 0.7))
        assert profit >= at_grid.max() - 1e-9
        assert profit == pytest.approx(profit_at(np.array([rate]), masses, np.broadcast_to(REPAYS, (2, 7)), (0.3, 0.7)))


numbers = st.integers(0, 4).map(lambda tenths: tenths / 4)


@given(
    st.integers(1, 3).flatmap(
        lambda groups: st.tuples(
            st.lists(st.lists(numbers, min_size=4, max_size=4), min_size=groups, max_size=groups),
            st.lists(st.lists(numbers, min_size=4, max_size=4), min_size=groups, max_size=groups),
            st.lists(st.floats(0.1, 1), min_size=groups, max_size=groups),
        )
    )
)
def test_acceptance_gives_every_group_the_rate_and_the_bank_the_profit(case):
    """Also where scores are missing, never repay, or nobody of a group does."""
    masses, repays, groups = map(np.array, case)
    accept, rate, profit = (part[0] for part in equal_opportunity(masses[None], repays, groups))
    worthy = masses * repays
    rates = (worthy * accept).sum(axis=1)[worthy.sum(axis=1) > 0] / worthy.sum(axis=1)[worthy.sum(axis=1) > 0]
    np.testing.assert_allclose(rates, rate, atol=1e-12)
    assert (groups[:, None] * masses * accept * (2 * repays - 1)).sum() == pytest.approx(profit, abs=1e-12)
    assert profit >= profit_at(np.linspace(0, 1, 241), masses, repays, groups).max() - 1e-9


def test_a_loan_that_pays_little_interest_is_granted_less():
    generous = equal_opportunity(LENDING[None], REPAYS, HALVES, interest_rate=2.0)
    strict = equal_opportunity(LENDING[None], REPAYS, HALVES, interest_rate=0.5)
    assert strict.rate < generous.rate
    double = equal_opportunity(LENDING[None], REPAYS, HALVES, loan_amount=2.0)
    assert double.profit == pytest.approx(2 * equal_opportunity(LENDING[None], REPAYS, HALVES).profit)


def test_of_equally_good_rates_the_smallest_is_taken():
    even = equal_opportunity(np.full((1, 2, 2), 0.5), (0.5, 0.75), HALVES)
    np.testing.assert_array_equal(even.accept[0], [[0, 1], [0, 1]])


def test_copies_do_not_depend_on_each_other():
    distributions = np.random.default_rng(1).dirichlet(np.ones(7), (20, 2))
    together = equal_opportunity(distributions, REPAYS, HALVES)
    for index, one in enumerate(distributions):
        for part, whole in zip(equal_opportunity(one[None], REPAYS, HALVES), together, strict=True):
            np.testing.assert_array_equal(part[0], whole[index])


def test_a_decision_takes_less_than_a_millisecond():
    seconds = []
    for _ in range(200):
        begin = perf_counter()
        equal_opportunity(LENDING[None], REPAYS, HALVES)
        seconds.append(perf_counter() - begin)
    assert min(seconds) < 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((LENDING, REPAYS, HALVES), "distributions must have the shape"),
        ((LENDING[None], REPAYS[1:], HALVES), "repay_probability must have the shape"),
        ((LENDING[None], REPAYS, (1.0,)), "group_probability must have the shape"),
    ],
)
def test_shapes_that_do_not_fit_are_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        equal_opportunity(*arguments)
