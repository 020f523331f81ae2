"""Games small enough to solve by hand: agents of two groups who are paid for what they choose."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.dummy_vec_env import DummyVecEnv

SEEN = spaces.Box(-10, 10, (3,), np.float32)


class Pairs(VecEnv):
    """Worlds of two agents, one slot each. The first (group 0) earns 2 with action 0 and 1 with action 1, or noise; the
    second (group 1) always earns 1. Agents see the time, what they did last (with noise), and their group (column 2).

    :param length: steps of an episode
    :param noise: standard deviation of what is added to rewards
    :param ends: "terminated" or "truncated"
    :param keyed: whether observations are Dicts
    :param twins: whether two worlds following each other are counterfactual twins
    """

    def __init__(self, n_worlds=2, length=1, noise=0.0, ends="terminated", keyed=False, twins=False, labelled=True):
        self.length, self.noise, self.ends, self.keyed = length, noise, ends, keyed
        n = 2 * n_worlds
        space = spaces.Dict({"state": SEEN, "group": spaces.Discrete(2)}) if keyed else SEEN
        super().__init__(n, space, spaces.Discrete(2))
        self.group = np.arange(n) % 2
        self.rng = np.random.default_rng(0)
        self.t, self.actions = 0, np.zeros(n)
        if labelled:
            self.slot_group, self.slot_world = self.group, np.arange(n) // 2
        if twins:
            self.slot_pair = np.arange(n) + np.where(np.arange(n) // 2 % 2 == 0, 2, -2)

    def _observe(self):
        did = self.actions * (self.t > 0) + 0.1 * self.rng.normal(size=self.num_envs)
        state = np.stack([np.full(self.num_envs, self.t), did, self.group], axis=1).astype(np.float32)
        return {"state": state, "group": self.group.copy()} if self.keyed else state

    def reset(self):
        if self._seeds[0] is not None:
            self.rng = np.random.default_rng(self._seeds[0])
            self._reset_seeds()
        self._reset_options()
        self.t = 0
        return self._observe()

    def step_async(self, actions):
        self.actions = np.asarray(actions)

    def step_wait(self):
        rewards = np.where(self.group == 0, 2.0 - self.actions, 1.0)
        rewards = rewards + self.noise * self.rng.normal(size=self.num_envs)
        self.t += 1
        done = self.t == self.length
        infos = [{"TimeLimit.truncated": done and self.ends == "truncated"} for _ in range(self.num_envs)]
        obs = self._observe()
        if done:
            for slot, info in enumerate(infos):
                last = {key: value[slot] for key, value in obs.items()} if self.keyed else obs[slot]
                info["terminal_observation"] = last
            obs = self.reset()
        return obs, rewards, np.full(self.num_envs, done), infos

    def close(self):
        pass

    def get_attr(self, attr_name, indices=None):
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name, value, indices=None):
        setattr(self, attr_name, value)

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False for _ in self._get_indices(indices)]


ACTIONS = {
    "discrete": spaces.Discrete(3),
    "binary": spaces.MultiBinary(2),
    "box": spaces.Box(-1, 1, (2,), np.float32),
}


class Earner(gym.Env):
    """An agent of one group, as info tells, that earns its action; in a stream everybody who comes is of a random one.

    :param group: of the agent, None: random in every step
    :param tells: whether info has the label
    :param action: form of the actions
    :param pay: for each of them
    """

    observation_space = SEEN

    def __init__(self, group=None, length=4, tells=True, action="discrete", pay=1.0):
        self.group, self.length, self.tells, self.pay = group, length, tells, pay
        self.action_space = ACTIONS[action]

    def _observe(self):
        self.present = int(self.np_random.integers(2)) if self.group is None else self.group
        return np.array([self.t, self.np_random.normal(), self.present], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._observe(), {}

    def step(self, action):
        reward = self.pay * float(np.sum(action)) * (2 if self.present == 0 else 1)
        info = {"individual": {"group": self.present}} if self.tells else {}
        self.t += 1
        return self._observe(), reward, False, self.t == self.length, info


def earners(n=4, cls=DummyVecEnv, stream=False, **settings):
    venv = cls([lambda i=i: Earner(None if stream else i % 2, **settings) for i in range(n)])
    venv.seed(0)
    return venv
