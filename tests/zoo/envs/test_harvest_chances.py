"""Does chance in the Allelopathic Harvest follow only from each world's own seed, and as often as it should?"""

import random

import numpy as np
import pytest
from numpy.testing import assert_array_equal, assert_equal

from sb3_fair.zoo.envs.harvest.layout import preferences, sensitive_agents
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.world import HarvestWorld

ACTIONS = np.random.default_rng(0).integers(0, 8, (40, 7, 40))


def generators(seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def started(seeds, **settings):
    world = HarvestWorld(len(seeds), **settings)
    world.reset(np.arange(len(seeds)), generators(seeds))
    return world


def episodes(copies, **settings):
    """What the agents of the worlds seeded so see and get in two episodes, per step (k, N, d + 1)."""
    world, path = started(copies, horizon=15, **settings), []
    for step, actions in enumerate(ACTIONS[:30]):
        seen, rewards = world.step(actions[copies])[:2]
        path.append(np.concatenate([seen, rewards[..., None]], axis=-1))
        if step == 14:
            world.reset(np.arange(len(copies)))
    return np.array(path)


@pytest.mark.parametrize("settings", [{}, {"order": "simultaneous"}, {"invalid": "substitute", "stratified": False}])
def test_a_world_takes_the_same_path_in_every_batch(settings):
    together = episodes(range(7), **settings)
    for copy in (0, 4):
        assert_array_equal(episodes([copy], **settings)[:, 0], together[:, copy])


def test_a_world_takes_the_same_path_whenever_others_begin_anew():
    def play(restarts):
        world, path = started(range(3)), []
        for step, actions in enumerate(ACTIONS[:20]):
            if step in restarts:
                world.reset(np.array([0, 2]), [None, np.random.default_rng(step)])
            path.append(world.step(actions[:3])[0][1])
        return np.array(path)

    assert_array_equal(play([]), play([4, 11]))


@pytest.mark.parametrize("share", [0, 0.2, 1])
def test_who_is_slow_changes_neither_the_field_nor_the_turns_nor_what_grows(share):
    worlds = started(range(4)), started(range(4), sensitive_share=share)
    for _ in range(2):
        assert_array_equal(worlds[0].positions, worlds[1].positions)
        assert_array_equal(worlds[0].bushes, worlds[1].bushes)
        assert (worlds[0].group != worlds[1].group).any()
        for actions in ACTIONS[:10]:
            for world in worlds:
                world.step(actions[:4])
            assert_array_equal(worlds[0].tapes.now.order, worlds[1].tapes.now.order)
            assert_array_equal(worlds[0].growth_tapes.now.values, worlds[1].growth_tapes.now.values)
        for world in worlds:
            world.reset(np.arange(4))


def test_the_same_seed_repeats_and_the_next_episode_is_another():
    world = started([3, 4])
    first = world.positions, world.group
    world.reset(np.arange(2))
    assert (world.positions != first[0]).any() and (world.group != first[1]).any()
    world.reset(np.arange(2), generators([3, 4]))
    assert_equal((world.positions, world.group), first)


def test_the_global_generators_are_left_alone():
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002 (the global one is meant)
    world = started([0], invalid="substitute")
    world.step(ACTIONS[0, :1])
    assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]


@pytest.mark.parametrize(("share", "counts"), [(0, (0, 0)), (0.5, (10, 10)), (0.33, (7, 7)), (1, (20, 20))])
def test_the_sensitive_share_holds_within_both_colours(share, counts):
    group = started(range(20), sensitive_share=share).group
    assert_array_equal(group.reshape(20, 2, 20).sum(axis=2), np.tile(counts, (20, 1)))


def test_without_strata_the_share_holds_over_all_and_varies_within_colours():
    group = started(range(600), sensitive_share=0.51, stratified=False).group
    red = group[:, :20].sum(axis=1)
    assert_array_equal(group.sum(axis=1), 20)
    assert red.mean() == pytest.approx(10, abs=0.2) and red.std() == pytest.approx(1.58, abs=0.15)


@pytest.mark.parametrize("stratified", [True, False])
def test_everybody_is_slow_equally_often(stratified):
    often = started(range(600), stratified=stratified).group.mean(axis=0)
    assert abs(often - 0.5).max() < 4.5 * 0.5 / 600**0.5


@pytest.mark.parametrize("percent", range(101))
def test_a_share_in_percent_of_100_agents_is_that_number(percent):
    """.29 of 100 is 29, although .29 * 100 is 28.999999999999996."""
    lf = preferences(HarvestConfig(red_agent_share=percent / 100, n_agents=100, width=60, height=60))
    assert (lf == 1).sum() == percent
    for stratified in (False, True):
        slow = sensitive_agents(np.arange(100.0)[None], np.ones(100, dtype=np.int8), percent / 100, stratified)
        assert slow.sum() == percent


def test_red_agents_and_bushes_come_first_by_their_shares():
    world = started([0], red_agent_share=0.33, red_bush_share=0.34)
    assert_array_equal(world.lf[0], [1] * 13 + [2] * 27)
    assert [(world.bushes == colour).sum() for colour in (1, 2)] == [20, 40]


def test_neighbours_at_the_beginning_are_as_frequent_as_in_a_uniform_layout():
    masks = started(range(500), sensitive_share=0).action_masks()
    bush, agent = masks[..., 5], masks[..., 7]
    assert bush.mean() == pytest.approx(0.484, abs=0.01)
    assert agent.mean() == pytest.approx(0.350, abs=0.01)
    assert (bush | agent).mean() == pytest.approx(0.691, abs=0.01)


def test_every_step_has_its_own_order_in_which_everybody_is_first_equally_often():
    world, first = started(range(7)), []
    for _ in range(200):
        world.step(np.zeros((7, 40), dtype=np.int64))
        order = world.tapes.now.order
        assert_array_equal(np.sort(order), np.tile(np.arange(40), (7, 1)))
        first.append(order[:, 0].copy())
    counts = np.bincount(np.concatenate(first), minlength=40)
    assert ((counts - 35) ** 2 / 35).sum() < 76  # chi-square with 39 degrees of freedom, p = 0.0004


def test_in_the_fixed_order_agents_act_by_number():
    world = started([0], order="fixed")
    world.step(ACTIONS[0, :1])
    assert_array_equal(world.tapes.now.order[0], np.arange(40))
