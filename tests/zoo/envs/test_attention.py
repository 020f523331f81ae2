"""Does the attention scenario keep its rules?"""

from functools import partial
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom

from sb3_fair import make_vec
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.attention import allocation_to_index, logits_to_allocation
from sb3_fair.zoo.envs.attention.allocation import one_by_one
from sb3_fair.zoo.envs.attention.world import AttentionWorld
from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv
from sb3_fair.zoo.registry.rules import RuleAgent
from tests.zoo.forms import begun

RATES = (8, 6, 4, 3, 1.5)
INCREASE = np.array([0.2, 0.26, 0.4, 0.6, 0.3])
MODES = ("logits", "units", "allocation")
EQUALS = (2, 1, 1, 1, 1)

started = partial(begun, AttentionWorld, action_mode="allocation")


def actions_for(mode, allocations):
    """Actions that stand for allocations (n, 5) of six units."""
    allocations = np.asarray(allocations)
    if mode == "allocation":
        return allocation_to_index(allocations, 6)
    if mode == "units":
        return np.stack([np.repeat(np.arange(5), row) for row in allocations])
    logits = np.log(np.maximum(allocations, 1e-3) / 6).astype(np.float32)
    assert_array_equal(logits_to_allocation(logits, 6), allocations)
    return logits


def random_actions(mode, steps, n, seed=0):
    rng = np.random.default_rng(seed)
    if mode == "logits":
        return rng.normal(size=(steps, n, 5)).astype(np.float32)
    return rng.integers(0, 5, (steps, n, 6)) if mode == "units" else rng.integers(0, 210, (steps, n))


def set_incidents(world, incidents):
    """These incidents, and no others so far, occur in the coming step."""
    world.incidents[:] = incidents
    world._incidents.restart(np.arange(world.n_worlds), np.array(incidents))
    world._before["d_l"][:] = np.abs(np.array(incidents) / np.sum(incidents) - 0.2).max()


@pytest.mark.parametrize("mode", MODES)
def test_the_worked_step_has_its_values(mode):
    world = started(action_mode=mode)
    assert_array_equal(world.rates, [RATES])
    set_incidents(world, (7, 5, 3, 4, 1))
    obs, reward, terminated, truncated, record = world.step(actions_for(mode, [(3, 2, 1, 0, 0)]))
    figures = {name: values[0] for name, values in record["fairness"].items()}
    assert reward[0] == 2.5 and not terminated[0] and not truncated[0]
    assert_array_equal(figures["allocation"], (3, 2, 1, 0, 0))
    assert_array_equal(figures["incidents"], (7, 5, 3, 4, 1))
    assert_array_equal(figures["discovered"], (3, 2, 1, 0, 0))
    assert_allclose(figures["rates"], (7.7, 5.8, 3.9, 3.6, 1.8))
    assert_allclose(figures["shares"], (1 / 2, 1 / 3, 1 / 6, 0, 0))
    assert figures["d_s"] == figures["d_s_cumulative"] == pytest.approx(0.3) and figures["d_s_prev"] == 0
    assert figures["d_l"] == pytest.approx(7 / 20 - 0.2)
    assert figures["d_l_rates"] == pytest.approx(0.13772, abs=5e-6)
    assert figures["d_l_rates_raw"] == pytest.approx(3.14)
    assert_array_equal(obs[0, :140], 0)
    assert_allclose(obs[0, 140:], [3, 2, 1, 0, 0, 7, 5, 3, 4, 1, 3, 2, 1, 0, 0, 3 / 7, 2 / 5, 1 / 3, 0, 0], atol=1e-7)
    people = record["individual"]
    assert_array_equal(people["group"][0], range(5))
    assert_array_equal(people["action"][0], (3, 2, 1, 0, 0))
    assert_array_equal(people["feedback"][0], (7, 5, 3, 4, 1))
    assert_array_equal(world.fairness_spec.decided(people["action"])[0], (1, 1, 1, 0, 0))
    assert_array_equal(record["needed"][0], (1, 1, 1, 1, 1))


def test_rewards_are_float64_with_whole_weights_too():
    world = started(3, discovered_weight=2, missed_weight=1)
    expected = 3 * np.minimum(world.incidents, EQUALS).sum(axis=1) - world.incidents.sum(axis=1)
    rewards = world.step(actions_for("allocation", [EQUALS] * 3))[1]
    assert rewards.dtype == np.float64
    assert_array_equal(rewards, expected)


