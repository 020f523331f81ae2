"""Small F-PPO models on the bank, their weights, and a callback that looks at rollouts."""

from functools import partial

import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from sb3_fair.f_ppo import FPPO
from tests.f_ppo.bank import Bank

FORK = partial(SubprocVecEnv, start_method="fork")
NEUTRAL = {"massage": False, "reg_lambda": 0.0}


def banks(n=3, cls=DummyVecEnv, **settings):
    return make_vec_env(lambda: Bank(**settings), n_envs=n, seed=0, vec_env_cls=cls)


def model_of(venv, algorithm=FPPO, **settings):
    policy = "MultiInputPolicy" if isinstance(venv.observation_space, spaces.Dict) else "MlpPolicy"
    given = {"n_steps": 24, "batch_size": 24, "n_epochs": 2, "seed": 0, "device": "cpu"}
    return algorithm(policy, venv, **(given | settings))


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()]).cpu().numpy()


def changed(model, venv, path, **settings):
    """``model`` with other settings: loaded with them from ``path``, or itself where that is None."""
    if path is None:
        vars(model).update(settings)
        return model
    model.save(path)
    return type(model).load(path, env=venv, device="cpu", **settings)


def learned(model, steps, callback=None, **more):
    """``model`` after training whose logs were not written, so that they can be looked at."""
    return model.learn(steps, callback, log_interval=1000, **more)


class Watch(BaseCallback):
    """Calls ``look(model, locals)`` after every step, ``end(model)`` after every rollout."""

    def __init__(self, look=None, end=None):
        super().__init__()
        self.look, self.end = look, end

    def _on_step(self):
        if self.look is not None:
            self.look(self.model, self.locals)
        return True

    def _on_rollout_end(self):
        if self.end is not None:
            self.end(self.model)
