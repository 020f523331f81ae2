"""Are confidence intervals those of Student's t, and does what is missing not count?"""

import numpy as np
import pytest
from scipy import stats

from sb3_fair.common.intervals import mean_and_interval


def test_intervals_are_those_of_scipy():
    values = np.random.default_rng(0).random((6, 3))
    mean, low, high = mean_and_interval(values)
    expected = stats.t.interval(0.95, 5, values.mean(axis=0), stats.sem(values))
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose([low, high], expected)
    np.testing.assert_array_equal(mean_and_interval(values.T, axis=1).low, low)


def test_a_missing_value_does_not_count():
    np.testing.assert_array_equal(mean_and_interval([1.0, np.nan, 2.0, 4.0]), mean_and_interval([1.0, 2.0, 4.0]))


def test_one_value_has_a_mean_but_no_interval():
    mean, low, high = mean_and_interval([[3.0, np.nan]])
    np.testing.assert_array_equal(mean, [3.0, np.nan])
    assert np.isnan(low).all() and np.isnan(high).all()


@pytest.mark.filterwarnings("error")
def test_nothing_known_is_no_reason_to_warn():
    assert np.isnan(mean_and_interval([np.nan]).mean)
