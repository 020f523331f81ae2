"""Is the disparity of attention what it should be, and are the fairer actions found?"""

import pickle
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.f_ppo.massaging import massage
from sb3_fair.fairness.disparity.measures import Measures
from sb3_fair.zoo.envs.attention.allocation import allocation_to_index, location_probabilities, logits_to_allocation
from sb3_fair.zoo.envs.attention.measures import (
    AttentionMeasures,
    LogitMeasures,
    UnitMeasures,
    disparity,
    raw_disparity,
)

LOGITS, UNITS, ALLOCATION = LogitMeasures(5, 6), UnitMeasures(5, 6), AttentionMeasures(5, 6)
HISTORY = np.array([(3, 1, 1, 1, 0), (2, 2, 1, 1, 0), (2, 1, 1, 1, 1)])
COMING = {"units": HISTORY.sum(axis=0)[None], "steps": np.array([4])}
NEARLY_EQUAL = (0.30, 0.25, 0.10, 0, -0.10)
CLEAR = (1, 0.5, 0.2, 0.1, -0.5)
EQUALS = (2, 1, 1, 1, 1)


@pytest.mark.parametrize(
    ("values", "relative", "raw"),
    [
        ((8, 6, 4, 3, 1.5), 8 / 22.5 - 0.2, 3.5),
        ((7.7, 5.8, 3.9, 3.6, 1.8), 7.7 / 22.8 - 0.2, 3.14),
        ((30, 20, 25, 15, 10), 0.1, 10),
        ((0, 0, 0, 0, 0), 0, 0),
        ((0, 0, 7, 0, 0), 0.8, 5.6),
        ((4, 4, 4, 4, 0), 0.2, 3.2),
        ((3, 3, 3, 3, 3), 0, 0),
    ],
)
def test_disparity_is_the_largest_distance_from_an_equal_share(values, relative, raw):
    assert disparity(values) == pytest.approx(relative, abs=1e-12)
    assert raw_disparity(values) == pytest.approx(raw, abs=1e-12)


def test_rates_and_counts_in_the_same_proportions_are_equally_unequal():
    counts = np.random.default_rng(0).integers(0, 30, (500, 5))
    assert_allclose(disparity(counts), disparity(counts * 0.37), atol=1e-12)


def test_short_term_disparity_of_the_worked_example():
    assert LOGITS.short_term_of(HISTORY.sum(axis=0), np.array(3)) == pytest.approx(0.18889, abs=5e-6)
    assert LOGITS.would_be(COMING, np.array([[NEARLY_EQUAL]]))[0, 0] == pytest.approx(0.175)
    paper = LogitMeasures(5, 6, norm_steps=300)
    assert paper.short_term_of(HISTORY.sum(axis=0), np.array(3)) == pytest.approx(0.2 - 1 / 1800)


def rows_of(measures, action, probabilities=None):
    """The candidates of one action: actions, closeness and disparity of the valid ones, in order."""
    row = None if probabilities is None else np.asarray(probabilities)[None]
    found = measures.candidates(COMING, np.asarray(action)[None], row)
    valid = found.valid[0]
    disparities = measures.would_be(COMING, found.actions)[0]
    return found.actions[0, valid], found.closeness[0, valid], disparities[valid]


def test_the_moves_of_the_worked_example_are_candidates_in_their_order():
    actions, closeness, disparities = rows_of(LOGITS, NEARLY_EQUAL)
    found = [
        (tuple(units), round(near, 4), round(unfair, 5))
        for units, near, unfair in zip(logits_to_allocation(actions, 6).tolist(), closeness, disparities, strict=True)
    ]
    for units, near, unfair in [
        ((1, 2, 1, 1, 1), 0.0117, 0.13333),
        ((1, 1, 2, 1, 1), 0.0434, 0.13333),
        ((1, 1, 1, 2, 1), 0.0620, 0.13333),
        ((1, 1, 1, 1, 2), 0.0789, 0.13333),
        ((3, 0, 1, 1, 1), 0.0117, 0.21667),
    ]:
        assert (units, near, unfair) in found
    assert len(found) == 20 and (np.diff(closeness) >= 0).all()
    assert [entry[0] for entry in found[:2]] == [(1, 2, 1, 1, 1), (3, 0, 1, 1, 1)]
    among_the_rest = [unfair for units, _, unfair in found if units[0] == 2]
    assert len(among_the_rest) == 12 and set(among_the_rest) == {0.175}


