"""Fairness MDPs with Box, MultiDiscrete and MultiBinary actions are trained on with PPO and PCN."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from sb3_fair import PCN, FairPPO, PPOLagrangian
from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import FairMDP, Scalarise, VecChoices, VectorReward

SPACES = {
    "MultiDiscrete": (spaces.MultiDiscrete([3, 2]), lambda actions: actions[:, 0] > 0),
    "MultiBinary": (spaces.MultiBinary(3), lambda actions: actions.sum(axis=1) > 1),
    "Box": (spaces.Box(-2, 2, (1,), np.float32), lambda actions: actions[:, 0] > 0),
}
"""Actions of an application, and which of them are favourable."""


class Applications(gym.Env):
    """One applicant per step, of one of two groups; the favourable decision pays."""

    def __init__(self, kind):
        self.action_space, self.favourable = SPACES[kind]
        self.observation_space = spaces.Box(0, 1, (2,), np.float32)

    def _next(self):
        self.applicant = self.np_random.random(2).astype(np.float32)
        return self.applicant

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._next(), {}

    def step(self, action):
        assert self.action_space.contains(np.asarray(action, dtype=self.action_space.dtype)), action
        reward = float(self.favourable(np.asarray(action)[None])[0])
        self.t += 1
        return self._next(), reward, False, self.t == 20, {}


def fair(env, favourable, notions=("SP",), **features):
    spec = FairnessSpec(
        group=lambda obs, info: int(obs[0] > 0.5), favourable=favourable, notions=notions, feedback=None, **features
    )
    return VectorReward(FairMDP(env, spec), ("R", *notions))


def pendulum():
    return fair(gym.make("Pendulum-v1", max_episode_steps=20), SPACES["Box"][1])


def envs(kind, **more):
    return fair(Applications(kind), SPACES[kind][1], **more)


@pytest.mark.parametrize("make", [pendulum, *(lambda kind=kind: envs(kind) for kind in SPACES)])
@pytest.mark.parametrize("algorithm", [PPO, PCN])
def test_actions_of_any_space_are_trained_on_r_and_sp(make, algorithm):
    if algorithm is PPO:
        venv = DummyVecEnv([lambda: Scalarise(make(), (1.0, 0.5))] * 2)
        model = PPO("MlpPolicy", venv, n_steps=40, batch_size=20, n_epochs=1, seed=0, device="cpu").learn(160)
    else:
        venv = DummyVecEnv([make] * 2)
        model = PCN("MlpPolicy", venv, n_fill_episodes=4, n_episodes=4, eval_freq=0, seed=0, device="cpu").learn(200)
        assert np.isfinite(model.buffer_points()).all() and model.buffer_points().shape[1] == 2
        model.set_command(model.coverage_set(2, n_commands=2)[0])
        venv = model.follow(venv)
    obs = venv.reset()
    for _ in range(20):
        obs, _, _, infos = venv.step(model.predict(obs)[0])
    assert all(-1 <= info["fairness"]["SP"] <= 0 for info in infos if info["fairness"]["SP"] is not None)


def no_cost(infos):
    return np.zeros(len(infos))


COMPARED = {"features": slice(0, 2), "low": 0, "high": 1, "sensitive": [0]}
LEARNERS = {
    "PPO": lambda venv, **more: PPO("MlpPolicy", venv, **more),
    "FairPPO": lambda venv, **more: FairPPO("MlpPolicy", venv, **more),
    "PPOLagrangian": lambda venv, **more: PPOLagrangian("MlpPolicy", venv, cost=no_cost, **more),
}


def compared(kind):
    return Scalarise(envs(kind, notions=("IF", "SP"), **COMPARED))


def multi_discrete():
    return compared("MultiDiscrete")


@pytest.mark.parametrize("kind", ["MultiDiscrete", "MultiBinary"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_notions_see_the_policy_of_actions_with_parts_in_training_and_evaluation(learner, kind):
    inner = DummyVecEnv([lambda: compared(kind)] * 2)
    venv = VecChoices(inner) if learner == "PPO" else inner
    model = LEARNERS[learner](venv, n_steps=20, batch_size=20, n_epochs=1, seed=0, device="cpu")
    if learner == "PPO":
        venv.follow(model)
    model.learn(40)
    assert inner.get_attr("probabilities_used") == ["policy"] * 2
    fresh = DummyVecEnv([lambda: compared(kind)])
    assert evaluate_vector(model, VecChoices(fresh).follow(model), 2).probabilities == "policy"
    with pytest.warns(UserWarning, match="executed actions stand for them"):
        assert evaluate_vector(model, DummyVecEnv([lambda: compared(kind)]), 1).probabilities == "executed"


def test_probabilities_of_actions_with_parts_reach_other_processes():
    inner = SubprocVecEnv([multi_discrete] * 2)
    venv = VecChoices(inner)
    model = PPO("MlpPolicy", venv, n_steps=10, batch_size=20, n_epochs=1, seed=0, device="cpu")
    venv.follow(model)
    model.learn(20)
    assert inner.get_attr("probabilities_used") == ["policy"] * 2
    venv.close()
