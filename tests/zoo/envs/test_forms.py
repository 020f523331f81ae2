"""Do all scenarios take the same path in all their forms?"""

import copy
import pickle
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_array_equal, assert_equal
from stable_baselines3.common.env_checker import check_env as check_env_sb3

from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.attention.world import MODES, AttentionWorld
from sb3_fair.zoo.envs.doughnut.world import DoughnutWorld
from sb3_fair.zoo.envs.epidemic.world import EpidemicWorld
from sb3_fair.zoo.envs.fraud.world import FraudWorld
from sb3_fair.zoo.envs.harvest.ego import EgoHarvestWorld
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from sb3_fair.zoo.envs.hiring.world import HiringWorld
from sb3_fair.zoo.envs.lending.world import LendingWorld
from sb3_fair.zoo.envs.loans.world import LoanAllocationWorld
from sb3_fair.zoo.envs.table import TableWorld
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.vaccines.world import VaccineDeliveryWorld
from sb3_fair.zoo.envs.visits import HomeVisitsWorld
from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv
from tests.zoo.forms import EGO, TABLE, begun, side_by_side

ALLOCATIONS = [
    (DoughnutWorld, {"n_people": 3, "episode_length": 7, "detail": True}),
    (DoughnutWorld, {"presence": (0.1, 0.2, 0.3), "n_people": 3, "clock": True, "end": "terminated"}),
    (LoanAllocationWorld, {"episode_length": 7, "detail": True}),
    (LoanAllocationWorld, {"credit": "gaussian", "paper": True, "apply_probability": 0.3}),
]
THREE_GROUPS = {
    "initial_distribution": [[0.5, 0.5, 0], [0.2, 0.3, 0.5], [0, 0.5, 0.5]],
    "repay_probability": [0.2, 0.5, 0.9],
    "group_probability": [0.2, 0.3, 0.5],
}
MOVING = {"capacity": 2, "period": 5, "feedback": "accepted", "moves": {"income": 3}, "detail": True}
WORLDS = [
    *ALLOCATIONS,
    (HomeVisitsWorld, {"at_home": (0.9, 0.5, 0.5), "slots": 4, "days": 2, "detail": True}),
    (VaccineDeliveryWorld, {"episode_length": 5, "detail": True}),
    (VaccineDeliveryWorld, {"countries": 3, "episode_length": 5}),
    (HiringWorld, {"team_size": 5, "episode_length": 30, "group": ("gender", "nationality"), "detail": True}),
    (HiringWorld, {"team_size": 4, "episode_length": 11, "steps_per_year": 30, "feedback": "hired", "detail": True}),
    (FraudWorld, {"n_hours": 20, "detail": True}),
    (FraudWorld, {"n_hours": 20, "customer_dynamics": False, "bias": 2}),
    (LendingWorld, {"starting_cash": 2.0, "window": 4, "episode_length": 9, "detail": True}),
    (LendingWorld, {"oracle_outcomes": True, "long_term_source": "window", "episode_length": 30, "window": 20}),
    (LendingWorld, {"observation": "basic", "undefined_tpr": "skip", "episode_length": 20, **THREE_GROUPS}),
    *((AttentionWorld, {"action_mode": mode, "episode_length": 7, "window": 4, "detail": True}) for mode in MODES),
    (EpidemicWorld, {"episode_length": 8}),
    (
        EpidemicWorld,
        {"initial_infected": [0], "burn_in": 1, "window": 3, "distance": "w1", "episode_length": 6, "detail": True},
    ),
    (TableWorld, {**TABLE, "episode_length": 12, "gain": 2, "loss": -3}),
    (TableWorld, {**TABLE, **MOVING, "score": "score", "group": ["gender", "job"], "episode_length": 12}),
    (EgoHarvestWorld, EGO),
    (EgoHarvestWorld, {**EGO, "others": "random"}),
]
WITHOUT_GROUPS = (AttentionWorld, EpidemicWorld)  # whose places and nodes are compared by name or number


def actions_of(world_cls, steps, n, config=None):
    space = world_cls(1, **(config or {})).action_space
    space.seed(0)
    return np.array([[space.sample() for _ in range(n)] for _ in range(steps)])


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
@pytest.mark.parametrize(("seed", "n"), [(0, 1), (7, 3)])
def test_copy_i_of_a_vecenv_is_the_single_environment_seeded_s_plus_i(world_cls, config, seed, n):
    ends = sum(
        dones.sum() for dones, _ in side_by_side(world_cls, n, seed, actions_of(world_cls, 110, n, config), **config)
    )
    assert ends >= n


SPREAD = {"width": 6, "height": 5, "n_agents": 5, "n_bushes": 9, "auto_ripen": 6, "bush_life": 14, "horizon": 30}


