"""Does the home visits scenario keep its rules?"""

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal

import sb3_fair
from sb3_fair.fairness import Scheme, count_status
from sb3_fair.wrappers import MemoryAugmentation
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.regularity import find_counterexample
from sb3_fair.zoo.envs.visits import HomeVisitsWorld
from sb3_fair.zoo.envs.world import WorldVecEnv
from sb3_fair.zoo.registry.rules import RuleAgent
from tests.zoo.forms import begun

HOME_VISITS = "sb3_fair/HomeVisits-v0"
SMALL = {"at_home": (0.9, 0.7, 0.5), "slots": 4, "days": 2}

# at home, visited, granted, visits today after it, reward, lost visits so far, good days so far
TRACE = [
    ("111", 0, True, (1, 0, 0), 0, 0, 0),
    ("011", 0, False, (1, 0, 0), 0, 1, 0),
    ("111", 1, True, (1, 1, 0), 0, 1, 0),
    ("001", 2, True, (1, 1, 1), 1, 1, 1),
    ("111", 1, True, (0, 1, 0), 0, 1, 1),
    ("000", 2, False, (0, 1, 0), 0, 2, 1),
    ("110", 0, True, (1, 1, 0), 0, 2, 1),
    ("110", 0, True, (2, 1, 0), 0, 2, 1),
]


def stay(world, at_home):
    """Just these clients of every copy are at home in the coming slot."""
    rows = np.tile([letter == "1" for letter in at_home], (world.n_worlds, 1))
    world.tapes.now = world.tapes.now._replace(present=rows)


def test_the_worked_example_pays_at_the_end_of_a_day_and_begins_anew_the_next():
    world = begun(HomeVisitsWorld, 2, detail=True, **SMALL)
    for time, (at_home, client, granted, today, expected, lost, good) in enumerate(TRACE, 1):
        stay(world, at_home)
        obs, reward, terminated, truncated, record = world.step(np.array([client, client]))
        assert_array_equal(reward, [expected] * 2)
        assert_array_equal(record["detail"]["counts"], [today] * 2)
        assert_allclose(record["fair_event"].array, [[granted, 0, time % 4 == 0]] * 2)
        figures = {"least": min(today), "missed": today.count(0), "wasted": lost, "good_days": good}
        assert_equal(record["fairness"], {name: np.full(2, value) for name, value in figures.items()})
        assert_array_equal(record["individual"]["present"][0], [letter == "1" for letter in at_home])
        assert_array_equal(record["individual"]["action"][0], np.eye(3)[client] * granted)
        assert_array_equal(obs[:, 3], np.full(2, time % 4 / 4))
        assert not terminated.any() and (truncated == (time == 8)).all()
    assert_array_equal(world.today, np.zeros((2, 3)))


def test_a_reward_comes_only_at_the_end_of_a_day_and_is_the_score_of_what_was_done():
    venv = WorldVecEnv(HomeVisitsWorld, 200, **SMALL)
    agent = RuleAgent("random-present", venv, seed=0)
    venv.seed(0)
    obs = venv.reset()
    rewards, actions, granted = [], [], []
    for _ in range(8):
        actions.append(agent.predict(obs)[0])
        obs, reward, _, infos = venv.step(np.asarray(actions[-1]))
        rewards.append(reward)
        granted.append(stack(infos, "fair_event").granted)
    rewards = np.array(rewards)
    assert not np.delete(rewards, (3, 7), axis=0).any() and rewards[[3, 7]].any(axis=1).all()
    status = count_status(np.array(actions).T, np.array(granted).T, stakeholders=(0, 1, 2))
    assert_array_equal(rewards.sum(axis=0), venv.get_attr("scheme")[0].score(status))
    assert_array_equal(stack(infos, "fairness")["good_days"], rewards.sum(axis=0))


def test_visits_of_today_are_memory_enough_and_visits_of_all_days_are_not():
    settings = {"at_home": (1.0, 1.0), "slots": 2, "days": 2, "disable_env_checker": True}
    assert gym.make(HOME_VISITS).get_wrapper_attr("default_memory") == "rounds(14)"
    assert find_counterexample(gym.make(HOME_VISITS, memory="rounds(2)", **settings)) is None
    found = find_counterexample(gym.make(HOME_VISITS, memory="full", **settings))
    assert found is not None and set(found.values) == {0, 1}


