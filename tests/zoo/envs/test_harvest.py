"""Does the Allelopathic Harvest keep its rules in situations that one can check by hand?"""

import math
import pickle
import sys
from dataclasses import asdict

import numpy as np
import pytest
from numpy.testing import assert_array_equal, assert_equal

from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from tests.zoo.forms import begun


def agent(x, y, preference="red", sensitive=0):
    return {"x": x, "y": y, "preference": preference, "sensitive": sensitive}


def bush(x, y, color="red", ripe=0, age=0):
    return {"x": x, "y": y, "color": color, "ripe": ripe, "age": age}


def field(agents, bushes=(), width=9, height=7, **settings):
    """A world of one such field, in which nothing grows unless the settings say so."""
    layout = {"width": width, "height": height, "agents": list(agents), "bushes": list(bushes)}
    config = HarvestConfig(**({"growth_interval": None} | settings)).fitting(layout)
    world = HarvestWorld(1, config, detail=True)
    world.install(layout)
    return world


def play(world, *actions):
    """Rewards of the steps (steps, N)."""
    return np.array([world.step(np.reshape(step, (1, -1)))[1][0] for step in actions])


def test_a_lone_agent_ripens_and_eats_its_bush_in_turn():
    assert_array_equal(play(field([agent(4, 4)], [bush(4, 5)]), 5, 5, 5, 5).ravel(), [3, 5, 3, 5])


def test_a_slow_agent_acts_on_its_even_turns_only():
    assert_array_equal(play(field([agent(4, 4, sensitive=1)], [bush(4, 5)]), 5, 5, 5, 5).ravel(), [0, 3, 0, 5])


def test_a_bush_of_the_other_colour_pays_less_until_it_is_recoloured():
    world = field([agent(4, 4, "blue")], [bush(4, 5)])
    assert_array_equal(play(world, 5, 5, 6).ravel(), [1, 1, 5])
    assert world.bushes[0, 4, 5] == 2
    assert_array_equal(play(world, 5, 5).ravel(), [3, 5])


@pytest.mark.parametrize(("scan", "ripened"), [("first", False), ("all", True)])
def test_the_first_ripe_bush_is_eaten_and_a_full_scan_ripens_those_before_it(scan, ripened):
    world = field([agent(4, 4)], [bush(4, 5), bush(5, 4, "blue", ripe=1)], scan=scan)
    assert_array_equal(play(world, 5), [[1]])
    assert world.ripe[0, 4, 5] == ripened and not world.ripe[0, 5, 4]


def test_agents_stay_inside_the_grid():
    world, places = field([agent(0, 0)], width=9), []
    for action in (1, 4, 2):
        assert_array_equal(play(world, action), [[0]])
        places.append(world.positions[0, 0].tolist())
    assert places == [[0, 0], [1, 0], [1, 1]]


def test_an_obstructed_agent_loses_exactly_its_next_turn():
    world = field([agent(4, 4), agent(5, 4, "blue")], [bush(5, 5)], order="fixed")
    assert_array_equal(play(world, (7, 6), (0, 6)), [[3, 0], [0, 5]])


def test_a_slow_agent_obstructed_in_an_idle_turn_loses_nothing():
    world = field([agent(4, 4), agent(5, 4, "blue", sensitive=1)], [bush(5, 5)], order="fixed")
    assert_array_equal(play(world, (7, 6), (0, 6)), [[3, 0], [0, 5]])


def test_whoever_has_acted_already_loses_the_turn_of_the_next_step():
    world = field([agent(5, 4, "blue"), agent(4, 4)], [bush(5, 5)], order="fixed")
    assert_array_equal(play(world, (6, 7), (6, 0), (5, 0)), [[5, 3], [0, 0], [3, 0]])


def test_obstructing_ones_own_colour_pays_nothing():
    assert_array_equal(play(field([agent(4, 4), agent(5, 4)], order="fixed"), (7, 0)), [[0, 0]])


def test_obstruction_sets_the_counter_rather_than_adding():
    world = field([agent(4, 4), agent(5, 4, "blue")], [bush(5, 5)], order="fixed", obstruct_turns=2)
    assert_array_equal(play(world, (7, 6), (7, 6), (0, 6), (0, 6))[:, 1], [0, 0, 0, 5])


