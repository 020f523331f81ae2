"""Is the price of fairness a percentage of means, and its interval that of pairs of seeds?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sb3_fair.fairness.disparity import price_of_fairness


def test_the_price_of_a_worked_example():
    assert price_of_fairness([[140, 90]], [[200, 100]]).percent.tolist() == [-30, -10]


def test_the_price_is_that_of_means_over_seeds():
    assert price_of_fairness([100, 300], [100, 100]).percent == 100
    assert price_of_fairness([100, 100], [100, 300]).percent == -50


def test_a_loss_of_negative_returns_is_negative():
    price = price_of_fairness([-20.0, -22.0], [-10.0, -11.0])
    assert (price.percent, price.low, price.high) == (-100, -100, -100)


def test_seeds_are_drawn_in_pairs():
    """The loss is half with every seed, however much the seeds differ: nothing is uncertain."""
    classic = np.array([[100.0, 1], [200, 5], [400, 9]])
    price = price_of_fairness(classic / 2, classic)
    assert_allclose(price.low, -50)
    assert_allclose(price.high, -50)


@given(st.integers(0, 2**32 - 1))
def test_the_interval_is_that_of_all_samples_of_two_seeds(seed):
    rng = np.random.default_rng(seed)
    fair, classic = rng.uniform(1, 9, (2, 2))
    price = price_of_fairness(fair, classic)
    ends = 100 * (fair - classic) / classic
    assert_allclose([price.low, price.high], [ends.min(), ends.max()])


@pytest.mark.parametrize(
    ("gains", "low", "high"),
    [([1, 0, 0], 0, 3), ([1, 1, 0], 0, 3), ([1, 0, 0, 0, 0], 0, 3), ([1, 1, 1, 1, 0], 2, 5)],
)
def test_the_interval_leaves_out_a_fortieth_at_either_end(gains, low, high):
    """How often a seed with a gain is drawn is binomial."""
    price = price_of_fairness(np.add(1, gains), np.ones(len(gains)))
    assert_allclose([price.low, price.high], 100 * np.array([low, high]) / len(gains))


def test_a_single_seed_has_no_interval():
    price = price_of_fairness([50], [100])
    assert price.percent == -50 and np.isnan([price.low, price.high]).all()


def test_the_same_seeds_give_the_same_interval():
    drawn = np.random.default_rng(0).uniform(1, 2, (2, 5, 2))
    first, second = price_of_fairness(*drawn), price_of_fairness(*drawn)
    assert first.low.tolist() == second.low.tolist() and (first.low < first.percent).all()
    assert (first.percent < first.high).all()


@pytest.mark.parametrize("arguments", [([1, 2], [1]), ([], [])])
def test_seeds_that_do_not_match_are_refused(arguments):
    with pytest.raises(ValueError, match="fair and classic must have the same seeds"):
        price_of_fairness(*arguments)
