"""Is every agent of every harvest a slot of its own, with labels that fit what the slot has just shown?"""

import copy
import pickle
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal, assert_equal
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from tests.zoo.forms import LAYOUT, begun

SHORT = {"horizon": 7}


def actions_of(steps, slots, seed=0):
    return np.random.default_rng(seed).integers(8, size=(steps, slots))


def test_slot_by_slot_it_is_the_world_with_the_same_seeds():
    venv, world = HarvestVecEnv(3, SHORT, seed=5), HarvestWorld(3, **SHORT)
    start = world.reset(np.arange(3), [np.random.default_rng(5 + index) for index in range(3)])
    assert_array_equal(venv.reset(), start.reshape(120, 10))
    for step, actions in enumerate(actions_of(20, 120), start=1):
        obs, rewards, dones, infos = venv.step(actions)
        last, paid, terminated, truncated, record = world.step(actions.reshape(3, 40))
        assert_array_equal(rewards, paid.ravel())
        assert_array_equal(dones, np.repeat(truncated, 40))
        assert dones.all() == (step % 7 == 0) and not terminated.any()
        for slot in (0, 39, 40, 119):
            assert infos[slot]["TimeLimit.truncated"] == dones[slot]
            assert infos[slot]["individual"] == {
                key: value[slot // 40, slot % 40] for key, value in record["individual"].items()
            }
            if dones[slot]:
                assert_array_equal(infos[slot]["terminal_observation"], last[slot // 40, slot % 40])
                assert infos[slot]["episode_return"] == record["episode_return"][slot // 40, slot % 40]
            else:
                assert "terminal_observation" not in infos[slot] and "episode_return" not in infos[slot]
        if dones.any():
            last = world.reset(np.arange(3))
        assert_array_equal(obs, last.reshape(120, 10))


def test_the_path_of_a_world_does_not_depend_on_how_many_there_are():
    many, one = HarvestVecEnv(3, SHORT, seed=4), HarvestVecEnv(1, SHORT, seed=6)
    assert_array_equal(many.reset()[80:], one.reset())
    for actions in actions_of(20, 120):
        step, alone = many.step(actions), one.step(actions[80:])
        for array, array_ in zip(step[:3], alone[:3], strict=True):
            assert_array_equal(array[80:], array_)


def test_labels_as_arrays_belong_to_the_observation_and_those_in_infos_to_the_transition():
    venv = HarvestVecEnv(2, SHORT, seed=0)
    obs = venv.reset()
    assert_array_equal(venv.slot_world, np.repeat([0, 1], 40))
    assert_array_equal(venv.slot_agent, np.tile(np.arange(40), 2))
    assert_array_equal(venv.slot_lf, np.tile(np.repeat([1, 2], 20), 2))
    assert (venv.slot_pair == -1).all()
    assert_array_equal(venv.slot_group, obs[:, 2])
    changes = 0
    for actions in actions_of(30, 80):
        before = venv.slot_group
        obs, _, dones, infos = venv.step(actions)
        told = stack(infos, "individual")
        assert_array_equal(told["group"], before)
        assert_array_equal(told["lf"], venv.slot_lf)
        assert_array_equal(told["world"], venv.slot_world)
        assert_array_equal(told["agent"], venv.slot_agent)
        assert_array_equal(told["action"], actions)
        assert_array_equal(venv.slot_group, obs[:, 2])
        changed = (venv.slot_group != before).any()
        assert changed <= dones.any()
        changes += changed
    assert changes == 4


def test_labels_are_found_through_wrappers_and_slot_by_slot():
    venv = VecNormalize(VecMonitor(HarvestVecEnv(2, seed=0)))
    venv.reset()
    assert venv.slot_group.shape == (80,)
    assert venv.get_attr("slot_agent", indices=[3, 45]) == [3, 5]
    assert venv.get_attr("slot_group") == venv.slot_group.tolist()


def test_infos_stay_as_they_are_whenever_they_are_read():
    venv = HarvestVecEnv(1, SHORT, seed=0)
    venv.reset()
    _, _, _, infos = venv.step(np.full(40, 3))
    infos[4]["own"] = 1
    _, _, _, later = venv.step(np.full(40, 6))
    assert later[4]["individual"]["action"] == 6 and "own" not in later[4]
    assert infos[4]["individual"]["action"] == infos[5]["individual"]["action"] == 3 and infos[4]["own"] == 1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda venv: pickle.loads(pickle.dumps(venv))])
def test_a_copy_continues_identically(duplicate):
    venv = HarvestVecEnv(2, SHORT | {"order": "simultaneous"}, seed=0, counterfactual="swap")
    venv.reset()
    actions = actions_of(20, 80)
    for action in actions[:5]:
        venv.step(action)
    twin = duplicate(venv)
    for action in actions[5:]:
        step, step_ = venv.step(action), twin.step(action)
        assert_equal(step[:3], step_[:3])
        assert_equal([dict(info) for info in step[3]], [dict(info) for info in step_[3]])


def test_monitor_adds_up_what_each_agent_got():
    venv = VecMonitor(HarvestVecEnv(2, SHORT, seed=0))
    venv.reset()
    total = np.zeros(80)
    for actions in actions_of(7, 80):
        _, rewards, _, infos = venv.step(actions)
        total += rewards
    assert_array_equal([info["episode"]["r"] for info in infos], total)
    assert total.max() > 0
    assert_array_equal([info["episode_return"] for info in infos], total)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_plain_algorithms_learn_on_normalised_and_monitored_slots(algorithm):
    config = {"horizon": 10, "obs_scale": True, "obs_extra": True}
    venv = VecNormalize(VecMonitor(HarvestVecEnv(1, config, seed=0)), norm_obs=False)
    if algorithm == "ppo":
        model = PPO("MlpPolicy", venv, n_steps=16, n_epochs=1, seed=0, device="cpu").learn(640)
    else:
        model = DQN("MlpPolicy", venv, learning_starts=100, buffer_size=4000, seed=0, device="cpu").learn(640)
    assert model.num_timesteps == 640 and len(model.ep_info_buffer) == 40
    assert {info["l"] for info in model.ep_info_buffer} == {10}


def test_the_published_rules_terminate():
    venv = HarvestVecEnv(1, HarvestConfig.published(horizon=1), seed=0)
    venv.reset()
    _, _, dones, infos = venv.step(np.zeros(40, dtype=int))
    assert dones.all() and not infos[0]["TimeLimit.truncated"]


def test_masks_are_told_of_every_slot():
    venv = HarvestVecEnv(2, seed=0)
    venv.reset()
    masks = get_action_masks(VecMonitor(venv))
    assert masks.shape == (80, 8) and masks[:, 0].all()
    assert_array_equal(masks[:, 1:].any(axis=1) <= (venv.slot_group == 0), True)


def test_a_layout_is_installed_through_the_options_of_a_reset():
    venv = HarvestVecEnv(2, HarvestConfig(horizon=5, growth_interval=None).fitting(LAYOUT), seed=0)
    venv.set_options({"layout": LAYOUT})
    obs = venv.reset()
    assert_array_equal(obs[:, :3], [[2, 2, 1], [5, 0, 0]] * 2)
    assert_array_equal(venv.slot_group, [1, 0] * 2)
    rewards = [venv.step([5, 0, 5, 0])[1][0] for _ in range(4)]
    assert rewards == [0, 3, 0, 5]
    assert not (venv.reset()[:, :2] == obs[:, :2]).all()
    venv.set_options([{}, {}, {"layout": LAYOUT}, {"layout": LAYOUT}])
    own = venv.reset()[:, :2] == obs[:, :2]
    assert own[2:].all() and not own[:2].all()


def test_an_agent_may_be_alone():
    lone = {**LAYOUT, "agents": LAYOUT["agents"][:1]}
    venv = HarvestVecEnv(2, HarvestConfig(growth_interval=None).fitting(lone), seed=0)
    venv.set_options({"layout": lone})
    venv.reset()
    assert_array_equal([venv.step(np.array([5, 0]))[1] for _ in range(4)], [[0, 0], [3, 0], [0, 0], [5, 0]])


def test_detail_tells_what_was_carried_out():
    venv = HarvestVecEnv(1, seed=0, detail=True)
    venv.reset()
    _, _, _, infos = venv.step(np.full(40, 5))
    executed = stack(infos, "detail")["executed_action"]
    assert_array_equal(executed[venv.slot_group == 1], -1)
    assert set(executed[venv.slot_group == 0].tolist()) == {0, 5}


def test_there_is_a_picture_per_world():
    venv = HarvestVecEnv(2, seed=0, render_mode="rgb_array")
    venv.reset()
    assert [picture.shape for picture in venv.get_images()] == [(240, 400, 3)] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_worlds": 0}, "n_worlds must be a positive integer, got 0"),
        ({"n_worlds": 3, "counterfactual": "swap"}, "n_worlds must be even for pairs of twins, got 3"),
        ({"n_worlds": 2, "counterfactual": "swop"}, "did you mean 'swap'"),
        ({"n_worlds": 1, "config": {"horizons": 3}}, "did you mean 'horizon'"),
        ({"n_worlds": 1, "render_mode": "human"}, "render_mode must be 'rgb_array' or None"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        HarvestVecEnv(**arguments)


@pytest.mark.parametrize("actions", [np.full(40, 8), np.full(40, -1), np.zeros(40)])
def test_actions_outside_the_space_are_refused(actions):
    venv = HarvestVecEnv(1, seed=0)
    venv.reset()
    with pytest.raises(ValueError, match="action"):
        venv.step(actions)


@pytest.mark.slow
@pytest.mark.parametrize("n_worlds", [64, 256])
def test_the_slots_keep_most_of_the_speed_of_the_world(n_worlds):
    venv, world = HarvestVecEnv(n_worlds, seed=0), begun(HarvestWorld, n_worlds)
    venv.reset()
    actions = actions_of(30, n_worlds * 40)

    def seconds(play):
        start = time.process_time()
        for action in actions:
            play(action)
        return time.process_time() - start

    rounds = [(seconds(lambda a: world.step(a.reshape(-1, 40))), seconds(venv.step)) for _ in range(6)]
    core, slots = np.min(rounds, axis=0)
    assert core / slots >= 0.6
