"""Small F-PPO models on the bank."""

from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.f_ppo import FPPO
from tests.f_ppo.bank import Bank

NEUTRAL = {"massage": False, "reg_lambda": 0.0}


def banks(n=3, cls=DummyVecEnv, **settings):
    return make_vec_env(lambda: Bank(**settings), n_envs=n, seed=0, vec_env_cls=cls)


def model_of(venv, algorithm=FPPO, **settings):
    policy = "MultiInputPolicy" if isinstance(venv.observation_space, spaces.Dict) else "MlpPolicy"
    given = {"n_steps": 24, "batch_size": 24, "n_epochs": 2, "seed": 0, "device": "cpu"}
    return algorithm(policy, venv, **(given | settings))


def changed(model, venv, path, **settings):
    """``model`` with other settings: loaded with them from ``path``, or itself where that is None."""
    if path is None:
        vars(model).update(settings)
        return model
    model.save(path)
    return type(model).load(path, env=venv, device="cpu", **settings)