def test_figures_of_a_finished_episode_survive_the_next_one():
    venv = WorldVecEnv(HomeVisitsWorld, 1, at_home=(1.0, 1.0), slots=2, days=2)
    venv.reset()
    for client in (0, 1, 0, 1):
        _, _, dones, infos = venv.step([client])
    assert dones.all() and infos[0]["fairness"]["good_days"] == 2
    assert not venv.step([0])[3][0]["fairness"]["good_days"]


def test_the_oracle_visits_whoever_had_fewest_and_is_seldom_at_home():
    world = begun(HomeVisitsWorld, **SMALL)
    world.time[:] = 1
    for at_home, today, chosen in (("111", (0, 0, 0), 2), ("110", (0, 0, 0), 1), ("111", (0, 1, 1), 0)):
        stay(world, at_home)
        world.counts[:] = today
        assert_array_equal(world.rules["oracle"](world), np.eye(3)[[chosen]])
    world.time[:], world.counts[:] = 4, (0, 0, 9)  # yesterday's
    assert_array_equal(world.rules["oracle"](world), np.eye(3)[[2]])
    stay(world, "101")
    assert_array_equal(world.rules["random-present"](world), [[0.5, 0, 0.5]])
    assert_allclose(world.rules["random-all"](world), np.full((1, 3), 1 / 3))


def test_only_whoever_knows_what_was_done_today_has_good_days():
    means = {}
    for rule in HomeVisitsWorld.rules:
        venv = sb3_fair.make_vec(HOME_VISITS, 500, seed=0)
        agent, obs = RuleAgent(rule, venv, seed=0), venv.reset()
        for _ in range(42):
            obs, _, _, infos = venv.step(np.asarray(agent.predict(obs)[0]))
        means[rule] = np.mean([info["episode"]["r"] for info in infos])
    assert means["oracle"] > 2.95 and means["random-present"] < 0.2 and means["random-all"] < 0.1
    assert venv.get_attr("max_return")[0] == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"at_home": 0.5}, r"at_home must be a sequence \(each entry in \[0, 1\]\), got 0.5"),
        ({"at_home": (0.5,)}, r"at_home must be .* at least two clients, got \(0.5,\)"),
        ({"at_home": "often"}, "at_home must be a sequence .*, got 'often'"),
        ({"at_home": (0.5, 1.5)}, r"at_home must be a sequence .*, got \(0.5, 1.5\)"),
        ({"slots": 0}, "slots must be a positive integer, got 0"),
        ({"days": 1.5}, "days must be a positive integer, got 1.5"),
        ({"welfare": "rals"}, "welfare must be .*rawls"),
    ],
)
def test_settings_that_are_not_allowed_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        HomeVisitsWorld(1, **settings)


def test_another_scheme_is_assessed_when_it_says():
    settings = {"at_home": (1.0, 1.0), "slots": 4, "days": 2}
    for when, expected in (("every", [0, 1, 1, 2, 2, 3, 3, 4]), (("period", 3), [0, 0, 1, 0, 0, 3, 0, 0])):
        scheme = Scheme(welfare="rawls", when=when)
        env = gym.make(HOME_VISITS, scheme=scheme, disable_env_checker=True, **settings)
        env.reset(seed=0)
        assert [env.step(step % 2)[1] for step in range(8)] == expected
        venv = sb3_fair.make_vec(HOME_VISITS, 2, seed=0, scheme=scheme, **settings)
        venv.reset()
        assert [venv.step([step % 2] * 2)[1].tolist() for step in range(8)] == [[value] * 2 for value in expected]


@pytest.mark.parametrize("when", ["every", "end", ("period", 2)])
def test_the_memory_that_another_scheme_names_is_enough(when):
    settings = {"at_home": (1.0, 1.0), "slots": 2, "days": 3, "disable_env_checker": True}
    env = gym.make(HOME_VISITS, scheme=Scheme(welfare="relaxed_parity", when=when), **settings)
    memory = env.get_wrapper_attr("default_memory")
    assert memory.startswith("full") and find_counterexample(MemoryAugmentation(env, memory)) is None
