"""Do doughnuts and loans take the same path in all their forms?"""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal, assert_equal

from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.doughnut.world import DoughnutWorld
from sb3_fair.zoo.envs.loans.world import LoanAllocationWorld
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv
from tests.zoo.forms import side_by_side

WORLDS = [
    (DoughnutWorld, {"n_people": 3, "episode_length": 7, "detail": True}),
    (DoughnutWorld, {"presence": (0.1, 0.2, 0.3), "n_people": 3, "clock": True, "end": "terminated"}),
    (LoanAllocationWorld, {"episode_length": 7, "detail": True}),
    (LoanAllocationWorld, {"credit": "gaussian", "paper": True, "apply_probability": 0.3}),
]

FIGURE = {DoughnutWorld: "wasted", LoanAllocationWorld: "parity"}


def actions_of(world_cls, steps, n):
    return np.random.default_rng(0).integers(world_cls(1).action_space.n - 2, size=(steps, n))


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
@pytest.mark.parametrize(("seed", "n"), [(0, 1), (7, 3)])
def test_copy_i_of_a_vecenv_is_the_single_environment_seeded_s_plus_i(world_cls, config, seed, n):
    ends = sum(dones.sum() for dones, _ in side_by_side(world_cls, n, seed, actions_of(world_cls, 110, n), **config))
    assert ends >= n


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
def test_a_gymnasium_vector_env_tells_the_same(world_cls, config):
    vector, venv = (WorldVecEnv(world_cls, 3, **config) for _ in range(2))
    ours = GymnasiumVector(vector)
    venv.seed(5)
    assert_array_equal(ours.reset(seed=5)[0], venv.reset())
    for actions in actions_of(world_cls, 30, 3):
        obs, rewards, terminated, truncated, infos = ours.step(actions)
        obs_, rewards_, dones_, infos_ = venv.step(actions)
        assert_array_equal(obs, obs_)
        assert_array_equal(rewards, rewards_)
        assert_array_equal(terminated | truncated, dones_)
        told = infos["final_info"] if dones_.all() else infos
        assert_array_equal(told["fairness"][FIGURE[world_cls]], stack(infos_, "fairness")[FIGURE[world_cls]])


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
def test_what_a_step_hands_out_never_changes_afterwards(world_cls, config):
    env = WorldVecEnv(world_cls, 4, **config)
    env.seed(0)
    handed = [(env.reset(), [])]
    kept = copy.deepcopy(handed)
    keys = ["individual", "fair_event", "fairness"] + ["detail"] * config.get("detail", False)
    for actions in actions_of(world_cls, 20, 4):
        obs, rewards, dones, infos = env.step(actions)
        step = obs, [rewards, dones, *(stack(infos, key) for key in keys)]
        handed.append(step)
        kept.append(copy.deepcopy(step))
    assert_equal(handed, kept)


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
def test_a_copy_of_a_vecenv_continues_identically(world_cls, config):
    env = WorldVecEnv(world_cls, 3, **config)
    env.seed(0)
    env.reset()
    actions = actions_of(world_cls, 40, 3)
    for action in actions[:20]:
        env.step(action)
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    for action in actions[20:]:
        steps = [each.step(action) for each in (env, *twins)]
        told = [[*step[:3], [dict(info.copy()) for info in step[3]]] for step in steps]
        assert_equal(told[0], told[1])
        assert_equal(told[0], told[2])


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_path_does_not_depend_on_how_much_of_the_tape_is_drawn_at_once(world_cls, config, rows):
    def play(world):
        world.reset(np.arange(2), [np.random.default_rng(index) for index in range(2)])
        return [world.step(actions)[:2] for actions in actions_of(world_cls, 30, 2)]

    short = world_cls(2, **config)
    short.tapes = Tapes(2, short.tapes.columns, short.tapes.derive, rows=rows)
    assert_equal(play(short), play(world_cls(2, **config)))


@pytest.mark.parametrize("world_cls", [DoughnutWorld, LoanAllocationWorld])
def test_base_mask_and_welfare_make_up_the_reward(world_cls):
    env = WorldVecEnv(world_cls, 50, episode_length=9, detail=True)
    env.seed(3)
    env.reset()
    for actions in actions_of(world_cls, 30, 50):
        _, rewards, _, infos = env.step(actions)
        event, counts = stack(infos, "fair_event"), stack(infos, "detail")["counts"]
        welfare = env.world.scheme.W(counts)
        assert_array_equal(rewards, np.where(event.mask, event.base + welfare, event.base))
        assert (event.granted.dtype, event.base.dtype, event.mask.dtype) == (bool, float, bool)


@pytest.mark.parametrize("world_cls", [DoughnutWorld, LoanAllocationWorld])
def test_people_who_are_not_there_are_left_out_of_single_infos(world_cls):
    env = WorldEnv(world_cls)
    obs, _ = env.reset(seed=0)
    for _ in range(30):
        there = np.flatnonzero(obs[: env.action_space.n])
        obs, *_, info = env.step(0)
        people = info["individual"]
        assert len(people["group"]) == len(people["action"]) == len(people["features"]) == len(there)
        assert_array_equal(people["action"], there == 0)
