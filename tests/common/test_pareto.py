"""Are fronts, their measures and their neighbours those that one counts by hand?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_fair.common.front import Command, EvaluatedPolicy
from sb3_fair.common.pareto import (
    crowding_distance,
    epsilon_metric,
    expected_utility,
    front_of,
    generational_distance,
    hypervolume,
    min_max,
    nondominated,
    nondominated_ranks,
    reference_point,
    sparsity,
)

POINTS = np.array([(3, 0), (2, 2), (0, 3), (1, 1), (2, 2)], dtype=float)
MATRICES = st.integers(1, 3).flatmap(
    lambda k: st.lists(st.tuples(*[st.integers(0, 4).map(float)] * k), min_size=1, max_size=12).map(np.array)
)


def test_the_known_points_have_their_known_measures():
    assert nondominated(POINTS).tolist() == [True, True, True, False, False]
    assert nondominated_ranks(POINTS).tolist() == [0, 0, 0, 2, 1]
    assert hypervolume(POINTS, (-1, -1)) == 11
    np.testing.assert_allclose(crowding_distance(POINTS[:3]), 1, rtol=1e-6)


@given(MATRICES)
def test_no_point_of_a_rank_is_dominated_within_it_and_each_is_matched_in_the_rank_before(points):
    ranks = nondominated_ranks(points)
    for point, rank in zip(points, ranks, strict=True):
        same, before = points[ranks == rank], points[ranks == rank - 1]
        assert not ((same >= point).all(axis=1) & (same > point).any(axis=1)).any()
        assert rank == 0 or (before >= point).all(axis=1).any()


@given(MATRICES)
def test_hypervolume_is_the_number_of_unit_cells_below(points):
    corners = np.stack(np.meshgrid(*[np.arange(5)] * points.shape[1], indexing="ij"), axis=-1).reshape(
        -1, points.shape[1]
    )
    below = sum((points > corner).all(axis=1).any() for corner in corners)
    assert hypervolume(points, np.zeros(points.shape[1])) == pytest.approx(below)


def test_points_that_do_not_exceed_the_reference_point_add_nothing():
    assert hypervolume([(1, 1), (5, -2)], (0, 0)) == 1
    assert hypervolume(np.zeros((0, 2)), (0, 0)) == 0


@pytest.mark.parametrize("measure", [nondominated, nondominated_ranks, crowding_distance, sparsity, reference_point])
def test_a_number_that_is_not_finite_is_an_error(measure):
    with pytest.raises(ValueError, match="must be a matrix"):
        measure([(1.0, np.nan)])


def test_hypervolume_refuses_what_is_not_finite():
    with pytest.raises(ValueError, match="points must be"):
        hypervolume([(np.inf, 1)], (0, 0))
    with pytest.raises(ValueError, match="ref_point must be"):
        hypervolume([(1, 1)], (0, np.nan))


def test_the_extremes_of_a_front_are_not_crowded():
    line = np.stack([np.arange(5.0), np.arange(5.0)[::-1]], axis=1)
    np.testing.assert_allclose(crowding_distance(line), [1, 0.5, 0.5, 0.5, 1], rtol=1e-6)
    assert crowding_distance(line[:1]).tolist() == [1]
    assert crowding_distance(line[:2]).tolist() == [1, 1]
    assert len(crowding_distance(line[:0])) == 0


def test_scaling_gives_zero_to_a_constant_objective():
    assert min_max([(1, 7), (3, 7)]).tolist() == [[0, 0], [1, 0]]


def test_sparsity_is_the_mean_squared_gap_of_the_front():
    assert sparsity([(0, 3), (1, 1), (3, 0), (0, 0)]) == (1 + 4 + 1 + 4) / 2
    assert sparsity([(0, 3)]) == 0


def test_epsilon_is_the_largest_miss_in_units_of_the_commands_range():
    desired, reached = [(0, 0), (10, 2)], [(1, 0), (10, 1)]
    assert epsilon_metric(desired, reached) == (pytest.approx(0.3), 0.5)
    assert epsilon_metric(desired, reached, floor=(20, 10)) == (pytest.approx(0.075), pytest.approx(0.1))
    assert epsilon_metric(desired, reached[::-1]) == (1, 1)


def test_epsilon_needs_one_reached_point_per_command():
    with pytest.raises(ValueError, match="one row per command"):
        epsilon_metric([(0, 0)], [(0, 0), (1, 1)])


def test_the_reference_point_lies_a_tenth_of_the_range_below_the_worst():
    assert reference_point([(0, 5), (10, 5)]).tolist() == [-1, 4.9]


def policy(name, *returns):
    return EvaluatedPolicy(name, ("a", "b"), np.array(returns, float), np.ones(len(returns)))


def test_a_front_keeps_policies_that_are_not_dominated_in_their_means():
    lucky = policy("lucky", (9, 9), (0, 0))
    steady = policy("steady", (5, 5), (5, 5))
    other = policy("other", (6, 0))
    rounded = policy("rounded", (np.nextafter(6, 7), -1))
    assert [kept.name for kept in front_of([lucky, steady, other, rounded])] == ["other", "steady"]
    assert len(front_of([])) == 0


def test_commands_are_equal_that_ask_for_the_same():
    one, other = Command([1, 2], 3), Command(np.array([1.0, 2.0]), 3)
    assert one == other and {one, other} == {one}
    assert one != Command([1, 2], 4) and one != Command([1, 3], 3) and one != Command([1], 3) and one != "one"


def test_generational_distance_is_that_from_the_best_front_to_its_nearest_points():
    best = np.array([(1.0, 0.0), (0.0, 1.0)])
    assert generational_distance(best, best) == 0
    assert generational_distance([(1.0, 0.0)], best) == pytest.approx(np.sqrt(2) / 2)


def test_no_points_are_the_worst_and_nothing_is_compared_with_no_front():
    none, best = np.zeros((0, 2)), np.array([(2.0, 0.0), (0.0, 2.0)])
    assert generational_distance(none, best) == np.inf and expected_utility(none) == -np.inf
    for measure in (lambda: generational_distance(best, none), lambda: min_max(none), lambda: reference_point(none)):
        with pytest.raises(ValueError, match="must have at least one row, got none"):
            measure()


def test_expected_utility_is_the_mean_over_people_of_their_best_point():
    assert expected_utility([(2.0, 2.0), (1.0, 1.0)]) == pytest.approx(2)
    # with weights (w, 1 - w) the better of the two corners is worth max(w, 1 - w), 3/4 on average
    assert expected_utility([(1.0, 0.0), (0.0, 1.0)], n_weights=20_000) == pytest.approx(0.75, abs=0.01)
    assert expected_utility([(1.0, 0.0)], seed=1) != expected_utility([(1.0, 0.0)], seed=2)
