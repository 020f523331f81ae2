"""Do the algorithms of SB3 and sb3-contrib train on a fairness MDP that sees their real action probabilities?"""

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import QRDQN, TRPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize

from sb3_fair import make_vec
from sb3_fair.wrappers import VecChoices
from sb3_fair.zoo.runs import train
from sb3_fair.zoo.runs.plan import make_plan

ENV = "sb3_fair:sb3_fair/JobHiring-Small-v0"
REWARD = {"objectives": ("R", "SP", "IF"), "window": 50, "scalarise": (1.0, 0.5, 0.1)}
ON_POLICY = {
    PPO: ("MlpPolicy", {"n_steps": 32, "batch_size": 32, "n_epochs": 1}),
    A2C: ("MlpPolicy", {"n_steps": 8}),
    TRPO: ("MlpPolicy", {"n_steps": 32, "batch_size": 32}),
    RecurrentPPO: ("MlpLstmPolicy", {"n_steps": 32, "batch_size": 32, "n_epochs": 1}),
}
OFF_POLICY = {DQN: {"learning_starts": 20}, QRDQN: {"learning_starts": 20}}


class Spy(gym.Wrapper):
    """Notes the probabilities that arrive with the actions."""

    def __init__(self, env):
        super().__init__(env)
        self.rows = []

    def step(self, action):
        self.rows.append(getattr(action, "probabilities", None))
        return self.env.step(action)


def batched(n_envs=2):
    return make_vec(ENV, n_envs, seed=3, **REWARD)


def recorded(venv):
    """The rows that the tracker of a batched environment was given, step by step."""
    while not hasattr(venv, "_tracker"):
        venv = venv.venv
    tracker, rows = venv._tracker, []
    add = tracker.add

    def noting(*args, probabilities=None, **kwargs):
        rows.append(np.array(probabilities))
        return add(*args, probabilities=probabilities, **kwargs)

    tracker.add = noting
    return rows


@pytest.mark.parametrize("algorithm", ON_POLICY)
def test_actor_critics_hand_over_what_they_drew_from(algorithm):
    policy, settings = ON_POLICY[algorithm]
    venv = VecChoices(batched())
    model = algorithm(policy, venv, seed=0, **settings)
    venv.follow(model)
    venv.seed(3)
    drawn, forward = [], model.policy.forward

    def noting(*args, **kwargs):
        result = forward(*args, **kwargs)
        drawn.append(model.policy.action_dist.distribution.probs.detach().cpu().numpy().copy())
        return result

    model.policy.forward = noting
    model.learn(8, callback=lambda *_: True)  # the first reset renews the tracker
    rows = recorded(venv)
    drawn.clear()
    model.learn(128, reset_num_timesteps=False)
    assert len(rows) == len(drawn) >= 64
    np.testing.assert_array_equal(rows, drawn)


@pytest.mark.parametrize("algorithm", OFF_POLICY)
def test_q_learners_hand_over_epsilon_greedy_rows(algorithm):
    venv = VecChoices(batched())
    model = algorithm(
        "MlpPolicy", venv, seed=0, exploration_initial_eps=0.4, exploration_final_eps=0.4, **OFF_POLICY[algorithm]
    )
    venv.follow(model)
    model.learn(8)
    rows = recorded(venv)
    model.learn(60, reset_num_timesteps=False)
    rows = np.array(rows)
    assert (rows[:6] == 0.5).all(), "of steps 8, 10, ..., 18"
    assert set(np.unique(rows[6:].round(6))) == {0.2, 0.8}


@pytest.mark.parametrize("algorithm", OFF_POLICY)
def test_q_learners_are_evaluated_in_their_own_environment_without_exploration(algorithm):
    venv = VecChoices(batched())
    model = algorithm("MlpPolicy", venv, seed=0, **OFF_POLICY[algorithm])
    venv.follow(model)
    model.learn(60)
    rows = recorded(venv)
    evaluate_policy(model, model.get_env(), n_eval_episodes=2, warn=False)
    assert set(np.unique(rows)) == {0.0, 1.0}
    model.learn(20, reset_num_timesteps=False)
    assert not set(np.unique(rows[-5:])) <= {0.0, 1.0}


@pytest.mark.parametrize("vec_env_cls", [None, SubprocVecEnv])
def test_probabilities_reach_single_envs_through_monitor_normalisation_and_pipes(vec_env_cls):
    inner = make_vec_env(ENV, 2, seed=0, env_kwargs=REWARD, wrapper_class=Spy, vec_env_cls=vec_env_cls)
    venv = VecChoices(inner)
    model = PPO("MlpPolicy", VecNormalize(venv), n_steps=16, batch_size=16, n_epochs=1, seed=0)
    venv.follow(model)
    model.learn(32)
    rows = np.array(inner.get_attr("rows"))
    assert rows.shape == (2, 16, 2)
    np.testing.assert_allclose(rows.sum(axis=-1), 1, atol=1e-5)
    assert ((rows > 0) & (rows < 1)).all()
    inner.close()


def test_evaluate_policy_sees_the_probabilities_of_the_policy():
    model = PPO("MlpPolicy", batched(), seed=0)
    inner = make_vec_env(ENV, 1, seed=0, env_kwargs=REWARD, wrapper_class=Spy)
    evaluate_policy(model, VecChoices(inner).follow(model), n_eval_episodes=1, warn=False)
    rows = np.array(inner.get_attr("rows")[0])
    assert ((rows > 0) & (rows < 1)).all()


def test_handing_over_probabilities_changes_nothing_else():
    weights = []
    for follow in (False, True):
        venv = VecChoices(make_vec(ENV, 2, seed=3, **{**REWARD, "scalarise": (1.0, 0.5, 0.0)}))
        model = PPO("MlpPolicy", venv, n_steps=32, batch_size=32, seed=0)
        if follow:
            venv.follow(model)
        model.learn(128)
        weights.append(model.policy.state_dict())
    for name, tensor in weights[0].items():
        assert torch.equal(tensor, weights[1][name])


@pytest.mark.slow
def test_ppo_learns_to_hire():
    venv = make_vec("sb3_fair/JobHiring-Small-v0", 16, seed=0)
    model = PPO("MlpPolicy", venv, n_steps=128, batch_size=256, gamma=1.0, learning_rate=1e-3, seed=0)
    model.learn(60_000)
    returns, _ = evaluate_policy(model, make_vec("sb3_fair/JobHiring-Small-v0", 16, seed=99), n_eval_episodes=64)
    assert returns > 8


def test_a_run_closes_the_files_of_its_log(monkeypatch, tmp_path):
    made, run_logger = [], train.run_logger
    monkeypatch.setattr(train, "run_logger", lambda *of: made.append(run_logger(*of)) or made[-1])
    train.train(make_plan("a2c", "sb3_fair/JobHiring-Small-v0", n_timesteps=10), log_dir=tmp_path)
    assert made[0].output_formats[0].file.closed
