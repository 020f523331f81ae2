"""The two faces of a world beside each other."""

import numpy as np
from numpy.testing import assert_array_equal, assert_equal
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv
from sb3_fair.zoo.registry.registration import WORLDS

SINGLE = [env_id for env_id in WORLDS if "Harvest-All" not in env_id]
"""Those that gym.make makes: in the others, every agent has a slot."""


def side_by_side(world_cls, n, seed, actions, **config):
    """Compares all that a batch of n copies tells with what n single environments tell.

    :param seed: of the batch; copy i is the single environment seeded ``seed + i``
    :param actions: (steps, n, ...)
    :return: after every step, which episodes ended (n,), and the single environments
    """
    ours = WorldVecEnv(world_cls, n, **config)
    singles = DummyVecEnv([lambda: WorldEnv(world_cls, **config)] * n)
    ours.seed(seed)
    singles.seed(seed)
    assert_array_equal(ours.reset(), singles.reset())
    for chosen in actions:
        obs, rewards, dones, infos = ours.step(chosen)
        obs_, rewards_, dones_, infos_ = singles.step(chosen)
        assert_array_equal(obs, obs_)
        assert obs.dtype == obs_.dtype
        assert_array_equal(rewards.astype(np.float32), rewards_)
        assert_array_equal(dones, dones_)
        assert_equal([dict(info.copy()) for info in infos], infos_)
        assert_equal([dict(info.copy()) for info in ours.reset_infos], singles.reset_infos)
        yield dones, singles.envs