def test_the_move_of_the_worked_example_is_made():
    for dtype in (np.float32, np.float64):
        done = massage(LOGITS, COMING, np.array([NEARLY_EQUAL], dtype=dtype), None, 0.08)
        assert done.changed[0] and done.actions.dtype == dtype
        assert_allclose(done.actions[0], (-0.8935, 0.7996, 0.1, 0, -0.1), atol=5e-5)
        assert_array_equal(logits_to_allocation(done.actions[0], 6), (1, 2, 1, 1, 1))
        assert done.gain[0] == pytest.approx(0.175 - 0.13333, abs=1e-5)


def test_far_apart_locations_swap_units_only_if_the_threshold_allows():
    kept, done = (massage(LOGITS, COMING, np.array([CLEAR]), None, threshold) for threshold in (0.08, 0.2))
    assert not kept.changed[0]
    assert_array_equal(kept.actions[0], CLEAR)
    assert done.changed[0]
    assert_array_equal(logits_to_allocation(done.actions[0], 6), (1, 2, 1, 1, 1))
    _, closeness, _ = rows_of(LOGITS, CLEAR)
    assert 0.1465 in closeness.round(4)


def test_moved_logits_shift_probability_by_one_unit_and_stand_for_the_move():
    logits = np.random.default_rng(0).normal(size=(5000, 5)).astype(np.float32)
    found = LOGITS.candidates({}, logits, None)
    assert 0.5 < found.valid.mean() < 1
    rows = np.nonzero(found.valid)[0]
    before, after = location_probabilities(logits)[rows], location_probabilities(found.actions[found.valid])
    change = logits_to_allocation(found.actions[found.valid], 6) - logits_to_allocation(logits, 6)[rows]
    assert_array_equal(np.sort(change, axis=1), np.tile([-1, 0, 0, 0, 1], (len(rows), 1)))
    lost = before[change == -1]
    assert_allclose(after - before, change * (lost - np.maximum(0.005, lost - 1 / 6))[:, None], atol=1e-6)


def test_a_location_of_little_probability_gives_nothing_away():
    many = LogitMeasures(2, 200)
    logits = np.log([[0.996, 0.004]])
    assert_array_equal(many.allocation(logits), [(199, 1)])
    found = many.candidates({}, logits, None)
    assert_array_equal(many.allocation(found.actions[found.valid]), [(198, 2)])


def test_candidates_that_leave_the_box_are_dropped():
    tight = LogitMeasures(5, 6, logit_bound=0.5)
    _, closeness, _ = rows_of(tight, NEARLY_EQUAL)
    assert len(closeness) < 20
    found = tight.candidates({}, np.random.default_rng(0).normal(size=(500, 5)), None)
    assert np.abs(found.actions[found.valid]).max() <= 0.5


def test_logits_beyond_the_box_count_as_clipped():
    sampled = np.array([[12.0, 10.0, 0, 0, 0]])
    assert_array_equal(LOGITS.allocation(sampled), [(3, 3, 0, 0, 0)])
    found = LOGITS.candidates({}, sampled, None)
    assert_allclose(np.sort(found.closeness[0])[:2], 0, atol=1e-12)
    assert np.isfinite(found.actions).all()


def test_units_move_one_by_one_on_their_own_probabilities():
    rng = np.random.default_rng(3)
    action, rows = np.array([0, 0, 1, 2, 3, 4]), rng.dirichlet(np.ones(5), 6)
    actions, closeness, _ = rows_of(UNITS, action, rows)
    expected = sorted(
        (abs(rows[unit, place] - rows[unit, action[unit]]), action[unit], place, unit)
        for unit in range(6)
        for place in range(5)
        if place != action[unit]
    )
    assert len(actions) == len(expected) == 24
    for moved, near, (distance, _, place, unit) in zip(actions, closeness, expected, strict=True):
        assert near == distance and (moved != action).sum() == 1 and moved[unit] == place


