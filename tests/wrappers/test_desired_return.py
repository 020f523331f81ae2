"""Does the observation always say what is still asked for?"""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.wrappers.desired_return import DesiredReturn, VecDesiredReturn
from tests.pcn.chain import SPACES, Chain
from tests.wrappers.bank import Counting

REWARDS = st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=8)


class Paying(Counting):
    """Pays the given vectors, one after the other."""

    def __init__(self, rewards):
        self.rewards = iter(rewards)

    def step(self, action):
        return np.zeros(1, np.float32), np.array(next(self.rewards)), False, False, {}


@given(REWARDS, st.floats(0.5, 1.0), st.floats(-3, 3))
def test_the_command_falls_by_what_was_gained_and_stays_below_its_bound(rewards, gamma, bound):
    env = DesiredReturn(Paying(rewards), [4.0, 1.0], 3, max_return=[np.inf, bound], gamma=gamma)
    env.reset()
    left, horizon = [4.0, 1.0], 3
    for reward in rewards:
        obs = env.step(0)[0]
        left = [(left[0] - reward[0]) / gamma, min((left[1] - reward[1]) / gamma, bound)]
        horizon = max(horizon - 1, 1)
        np.testing.assert_allclose(obs["desired_return"], np.float32(left), rtol=1e-6)
        assert obs["desired_horizon"] == [horizon]


def test_held_objectives_keep_their_command():
    env = DesiredReturn(Paying([(1.0, 1.0)]), [4.0, 1.0], 3, held=[True, False])
    env.reset()
    assert env.step(0)[0]["desired_return"].tolist() == [4, 0]


def test_a_pursuit_is_that_of_the_moment_it_was_given():
    arrays = [1.0, 2.0], np.array([0, 1]), np.array([3.0, 3.0]), np.array([True, False])
    command, columns, most, held = map(np.array, arrays)
    env = DesiredReturn(Paying([(1.0, 1.0)]), command, 3, columns=columns, max_return=most, held=held)
    for array in (command, columns, most, held):
        array[:] = 0
    assert env.reset()[0]["desired_return"].tolist() == [1.0, 2.0]
    assert env.step(0)[0]["desired_return"].tolist() == [1.0, 1.0]


def test_the_command_may_speak_of_some_objectives_only():
    env = DesiredReturn(Chain(), [2.0], 3, columns=[1])
    assert env.reset()[0]["desired_return"] == [2.0]
    assert env.step(0)[0]["desired_return"] == [2.0]
    assert env.step(1)[0]["desired_return"] == [1.0]


@pytest.mark.parametrize("kind", SPACES)
def test_every_kind_of_observation_gets_the_command_beside_it(kind):
    env = DesiredReturn(Chain(kind), [1.0, 2.0], 3)
    obs, _ = env.reset()
    own = {"clock", "step"} if kind == "dict" else {"observation"}
    assert set(obs) == own | {"desired_return", "desired_horizon"}


def test_copies_may_have_different_commands_which_begin_with_their_episodes():
    venv = VecDesiredReturn(DummyVecEnv([Chain] * 2), [[3.0, 0.0], [0.0, 3.0]], [3, 5])
    assert venv.reset()["desired_return"].tolist() == [[3, 0], [0, 3]]
    obs, *_ = venv.step(np.array([0, 0]))
    assert obs["desired_return"].tolist() == [[2, 0], [-1, 3]]
    assert obs["desired_horizon"].tolist() == [[2], [4]]
    venv.set_command([1.0, 1.0], 2)
    obs, *_ = venv.step(np.array([0, 0]))
    assert obs["desired_return"].tolist() == [[1, 0], [-2, 3]]
    obs, _, dones, _ = venv.step(np.array([0, 0]))
    assert dones.all()
    assert obs["desired_return"].tolist() == [[1, 1], [1, 1]]


def test_an_array_reward_is_read_too():
    env = DesiredReturn(Chain(array=True), [1.0, 2.0], 3)
    env.reset()
    assert env.step(1)[0]["desired_return"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"desired_return": [np.nan, 1.0]}, "desired_return must be .* finite"),
        ({"desired_return": 1.0, "columns": [0]}, "desired_return must be an array"),
        ({"desired_horizon": 0}, "desired_horizon must be a number of at least 1"),
        ({"max_return": [1.0]}, "max_return must be one number per"),
        ({"held": [True]}, "held must have one entry per"),
        ({"gamma": 0.0}, r"gamma must be in \(0, 1\]"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    arguments = {"desired_return": [1.0, 2.0], "desired_horizon": 3, **arguments}
    with pytest.raises(ValueError, match=message):
        DesiredReturn(Chain(), **arguments)
    with pytest.raises(ValueError, match=message):
        VecDesiredReturn(DummyVecEnv([Chain]), **arguments)


def test_a_second_command_and_scalar_rewards_are_refused():
    with pytest.raises(ValueError, match="observation keys"):
        DesiredReturn(DesiredReturn(Chain(), [1.0, 2.0], 3), [1.0, 2.0], 3)
    env = DesiredReturn(gym.make("CartPole-v1"), [1.0], 3)
    env.reset()
    with pytest.raises(ValueError, match="vector reward"):
        env.step(0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_reward_that_is_not_finite_is_an_error(bad):
    env = DesiredReturn(Paying([(bad, bad)]), [1.0, 2.0], 3)
    env.reset()
    with pytest.raises(ValueError, match="vector reward must be finite"):
        env.step(0)
