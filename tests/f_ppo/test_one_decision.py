"""Episodes of one decision: disparities are counted over episodes where the history is carried over."""

import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair import FPPO, PPOLagrangian
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import FairMDP
from sb3_fair.wrappers.disparity import VecDisparity
from sb3_fair.wrappers.layer import forget_history

SMALL = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "seed": 0, "device": "cpu"}


class Loan(gym.Env):
    """One applicant, one decision; granting group 0 pays, granting group 1 costs."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def _applicant(self):
        self.group = int(self.np_random.integers(2))
        return np.array([self.group], dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._applicant(), {}

    def step(self, action):
        reward = float(action) * (1 - 2 * self.group)
        return self._applicant(), reward, True, False, {}


def bank(carried_over):
    spec = FairnessSpec(group=lambda obs, info: int(obs[0]), notions=("SP",))
    return DummyVecEnv([lambda: FairMDP(Loan(), spec, reset_on_episode=not carried_over)] * 8)


def played(venv, steps=40):
    """The last infos of a policy that grants group 0 alone."""
    venv.seed(0)
    obs = venv.reset()
    for _ in range(steps):
        obs, _, _, infos = venv.step((obs[:, 0] == 0).astype(int))
    return infos


@pytest.mark.parametrize("carried_over", [True, False])
def test_disparity_is_counted_over_the_history_of_the_fairness_mdp(carried_over):
    venv = VecDisparity(bank(carried_over))
    for info in played(venv):
        gap = -info["fairness"]["SP"] if carried_over else 0.0
        assert gap == carried_over
        assert [info["fairness"][name] for name in ("d_s", "d_s_prev", "d_l", "d_l_next")] == [gap] * 4
    forget_history(venv, 3)
    venv.step(np.ones(8, dtype=int))
    _, _, _, infos = venv.step(np.ones(8, dtype=int))
    assert [info["fairness"]["d_l_next"] > 0 for info in infos] == [carried_over and copy != 3 for copy in range(8)]


@pytest.mark.parametrize("algorithm", [PPOLagrangian, FPPO])
def test_learners_see_the_disparity_of_episodes_of_one_decision(algorithm):
    settings = {"cost_limit": 0.01} if algorithm is PPOLagrangian else {"reg_lambda": 100.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = algorithm("MlpPolicy", bank(True), **settings, **SMALL).learn(256)
    name = "cost" if algorithm is PPOLagrangian else "d_s"
    assert model.rollout_buffer.columns[name].mean() > 0
    assert getattr(model, "constraint_met", False) is False
    with pytest.warns(UserWarning, match="reset_on_episode=False"):
        algorithm("MlpPolicy", bank(False), **settings, **SMALL).learn(256)


def test_a_policy_that_has_learned_to_treat_all_alike_is_no_reason_to_warn():
    model = FPPO("MlpPolicy", bank(True), **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for disparity in (0.1, 0.0, 0.0, 0.0):
            model._warn_of_zeros("d_s", np.full((16, 8), disparity))


SCRIPT = """
import sys
from contextlib import nullcontext
from threading import Lock

from stable_baselines3.common.vec_env import SubprocVecEnv

from sb3_fair import FPPO
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import FairMDP
from tests.f_ppo.test_one_decision import SMALL, Loan


METHOD = sys.argv[1]
LOCK = Lock() if METHOD == "fork" else nullcontext()  # which no pickle may contain


def group(obs, info):
    with LOCK:
        return int(obs[0])


def make():
    return FairMDP(Loan(), FairnessSpec(group=group), reset_on_episode=False)


if __name__ == "__main__":
    FPPO("MlpPolicy", SubprocVecEnv([make] * 2, start_method=METHOD), **SMALL).learn(16)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_group_may_be_a_function_of_the_script_that_is_run(tmp_path, method):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py"), method], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
