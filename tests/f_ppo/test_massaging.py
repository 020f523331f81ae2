"""Does an action give way to a fairer one exactly where both are nearly equally probable?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.f_ppo import massage
from sb3_fair.fairness import Candidates
from tests.f_ppo.bank import BankMeasures


class Table:
    """Measures that read disparities (n, n_actions) from the record; every other action is a candidate."""

    def __init__(self, order=None):
        self.order = order

    def candidates(self, record, actions, probabilities):
        n, n_actions = probabilities.shape
        options = np.broadcast_to(np.arange(n_actions) if self.order is None else self.order, (n, n_actions))
        closeness = np.abs(
            np.take_along_axis(probabilities, options, 1) - np.take_along_axis(probabilities, actions[:, None], 1)
        )
        return Candidates(options, closeness, options != actions[:, None])

    def would_be(self, record, candidates):
        return np.take_along_axis(record["disparity"], candidates, 1)


@st.composite
def states(draw):
    n, n_actions = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    disparity = rng.integers(0, 4, (n, n_actions)) / 4  # ties are frequent
    return disparity, rng.integers(n_actions, size=n), rng.dirichlet(np.ones(n_actions), n), draw(st.floats(0, 1))


@settings(deadline=None)
@given(states())
def test_the_choice_is_that_of_a_search_through_all_actions(state):
    disparity, actions, probabilities, threshold = state
    found = massage(Table(), {"disparity": disparity}, actions, probabilities, threshold)
    for row, (unfair, action, chances) in enumerate(zip(disparity, actions, probabilities, strict=True)):
        close = [a for a in range(len(chances)) if a != action and abs(chances[a] - chances[action]) < threshold]
        best = min(close, key=lambda a: unfair[a], default=action)
        expected = best if unfair[best] < unfair[action] else action
        assert found.actions[row] == expected
        assert found.changed[row] == (expected != action)
        assert found.candidates[row] == bool(close)
        assert found.gain[row] == unfair[action] - unfair[expected] >= 0
    assert found.actions.dtype == actions.dtype


@settings(deadline=None)
@given(states())
def test_among_equally_fair_actions_the_first_one_listed_is_taken(state):
    disparity, actions, probabilities, _ = state
    n_actions = disparity.shape[1]
    flat = np.full_like(disparity, 0.25) + np.eye(n_actions)[actions]  # all others are fairer and alike
    noise = 1e-14 * np.arange(n_actions)[::-1]  # which rounding errors do not change
    order = np.roll(np.arange(n_actions), 1)
    found = massage(Table(order), {"disparity": flat + noise}, actions, probabilities, 1.1)
    assert_array_equal(found.actions, [next(a for a in order if a != action) for action in actions])


def test_nothing_changes_where_the_gain_is_a_rounding_error():
    record, even = {"disparity": np.array([[0.5, 0.5 - 1e-13]])}, np.array([[0.5, 0.5]])
    assert not massage(Table(), record, np.array([0]), even, 1.0).changed.any()


def test_closeness_is_strict():
    record, chances = {"disparity": np.array([[1.0, 0.0]])}, np.array([[0.625, 0.375]])
    assert not massage(Table(), record, np.array([0]), chances, 0.25).changed.any()
    assert massage(Table(), record, np.array([0]), chances, 0.2501).changed.all()


def test_a_threshold_of_0_is_off():
    record, even = {"disparity": np.array([[1.0, 0.0]])}, np.array([[0.5, 0.5]])
    found = massage(Table(), record, np.array([0]), even, 0.0)
    assert not found.changed.any() and not found.candidates.any() and found.actions.tolist() == [0]


def test_a_bank_is_massaged_as_counted_by_hand():
    record = {"group": np.array([0, 0]), "granted": np.array([[2.0, 3.0]] * 2), "seen": np.array([[4.0, 4.0]] * 2)}
    found = massage(BankMeasures(), record, np.array([0, 1]), np.array([[0.52, 0.48]] * 2), 0.0443)
    assert found.actions.tolist() == [1, 1]  # .04 is close; rates 2/5 or 3/5 against 3/4
    assert found.changed.tolist() == [True, False]
    assert_allclose(found.gain, [0.35 - 0.15, 0.0])


@pytest.mark.parametrize("form", ["parts", "box"])
def test_candidates_keep_the_type_of_sampled_actions(form):
    record = {"group": np.array([0]), "granted": np.array([[0.0, 3.0]]), "seen": np.array([[4.0, 4.0]])}
    actions = np.array([[0, 1]]) if form == "parts" else np.array([[0.1, 0.3]], dtype=np.float32)
    found = massage(BankMeasures(form), record, actions, np.full((1, 2, 2), 0.5), 1.0)
    assert found.changed.all() and found.actions.dtype == actions.dtype
    assert_array_equal(found.actions, [[1, 1]] if form == "parts" else actions[:, ::-1])
