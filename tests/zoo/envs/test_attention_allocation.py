"""Do actions stand for the allocations that they should?"""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sb3_fair.zoo.envs.attention.allocation import (
    all_allocations,
    allocation_to_index,
    index_to_allocation,
    location_probabilities,
    logits_to_allocation,
    one_by_one,
    units_to_allocation,
)


@pytest.mark.parametrize(
    ("logits", "probabilities", "allocation"),
    [
        ((0, 0, 0, 0, 0), (0.2, 0.2, 0.2, 0.2, 0.2), (2, 1, 1, 1, 1)),
        ((3, -3, -3, -3, -3), (0.9902, 0.0025, 0.0025, 0.0025, 0.0025), (6, 0, 0, 0, 0)),
        ((1, 0.5, 0.2, 0.1, -0.5), (0.3724, 0.2258, 0.1673, 0.1514, 0.0831), (2, 1, 1, 1, 1)),
        ((0.30, 0.25, 0.10, 0, -0.10), (0.2392, 0.2275, 0.1958, 0.1772, 0.1603), (2, 1, 1, 1, 1)),
    ],
)
def test_the_worked_examples_decode_as_they_should(logits, probabilities, allocation):
    np.testing.assert_allclose(location_probabilities(logits), probabilities, atol=5e-5)
    assert_array_equal(logits_to_allocation(logits, 6), allocation)


def decoded(logits, n_units):
    """Unit by unit, as a person would."""
    left = np.exp(logits) / np.exp(logits).sum()
    units = [0] * len(logits)
    for _ in range(n_units):
        best = max(range(len(logits)), key=lambda place: (left[place], -place))
        units[best] += 1
        left[best] -= 1 / n_units
    return units


def test_decoding_equals_a_loop_on_random_logits():
    rng = np.random.default_rng(0)
    for locations, n_units, logits in ((5, 6, 10_000), (2, 3, 1000), (9, 20, 1000)):
        values = rng.normal(scale=rng.choice([0.1, 1, 3], (logits, 1)), size=(logits, locations))
        assert_array_equal(logits_to_allocation(values, n_units), [decoded(row, n_units) for row in values])


def test_decoding_ignores_an_added_constant_and_takes_any_leading_axes():
    logits = np.random.default_rng(1).normal(size=(4, 3, 5))
    allocation = logits_to_allocation(logits, 6)
    assert_array_equal(logits_to_allocation(logits + 7.5, 6), allocation)
    assert_array_equal(allocation[2, 1], logits_to_allocation(logits[2, 1], 6))
    assert_array_equal(allocation.sum(axis=-1), np.full((4, 3), 6))
    assert_array_equal(logits_to_allocation([1000, -1000, 1000], 4), (2, 0, 2))


def test_one_by_one_goes_where_the_worth_is_largest():
    assert_array_equal(one_by_one(np.array([8, 6, 4, 3, 1.5]), 6), (4, 2, 0, 0, 0))
    assert_array_equal(one_by_one(np.zeros(5), 6), (2, 1, 1, 1, 1))


def test_units_are_counted_where_they_are():
    assert_array_equal(units_to_allocation([[0, 4, 4, 1, 0, 4], [2] * 6], 5), [(2, 1, 0, 0, 3), (0, 0, 6, 0, 0)])


@pytest.mark.parametrize(("n_units", "n_locations"), [(6, 5), (1, 2), (3, 4), (1, 65), (2, 41)])
def test_allocations_are_in_lexicographic_order_and_their_numbers_are_known(n_units, n_locations):
    table = all_allocations(n_units, n_locations)
    rows = [tuple(row) for row in table.tolist()]
    assert len(rows) == len(set(rows)) == math.comb(n_units + n_locations - 1, n_locations - 1)
    assert rows == sorted(rows) and {sum(row) for row in rows} == {n_units} and table.min() == 0
    assert rows[0][-1] == rows[-1][0] == n_units
    numbers = np.arange(len(rows)).reshape(-1, 1)
    allocation = index_to_allocation(numbers, n_units, n_locations)
    assert allocation.shape == (len(rows), 1, n_locations)
    assert_array_equal(allocation_to_index(allocation, n_units), numbers)


@pytest.mark.parametrize("allocation", [(2, 1, 1, 1, 2), (7, -1, 0, 0, 0), (2.0, 1, 1, 1, 1)])
def test_what_is_no_allocation_has_no_number(allocation):
    with pytest.raises(ValueError, match="allocation must be whole numbers that sum to 6, got"):
        allocation_to_index(allocation, 6)
