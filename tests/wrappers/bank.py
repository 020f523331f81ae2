"""A bank that tells whatever individuals and late outcomes it is given, and what test environments derive from."""

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

from sb3_fair.wrappers import FairMDP, VecFairMDP


class Counting(gym.Env):
    """Shows nothing, and counts the steps of an episode."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}


class Foreign(VecEnvWrapper):
    """A wrapper from elsewhere: it knows nothing of this package."""

    def reset(self):
        return self.venv.reset()


class Bank(gym.Env):
    """An env of any action space; ``tell(t)`` is the individual of step t, ``late(t)`` the outcomes known by then."""

    observation_space = gym.spaces.Box(0, 1, (2,))

    def __init__(self, action_space, tell=lambda t: {"group": "ab"[t % 2]}, late=lambda t: (), length=40):
        self.action_space, self.tell, self.late, self.length = action_space, tell, late, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        info = {} if self.tell(self.t) is None else {"individual": self.tell(self.t)}
        late = self.late(self.t)
        if np.size(late):
            info["late_feedback"] = late
        self.t += 1
        return np.zeros(2, np.float32), 0.0, False, self.t == self.length, info


def faces(make, spec):
    """Steps of either face: f(actions, one per step) -> the infos of the only copy."""

    def single(actions):
        env = FairMDP(make(), spec)
        env.reset(seed=0)
        return [env.step(action)[4] for action in actions]

    def batched(actions):
        venv = VecFairMDP(DummyVecEnv([make]), spec)
        venv.reset()
        return [venv.step(np.asarray(action)[None])[3][0] for action in actions]

    return single, batched