def test_every_other_allocation_is_a_candidate_the_probable_ones_first():
    rows = np.random.default_rng(4).dirichlet(np.ones(210))
    rows[[7, 30]] = rows[11]
    action = int(allocation_to_index(EQUALS, 6))
    actions, closeness, disparities = rows_of(ALLOCATION, action, rows)
    assert actions.tolist() == sorted(set(range(210)) - {action}, key=lambda other: (-rows[other], other))
    assert_allclose(closeness, np.abs(rows[actions] - rows[action]))
    total = HISTORY.sum(axis=0) + ALLOCATION.allocation(actions)
    assert_allclose(disparities, np.abs(total / 24 - 0.2).max(axis=1))


@pytest.mark.parametrize("measures", [UNITS, ALLOCATION])
def test_discrete_modes_need_probabilities(measures):
    with pytest.raises(ValueError, match="probabilities must be those of the policy"):
        measures.candidates(COMING, np.zeros((1, 6), dtype=int)[:, : 6 if measures is UNITS else None], None)


def random_states(n):
    """Windows of up to 300 steps before the coming one, in which some locations get more than others."""
    rng = np.random.default_rng(5)
    steps = rng.integers(1, 301, n)
    favour = rng.dirichlet(np.full(5, 20), n)
    return {"units": rng.multinomial(6 * steps, favour), "steps": steps + 1}


def random_actions(measures, n):
    """Actions, and the probabilities that their policy has."""
    rng = np.random.default_rng(6)
    if measures is LOGITS:
        return rng.normal(scale=0.5, size=(n, 5)).astype(np.float32), None
    if measures is UNITS:
        return rng.integers(0, 5, (n, 6)), rng.dirichlet(np.full(5, 20), (n, 6))
    return rng.integers(0, 210, n), rng.dirichlet(np.ones(210), n)


@pytest.mark.parametrize("threshold", [0.005, 0.08, 0.5])
def test_candidates_that_are_left_out_for_being_far_never_change_the_decision(threshold):
    class Everything(LogitMeasures):
        def close_candidates(self, massage, actions, probabilities, threshold):
            return super().close_candidates(massage, actions, probabilities, np.inf)

    state, asked = random_states(1000), random_actions(LOGITS, 1000)
    found = massage(LOGITS, state, *asked, threshold)
    for ours, theirs in zip(found, massage(Everything(5, 6), state, *asked, threshold), strict=True):
        assert_array_equal(ours, theirs)
    assert found.changed.any()
    near = LOGITS.close_candidates(state, *asked, threshold)
    assert (near.closeness[near.valid] < threshold).all()
    assert near.valid.sum() < LOGITS.candidates(state, *asked).valid.sum()


@pytest.mark.parametrize("measures", [LOGITS, UNITS, ALLOCATION])
def test_massaging_never_makes_attention_less_fair(measures):
    n = 10_000
    state, (actions, rows) = random_states(n), random_actions(measures, n)
    done = massage(measures, state, actions, rows, 0.08)
    before, after = (measures.would_be(state, chosen[:, None])[:, 0] for chosen in (actions, done.actions))
    assert (after[done.changed] < before[done.changed]).all() and done.changed.mean() > 0.2
    assert_array_equal(done.actions[~done.changed], actions[~done.changed])
    assert_allclose(done.gain, before - after, atol=1e-12)


def test_equally_fair_actions_have_exactly_the_same_disparity():
    everything_there = np.tile(np.arange(5)[None, :, None], (1, 1, 6))
    for units in permutations((3, 4, 6, 6, 6)):
        found = UNITS.would_be({"units": np.array([units]), "steps": np.array([6])}, everything_there)[0]
        exact = [max(abs(5 * total - 36) for total in np.array(units) + 6 * row) for row in np.eye(5, dtype=int)]
        assert len(set(found)) == len(set(exact)) < 5


def test_the_threshold_is_constant():
    assert [LOGITS.threshold(iteration) for iteration in (0, 15, 1000)] == [0.08] * 3


@pytest.mark.parametrize("measures", [LOGITS, UNITS, ALLOCATION])
def test_measures_travel_and_are_equal_by_value(measures):
    assert isinstance(measures, Measures)
    assert pickle.loads(pickle.dumps(measures)) == measures == type(measures)(5, 6)
    assert measures != type(measures)(5, 7)
