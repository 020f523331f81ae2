"""Are spaces that do not start at 0 refused at construction, where SB3's networks would count from 0?"""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair import FPPO, FairPPO, FairQCM, PPOLagrangian, RecurrentDQN, TabularFairQCM
from sb3_fair.fairness import Scheme
from sb3_fair.wrappers import FairnessScheme, VecChoices
from tests.wrappers.town import FirstActionOf, Town


class Seven(gym.ObservationWrapper):
    """Observations are a Discrete that starts at 7."""

    observation_space = spaces.Discrete(2, start=7)

    def observation(self, observation):
        return 7 + int(observation[0])


def moved():
    return FirstActionOf(Town(), 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda env: FPPO("MlpPolicy", env),
        lambda env: PPOLagrangian("MlpPolicy", env, cost_limit=0.1, cost=lambda infos: np.zeros(len(infos))),
        lambda env: FairPPO("MlpPolicy", env),
        lambda env: FairQCM("MlpPolicy", FairnessScheme(env, Scheme())),
        lambda env: TabularFairQCM(FairnessScheme(env, Scheme())),
        lambda env: RecurrentDQN("MlpPolicy", env),
        lambda env: VecChoices(DummyVecEnv([lambda: env])),
    ],
)
def test_actions_that_start_elsewhere_are_refused(make):
    with pytest.raises(ValueError, match=r"env must have .* starts? at 0.*, got Discrete\(3, start=1\)"):
        make(moved())


def test_actions_that_are_not_discrete_have_no_choices():
    with pytest.raises(ValueError, match=r"env must have a Discrete action space .* for VecChoices, got Box"):
        VecChoices(DummyVecEnv([lambda: gym.make("Pendulum-v1")]))


def test_observations_that_start_elsewhere_are_refused():
    with pytest.raises(ValueError, match=r"env must have spaces that start at 0.*, got Discrete\(2, start=7\)"):
        FairPPO("MlpPolicy", Seven(Town()))
