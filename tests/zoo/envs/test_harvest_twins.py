"""Do twins differ in nothing but who is slow?"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from sb3_fair.zoo.envs.harvest.twins import MODES, CounterfactualHarvest
from sb3_fair.zoo.envs.harvest.world import HarvestWorld

SLOW = 2
"""Column of observations."""


def generators(n, seed=0):
    return [np.random.default_rng(seed + index) for index in range(n)]


def twins(n_pairs, mode, seed=0, **config):
    world = CounterfactualHarvest(n_pairs, mode, **config)
    return world, world.reset(np.arange(2 * n_pairs), generators(2 * n_pairs, seed))


@pytest.mark.parametrize("mode", MODES)
def test_episodes_begin_alike_and_each_one_is_new(mode):
    world, obs = twins(3, mode, horizon=1)
    seen = [obs]
    for _ in range(3):
        assert world.step(np.zeros((6, 40), dtype=int))[3].all()
        seen.append(world.reset(np.arange(6)))
    for obs in seen:
        assert_array_equal(np.delete(obs[::2], SLOW, axis=2), np.delete(obs[1::2], SLOW, axis=2))
        assert (obs[::2, :, SLOW] != obs[1::2, :, SLOW]).all()
    fields = {obs[copy, :, :2].tobytes() for obs in seen for copy in (0, 2, 4)}
    assert len(fields) == 12


@pytest.mark.parametrize("mode", MODES)
def test_as_long_as_nobody_acts_turns_and_growth_are_the_same(mode):
    world, _ = twins(2, mode)
    for _ in range(40):
        obs, *_ = world.step(np.zeros((4, 40), dtype=int))
        assert_array_equal(np.delete(obs[::2], SLOW, axis=2), np.delete(obs[1::2], SLOW, axis=2))
        assert_array_equal(world.tapes.now.order[::2], world.tapes.now.order[1::2])
        assert_array_equal(world.bushes[::2], world.bushes[1::2])
    assert (world.bushes[0] != world.bushes[2]).any()


def test_after_the_first_action_that_differs_they_go_their_own_ways():
    world, _ = twins(1, "none_vs_all")
    for actions in np.random.default_rng(0).integers(8, size=(20, 1, 40)):
        world.step(np.repeat(actions, 2, axis=0))
    assert (world.positions[0] != world.positions[1]).any()


def test_nobody_is_slow_in_the_factual_world_and_everybody_in_its_twin():
    world, _ = twins(2, "none_vs_all", sensitive_share=0.3)
    assert_array_equal(world.group, np.repeat([[0], [1], [0], [1]], 40, axis=1))


@pytest.mark.parametrize(("share", "counts"), [(0.5, (10, 10)), (0.25, (5, 15))])
def test_a_swap_makes_those_slow_who_were_not(share, counts):
    world, _ = twins(2, "swap", sensitive_share=share)
    assert_array_equal(world.group[::2], 1 - world.group[1::2])
    for colour in (world.group[:, :20], world.group[:, 20:]):
        assert_array_equal(colour.sum(axis=1), counts * 2)


@pytest.mark.parametrize(("mode", "slow"), [("none_vs_all", [0, 0, 1, 1]), ("swap", [1, 0, 0, 1])])
def test_twins_on_a_given_field_differ_in_who_is_slow(mode, slow):
    agents = [{"x": 1, "y": 1, "preference": "red", "sensitive": 1}, {"x": 2, "y": 1, "preference": "blue"}]
    layout = {"width": 3, "height": 3, "agents": agents, "bushes": []}
    venv = HarvestVecEnv(2, HarvestConfig().fitting(layout), seed=0, counterfactual=mode)
    venv.set_options({"layout": layout})
    assert_array_equal(venv.reset()[:, SLOW], slow)
    assert_array_equal(venv.slot_group, slow)


def test_the_factual_world_is_an_ordinary_one():
    world, obs = twins(1, "swap", seed=3)
    seed = np.random.default_rng(3).integers(np.iinfo(np.int64).max)
    plain = HarvestWorld(1)
    assert_array_equal(obs[:1], plain.reset(np.arange(1), [np.random.default_rng(seed)]))
    for actions in np.random.default_rng(0).integers(8, size=(30, 2, 40)):
        assert_array_equal(world.step(actions)[0][:1], plain.step(actions[:1])[0])


def test_the_path_of_a_pair_does_not_depend_on_how_many_there_are():
    many, obs = twins(3, "swap", horizon=9)
    one = CounterfactualHarvest(1, "swap", horizon=9)
    assert_array_equal(obs[4:], one.reset(np.arange(2), generators(2, seed=4)))
    for step, actions in enumerate(np.random.default_rng(0).integers(8, size=(30, 6, 40)), start=1):
        assert_array_equal(many.step(actions)[0][4:], one.step(actions[4:])[0])
        if step % 9 == 0:
            assert_array_equal(many.reset(np.arange(6))[4:], one.reset(np.arange(2)))


def test_every_agent_has_the_same_one_in_the_twin_as_its_pair():
    world, _ = twins(2, "swap")
    venv = HarvestVecEnv(4, {"horizon": 3}, seed=0, counterfactual="swap")
    venv.reset()
    assert_array_equal(venv.slot_pair, world.pair.ravel())
    slots = np.arange(160)
    assert_array_equal(venv.slot_pair[venv.slot_pair], slots)
    assert_array_equal(venv.slot_agent[venv.slot_pair], venv.slot_agent)
    assert_array_equal(venv.slot_world[venv.slot_pair], venv.slot_world ^ 1)
    for _ in range(7):
        venv.step(np.zeros(160, dtype=int))
        assert_array_equal(venv.slot_group[venv.slot_pair], 1 - venv.slot_group)


def test_state_is_restored_with_the_seeds_of_episodes_to_come():
    world, _ = twins(2, "swap", horizon=5)
    actions = np.random.default_rng(0).integers(8, size=(12, 4, 40))
    other = CounterfactualHarvest(2, "swap", horizon=5)

    def play(world, actions):
        seen = []
        for action in actions:
            obs, _, _, truncated, _ = world.step(action)
            seen.append(world.reset(np.arange(4)) if truncated.all() else obs)
        return np.array(seen)

    play(world, actions[:3])
    other.load_state_dict(world.state_dict())
    assert_array_equal(play(world, actions[3:]), play(other, actions[3:]))


def test_one_of_a_pair_cannot_be_restarted_alone():
    world, _ = twins(2, "swap")
    with pytest.raises(ValueError, match=r"which must name both copies of each pair, got \[0, 2\]"):
        world.reset(np.array([0, 2]))


def test_an_unknown_mode_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'none_vs_all'"):
        CounterfactualHarvest(1, "none_vs_al")
