"""Our learners with small settings, and one environment that tells all of them what they need."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from sb3_fair import FPPO, PCN, FairPPO, FairQCM, PPOLagrangian, RecurrentDQN, TabularFairQCM
from sb3_fair.fairness import FairnessSpec
from tests.fair_qcm.sharing import Sharing

OBSERVATIONS = {
    "box": spaces.Box(0, 1, (2,), np.float32),
    "discrete": spaces.Discrete(4),
    "multidiscrete": spaces.MultiDiscrete([2, 2]),
    "multibinary": spaces.MultiBinary(2),
    "dict": spaces.Dict({"there": spaces.Box(0, 1, (2,), np.float32), "who": spaces.Discrete(4)}),
    "image": spaces.Box(0, 255, (36, 36, 3), np.uint8),
}


class Everything(Sharing):
    """Sharing, with two objectives, the group that is decided on next, and any kind of observation."""

    objective_names = ("R", "least")
    fairness_spec = FairnessSpec(notions=())

    def __init__(self, kind="box"):
        super().__init__()
        self.kind, self.observation_space = kind, OBSERVATIONS[kind]

    def _observation(self):
        self.there = self.np_random.random(2) < self.presence
        number = int(self.there @ (1, 2))
        return {
            "box": self.there.astype(np.float32),
            "discrete": number,
            "multidiscrete": self.there.astype(np.int64),
            "multibinary": self.there.astype(np.int8),
            "dict": {"there": self.there.astype(np.float32), "who": number},
            "image": np.full((36, 36, 3), 60 * number, dtype=np.uint8),
        }[self.kind]

    def reset(self, *, seed=None, options=None):
        obs, _ = super().reset(seed=seed, options=options)
        return obs, {"massage": {"group": 0}}

    def step(self, action):
        decided = {"group": self.t % 2, "action": int(action)}
        obs, reward, terminated, truncated, info = super().step(action)
        vector = np.array([reward, self.counts.min()])
        told = {"massage": {"group": self.t % 2}, "individual": decided, "vector_reward": vector}
        return obs, reward, terminated, truncated, {**info, **told}


class Numbers(gym.Env):
    """Actions that are no integers, and a cost."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)

    def __init__(self, actions):
        self.action_space = actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.np_random.random(2, dtype=np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.t += 1
        info = {"individual": {"group": self.t % 2}, "fairness": {"gap": float(np.sum(action))}}
        return self.np_random.random(2, dtype=np.float32), float(np.sum(action)), False, self.t == 5, info


ON_POLICY = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "device": "cpu"}
OFF_POLICY = {"learning_starts": 8, "batch_size": 8, "buffer_size": 200, "device": "cpu"}
LEARNERS = {
    "FairPPO": (FairPPO, {**ON_POLICY, "alpha": 0.5}),
    "FPPO": (FPPO, ON_POLICY),
    "PPOLagrangian": (PPOLagrangian, ON_POLICY),
    "FairQCM": (FairQCM, OFF_POLICY),
    "RecurrentDQN": (RecurrentDQN, {**OFF_POLICY, "policy_kwargs": {"hidden_size": 8}}),
    "TabularFairQCM": (TabularFairQCM, {}),
    "PCN": (
        PCN,
        {"n_fill_episodes": 4, "n_episodes": 2, "n_updates": 2, "buffer_size": 8, "eval_freq": 0, "device": "cpu"},
    ),
}


def envs(kind="box", n=2, vec_env=DummyVecEnv):
    more = {"start_method": "fork"} if vec_env is SubprocVecEnv else {}
    return vec_env([lambda: Monitor(Everything(kind)) for _ in range(n)], **more)


def make(name, env=None, policy="MlpPolicy", **more):
    """A new model; of a table, without policy."""
    algorithm, settings = LEARNERS[name]
    arguments = (env or envs(),) if name == "TabularFairQCM" else (policy, env or envs())
    return algorithm(*arguments, **{"seed": 0, **settings, **more})


def numbers(model):
    """All that a model has learned, by name."""
    if isinstance(model, TabularFairQCM):
        return dict(model.table_arrays())
    return {name: value.detach().cpu().numpy() for name, value in model.policy.state_dict().items()}


def observed(model):
    """An observation of each copy of the model's environment, with all that the model adds."""
    model.get_env().seed(3)
    return model.get_env().reset()


def first_of(obs):
    return {key: value[0] for key, value in obs.items()} if isinstance(obs, dict) else obs[0]