def test_short_term_disparity_follows_the_worked_history():
    world = started()
    history = [(3, 1, 1, 1, 0), (2, 2, 1, 1, 0), (2, 1, 1, 1, 1)]
    steps = [world.step(actions_for("allocation", [units]))[4]["fairness"] for units in history]
    assert steps[2]["d_s"][0] == pytest.approx(0.18889, abs=5e-6)
    massage = world.massage()
    assert_array_equal(massage["units"], [(7, 4, 3, 3, 1)])
    assert massage["steps"][0] == 4
    after = world.step(actions_for("allocation", [EQUALS]))[4]["fairness"]
    assert after["d_s"][0] == pytest.approx(0.175) and after["d_s_prev"][0] == steps[2]["d_s"][0]


def windows(rows, window, norm=None):
    """Disparity after each step of the sums of the last ``window + 1`` rows (steps, n, 5)."""
    for time in range(len(rows)):
        recent = rows[max(0, time - window) : time + 1]
        sums = recent.sum(axis=0)
        total = sums.sum(axis=1) if norm is None else np.full(len(sums), norm)
        with np.errstate(invalid="ignore"):
            yield np.nan_to_num(np.abs(sums / total[:, None] - 0.2).max(axis=1))


@pytest.mark.parametrize("settings", [{}, {"window_norm": "paper"}, {"long_term_source": "rates"}])
def test_figures_are_those_of_the_window_step_by_step(settings):
    n, window, length = 3, 4, 30
    venv = WorldVecEnv(AttentionWorld, n, window=window, episode_length=length, action_mode="units", **settings)
    venv.seed(1)
    venv.reset()
    coming = [venv.world.incidents.copy()]
    rates, massages, steps = [venv.world.rates.copy()], [stack(venv.reset_infos, "massage")], []
    for actions in random_actions("units", 2 * length, n):
        infos = venv.step(actions)[3]
        steps.append(stack(infos, "fairness"))
        if len(steps) == length:
            break
        massages.append(stack(infos, "massage"))
        rates.append(venv.world.rates.copy())
        coming.append(venv.world.incidents.copy())
    units = np.stack([step["allocation"] for step in steps])
    norm = 6 * window if "window_norm" in settings else None
    for step, expected in zip(steps, windows(units, window, norm), strict=True):
        assert_allclose(step["d_s"], expected, atol=1e-12)
    assert_array_equal(np.stack([step["incidents"] for step in steps]), coming)
    recent = [slice(max(0, time - window), time + 1) for time in range(length)]
    shares = [units[part].sum(axis=0) / (norm or 6 * len(units[part])) for part in recent]
    assert_allclose([step["shares"] for step in steps], shares)
    compared = np.stack(rates if "long_term_source" in settings else [np.sum(coming[part], axis=0) for part in recent])
    expected = np.abs(compared / compared.sum(axis=2, keepdims=True) - 0.2).max(axis=2)
    assert_allclose([step["d_l"] for step in steps], expected, atol=1e-12)
    expected = np.abs(compared - compared.mean(axis=2, keepdims=True)).max(axis=2)
    assert_allclose([step["d_l_raw"] for step in steps], expected)
    for earlier, later in pairwise(steps):
        assert_array_equal(earlier["d_l_next"], later["d_l"])
        assert_array_equal(earlier["d_s"], later["d_s_prev"])
    cumulative = [np.abs(units[: time + 1].sum(axis=0) / (6 * (time + 1)) - 0.2).max(axis=1) for time in range(length)]
    assert_allclose([step["d_s_cumulative"] for step in steps], cumulative, atol=1e-12)
    for time, massage in enumerate(massages):
        assert_array_equal(massage["steps"], min(time, window) + 1)
        assert_array_equal(massage["units"], units[max(0, time - window) : time].sum(axis=0))


def test_the_last_step_of_an_episode_has_its_own_figures_and_the_next_begins_anew():
    venv = WorldVecEnv(AttentionWorld, 2, episode_length=5, action_mode="allocation")
    venv.seed(0)
    venv.reset()
    for time in range(1, 6):
        dones, infos = venv.step([209, 0])[2:]
        assert dones.all() == (time == 5) and infos[0]["TimeLimit.truncated"] == (time == 5)
    last = infos[0]["fairness"]
    assert last["d_s"] == last["d_s_prev"] == pytest.approx(0.8)
    assert_allclose(last["rates"], (5, 7.3, 6, 6, 3))
    assert last["d_l_next"] != last["d_l"]
    assert_array_equal(venv.reset_infos[0]["massage"]["units"], 0)
    assert venv.reset_infos[0]["massage"]["steps"] == 1
    first = venv.step([0, 0])[3][0]["fairness"]
    assert first["d_s_prev"] == 0
    assert_allclose(first["d_l"], np.abs(first["incidents"] / first["incidents"].sum() - 0.2).max())


