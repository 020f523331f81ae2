"""A small env whose values are known: each step one of two people gets something, if present."""

from functools import cache

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from sb3_fair.fairness import Scheme
from sb3_fair.wrappers.events import FairEvent


class Sharing(gym.Env):
    """Reward ln(U_1 + 1) + ln(U_2 + 1) after the step, 0 if the person was absent.

    :param presence: probability that a person is there
    :param kind: of observation: box or dict
    """

    scheme = Scheme(welfare="log_nash")
    stakeholders = (0, 1)

    def __init__(self, presence=0.7, length=5, end="truncated", kind="box", tells=True):
        self.presence, self.max_steps, self.end, self.kind, self.tells = presence, length, end, kind, tells
        seen = spaces.Box(0, 1, (2,), np.float32)
        self.observation_space = seen if kind == "box" else spaces.Dict({"there": seen, "who": spaces.Discrete(4)})
        self.action_space = spaces.Discrete(2)
        self.given = []

    def _observation(self):
        self.there = self.np_random.random(2) < self.presence
        seen = self.there.astype(np.float32)
        return seen if self.kind == "box" else {"there": seen, "who": int(self.there @ (1, 2))}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.counts = np.zeros(2)
        self.t = 0
        return self._observation(), {}

    def step(self, action):
        self.given.append(getattr(action, "probabilities", None))
        granted = bool(self.there[action])
        self.counts[action] += granted
        self.t += 1
        reward = float(np.log(self.counts + 1).sum()) if granted else 0.0
        over = self.t == self.max_steps
        info = {"fairness": {"spread": float(np.ptp(self.counts)), "undefined": None, "counts": self.counts.copy()}}
        if self.tells:
            info["fair_event"] = FairEvent(granted, 0.0, granted)
        return (
            self._observation(),
            reward,
            over and self.end == "terminated",
            over and self.end == "truncated",
            info,
        )


def exact_values(length, gamma):
    """(counts, step) -> Q (2,) where everybody is always there and episodes terminate."""

    @cache
    def values(counts, step):
        q = np.zeros(2)
        for action in range(2):
            after = tuple(count + (person == action) for person, count in enumerate(counts))
            q[action] = np.log(np.array(after) + 1.0).sum()
            if step + 1 < length:
                q[action] += gamma * values(after, step + 1).max()
        return q

    return values