def test_recolouring_with_only_own_bushes_around_is_valid_and_pays_nothing():
    world = field([agent(4, 4)], [bush(4, 5, ripe=1)])
    record = world.step(np.array([[6]]))[4]
    assert world.last_reward[0, 0] == 0 and record["detail"]["executed_action"][0, 0] == 6
    assert world.ripe[0, 4, 5]


def test_a_bush_is_gone_after_its_120th_ageing():
    world = field([agent(0, 0)], [bush(2, 2, age=118)], width=3, height=3)
    play(world, 0)
    assert world.ages[0, 2, 2] == 119
    play(world, 0)
    assert world.ages[0, 2, 2] == world.bushes[0, 2, 2] == -1


def test_an_immortal_bush_stays():
    world = field([agent(0, 0)], [bush(2, 2, age=500)], bush_life=None)
    play(world, 0)
    assert world.ages[0, 2, 2] == 501


def test_two_agents_who_recolour_a_shared_bush_in_turn_earn_5_each_for_ever():
    world = field([agent(4, 4), agent(6, 4, "blue")], [bush(5, 4, None)], order="fixed")
    assert_array_equal(play(world, *[(6, 6)] * 5), np.full((5, 2), 5))


def test_ripening_and_eating_a_colourless_bush_pays_1_and_0():
    assert_array_equal(play(field([agent(4, 4)], [bush(4, 5, None)]), 5, 5).ravel(), [1, 0])


def test_a_bush_ripens_of_itself_k_steps_after_it_was_eaten():
    world = field([agent(4, 4)], [bush(4, 5, ripe=1), bush(8, 6)], auto_ripen=2)
    ripe = []
    for action in (5, 0, 0, 0):
        play(world, action)
        ripe.append(world.ripe[0, [4, 8], [5, 6]].tolist())
    assert ripe == [[False, False], [False, False], [True, False], [True, False]]


def test_slow_agents_that_only_move_slowly_eat_on_odd_turns():
    world = field([agent(4, 4, sensitive=1)], [bush(4, 5)], slow="moves_only")
    assert_array_equal(play(world, 5, 5, 3, 3).ravel(), [3, 5, 0, 0])
    assert world.positions[0, 0].tolist() == [3, 4]  # the first of the two moves was void


def test_nobody_moves_without_movement():
    world = field([agent(4, 4)], movement="off")
    assert not world.action_masks()[0, 0, 1:5].any()
    play(world, 1, 2, 3, 4)
    assert world.positions[0, 0].tolist() == [4, 4]


def test_endless_obstruction_lasts_until_the_episode_ends():
    world = field([agent(4, 4), agent(5, 4, "blue")], order="fixed", obstruct_turns=math.inf)
    play(world, (7, 0), *[(0, 3)] * 50)
    assert world.obstructed.tolist() == [[False, True]] and world.positions[0, 1].tolist() == [5, 4]
    world.reset(np.arange(1))
    assert not world.obstructed.any()


class TestSimultaneous:
    """Everybody acts on the field as it was."""

    def test_of_two_who_want_a_cell_one_gets_it_and_each_does_at_times(self):
        winners = set()
        for _ in range(30):
            world = field([agent(3, 4), agent(5, 4)], order="simultaneous")
            play(world, (4, 3))
            places = world.positions[0].tolist()
            assert places in ([[4, 4], [5, 4]], [[3, 4], [4, 4]])
            winners.add(places[0][0])
        assert winners == {3, 4}

    def test_nobody_moves_into_a_cell_that_is_only_being_left(self):
        world = field([agent(3, 4), agent(4, 4)], order="simultaneous")
        play(world, (4, 4))
        assert world.positions[0].tolist() == [[3, 4], [5, 4]]

    def test_of_two_on_one_bush_one_is_paid(self):
        world = field([agent(3, 4), agent(5, 4, "blue")], [bush(4, 4, None)], order="simultaneous")
        assert sorted(play(world, (6, 6))[0].tolist()) == [0, 5]

    def test_obstruction_counts_from_the_next_step_even_for_one_who_moved_away(self):
        world = field([agent(4, 4), agent(5, 4, "blue")], order="simultaneous")
        assert_array_equal(play(world, (7, 4)), [[3, 0]])
        assert world.positions[0, 1].tolist() == [6, 4] and world.obstructed.tolist() == [[False, True]]
        play(world, (0, 4))
        assert world.positions[0, 1].tolist() == [6, 4] and not world.obstructed.any()