def test_the_effect_of_an_action_on_incidents_is_in_the_next_long_term_disparity():
    n = 2000
    counts = []
    for allocation in ((6, 0, 0, 0, 0), (0, 0, 0, 0, 6)):
        world = started(n, initial_rates=(0.6,) * 5, increase_rate=1.0, window=1)
        before = world.incidents.copy()
        figures = world.step(actions_for("allocation", [allocation] * n))[4]["fairness"]
        seen = before + world.incidents
        total = np.maximum(seen.sum(axis=1, keepdims=True), 1)
        expected = np.where(seen.sum(axis=1) > 0, np.abs(seen / total - 0.2).max(axis=1), 0)
        assert_allclose(figures["d_l_next"], expected, atol=1e-12)
        counts.append(world.incidents.mean(axis=0))
    assert_allclose(counts, [(0, 1.6, 1.6, 1.6, 1.6), (1.6, 1.6, 1.6, 1.6, 0)], atol=3.6 * (1.6 / n) ** 0.5)


def test_rates_stay_between_zero_and_their_cap():
    world = started(max_rate=4.0, initial_rates=(9, 3.9, 0.05, 1, 1))
    assert_array_equal(world.rates, [(4, 3.9, 0.05, 1, 1)])
    rates = world.step(actions_for("allocation", [(0, 0, 3, 2, 1)]))[4]["fairness"]["rates"]
    assert_allclose(rates, [(4, 4, 0, 0.8, 0.9)])
    free = started(initial_rates=(9, 3.9, 0.05, 1, 1))
    for _ in range(100):
        free.step(actions_for("allocation", [(0, 6, 0, 0, 0)]))
    assert free.rates[0, 0] == pytest.approx(29)


def test_incidents_occur_as_often_as_the_rates_say():
    n, steps = 400, 40
    world = started(n)
    expected, occurred = np.zeros(5), np.zeros(5)
    for time in range(steps):
        expected += n * world.rates[0]
        occurred += world.incidents.sum(axis=0)
        world.step(actions_for("allocation", np.tile((3, 3, 0, 0, 0) if time % 2 else (0, 0, 2, 2, 2), (n, 1))))
    assert (np.abs(occurred - expected) <= 3 * expected**0.5).all()


def test_the_ratio_may_be_that_of_the_window():
    steps, window = 12, 3
    world = started(2, ratio="window", window=window, history_length=1)
    discovered, incidents = [], []
    for actions in random_actions("allocation", steps, 2):
        obs, *_, record = world.step(actions)
        discovered.append(record["fairness"]["discovered"])
        incidents.append(record["fairness"]["incidents"])
        found, all_of_them = (np.sum(rows[-window - 1 :], axis=0) for rows in (discovered, incidents))
        assert_allclose(obs[:, 15:], found / (all_of_them + 1), rtol=1e-6)


def test_the_observation_holds_the_last_steps_oldest_first():
    world = started(2)
    blocks = []
    for actions in random_actions("allocation", 11, 2):
        obs, *_, record = world.step(actions)
        figures = record["fairness"]
        incidents = figures["incidents"]
        ratio = np.where(incidents > 0, figures["discovered"] / np.maximum(incidents, 1), 0)
        blocks.append(np.concatenate((figures["discovered"], incidents, figures["allocation"], ratio), axis=1))
    assert_allclose(obs, np.concatenate(blocks[-8:], axis=1), rtol=1e-6)


def test_the_random_rule_sends_each_unit_anywhere():
    world = started(3, n_locations=2, n_units=3, initial_rates=(1, 2), increase_rate=0.1)
    assert_allclose(world.rules["random"](world), [np.array([1, 3, 3, 1]) / 8] * 3)
    many = started(n_locations=2, n_units=1100, initial_rates=(1, 2), increase_rate=0.1)
    assert_allclose(many.rules["random"](many)[0], binom.pmf(np.arange(1101), 1100, 0.5), rtol=1e-9)


