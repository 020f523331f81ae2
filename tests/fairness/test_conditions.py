"""When do conditions on the status ask for an assessment?"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sb3_fair.fairness import NewMultiple, Scheme, count_status

TOTALS = np.array([0, 1, 2, 2, 3, 4, 6, 5, 6, 9])


def assessed(condition, totals):
    status = np.stack([totals // 2, totals - totals // 2], axis=-1).astype(float)
    return condition(status[1:], status[:-1]).tolist()


def test_a_new_multiple_is_one_that_the_total_had_not_reached_before_the_step():
    assert assessed(NewMultiple(2), TOTALS) == [False, True, False, False, True, True, False, True, True]
    assert assessed(NewMultiple(3), TOTALS) == [False, False, False, True, False, True, False, True, True]
    assert assessed(NewMultiple(1.5), TOTALS[:6]) == [False, True, False, True, False]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multiples_of_sums_of_fractions_are_met_despite_rounding(dtype):
    for amount, k, every in ((0.1, 1, 10), (0.7, 7, 10), (0.2, 0.6, 3)):
        for sums in (np.cumsum(np.full(60, amount, dtype)), np.cumsum(np.full(60, dtype(amount), np.float64))):
            met = NewMultiple(k)(sums[:, None], np.append(0, sums[:-1])[:, None])
            assert_array_equal(np.flatnonzero(met) + 1, range(every, 61, every))


def test_multiples_of_large_counts_are_exact():
    totals = np.arange(1_000_000, 1_000_060)[:, None]
    assert_array_equal(totals[NewMultiple(12)(totals, totals - 1)] % 12, 0)


def test_the_worked_example_is_assessed_after_the_second_fifth_and_eighth_step():
    status = count_status((0, 1, 2, 0, 2, 1, 0, 2), (1, 1, 0, 1, 1, 1, 0, 1), stakeholders=(0, 1, 2))
    scheme = Scheme(welfare="log_nash", when=NewMultiple(2))
    assert_array_equal(np.flatnonzero(scheme.values(status).assessed) + 1, (2, 5, 8))
    assert scheme.score(status) == pytest.approx(7.167038, abs=1e-6)
    assert not scheme.time_based


def test_a_scheme_with_it_pickles_and_compares():
    scheme = Scheme(when=NewMultiple(6))
    assert pickle.loads(pickle.dumps(scheme)) == scheme == Scheme(when=NewMultiple(6)) != Scheme(when=NewMultiple(7))


@pytest.mark.parametrize("k", [0, -2, "6", None, True, float("inf")])
def test_k_must_be_a_number_above_zero(k):
    with pytest.raises(ValueError, match="k must be"):
        NewMultiple(k)
