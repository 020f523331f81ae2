"""A two-objective env whose front is known: in each of 3 steps take (1, 0), (0, 1) or nothing."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

FRONT = {(3.0, 0.0), (2.0, 1.0), (1.0, 2.0), (0.0, 3.0)}
GAINS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
SPACES = {
    "box": spaces.Box(0, 1, (2,), np.float32),
    "discrete": spaces.Discrete(4),
    "dict": spaces.Dict({"clock": spaces.Box(0, 1, (2,), np.float32), "step": spaces.Discrete(4)}),
}


class Chain(gym.Env):
    """
    :param kind: of observation: box, discrete or dict
    :param noise: standard deviation of what is added to the rewards
    :param early: probability that an episode ends after a step
    :param array: whether the reward is the vector, as in MO-Gymnasium
    """

    def __init__(self, kind="box", noise=0.0, early=0.0, array=False, named=True):
        self.observation_space = SPACES[kind]
        self.action_space = spaces.Discrete(3)
        self.kind, self.noise, self.early, self.array = kind, noise, early, array
        if named:
            self.objective_names = ("left", "right")
        if array:
            self.reward_space = spaces.Box(0, 1, (2,), np.float64)
            self.vector = True

    def _obs(self):
        clock = np.array([self.t / 3, 1 - self.t / 3], dtype=np.float32)
        return {"box": clock, "discrete": self.t, "dict": {"clock": clock, "step": self.t}}[self.kind]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._obs(), {}

    def step(self, action):
        vector = GAINS[int(action)] + self.noise * self.np_random.standard_normal(2)
        self.t += 1
        done = self.t == 3 or self.np_random.random() < self.early
        info = {} if self.array else {"vector_reward": vector}
        return self._obs(), vector if self.array else float(vector[0]), done, False, info