def test_120_bushes_live_before_the_first_die_and_60_from_then_on():
    world = HarvestWorld(2)
    world.reset(np.arange(2))
    for step in range(160):
        world.step(np.zeros((2, 40), dtype=np.int64))
        expected = 60 + step // 2 + 1 if step <= 118 else 60
        assert_array_equal((world.bushes >= 0).sum(axis=(1, 2)), expected)


def test_a_full_field_grows_no_bush():
    world = field([agent(0, 0)], [bush(1, 0)], width=2, height=1, growth_interval=1)
    play(world, 0)
    assert world.bushes.tolist() == [[[-1], [1]]]


def test_a_field_without_red_and_blue_grows_colourless_bushes():
    world = field([agent(0, 0)], width=2, height=1, growth_interval=1)
    play(world, 0)
    assert world.bushes.tolist() == [[[-1], [0]]]


@pytest.mark.parametrize(("cubic", "share"), [(False, 0.75), (True, 27 / 28)])
def test_the_colour_of_a_new_bush_is_as_frequent_as_its_rule_says(cubic, share):
    world, luck = HarvestWorld(100, n_bushes=4, red_bush_share=0.75), (np.arange(100) + 0.5) / 100
    world.reset(np.arange(100))
    world.field.sprout(np.arange(100), cubic, np.stack([luck, luck], axis=1), world.time)
    assert ((world.bushes == 1).sum() - 300) / 100 == pytest.approx(share, abs=0.005)


def test_a_new_bush_grows_in_any_empty_cell_alike():
    luck = (np.arange(8) + 0.5) / 8
    layout = {"width": 4, "height": 3, "agents": [agent(1, 0)], "bushes": [bush(0, 0), bush(3, 1), bush(2, 2)]}
    world = HarvestWorld(8, HarvestConfig().fitting(layout))
    world.install(layout)
    before = world.bushes
    world.field.sprout(np.arange(8), False, np.stack([luck, luck], axis=1), world.time)
    x, y = np.nonzero(world.bushes != before)[1:]
    assert list(zip(x, y, strict=True)) == [(2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (3, 2)]


def test_masks_say_which_actions_are_valid():
    world = field([agent(0, 0), agent(1, 0, sensitive=1), agent(4, 4)], [bush(4, 5)])
    masks = world.action_masks()[0]
    assert np.flatnonzero(masks[0]).tolist() == [0, 2, 7]
    assert np.flatnonzero(masks[1]).tolist() == [0]
    assert np.flatnonzero(masks[2]).tolist() == [0, 1, 3, 4, 5, 6]
    play(world, (0, 0, 0))
    assert np.flatnonzero(world.action_masks()[0, 1]).tolist() == [0, 2, 4, 7]


def test_an_observation_has_ten_numbers_and_extra_flags():
    world = field(
        [agent(1, 2, sensitive=1), agent(3, 2, "blue")], [bush(1, 3, ripe=1), bush(0, 2, "blue")], obs_extra=True
    )
    first, second = world.observe()[0]
    assert first[:10].tolist() == [1, 2, 1, 0, 1, 1, 1, 1, 1, 2]
    assert second[:10].tolist() == [3, 2, 0, 0, 2, 1, 1, 3, 3, 2]
    assert first[10:].reshape(-1).tolist() == [1, 0, 0] + [0] * 6 + [0, 0, 1] + [0, 1]
    scaled = field([agent(1, 2), agent(3, 2)], [bush(1, 3)], obs_scale=True).observe()[0, 0]
    np.testing.assert_allclose(scaled, [1 / 25, 2 / 15, 0, 0, 0.5, 1 / 60, 0, 0.1, 1.6, 0.2], rtol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"obs_scale": True, "obs_extra": True}])
def test_observations_are_inside_their_space(settings):
    world = HarvestWorld(3, **settings)
    seen, rng = world.reset(np.arange(3)), np.random.default_rng(0)
    for _ in range(30):
        assert seen.shape == (3, 40, *world.observation_space.shape) and seen.dtype == np.float32
        assert all(world.observation_space.contains(one) for one in seen.reshape(-1, seen.shape[-1]))
        seen = world.step(rng.integers(0, 8, (3, 40)))[0]


