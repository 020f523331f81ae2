"""Are both faces of a wrapper what their core says?"""

from inspect import signature

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair import wrappers
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers.faces import Core, Face, VecFace

FACES = [
    (name, f"Vec{name}")
    for name, face in vars(wrappers).items()
    if face is not Face and Face in getattr(face, "__mro__", ())
]


class Doubling(Core):
    """Pays twice the reward and shows how often."""

    _adds = True

    def __init__(self, env, times=2):
        super().__init__(env, times=times)
        self.times, self.steps = times, np.zeros(self._n_copies)

    def _restart(self, which, seeded=False):
        self.steps[which] = 0

    def _record(self, step):
        self.steps += 1
        return step.rewards * float(self.times)

    def _shown(self, observation, which=slice(None)):
        return {"own": observation, "steps": self.steps[which].copy()}


class Double(Doubling, Face):
    pass


class VecDouble(Doubling, VecFace):
    pass


def test_one_core_makes_both_faces():
    env, venv = Double(gym.make("CartPole-v1")), VecDouble(venv=DummyVecEnv([lambda: gym.make("CartPole-v1")] * 2))
    venv.seed(3)
    single, batched = env.reset(seed=3)[0], venv.reset()
    for step in range(30):
        np.testing.assert_array_equal(single["own"], batched["own"][0])
        assert single["steps"] == batched["steps"][0]
        single, reward, over, *_ = env.step(step % 2)
        batched, rewards, dones, infos = venv.step(np.full(2, step % 2))
        assert reward == rewards[0] == 2 and over == dones[0]
        if over:
            assert infos[0]["terminal_observation"]["steps"] == single["steps"] > 0 == batched["steps"][0]
            single = env.reset()[0]
            break
    assert over


@pytest.mark.parametrize("names", FACES, ids=lambda names: names[0])
def test_constructors_of_both_faces_differ_in_their_environment_alone(names):
    ours = [list(signature(getattr(wrappers, name)).parameters) for name in names]
    assert [names[0] for names in ours] == ["env", "venv"] and ours[0][1:] == ours[1][1:]


def test_an_environment_of_the_other_kind_is_refused():
    spec, env = FairnessSpec(group="group"), gym.make("CartPole-v1")
    with pytest.raises(TypeError, match="venv must be of class VecEnv, got <TimeLimit"):
        wrappers.VecFairMDP(env, spec)
    with pytest.raises(TypeError, match="env must be of class Env, got"):
        wrappers.FairMDP(DummyVecEnv([lambda: env]), spec)
