"""What a user of the package has written: an environment, a World, and a fairness spec for CartPole."""

from typing import ClassVar

import gymnasium as gym
import numpy as np

import sb3_fair
from sb3_fair.fairness import FairnessSpec
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import World

REGIONS = ("north", "south", "east")
LENGTH = 40


class Loans(gym.Env):
    """Applicants of three regions, one a step; ten steps later, the bank hears whether they could pay back."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}
    observation_space = gym.spaces.Box(0, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode, self.n_decided = render_mode, 0

    def applicant(self):
        region = int(self.np_random.integers(3))
        self.score = float(np.clip(self.np_random.normal(0.65 - 0.1 * region, 0.2), 0, 1))
        return np.array([self.score, *np.eye(3)[region]], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n_decided, self.waiting = 0 if seed is not None else self.n_decided, []
        return self.applicant(), {}

    def step(self, action):
        pays = self.np_random.random() < self.score
        self.waiting.append((self.n_decided, int(pays)))
        self.n_decided += 1
        info = {"late_feedback": [self.waiting.pop(0)]} if len(self.waiting) > 10 else {}
        return self.applicant(), action * (1.0 if pays else -1.5), False, False, info

    def render(self):
        return np.full((32, 32, 3), 255 * self.score, np.uint8)


def region(obs, info):
    return REGIONS[int(obs[1:].argmax())]


class Counter(World):
    """A World: people of two groups come to a counter and are served, or not."""

    rules: ClassVar = {"serve all": lambda world: np.tile([0.0, 1.0], (world.n_worlds, 1))}
    source = "a user"

    def __init__(self, n_worlds):
        self.max_steps, self.max_return = LENGTH, float(LENGTH)
        self.observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.fairness_spec = FairnessSpec(group_names=("young", "old"))
        self.time = np.zeros(n_worlds, dtype=int)
        super().__init__(n_worlds, Tapes(n_worlds, 2))

    def restart(self, which):
        self.time[which] = 0
        return self.observation()[which]

    def observation(self):
        need, age = self.tapes.now.values.T
        return np.stack([need, age > 0.4], axis=1).astype(np.float32)

    def massage(self):
        return {"group": self.observation()[:, 1].astype(int)}

    def step(self, actions):
        need, old = self.observation().T
        self.tapes.advance()
        self.time += 1
        individual = {"group": old.astype(int), "feedback": (need > 0.5).astype(int), "action": actions}
        ended = self.time >= LENGTH
        return self.observation(), (need - 0.5) * actions, np.zeros_like(ended), ended, {"individual": individual}


def side(obs, info):
    return "left" if obs[2] < 0 else "right"


class Counters(gym.Env):
    """Two counters, each with a person a step, of whom everybody or some are served."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.MultiBinary(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.needs = self.np_random.random(2).astype(np.float32)
        return self.needs, {}

    def step(self, action):
        needs = self.needs
        reward = float((needs - 0.5) @ np.asarray(action, dtype=float))
        people = {"group": np.array(["young", "old"]), "feedback": (needs > 0.5).astype(int)}
        return self.reset()[0], reward, False, False, {"individual": people}


class Counterpart(World):
    """The same as a World."""

    def __init__(self, n_worlds):
        self.max_steps, self.max_return = LENGTH, float(LENGTH)
        self.observation_space, self.action_space = Counters.observation_space, Counters.action_space
        self.fairness_spec = FairnessSpec(notions=("SP", "EO"))
        self.time = np.zeros(n_worlds, dtype=int)
        super().__init__(n_worlds, Tapes(n_worlds, 2))

    def restart(self, which):
        self.time[which] = 0
        return self.tapes.now.values[which].astype(np.float32)

    def step(self, actions):
        needs = self.tapes.now.values
        self.tapes.advance()
        self.time += 1
        groups = np.broadcast_to(["young", "old"], needs.shape)
        people = {"group": groups, "feedback": (needs > 0.5).astype(int), "action": actions}
        reward, ended = ((needs - 0.5) * actions).sum(axis=1), self.time >= LENGTH
        return self.tapes.now.values.astype(np.float32), reward, np.zeros_like(ended), ended, {"individual": people}


class Hours(Counters):
    """The same, where one action says how long each counter is open."""

    action_space = gym.spaces.MultiDiscrete([3, 2])


def pushes_right(actions):
    return actions[:, 0] > 0


def upper(obs, info):
    return "up" if obs[0] > 0 else "down"


pushing = FairnessSpec(group=upper, favourable=pushes_right)
leaning = FairnessSpec(group=side)
sb3_fair.register(
    "Loans-v0",
    Loans,
    FairnessSpec(group=region, groups=REGIONS),
    max_episode_steps=LENGTH,
    rules={"lend to all": lambda obs: 1, "lend to nobody": lambda obs: 0},
    title="a bank of our own",
)
sb3_fair.register("Counter-v0", Counter)
sb3_fair.register("Counters-v0", Counters, FairnessSpec(notions=("SP", "EO")), max_episode_steps=LENGTH)
sb3_fair.register("Counterpart-v0", Counterpart)
sb3_fair.register("Hours-v0", Hours, FairnessSpec(favourable=(1, 2)), max_episode_steps=LENGTH)
