"""Are environments closed when what they were made for is done?"""

from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import sb3_fair
from sb3_fair import load_agent
from sb3_fair.fairness import FairnessSpec
from sb3_fair.zoo.evaluation.evaluate import evaluate_run
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.reference import worst_returns
from sb3_fair.zoo.runs import train as training
from sb3_fair.zoo.runs.model_file import evaluate_file
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.tuning.scores import check_figures

ENV = "test/Counter-v0"
SMALL = {"n_timesteps": 64, "n_envs": 2}
OF_PPO = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "n_eval_episodes": 2}
OF_PCN = {"n_fill_episodes": 4, "n_episodes": 4, "n_updates": 1, "updates_per_step": None, "n_eval_episodes": 1,
          "n_eval_commands": 1, "eval_freq": 0}  # fmt: skip


class Counter(gym.Env):
    """Is among those that are open from its making until it is closed."""

    open: ClassVar[list["Counter"]] = []
    observation_space, action_space = gym.spaces.Box(0, 1, (2,)), gym.spaces.Discrete(2)

    def __init__(self):
        self.open.append(self)

    def close(self):
        if self in self.open:
            self.open.remove(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(2, np.float32), {}

    def step(self, action):
        info = {"group": int(self.np_random.integers(2)), "right": int(self.np_random.integers(2))}
        return self.np_random.random(2, np.float32), 1.0, False, False, info


class Failing(Counter):
    def step(self, action):
        raise ValueError("the counter is shut")


@pytest.fixture(autouse=True)
def _counters(registries):
    spec = FairnessSpec(group="group", feedback="right", notions=("SP",))
    sb3_fair.register(ENV, Counter, spec, max_episode_steps=10, rules={"serve": lambda obs: 1})
    sb3_fair.register("test/Failing-v0", Failing, spec, max_episode_steps=10)
    Counter.open.clear()
    yield
    assert not Counter.open


def test_after_a_plan_is_made():
    assert make_plan("ppo", ENV).objectives == ("R", "SP")


@pytest.mark.parametrize(
    ("algo", "env", "message"),
    [("fair_qcm", ENV, "needs a fairness scheme"), ("ppo", "test/Failing-v0", "the counter is shut")],
)
def test_after_a_plan_is_refused(algo, env, message):
    with pytest.raises(InputError, match=message):
        make_plan(algo, env)


@pytest.mark.parametrize(("algo", "hyperparams"), [("ppo", {**OF_PPO, "normalize": True}), ("pcn", OF_PCN)])
def test_after_training_and_when_its_policy_is_loaded(tmp_path, monkeypatch, algo, hyperparams):
    monkeypatch.setattr(training, "from_run", lambda path: None)  # the report takes long
    run = training.train(make_plan(algo, ENV, hyperparams=hyperparams, **SMALL), log_dir=tmp_path)
    assert not Counter.open
    assert len(evaluate_run(run, 0, n_eval_episodes=2)) == 1
    assert load_agent(run.path, 0).act(np.zeros(2)).action in (0, 1)


@pytest.mark.parametrize("env", [ENV, "test/Plain-v0"])
def test_after_a_model_of_a_file_is_evaluated(tmp_path, env):
    gym.register("test/Plain-v0", Counter, max_episode_steps=10)
    venv = VecNormalize(DummyVecEnv([lambda: gym.make("test/Plain-v0")]))
    PPO("MlpPolicy", venv).save(tmp_path / "model.zip")
    venv.save(str(tmp_path / "vecnormalize.pkl"))
    venv.close()
    assert len(evaluate_file(tmp_path / "model.zip", "ppo", env, n_eval_episodes=2)[0]) == 1


def test_after_figures_and_reference_points_are_asked_for():
    assert worst_returns(ENV, ("R",)) == {"R": pytest.approx(9.9)}
    check_figures(make_plan("ppo", ENV), ["SP"], ["mean_SP"])
