"""EvalCallback works with VecNormalize, whatever layers an algorithm or its evaluation adds; bare VecEnvs work too."""

import warnings

import numpy as np
import pytest
from stable_baselines3.common.callbacks import CallbackList, EvalCallback, EveryNTimesteps
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize, unwrap_vec_normalize

from sb3_fair import FPPO, PCN, PPOLagrangian
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import FairMDP
from tests.f_ppo.bank import Bank
from tests.pcn.chain import Chain

SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "seed": 0, "device": "cpu"}


def generic():
    spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0), notions=())
    return FairMDP(Bank(tells=()), spec)


def normalised(make, **settings):
    return VecNormalize(DummyVecEnv([lambda: Monitor(make())] * 2), **settings)


WAYS = [(FPPO, way) for way in ("plain", "inside", "bound", "massaged")] + [(PPOLagrangian, "plain")]


@pytest.mark.parametrize("make", [generic, Bank])
@pytest.mark.parametrize(("algorithm", "way"), WAYS)
def test_statistics_reach_the_evaluation(algorithm, make, way):
    model = algorithm("MlpPolicy", normalised(make), **SMALL)
    evaluation = normalised(make, training=False, norm_reward=False)
    if way in ("bound", "massaged"):
        model.massage_on_predict = way == "massaged"
        evaluation = model.bind(evaluation)
    evaluate(model, evaluation, 64, nested=way == "inside")


def test_statistics_reach_the_evaluation_of_a_command():
    settings = {"n_fill_episodes": 4, "n_episodes": 2, "n_updates": 1, "eval_freq": 0, "buffer_size": 8}
    model = PCN("MlpPolicy", normalised(Chain), seed=0, device="cpu", **settings).learn(20)
    model.set_command(model.coverage_set(1, eval_env=normalised(Chain))[0])
    evaluate(model, model.follow(normalised(Chain, training=False, norm_reward=False)), 20)


def evaluate(model, evaluation, steps, nested=False):
    callback = EvalCallback(evaluation, n_eval_episodes=2, eval_freq=8, verbose=0)
    outer = CallbackList([EveryNTimesteps(8, callback)]) if nested else callback
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Training and eval env are not of the same type")
        model.learn(steps, outer)
        model.learn(steps, outer)
    trained, evaluated = (unwrap_vec_normalize(venv) for venv in (model.get_env(), callback.eval_env))
    assert np.isfinite(callback.last_mean_reward)
    for name in ("mean", "var"):
        assert getattr(evaluated.obs_rms, name).shape == getattr(trained.obs_rms, name).shape
    assert evaluated.obs_rms.count > 4


class Bare(DummyVecEnv):
    """A VecEnv without ``reset_infos``."""

    def reset(self):
        return self._without(super().reset)

    def step_wait(self):
        return self._without(super().step_wait)

    def _without(self, method):
        self.reset_infos = [{}] * self.num_envs
        result = method()
        del self.reset_infos
        return result


@pytest.mark.parametrize("make", [generic, Bank])
def test_reset_infos_are_needed_for_massaging_only(make):
    FPPO("MlpPolicy", Bare([make] * 2), massage=False, **SMALL).learn(32)
