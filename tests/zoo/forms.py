"""Forms of an environment beside each other, and people of a table for a world that needs one."""

import numpy as np
from numpy.testing import assert_array_equal, assert_equal
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv
from sb3_fair.zoo.registry.registration import WORLDS

SINGLE = [env_id for env_id in WORLDS if "Harvest-All" not in env_id]
"""Those that gym.make makes: in the others, every agent has a slot."""

PEOPLE = {
    "gender": ["f", "m", "f", "m", "f", "m"] * 5,
    "income": [10, 20, 30, 40, 50, 60] * 5,
    "job": ["cook", "clerk", "cook", "nurse", "clerk", "cook"] * 5,
    "repaid": ["no", "yes", "yes", "no", "yes", "yes"] * 5,
    "score": [1, 2, 3, 4, 5, 6] * 5,
    "id": [f"p{i // 2}" for i in range(30)],
}
TABLE = {"table": PEOPLE, "group": "gender", "outcome": "repaid", "features": ("income",), "nominal": ("job",)}


def lively(obs, rng):
    """What the others in a harvest do: a function of what they see, and of chance."""
    return (obs.sum(axis=1).astype(int) + rng.integers(8, size=len(obs))) % 8


EGO = {
    "ego": "random",
    "ego_group": 1,
    "others": lively,
    "horizon": 12,
    "detail": True,
    "obs_extra": True,
    "obs_scale": True,
}


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