def test_the_published_sums_foretell_the_short_term_disparity():
    for mode in MODES:
        world = started(4, action_mode=mode, window=3)
        for actions in random_actions(mode, 12, 4):
            foretold = world.fairness_spec.measures.would_be(world.massage(), actions[:, None])[:, 0]
            assert_array_equal(world.step(actions)[4]["fairness"]["d_s"], foretold)


def test_observations_stay_inside_their_space():
    venv = WorldVecEnv(AttentionWorld, 16, episode_length=50)
    assert venv.observation_space.shape == (160,)
    venv.seed(0)
    venv.reset()
    space = venv.observation_space
    assert_array_equal(space.low, np.zeros(160))
    assert_array_equal(space.high, np.tile(np.repeat([6, np.inf, 6, 1], 5), 8))
    for actions in random_actions("logits", 120, 16):
        obs = venv.step(np.clip(5 * actions, -10, 10))[0]
        assert obs.dtype == np.float32 and (obs >= space.low).all() and (obs <= space.high).all()


def test_nothing_is_ever_undefined_when_everything_is_covered():
    world = started(episode_length=None)
    action = actions_for("allocation", [EQUALS])
    for time in range(10_000):
        obs, reward, _, truncated, record = world.step(action)
        if time % 100 == 0 or time > 9_990:
            assert np.isfinite(obs).all() and np.isfinite(reward).all() and not truncated.any()
            assert all(np.isfinite(values).all() for values in record["fairness"].values())
    figures = record["fairness"]
    assert figures["d_l"][0] == figures["d_l_next"][0] == figures["d_l_rates"][0] == 0
    assert figures["d_s"][0] == pytest.approx(2 / 6 - 0.2)


def play(rule, episodes, **config):
    """Reward per step, disparity of the units so far, and disparity of the rates, at the end (episodes,)."""
    venv = WorldVecEnv(AttentionWorld, episodes, action_mode="allocation", **config)
    venv.seed(0)
    venv.reset()
    agent, total = RuleAgent(rule, venv, seed=0), np.zeros(episodes)
    for _ in range(venv.world.max_steps):
        rewards, _, infos = venv.step(np.asarray(agent.predict(None)[0]))[1:]
        total += rewards
    figures = stack(infos, "fairness")
    return total / venv.world.max_steps, figures["d_s_cumulative"], figures["d_l_rates"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "reward", "short_term", "long_term"),
    [("cover", 0.097, 0.1333, 0), ("rotate", 0.084, 0, 0), ("greedy", 0.12, 0.131, 0), ("random", -3.3, 0.008, 0.725)],
)
def test_fixed_policies_earn_and_share_what_they_should(rule, reward, short_term, long_term):
    rewards, short, long = play(rule, 200)
    # The expected values are means over 200 episodes, too, and rounded.
    errors = [3 * (2 / 200) ** 0.5 * values.std() for values in (rewards, long)]
    assert rewards.mean() == pytest.approx(reward, abs=5e-3 + errors[0])
    assert short.mean() == pytest.approx(short_term, abs=6e-4)
    assert long.mean() == pytest.approx(long_term, abs=1e-12 + errors[1])


def test_rules_allocate_as_they_say():
    world = started(2)
    allocation_of = world.fairness_spec.measures.allocation
    for time in range(6):
        chosen = {name: rule(world) for name, rule in world.rules.items()}
        for rows in chosen.values():
            assert_allclose(rows.sum(axis=1), 1)
        sure = {name: allocation_of(rows.argmax(axis=1))[0] for name, rows in chosen.items() if rows.max() == 1}
        assert_array_equal(sure["cover"], EQUALS)
        assert_array_equal(sure["rotate"], 1 + (np.arange(5) == time % 5))
        assert_array_equal(sure["greedy"], one_by_one(world.rates[0], 6))
        world.step(actions_for("allocation", [(2, 1, 1, 1, 1)] * 2))
    rows = chosen["random"][0]
    assert rows[209] == pytest.approx(5.0**-6) and rows @ allocation_of(np.arange(210)) == pytest.approx([1.2] * 5)
    assert rows[allocation_to_index(EQUALS, 6)] == pytest.approx(360 / 5**6)


def test_other_action_modes_have_no_rules():
    for mode in ("logits", "units"):
        assert dict(started(action_mode=mode).rules) == {}
        with pytest.raises(ValueError, match="rule must be one of"):
            RuleAgent("cover", WorldVecEnv(AttentionWorld, 1, action_mode=mode))
    assert set(started().rules) == {"cover", "rotate", "greedy", "random"}