@pytest.mark.parametrize("order", ["random", "fixed", "simultaneous"])
def test_each_action_reaches_its_own_agent(order):
    agents = [agent(2 * (number % 5), 2 * (number // 5)) for number in range(20)]
    bushes = [bush(entry["x"], entry["y"] + 1) for entry in agents]
    world = field(agents, bushes, width=9, height=8, order=order)
    actions = np.arange(20) % 2 * 5
    assert_array_equal(play(world, actions)[0], np.where(actions == 5, 3, 0))


@pytest.mark.parametrize("terminates", [False, True])
def test_an_episode_ends_for_all_at_the_horizon_and_tells_its_returns(terminates):
    world, rng = HarvestWorld(2, horizon=7, terminate_at_horizon=terminates), np.random.default_rng(0)
    for _ in range(2):
        assert_array_equal(world.reset(np.arange(2))[..., 3], 0)  # nobody was paid yet
        total = np.zeros((2, 40))
        for step in range(1, 8):
            _, rewards, terminated, truncated, record = world.step(rng.integers(0, 8, (2, 40)))
            total += rewards
            assert ("episode_return" in record) == (step == 7)
            assert_array_equal(terminated, (step == 7) and terminates)
            assert_array_equal(truncated, (step == 7) and not terminates)
        assert_array_equal(record["episode_return"], total)
    assert rewards.dtype == np.float32


def test_the_record_tells_who_everybody_is():
    world = HarvestWorld(2)
    world.reset(np.arange(2))
    actions = np.random.default_rng(0).integers(0, 8, (2, 40))
    individual = world.step(actions)[4]["individual"]
    assert_array_equal(individual["lf"], np.repeat([[1] * 20 + [2] * 20], 2, axis=0))
    assert_array_equal(individual["world"], np.repeat([[0], [1]], 40, axis=1))
    assert_array_equal(individual["agent"], np.tile(world.agent_id, (2, 1)))
    assert_array_equal(individual["action"], actions)
    assert_array_equal(individual["group"].reshape(2, 2, 20).sum(axis=2), 10)
    assert individual["group"].dtype == individual["lf"].dtype == np.int8


def test_what_a_step_hands_out_never_changes_afterwards():
    world, rng = HarvestWorld(3, horizon=5, detail=True), np.random.default_rng(0)
    world.reset(np.arange(3))
    seen = [world.step(rng.integers(0, 8, (3, 40))) for _ in range(5)]
    before = pickle.loads(pickle.dumps(seen))
    world.reset(np.arange(2))
    for _ in range(5):
        world.step(rng.integers(0, 8, (3, 40)))
    assert_equal(seen, before)


def test_published_is_the_whole_column_of_the_variant():
    config = HarvestConfig.published()
    changed = {name: value for name, value in asdict(config).items() if value != getattr(HarvestConfig(), name)}
    assert changed == {
        "movement": "off",
        "obstruct_turns": math.inf,
        "invalid": "substitute",
        "scan": "all",
        "stratified": False,
        "order": "fixed",
        "terminate_at_horizon": True,
    }
    assert HarvestConfig.published(movement="on", horizon=5) == HarvestConfig(
        **(changed | {"movement": "on", "horizon": 5})
    )


def test_a_substitute_is_paid_for_but_the_chosen_action_is_recorded():
    world = field([agent(0, 0), agent(1, 0, "blue"), agent(0, 1, "blue")], invalid="substitute", movement="off")
    seen = set()
    for _ in range(60):
        record = world.step(np.array([[5, 0, 0]]))[4]
        executed = int(record["detail"]["executed_action"][0, 0])
        assert record["individual"]["action"][0, 0] == 5
        assert world.last_reward[0, 0] == (3 if executed == 7 else 0)
        seen.add(executed)
    assert seen == {0, 7}


@pytest.mark.parametrize("settings", [{}, {"backend": "numba"}, {"invalid": "substitute", "auto_ripen": 3}])
def test_a_saved_state_goes_on_identically_in_another_world(settings):
    if "backend" in settings:
        pytest.importorskip("numba")

    def go_on(world, seed):
        rng = np.random.default_rng(seed)
        return [world.step(rng.integers(0, 8, (3, 40)))[:2] for _ in range(12)] + [world.reset(np.array([1]))]

    first, second = begun(HarvestWorld, 3, **settings), HarvestWorld(3, **settings)
    go_on(first, 0)
    state = pickle.loads(pickle.dumps(first.state_dict()))
    expected = go_on(first, 1)
    second.load_state_dict(state)
    assert_equal(go_on(second, 1), expected)
    second.load_state_dict(state)
    assert_equal(go_on(second, 1), expected)


def test_a_state_of_another_size_is_an_error():
    with pytest.raises(ValueError, match=r"state must be of \(2, 40\) agents and \(2, 459\) cells, got \(3, 40\)"):
        HarvestWorld(2).load_state_dict(HarvestWorld(3).state_dict())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 8}, r"layout must have width, height and number of agents \(9, 7, 1\), got \(8, 7, 1\)"),
        ({"agents": [agent(9, 0)]}, r"layout must keep inside the 9 x 7 grid, got \(9, 0\)"),
        ({"bushes": [bush(0, 0)]}, r"layout must have at most one agent or bush in a cell, got two at \(0, 0\)"),
        ({"agents": [agent(0, 0, "green")]}, "preference must be one of .*, got 'green'"),
        ({"agents": [agent(0, 0, sensitive=2)]}, r"sensitive must be one of 0, 1 or True or False, got 2"),
        ({"bushes": [bush(1, 1, "green")]}, "color must be one of .*, got 'green'"),
        ({"bushes": [bush(1, 1, age=-1)]}, "age must be a non-negative integer, got -1"),
        ({"bushes": [bush(-1, 1)]}, "x must be a non-negative integer, got -1"),
    ],
)
def test_a_layout_that_is_none_is_an_error(change, message):
    layout = {"width": 9, "height": 7, "agents": [agent(0, 0)], "bushes": []}
    with pytest.raises(ValueError, match=message):
        HarvestWorld(1, HarvestConfig().fitting(layout)).install(layout | change)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (3, "layout must be a dict, got 3"),
        (None, "layout must be a dict, got None"),
        ({"width": 9, "height": 7, "agents": 3, "bushes": []}, "agents must be a sequence .*, got 3"),
        ({"width": 9, "height": 7, "agents": [], "bushes": [3]}, "bushes must be a sequence .*, got"),
    ],
)
def test_a_layout_of_other_things_is_an_error(layout, message):
    with pytest.raises(ValueError, match=message):
        HarvestWorld(1).install(layout)


