"""Does demographic parity say how the groups fare, and which actions would be fairer?"""

import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fairness import Measures
from sb3_fair.fairness.disparity.measures import keys_of, reported_by
from sb3_fair.fairness.disparity.parity import DemographicParity, rate_gap

FIGURES = ("d_s", "d_s_prev", "d_l", "d_l_next")


def largest_difference(hits, people):
    rates = [h / p for h, p in zip(hits, people, strict=True) if p]
    return max((abs(a - b) for a, b in combinations(rates, 2)), default=0.0)


@st.composite
def counts(draw):
    people = draw(st.lists(st.integers(0, 5), min_size=0, max_size=5))
    return [draw(st.integers(0, p)) for p in people], people


@given(counts())
def test_the_gap_is_the_largest_difference_between_two_groups_that_have_members(counted):
    hits, people = counted
    assert_allclose(rate_gap(hits, people), largest_difference(hits, people), rtol=0, atol=1e-15)


def test_gaps_are_taken_over_the_last_axis():
    hits, people = np.array([[[1, 1], [0, 3]], [[0, 0], [2, 0]]]), np.array([[[2, 1]], [[2, 0]]])
    assert_array_equal(rate_gap(hits, np.maximum(people, hits)), [[0.5, 1.0], [0.0, 0.0]])


@given(counts().filter(lambda counted: counted[1]), st.data())
def test_an_action_would_be_as_unfair_as_the_counts_with_it_are(counted, data):
    hits, people = counted
    group = data.draw(st.integers(-1, len(people) - 1))
    measures = DemographicParity(favourable=(0, 2))
    massage = {"decided": np.array([people]), "favoured": np.array([hits]), "column": np.array([group])}
    for action in range(4):
        after_hits, after_people = hits.copy(), people.copy()
        if group >= 0:  # -1: nobody who is compared
            after_people[group] += 1
            after_hits[group] += action in (0, 2)
        would_be = measures.would_be(massage, np.array([[action]]))
        assert_allclose(would_be, [[largest_difference(after_hits, after_people)]], rtol=0, atol=1e-15)


def test_candidates_are_all_other_actions_the_most_probable_first():
    probabilities = np.array([[0.2, 0.5, 0.1, 0.2], [0.25, 0.25, 0.25, 0.25], [0.0, 0.3, 0.3, 0.4]])
    found = DemographicParity().candidates({}, np.array([1, 2, 3]), probabilities)
    assert_array_equal(found.actions, [[0, 3, 2], [0, 1, 3], [1, 2, 0]])
    assert_allclose(found.closeness, [[0.3, 0.3, 0.4], [0, 0, 0], [0.1, 0.1, 0.4]])
    assert found.valid.all() and found.valid.shape == found.actions.shape


def test_closeness_is_exact_for_the_policys_single_precision():
    probabilities = np.array([[0.3, 0.7]], dtype=np.float32)
    closeness = DemographicParity().candidates({}, np.array([0]), probabilities).closeness
    assert closeness.dtype == np.float64
    assert closeness == float(probabilities[0, 1]) - float(probabilities[0, 0])


@pytest.mark.parametrize("probabilities", [None, np.ones((2, 3, 2)), np.ones((3, 2))])
def test_probabilities_of_other_action_spaces_are_refused(probabilities):
    with pytest.raises(ValueError, match=r"probabilities must be \(n, n_actions\)"):
        DemographicParity().candidates({}, np.array([0, 1]), probabilities)


def test_demographic_parity_is_a_measure_that_pickles_and_is_equal_by_value():
    measures = DemographicParity(window=5, favourable=[2, 1], groups=["a", "b"], massage_threshold=0.2)
    assert isinstance(measures, Measures)
    assert keys_of(measures) == FIGURES
    assert reported_by(measures) == {"utility": "reward", "short_term": "d_s", "long_term": "d_l_next"}
    assert pickle.loads(pickle.dumps(measures)) == measures
    assert measures == DemographicParity(5, (1, 2), ("a", "b"), 0.2) != DemographicParity(6, (1, 2), ("a", "b"), 0.2)
    assert [measures.threshold(iteration) for iteration in (0, 1000)] == [0.2, 0.2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window must be a positive integer, got 0"),
        ({"window": 2.5}, "window must be a positive integer, got 2.5"),
        ({"favourable": ()}, "favourable must hold at least one action number"),
        ({"groups": ("a",)}, "groups must hold at least two different labels"),
        ({"massage_threshold": 1.5}, r"massage_threshold must be in \[0, 1\], got 1.5"),
        ({"massage_threshold": None}, "massage_threshold must be in \\[0, 1\\], got None"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DemographicParity(**settings)