def test_the_ids_have_their_settings():
    name = "sb3_fair/AttentionAllocation"
    plain, units, discrete, equal = (gym.make(f"{name}{kind}-v0") for kind in ("", "-Units", "-Discrete", "-Equal"))
    assert plain.action_space == gym.spaces.Box(-10, 10, (5,)) and plain.unwrapped.max_return == 6000
    assert units.action_space == gym.spaces.MultiDiscrete([5] * 6)
    assert discrete.action_space == gym.spaces.Discrete(210)
    equal.reset(seed=0)
    rates = equal.step(np.array([5, 0, 0, 0, 0], dtype=np.float32))[4]["fairness"]["rates"]
    assert_allclose(rates, (7.4, 6.1, 4.1, 3.1, 1.6))
    assert plain.unwrapped.fairness_spec.group_names[4] == "location 4"


def test_the_hidden_rates_are_shown_on_request():
    world = started(3, detail=True)
    record = world.step(np.array([0, 5, 209]))[4]
    outlook = record["detail"]["outlook"]
    assert_allclose(np.expm1(outlook[:, :5]), record["fairness"]["rates"])
    assert_allclose(outlook[:, 5], record["fairness"]["d_l_rates"])


def test_episodes_need_not_end_and_may_have_other_sizes():
    endless = started(episode_length=None)
    assert endless.max_steps is None and endless.max_return == np.inf
    other = {"n_locations": 3, "n_units": 2, "initial_rates": [1, 2, 3], "increase_rate": 0.1, "history_length": 2}
    for mode, action in (("logits", [0.0, 1.0, 0.0]), ("units", [1, 2]), ("allocation", 5)):
        env = WorldEnv(AttentionWorld, action_mode=mode, **other)
        env.reset(seed=0)
        obs, *_, info = env.step(np.array(action))
        assert obs.shape == (24,) and info["fairness"]["allocation"].sum() == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_locations": 1}, r"n_locations must be an integer in \[2, 1_000_000\], got 1"),
        ({"n_locations": 3}, r"initial_rates must be 3 numbers, one per location, got \(8, 6, 4, 3, 1.5\)"),
        ({"n_units": 0}, "n_units must be a positive integer, got 0"),
        ({"initial_rates": 3}, "initial_rates must be a sequence .each entry a non-negative number., got 3"),
        ({"initial_rates": (1, 2, 3, 4, -1)}, r"initial_rates must .* a non-negative number\), got \(1, .*-1\)"),
        ({"increase_rate": "fast"}, "increase_rate must be a non-negative number or a sequence .*, got 'fast'"),
        ({"increase_rate": (0.1, 0.2)}, "increase_rate must be 5 numbers"),
        ({"decrease_rate": -0.1}, "decrease_rate must be a non-negative number, got -0.1"),
        ({"discovered_weight": np.nan}, "discovered_weight must be a non-negative number, got nan"),
        ({"history_length": 2.5}, "history_length must be a positive integer, got 2.5"),
        ({"episode_length": 0}, "episode_length must be a positive integer or None, got 0"),
        ({"window": -3}, "window must be a positive integer, got -3"),
        ({"action_mode": "box"}, r"action_mode must be one of 'logits', 'units', 'allocation', got 'box'"),
        (
            {"action_mode": "allocation", "n_units": 50},
            "action_mode must be 'logits' or 'units' for more than 100000 allocations, got 'allocation' for 50 units",
        ),
        ({"logit_bound": 0}, "logit_bound must be in .1e-3, 1e3., got 0"),
        ({"ratio": "all"}, r"ratio must be one of 'step', 'window', got 'all'"),
        ({"window_norm": 1}, "window_norm must be one of"),
        ({"long_term_source": "units"}, "long_term_source must be one of"),
        ({"max_rate": -1}, "max_rate must be a non-negative number or None, got -1"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        AttentionWorld(1, **settings)


def test_make_vec_monitors_the_reward_of_the_episode():
    venv = make_vec("sb3_fair/AttentionAllocation-v0", 4, seed=0, episode_length=10)
    venv.reset()
    total = np.zeros(4)
    for actions in random_actions("logits", 10, 4):
        _, rewards, _, infos = venv.step(np.clip(actions, -10, 10))
        total += rewards
    assert_allclose([info["episode"]["r"] for info in infos], total, rtol=1e-5)