@pytest.mark.parametrize("use", [HarvestWorld(1).install, HarvestConfig().fitting])
def test_a_layout_without_its_parts_is_an_error(use):
    with pytest.raises(ValueError, match="layout must have width, height, agents, bushes, got none of height, bushes"):
        use({"width": 25, "agents": []})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width must be a positive integer, got 0"),
        ({"n_bushes": 336}, r"n_agents and n_bushes must fit into the 375 cells of the grid, got 40 \+ 336"),
        ({"sensitive_share": 1.5}, r"sensitive_share must be in \[0, 1\], got 1.5"),
        ({"bush_life": 0}, "bush_life must be a positive integer or None, got 0"),
        ({"obstruct_turns": 0.5}, "obstruct_turns must be a number of at least 1, got 0.5"),
        ({"obstruct_turns": 1.5}, "obstruct_turns must be a positive integer, got 1.5"),
        ({"order": "any"}, "order must be one of .*, got 'any'"),
        ({"stratified": 1}, r"stratified must be True or False, got 1"),
        ({"backend": "jax"}, "backend must be one of .*, got 'jax'"),
    ],
)
def test_a_setting_that_is_not_allowed_is_an_error_that_names_it(settings, message):
    with pytest.raises(ValueError, match=message):
        HarvestWorld(1, **settings)


def test_an_unknown_setting_names_the_nearest_one():
    with pytest.raises(TypeError, match="unknown setting 'horizn' \\(did you mean 'horizon'\\?\\)"):
        HarvestWorld(1, HarvestConfig(), horizn=3)


def test_settings_change_a_config():
    world = HarvestWorld(1, HarvestConfig.published(), movement="on")
    assert world.config == HarvestConfig.published(movement="on")


def test_where_no_folder_can_be_written_the_compiled_turns_are_not_kept(monkeypatch):
    from sb3_fair.zoo.envs.harvest import kernel

    def njit(*functions, cache=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return functions[0]

    monkeypatch.setattr(kernel, "njit", njit)
    assert kernel._compiled(max) is max


def test_without_numba_its_backend_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(
        ImportError, match=r'backend="numba" needs a package that is not installed: pip install "sb3-fair\[numba\]"'
    ):
        HarvestWorld(1, backend="numba")
