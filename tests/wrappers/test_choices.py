"""Do action probabilities survive everything between a policy and the environment?"""

import pickle

import gymnasium as gym
import numpy as np
import pytest

from sb3_fair.wrappers.choices import Choices


@pytest.fixture
def choices():
    return Choices([1, 0, 1], [[0.2, 0.8], [0.9, 0.1], [0.5, 0.5]])


def test_an_entry_is_an_int_with_its_probabilities(choices):
    action = choices[1]
    assert isinstance(action, int) and action == 0
    np.testing.assert_array_equal(action.probabilities, [0.9, 0.1])


def test_iteration_and_slices_keep_the_probabilities(choices):
    assert [int(action) for action in choices] == [1, 0, 1]
    np.testing.assert_array_equal([action.probabilities for action in choices], choices.probabilities)
    np.testing.assert_array_equal(choices[1:].probabilities, choices.probabilities[1:])
    np.testing.assert_array_equal(choices[np.array([True, False, True])].probabilities, choices.probabilities[[0, 2]])


def test_one_choice_squeezes_to_an_array_with_its_probabilities():
    action = Choices([1], [[0.3, 0.7]]).squeeze(axis=0)
    assert action.shape == () and action.item() == 1
    np.testing.assert_array_equal(action.probabilities, [0.3, 0.7])


def test_arithmetic_gives_actions_without_probabilities(choices):
    assert (choices + 1).probabilities is None
    assert isinstance((choices + 1)[0], np.integer)


def test_a_choice_passes_through_a_pipe(choices):
    action = pickle.loads(pickle.dumps(choices[0]))
    assert action == 1
    np.testing.assert_array_equal(action.probabilities, [0.2, 0.8])


def test_a_choice_is_in_a_discrete_space(choices):
    assert gym.spaces.Discrete(2).contains(choices[0])


def test_rows_must_match_the_actions():
    with pytest.raises(ValueError, match="one row per action"):
        Choices([0, 1], [[0.5, 0.5]])
