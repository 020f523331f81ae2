"""Small PCN models on the chain."""

from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.pcn import PCN
from tests.pcn.chain import Chain

QUICK = {"n_fill_episodes": 10, "n_episodes": 4, "n_updates": 2, "batch_size": 16, "eval_freq": 0, "device": "cpu"}


def model_on(env, seed=0, **more):
    return PCN("MlpPolicy", env, seed=seed, **{**QUICK, **more})


def chains(n, **kind):
    return DummyVecEnv([lambda: Chain(**kind) for _ in range(n)])
