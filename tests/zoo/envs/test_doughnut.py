"""Does the doughnut scenario keep its rules?"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fairness import group_notion
from sb3_fair.fairness.welfare import Welfare
from sb3_fair.zoo.envs.doughnut.exact import rule_value
from sb3_fair.zoo.envs.doughnut.world import DoughnutConfig, DoughnutWorld
from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv
from tests.zoo.forms import assert_close, begun, returns_of

NEEDS = ("stakeholders", "default_memory", "scheme")

# present, gives to, granted, counts after, reward
TRACE = [
    ("111", 0, True, (1, 0, 0), 0.693147),
    ("011", 1, True, (1, 1, 0), 1.386294),
    ("110", 2, False, (1, 1, 0), 0.0),
    ("101", 0, True, (2, 1, 0), 1.791759),
    ("001", 2, True, (2, 1, 1), 2.484907),
    ("111", 1, True, (2, 2, 1), 2.890372),
    ("000", 0, False, (2, 2, 1), 0.0),
    ("111", 2, True, (2, 2, 2), 3.295837),
]

started = partial(begun, DoughnutWorld)


def come(world, present):
    """Just these people are at the counter of every copy in the coming step."""
    rows = np.tile([letter == "1" for letter in present], (world.n_worlds, 1))
    world.tapes.now = world.tapes.now._replace(present=rows)


def play_trace(**config):
    """Records and results of the eight steps, in each of two copies."""
    world = started(2, n_people=3, episode_length=8, detail=True, **config)
    steps = []
    for present, action, *_ in TRACE:
        come(world, present)
        steps.append(world.step(np.array([action, action])))
    return steps


def test_the_worked_example_pays_what_it_should():
    returns, discounted = np.zeros(2), np.zeros(2)
    steps = play_trace()
    for time, ((present, action, granted, counts, expected), step) in enumerate(zip(TRACE, steps, strict=True)):
        _, reward, terminated, truncated, record = step
        assert_allclose(reward, expected, atol=1e-6)
        assert_array_equal(record["detail"]["counts"], [counts, counts])
        assert_allclose(record["fair_event"].array, [[granted, 0, granted]] * 2)
        people = record["individual"]
        assert_array_equal(people["present"][1], [letter == "1" for letter in present])
        assert_array_equal(people["action"][1], np.eye(3)[action] * granted)
        assert_array_equal(people["group"][1], [0, 1, 2])
        before = np.array(TRACE[time - 1][3] if time else (0, 0, 0))
        assert_allclose(people["features"][1, :, 0], before / 8)
        assert_array_equal(record["fairness"]["spread"], max(counts) - min(counts))
        assert_array_equal(record["fairness"]["least"], min(counts))
        assert_array_equal(record["fairness"]["wasted"], time + 1 - sum(counts))
        assert not terminated.any() and (truncated == (time == 7)).all()
        returns += reward
        discounted += 0.99**time * reward
    assert_allclose(returns, 12.542316, atol=1e-6)
    assert_allclose(discounted, 12.011763, atol=1e-6)


def test_waste_may_pay_the_present_welfare_so_that_the_return_is_the_score():
    steps = play_trace(waste="welfare")
    assert sum(step[1][0] for step in steps) == pytest.approx(16.818982, abs=1e-6)
    assert [bool(step[4]["fair_event"].mask[0]) for step in steps] == [True] * 8
    status = np.array([step[4]["detail"]["counts"][0] for step in steps])
    assert DoughnutConfig(n_people=3).scheme.score(status) == pytest.approx(16.818982, abs=1e-6)


@pytest.mark.parametrize(
    ("config", "last"),
    [
        ({"welfare": "rawls"}, 2),
        ({"welfare": "nash", "offset": 1}, 27),
        ({"offset": 1.0001}, 3 * np.log(3.0001)),
        ({"welfare": Welfare("alpha_fair", offset=1, alpha=2)}, -1),
        ({"welfare": lambda counts: counts[..., 0]}, 2),
    ],
)
def test_any_welfare_may_be_the_reward(config, last):
    assert_allclose(play_trace(**config)[-1][1], last, rtol=1e-12)


def test_the_mask_that_is_seen_is_the_one_that_decides():
    world = started(500)
    obs = world.reset(np.arange(500))
    for _ in range(20):
        action = np.random.default_rng(0).integers(5, size=500)
        seen = obs[np.arange(500), action]
        obs, reward, *_, record = world.step(action)
        assert_array_equal(record["fair_event"].granted, seen)
        assert_array_equal(reward > 0, seen == 1)


def test_everybody_is_there_as_often_as_is_said_independently_of_the_others():
    world = started(4000, n_people=3, presence=(0.2, 0.5, 0.9))
    rows = np.concatenate([world.step(np.zeros(4000, dtype=int))[0] for _ in range(10)])
    assert_allclose(rows.mean(axis=0), (0.2, 0.5, 0.9), atol=0.01)
    assert_allclose(np.corrcoef(rows.T), np.eye(3), atol=0.02)


@pytest.mark.parametrize("end", ["truncated", "terminated"])
def test_a_clock_shows_the_time_and_an_episode_ends_as_it_is_told(end):
    world = started(clock=True, end=end, episode_length=4)
    assert (world.end, world.clock, world.max_steps) == (end, True, 4)
    for time in range(1, 5):
        obs, _, terminated, truncated, _ = world.step(np.array([0]))
        assert obs.shape == (1, 6) and obs.dtype == np.float32 and obs[0, 5] == time / 4
        assert (terminated[0], truncated[0]) == (time == 4 and end == "terminated", time == 4 and end == "truncated")
    assert world.reset(np.array([0]))[0, 5] == 0 and not world.counts.any() and world.refused[0] == 0


@pytest.mark.parametrize("face", [WorldEnv, WorldVecEnv])
def test_the_scenario_says_what_memories_and_schemes_need(face):
    env = face(DoughnutWorld, n_people=3)
    told = [env.get_attr(name)[0] if face is WorldVecEnv else getattr(env, name) for name in NEEDS]
    assert told[:2] == [(0, 1, 2), "full"]
    assert told[2].W([1, 1, 0]) == pytest.approx(2 * np.log(2))


def test_the_ids_have_their_settings():
    small, clock = (gym.make(f"sb3_fair/Doughnut-{name}-v0").unwrapped for name in ("Small", "Clock"))
    assert (small.action_space.n, small.max_steps, small.end, small.clock) == (3, 12, "truncated", False)
    assert (clock.action_space.n, clock.max_steps, clock.end, clock.clock) == (5, 100, "terminated", True)


def test_no_return_is_above_the_bound_and_taking_turns_reaches_it():
    for welfare in ("log_nash", "utilitarian", "rawls", "neg_gini", "jain", "gini_welfare", "relaxed_parity"):
        for waste in ("zero", "welfare"):
            world = started(300, n_people=3, episode_length=10, presence=0.9, welfare=welfare, waste=waste)
            total = np.zeros(300)
            for _ in range(10):
                actions = world.rules["oracle"](world).argmax(axis=1)
                total += world.step(actions)[1]
            assert total.max() <= world.max_return + 1e-9
            if welfare in ("log_nash", "utilitarian", "rawls", "gini_welfare"):
                assert total.max() == pytest.approx(world.max_return)
    assert started(welfare=lambda counts: counts[..., 0]).max_return == np.inf


def test_fairness_among_the_people_can_be_measured():
    env = gym.make("sb3_fair/Doughnut-v0", audit=("SP",), n_people=3)
    env.reset(seed=0)
    actions, groups = [], []
    for time in range(60):
        info = env.step(time % 5 % 3)[4]
        actions.extend(info["individual"]["action"])
        groups.extend(info["individual"]["group"])
        assert len(info["individual"]["id"]) == len(info["individual"]["action"])
    assert info["fairness"]["SP"] == pytest.approx(group_notion("SP", actions=actions, feedback=actions, groups=groups))
    assert {"SP", "spread", "least", "wasted"} == set(info["fairness"])
    assert env.unwrapped.fairness_spec.group_names == ("person 0", "person 1", "person 2")


@pytest.mark.parametrize("rule", DoughnutWorld.rules)
@pytest.mark.parametrize(
    "config", [{"n_people": 3, "episode_length": 12}, {"n_people": 2, "episode_length": 6, "presence": (0.9, 0.2)}]
)
def test_rules_earn_what_they_should(rule, config):
    assert_close(returns_of(DoughnutWorld.rules[rule], started(10_000, **config)), rule_value(rule, **config))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "exact", "spread", "wasted"),
    [
        ("oracle", 1103.3363, 0.50, 0.03),
        ("random-present", 1082.8830, 10.4, 0.03),
        ("random-all", 791.1364, 9.2, 20.0),
    ],
)
def test_rules_of_the_large_scenario_reach_their_figures(rule, exact, spread, wasted):
    world = started(10_000)
    assert_close(returns_of(world.rules[rule], world), exact)
    assert world.figures()["spread"].mean() == pytest.approx(spread, abs=0.06)
    assert world.figures()["wasted"].mean() == pytest.approx(wasted, abs=0.1)


def test_the_oracle_takes_the_first_of_those_who_had_fewest():
    world = started(n_people=4)
    world.counts[:] = [3, 1, 1, 0]
    for present, chosen in (("1110", 1), ("1111", 3), ("1000", 0), ("1010", 2), ("0000", 0)):
        come(world, present)
        assert_array_equal(world.rules["oracle"](world), np.eye(4)[[chosen]])
    come(world, "1010")
    assert_array_equal(world.rules["random-present"](world), [[0.5, 0, 0.5, 0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_people": 1}, r"n_people must be an integer in \[2, 1_000_000\], got 1"),
        ({"n_people": 2.0}, "n_people must be an integer in .*, got 2.0"),
        ({"episode_length": 0}, "episode_length must be a positive integer, got 0"),
        ({"presence": 1.5}, r"presence must be in \[0, 1\] or a sequence \(each entry in \[0, 1\]\), got 1.5"),
        ({"presence": "often"}, r"presence must be in \[0, 1\] .* got 'often'"),
        ({"presence": (0.5, 0.5)}, r"presence must be one probability or one for each of 5 people, got \(0"),
        ({"presence": [0.5] * 4 + [-1]}, r"presence must .* \(each entry in \[0, 1\]\), got .*-1"),
        ({"welfare": "nahs"}, "welfare must be .*nash"),
        ({"welfare": "gini"}, "neg_gini"),
        ({"offset": "1"}, "offset must be a finite number or None, got '1'"),
        ({"welfare": Welfare("nash"), "offset": 1}, "offset must be None unless welfare is a name, got 1"),
        ({"welfare": "log_nash", "offset": 0}, r"log_nash needs entries above 0 once the offset \(0\)"),
        ({"waste": "none"}, r"waste must be one of 'zero', 'welfare', got 'none'"),
        ({"clock": 1}, r"clock must be True or False, got 1"),
        ({"end": "done"}, r"end must be one of 'truncated', 'terminated', got 'done'"),
        ({"group": ["person"]}, r"group must be the name of one attribute, got \['person'\]"),
    ],
)
def test_settings_that_are_not_allowed_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        DoughnutWorld(1, **settings)
