"""Do observations hold the memory of what was done, in every form of environment?"""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import DQN

from sb3_fair.fairness import Scheme
from sb3_fair.wrappers import FairnessScheme, MemoryAugmentation, augment, make_memory
from tests.wrappers.town import LENGTH, Tally, Town, play


@pytest.mark.parametrize("name", ["full", "min", "reset+clock", "rounds(3)"])
def test_the_observation_holds_the_memory_of_the_logged_decisions(name):
    observations, actions, events, _ = play(MemoryAugmentation(Town(), name))
    expected = augment(actions, events, make_memory(name, (0, 1, 2), LENGTH))
    np.testing.assert_array_equal([obs["memory"] for obs in observations], expected)


def test_a_flat_observation_is_the_state_with_the_memory_last():
    keys, *_ = play(MemoryAugmentation(Town()))
    flat, *_ = play(MemoryAugmentation(Town(), flatten=True))
    np.testing.assert_array_equal(flat, [np.concatenate((obs["state"], obs["memory"])) for obs in keys])


def test_keys_of_a_dict_observation_stay():
    env = gym.wrappers.TransformObservation(
        Town(), lambda obs: {"present": obs}, gym.spaces.Dict(present=Town.observation_space)
    )
    env.max_steps = LENGTH
    assert set(MemoryAugmentation(env).reset()[0]) == {"present", "memory"}
    with pytest.raises(ValueError, match="flatten needs"):
        MemoryAugmentation(env, flatten=True)


def test_any_off_policy_algorithm_trains_on_it():
    env = FairnessScheme(Town(), Scheme())
    DQN("MultiInputPolicy", MemoryAugmentation(env), learning_starts=10, device="cpu").learn(50)
    DQN("MlpPolicy", MemoryAugmentation(env, flatten=True), learning_starts=10, device="cpu").learn(50)


def test_a_memory_of_ones_own_is_shown():
    observations, _, events, _ = play(MemoryAugmentation(Town(), Tally()))
    np.testing.assert_array_equal([obs["memory"][0] for obs in observations], [0, *np.cumsum(events[:, 0])])


def test_the_limit_of_steps_of_a_registered_environment_bounds_counts():
    env = MemoryAugmentation(gym.make("CartPole-v1"))
    assert env.memory.high.tolist() == [500, 500]
    with pytest.raises(ValueError, match="env must have a limit of steps"):
        MemoryAugmentation(gym.make("CartPole-v1").unwrapped)
    assert MemoryAugmentation(gym.make("CartPole-v1").unwrapped, high=7).memory.high.tolist() == [7, 7]


class Shrinking(Tally):
    def update(self, memory, action, event):
        return memory[..., 0]


class Growing(Tally):
    def update(self, memory, action, event):
        return memory + 5


class Double(Tally):
    def encode(self, memory):
        return memory.astype(float)


class Wide(Tally):
    def sample_counterfactuals(self, memory, rng):
        return np.zeros((len(memory), 2))


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        (Shrinking(), "update of the memory 'tally' must return the shape"),
        (Double(), "rows of float32"),
        (Wide(), "sample_counterfactuals of the memory 'tally' must return"),
    ],
)
def test_a_memory_with_wrong_shapes_is_refused_at_once(memory, message):
    with pytest.raises(ValueError, match=message):
        MemoryAugmentation(Town(), memory)


class InPlace(Tally):
    """One of its methods changes the memory that it is given."""

    def __init__(self, method):
        self.method = method

    def _changed(self, memory, method):
        if method == self.method:
            memory *= 1
        return memory

    def update(self, memory, action, event):
        return super().update(self._changed(memory, "update"), action, event)

    def encode(self, memory):
        return super().encode(self._changed(memory, "encode"))

    def status(self, memory):
        return self._changed(memory, "status")

    def sample_counterfactuals(self, memory, rng):
        return self._changed(memory, "sample_counterfactuals")


@pytest.mark.parametrize("method", ["update", "encode", "status", "sample_counterfactuals"])
def test_a_memory_that_works_in_place_is_refused_at_once(method):
    MemoryAugmentation(Town(), InPlace(None))
    for memory in (InPlace(method), (InPlace(method), "clock")):
        with pytest.raises(ValueError, match="must not change the arrays it is given"):
            MemoryAugmentation(Town(), memory)


def test_a_memory_that_leaves_its_bounds_is_an_error():
    env = MemoryAugmentation(Town(), Growing())
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ValueError, match="memory must stay between low"):
        env.step(0)


def test_two_memories_are_refused():
    with pytest.raises(ValueError, match="wrapped twice"):
        MemoryAugmentation(MemoryAugmentation(Town()))


def test_wrapping_does_not_move_the_generator_of_the_action_space():
    first, second = Town(), Town()
    for env in (first, second):
        env.action_space = gym.spaces.Discrete(3, seed=0)
    MemoryAugmentation(first)
    assert [first.action_space.sample() for _ in range(9)] == [second.action_space.sample() for _ in range(9)]
