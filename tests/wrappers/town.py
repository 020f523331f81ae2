"""A small town in which one of three people, each present or not, is served in every step."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from sb3_fair.wrappers import FairEvent

LENGTH = 8


class Town(gym.Env):
    """Whoever is absent cannot be served; the observation is who is present."""

    observation_space = spaces.Box(0, 1, (3,), np.float32)
    action_space = spaces.Discrete(3)
    max_steps = LENGTH

    def _present(self):
        self.present = (self.np_random.random(3) < 0.8).astype(np.float32)
        return self.present.copy()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._present(), {}

    def step(self, action):
        granted = bool(self.present[action])
        self.t += 1
        return self._present(), 0.0, False, self.t == LENGTH, {"fair_event": FairEvent(granted, 0.0, float(granted))}


def play(env, seed=0):
    """Observations, actions, events and rewards of one random episode."""
    rng = np.random.default_rng(seed)
    obs, _ = env.reset(seed=seed)
    observations, actions, events, rewards, over = [obs], [], [], [], False
    while not over:
        actions.append(int(rng.integers(3)))
        obs, reward, terminated, truncated, info = env.step(actions[-1])
        observations.append(obs)
        events.append(info["fair_event"])
        rewards.append(reward)
        over = terminated or truncated
    return observations, np.array(actions), np.array(events, dtype=float), np.array(rewards)


def everybody_has_more(status, previous):
    """Whether even those who have least have more than before."""
    return status.min(axis=-1) > previous.min(axis=-1)


# Who is given the good and whether it arrives, at each of eight steps.
ACTIONS = np.array([0, 1, 2, 0, 2, 1, 0, 2])
GRANTED = np.array([1, 1, 0, 1, 1, 1, 0, 1])
EVENTS = np.stack([GRANTED, np.zeros(8), GRANTED], axis=1)
COUNTS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0], [2, 1, 0], [2, 1, 1], [2, 2, 1], [2, 2, 1], [2, 2, 2]])


class FirstActionOf(gym.ActionWrapper):
    """The same environment, with actions numbered from ``start`` on."""

    def __init__(self, env, start):
        super().__init__(env)
        self.action_space = spaces.Discrete(env.action_space.n, start=start)
        self.start = start

    def action(self, action):
        return action - self.start


class Tally:
    """A memory of one's own: how many actions took effect."""

    name, dim, high = "tally", 1, np.full(1, 8, np.float32)

    def initial(self, batch):
        return np.zeros((*batch, 1), np.float32)

    def update(self, memory, action, event):
        return memory + event[..., :1].astype(np.float32)

    def encode(self, memory):
        return (memory / 8).astype(np.float32)

    def status(self, memory):
        return None

    def sample_counterfactuals(self, memory, rng):
        return memory