@pytest.mark.parametrize(
    ("world_cls", "config"),
    [*WORLDS, (AttentionWorld, {"ratio": "window", "window": 9}), (HarvestWorld, {**SPREAD, "detail": True})],
)
def test_a_seed_begins_anew_whatever_was_before(world_cls, config):
    used, new = (WorldVecEnv(world_cls, 3, **config) for _ in range(2))
    actions = actions_of(world_cls, 65, used.num_envs, config)
    used.seed(1)
    used.reset()
    for action in actions[:25]:
        used.step(action)
    for env in (used, new):
        env.seed(7)
    assert_equal(used.reset(), new.reset())
    for action in actions[25:]:
        told = [env.step(action) for env in (used, new)]
        assert_equal(*([*step[:3], [dict(info.copy()) for info in step[3]]] for step in told))
        assert_equal(*([dict(info.copy()) for info in env.reset_infos] for env in (used, new)))


@pytest.mark.parametrize(("world_cls", "config"), ALLOCATIONS)
def test_a_gymnasium_vector_env_tells_the_same(world_cls, config):
    vector, venv = (WorldVecEnv(world_cls, 3, **config) for _ in range(2))
    ours = GymnasiumVector(vector)
    venv.seed(5)
    assert_array_equal(ours.reset(seed=5)[0], venv.reset())
    for actions in actions_of(world_cls, 30, 3, config):
        obs, rewards, terminated, truncated, infos = ours.step(actions)
        obs_, rewards_, dones_, infos_ = venv.step(actions)
        assert_array_equal(obs, obs_)
        assert_array_equal(rewards, rewards_)
        assert_array_equal(terminated | truncated, dones_)
        told = infos["final_info"] if dones_.all() else infos
        for figure, values in stack(infos_, "fairness").items():
            assert_array_equal(told["fairness"][figure], values)


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
def test_what_a_step_hands_out_never_changes_afterwards(world_cls, config):
    env = WorldVecEnv(world_cls, 4, **config)
    env.seed(0)
    handed = [(env.reset(), [])]
    kept = copy.deepcopy(handed)
    for actions in actions_of(world_cls, 60, 4, config):
        obs, rewards, dones, infos = env.step(actions)
        step = obs, [rewards, dones, infos.record, [info.record for info in env.reset_infos if info]]
        handed.append(step)
        kept.append(copy.deepcopy(step))
    assert_equal(handed, kept)


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
def test_a_copy_of_a_vecenv_continues_identically(world_cls, config):
    env = WorldVecEnv(world_cls, 3, **config)
    env.seed(0)
    env.reset()
    actions = actions_of(world_cls, 40, 3, config)
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
        return [world.step(actions)[:2] for actions in actions_of(world_cls, 30, 2, config)]

    short = world_cls(2, **config)
    short.tapes = Tapes(2, short.tapes.columns, short.tapes.derive, rows=rows)
    assert_equal(play(short), play(world_cls(2, **config)))


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
@pytest.mark.filterwarnings("error", "ignore:.*(infinity|normalized|symmetric|spec|render).*")
def test_both_checkers_are_content(world_cls, config):
    check_env(WorldEnv(world_cls, render_mode="rgb_array", **config), skip_render_check=True)
    check_env_sb3(WorldEnv(world_cls, **config))


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
def test_a_picture_shows_every_step(world_cls, config):
    env = WorldEnv(world_cls, render_mode="rgb_array", **config)
    env.reset(seed=5)
    pictures = [env.render()]
    for (action,) in actions_of(world_cls, 3, 1, config):
        env.step(action)
        pictures.append(env.render())
    assert all(picture.ndim == 3 and picture.dtype == np.uint8 for picture in pictures)
    assert all((one != other).any() for one, other in pairwise(pictures))


@pytest.mark.parametrize(("world_cls", "config"), [each for each in WORLDS if each[0] is not TableWorld])
def test_settings_that_are_not_allowed_are_errors(world_cls, config):
    name = fields(world_cls(1, **config).config)[-1].name
    for wrong, error, message in (
        ({name[:-1]: 1}, TypeError, rf"unknown setting '{name[:-1]}' \(did you mean '{name}'\?\)"),
        ({"qqq": 1}, TypeError, "unknown setting 'qqq'; known are "),
        ({"detail": 1}, ValueError, "detail must be True or False, got 1"),
        *([] if world_cls in WITHOUT_GROUPS else [({"group": "qqq"}, ValueError, "group must be made of .* 'qqq'")]),
    ):
        with pytest.raises(error, match=message):
            world_cls(1, **{**config, **wrong})


@pytest.mark.parametrize(("world_cls", "config"), WORLDS)
def test_every_parameter_has_a_source(world_cls, config):
    assert all(entry.metadata["source"] for entry in fields(world_cls(1, **config).config))


DOES = {
    "hired": lambda world, feedback: world.team_sizes > 0,
    "granted a loan": lambda world, feedback: world.cash != world.config.starting_cash,
    "held for a second authentication": lambda world, feedback: ~np.isnan(feedback),
}
"""To whom the word applies after the first step."""


@pytest.mark.parametrize("world_cls", {world_cls: None for world_cls, _ in WORLDS if "favourable" in world_cls.words})
def test_the_favourable_action_does_what_it_is_called(world_cls):
    world, actions = begun(world_cls, 20), np.arange(20) % 2
    record = world.step(actions)[4]
    done = DOES[world.words["favourable"]](world, record["individual"]["feedback"])
    assert_array_equal(done, np.isin(actions, world.fairness_spec.favourable))


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
