"""Do all variants of PPO do what their base class promises?"""

import pytest
from stable_baselines3.common.env_util import make_vec_env

from sb3_fair import FPPO, FairPPO, PPOLagrangian
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import VecFairMDP

SMALL = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "seed": 0, "device": "cpu"}
LEARNERS = pytest.mark.parametrize(
    ("algorithm", "settings"), [(FPPO, {"massage": False}), (FairPPO, {"alpha": 1.0}), (PPOLagrangian, {})]
)


def carts():
    spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0), features=slice(2, 3), low=-1, high=1, notions=("IF",))
    return VecFairMDP(make_vec_env("CartPole-v1", 2, seed=0), spec)


@LEARNERS
def test_notions_see_the_probabilities_of_the_policy(algorithm, settings):
    venv = carts()
    algorithm("MlpPolicy", venv, **SMALL, **settings).learn(32)
    assert venv.probabilities_used == "policy"


@LEARNERS
def test_logs_are_named_after_the_class(algorithm, settings, tmp_path):
    pytest.importorskip("tensorboard")

    class Own(algorithm):
        pass

    model = Own("MlpPolicy", carts(), tensorboard_log=str(tmp_path), **SMALL, **settings)
    model.learn(16)
    model.learn(16, tb_log_name="PPO")
    model.learn(16, tb_log_name=None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Own_1", "Own_2", "PPO_1"]


@LEARNERS
def test_buffers_are_checked_again_in_a_loaded_model(algorithm, settings, tmp_path):
    algorithm("MlpPolicy", carts(), **SMALL, **settings).save(tmp_path / "model")
    with pytest.raises(ValueError, match="rollout_buffer_class must be"):
        algorithm.load(tmp_path / "model", env=carts(), custom_objects={"rollout_buffer_class": int})
