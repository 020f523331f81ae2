"""What several tests of environments share: forms beside each other, rules that are played, people of a table."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import DictInfoToList
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import sb3_fair
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
LAYOUT = {  # of a harvest
    "width": 6,
    "height": 5,
    "agents": [{"x": 2, "y": 2, "preference": "red", "sensitive": 1}, {"x": 5, "y": 0, "preference": "blue"}],
    "bushes": [{"x": 2, "y": 3, "color": "red"}],
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
        if hasattr(world_cls, "action_masks"):
            assert_array_equal(get_action_masks(ours), get_action_masks(singles))
        yield dones, singles.envs


def begun(world_cls, n=1, seed=0, **config):
    """A batch of worlds at the beginning of their first episode, copy i seeded ``seed + i``."""
    world = world_cls(n, **config)
    world.reset(np.arange(n), [np.random.default_rng(seed + i) for i in range(n)])
    return world


def returns_of(rule, world):
    """Returns (n,) of a rule, a function of the world, in the episodes that have just begun."""
    rng, total = np.random.default_rng(1), np.zeros(world.n_worlds)
    for _ in range(world.max_steps):
        rows = rule(world)
        assert_allclose(rows.sum(axis=1), 1)
        total += world.step((rows.cumsum(axis=1) < rng.random((world.n_worlds, 1))).sum(axis=1))[1]
    return total


def assert_close(sample, exact):
    """The mean of a sample is within three standard errors of what it should be."""
    assert sample.mean() == pytest.approx(exact, abs=3 * sample.std() / len(sample) ** 0.5)


def of_sb3(env_id, n, seed, env_kwargs, **how):
    return make_vec_env(env_id, n, seed=seed, env_kwargs=env_kwargs, **how)


MAKERS = {
    "batch": lambda env_id, n, seed, settings: sb3_fair.make_vec(env_id, n, seed=seed, **settings),
    "processes": lambda env_id, n, seed, settings: sb3_fair.make_vec(env_id, n, seed, vec_env="subproc", **settings),
    "sb3": of_sb3,
    "subproc": partial(of_sb3, vec_env_cls=SubprocVecEnv),
    "spawned": partial(of_sb3, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "spawn"}),
    "gymnasium": lambda env_id, n, _, settings: DictInfoToList(gym.make_vec(env_id, num_envs=n, **settings)),
}


def path_of(form, env_id, actions, seed, **settings):
    """What the copies of an ID tell, copy i seeded ``seed + i``: observation, reward, whether the episode ended, info.

    :param form: a key of :data:`MAKERS`, or ``"single"``: environments one after the other
    :param actions: (steps, n)
    :return: (n, steps) of these
    """
    if form == "single":
        return [list(_alone(gym.make(env_id, **settings), own, seed + i)) for i, own in enumerate(actions.T)]
    venv = MAKERS[form](env_id, actions.shape[1], seed, settings)
    venv.reset(**({"seed": seed} if form == "gymnasium" else {}))
    steps = []
    for chosen in actions:
        obs, rewards, *ends, infos = venv.step(chosen)
        last = [info.get("final_info", info) for info in infos] if form == "gymnasium" else infos
        steps.append(zip(obs, rewards, np.any(ends, axis=0), last, strict=True))
    venv.close()
    return [list(path) for path in zip(*steps, strict=True)]


def _alone(env, actions, seed):
    env.reset(seed=seed)
    for action in actions.tolist():
        obs, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        yield env.reset()[0] if over else obs, reward, over, info
