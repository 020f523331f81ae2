"""Are the attributes and methods of our VecEnv wrappers found through every other wrapper?"""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_equal
from stable_baselines3.common.vec_env import VecEnvWrapper, VecMonitor, VecNormalize

import sb3_fair
from sb3_fair.fairness import Scheme
from sb3_fair.wrappers.layer import VecLayer

SETTINGS = {
    "sb3_fair/Doughnut-Small-v0": {
        "objectives": ("R", "SP"),
        "scalarise": (1, 1),
        "scheme": Scheme(),
        "memory": "full",
    },
    "sb3_fair/Lending-v0": {"objectives": ("R", "SP", "IF"), "reset_on_episode": False},
    "sb3_fair/JobHiring-Small-v0": {},
}


def shown(step):
    obs, rewards, dones, infos = step
    told = [{key: info[key] for key in ("fairness", "vector_reward", "episode") if key in info} for info in infos]
    for info in told:
        info.get("episode", {}).pop("t", None)
    return obs, rewards, dones, told


def layers(venv):
    while isinstance(venv, VecEnvWrapper):
        yield venv
        venv = venv.venv


@pytest.mark.parametrize("outside", [VecMonitor, lambda venv: VecMonitor(VecNormalize(venv))])
@pytest.mark.parametrize("env_id", SETTINGS)
def test_the_outermost_of_our_layers_answers_for_every_public_name(env_id, outside):
    inside = sb3_fair.make_vec(env_id, 2, monitor=False, **SETTINGS[env_id])
    venv = outside(inside)
    ours = [layer for layer in layers(inside) if isinstance(layer, VecLayer)]
    names = {
        name
        for layer in ours
        for name in {*vars(type(layer)), *layer.methods, *vars(layer)}
        if not name.startswith("_")
    }
    assert names > {"forget_history", "fairness_spec"}
    for name in names - set(dir(VecNormalize)) - set(vars(venv)) - set(vars(venv.venv)):
        owner = next(layer for layer in ours if name in {*vars(layer), *dir(type(layer))})
        assert repr(getattr(venv, name)) == repr(getattr(owner, name)), name
    for layer in ours:
        for name in layer.published:
            found = venv.get_attr(name, indices=[1])
            assert venv.has_attr(name) and len(found) == 1 and repr(found[0]) == repr(getattr(inside, name)), name
        for name in layer.methods:
            assert venv.has_attr(name) and venv.get_attr(name, indices=[1])[0].func == getattr(inside, name), name


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda venv: pickle.loads(pickle.dumps(venv))])
@pytest.mark.parametrize("env_id", SETTINGS)
def test_a_copy_in_the_middle_of_an_episode_goes_on_like_its_original(env_id, duplicate):
    venv = sb3_fair.make_vec(env_id, 2, seed=0, **SETTINGS[env_id])
    venv.reset()
    for _ in range(7):
        venv.step([0, 1])
    twin = duplicate(venv)
    for step in range(60):
        assert_equal(shown(twin.step([step % 2] * 2)), shown(venv.step([step % 2] * 2)))


@pytest.mark.parametrize("forget", ["attribute", "env_method", "gym.make_vec", "one copy"])
def test_histories_that_are_carried_over_are_forgotten_through_all_wrappers(forget):
    settings = {"objectives": ("R", "SP"), "emit": "difference", "reset_on_episode": False}
    if forget == "gym.make_vec":
        envs = gym.make_vec("sb3_fair/JobHiring-Small-v0", 3, **settings)
        venv = envs.venv
    else:
        venv = sb3_fair.make_vec("sb3_fair/JobHiring-Small-v0", 3, **settings)
    venv.seed(0)
    venv.reset()
    for action in np.random.default_rng(0).integers(2, size=(30, 3)):
        before = [info["fairness"]["SP"] for info in venv.step(action)[3]]
    if forget == "attribute":
        venv.forget_history()
    elif forget == "one copy":
        assert venv.env_method("forget_history", indices=1) == [None]
    else:
        (envs if forget == "gym.make_vec" else venv).env_method("forget_history")
    infos = venv.step(np.ones(3, dtype=int))[3]
    kept = [info["fairness"]["SP"] is not None for info in infos]
    assert kept == ([True, False, True] if forget == "one copy" else [False] * 3)
    changes = [info["vector_reward"][1] for info in infos]
    assert changes[1] == 0.0
    for info, was, change in zip(infos, before, changes, strict=True):
        assert info["fairness"]["SP"] is None or info["fairness"]["SP"] == pytest.approx(was + change)
