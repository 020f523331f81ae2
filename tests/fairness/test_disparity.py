"""Is the distance between distributions the one of scipy?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import wasserstein_distance

from sb3_fair.fairness.disparity.gap import wasserstein_gap


def masses(rng, *shape):
    """Random masses, many of them 0, none of the rows empty."""
    drawn = rng.random(shape) * (rng.random(shape) < 0.6)
    drawn[..., 0] += 1e-3
    return drawn * rng.integers(1, 1000)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.booleans())
def test_the_gap_is_scipys_distance_row_by_row(seed, m, spaced):
    rng = np.random.default_rng(seed)
    first, second = masses(rng, 4, 3, m), masses(rng, 4, 3, m)
    values = np.cumsum(rng.random(m) + 0.01) - 2 if spaced else np.arange(1, m + 1)
    gaps = wasserstein_gap(first, second, values if spaced else None)
    assert gaps.shape == (4, 3)
    expected = [
        wasserstein_distance(values, values, a, b)
        for a, b in zip(first.reshape(-1, m), second.reshape(-1, m), strict=True)
    ]
    assert_allclose(gaps.ravel(), expected, rtol=0, atol=1e-12)


def test_the_gap_is_a_distance():
    a, b, c = (masses(np.random.default_rng(seed), 50, 6) for seed in range(3))
    assert_array_equal(wasserstein_gap(a, 2 * a), 0)  # a power of two, so that shares are equal to the last bit
    assert_allclose(wasserstein_gap(a, b), wasserstein_gap(b, a), atol=1e-15)
    assert (wasserstein_gap(a, c) <= wasserstein_gap(a, b) + wasserstein_gap(b, c) + 1e-12).all()


def test_rows_without_mass_have_no_gap():
    assert_array_equal(wasserstein_gap([[0, 0], [1, 0], [0, 0]], [[0, 1], [0, 1], [0, 0]]), [0, 1, 0])


def test_leading_axes_are_those_of_numpy():
    first, second = masses(np.random.default_rng(0), 5, 1, 4), masses(np.random.default_rng(1), 3, 4)
    gaps = wasserstein_gap(first, second)
    assert gaps.shape == (5, 3)
    assert_allclose(gaps[2, 1], wasserstein_gap(first[2, 0], second[1]))


@pytest.mark.parametrize(
    ("first", "second", "values", "message"),
    [
        ([1, 2], [1, 2, 3], None, r"same number of values, got shapes \(2,\) and \(3,\)"),
        (1, 1, None, "first must be an array"),
        ([1, 2], [2, 1], [1, 2, 3], "values must be 2 rising numbers"),
        ([1, 2], [2, 1], [2, 2], "values must be 2 rising numbers"),
        ([1, 2, 0], [2, 1, 0], [1, 3, 2], "values must be 3 rising numbers"),
    ],
)
def test_what_does_not_fit_is_refused(first, second, values, message):
    with pytest.raises(ValueError, match=message):
        wasserstein_gap(first, second, values)
