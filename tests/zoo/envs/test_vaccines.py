"""Does the vaccine scenario keep its rules?"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal

import sb3_fair
from sb3_fair.fairness import NewMultiple, Scheme, count_status
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.regularity import find_counterexample
from sb3_fair.zoo.envs.vaccines.world import VaccineDeliveryWorld
from tests.zoo.forms import begun

VACCINES = "sb3_fair/VaccineDelivery-v0"

# sent to, arrived, shipments after it, reward, switches so far
TRACE = [
    (0, True, (1, 0), -1, 0),
    (1, False, (1, 0), -1.5, 1),
    (1, True, (1, 1), 0, 1),
    (1, True, (1, 2), -1, 1),
    (0, False, (1, 2), -1.5, 2),
    (1, True, (1, 3), -2.5, 3),
]

started = partial(begun, VaccineDeliveryWorld)


def play_trace(n=2, **config):
    world = started(n, episode_length=6, detail=True, **config)
    for country, arrived, *_ in TRACE:
        world.tapes.now = world.tapes.now._replace(present=np.full((n, 1), arrived))
        yield world.step(np.full(n, country))


def test_the_worked_example_pays_for_gaps_and_for_switches_also_when_a_shipment_is_lost():
    for time, (expected, step) in enumerate(zip(TRACE, play_trace(), strict=True), 1):
        country, arrived, counts, paid, switches = expected
        obs, reward, terminated, truncated, record = step
        assert_allclose(reward, [paid] * 2)
        assert_array_equal(record["detail"]["counts"], [counts] * 2)
        event = record["fair_event"]
        assert_allclose(event.array, [[arrived, paid + abs(counts[0] - counts[1]), 1]] * 2)
        figures = {"gap": abs(counts[0] - counts[1]), "switches": switches, "arrived": sum(counts)}
        assert_equal(record["fairness"], {name: np.full(2, value) for name, value in figures.items()})
        assert_allclose(obs, [[country == 0, country == 1, time / 6]] * 2, rtol=1e-6)
        assert_array_equal(record["individual"]["action"], [np.eye(2)[country] * arrived] * 2)
        assert (terminated == (time == 6)).all() and not truncated.any()


def test_an_episode_begins_with_nothing_sent_and_a_free_choice():
    world = started(3, episode_length=2)
    world.step(np.array([0, 1, 1]))
    world.step(np.array([1, 1, 0]))
    assert_array_equal(world.reset(np.array([0, 2])), np.zeros((2, 3)))
    *_, record = world.step(np.array([1, 1, 1]))
    assert_array_equal(record["fairness"]["switches"], [0, 0, 0])
    assert_array_equal(record["fair_event"].base, [0, 0, 0])


def test_nobody_sees_before_whether_a_shipment_arrives():
    world = started(4000)
    obs = world.reset(np.arange(4000))
    assert not obs.any()
    *_, record = world.step(np.zeros(4000, dtype=int))
    assert record["fair_event"].granted.mean() == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(
    ("scheme", "memory"),
    [
        (None, "difference"),
        (Scheme(welfare="relaxed_parity", when=("period", 3)), "difference"),
        (Scheme(welfare="relaxed_parity", temporal="last"), "difference"),
        (Scheme(welfare="relaxed_parity", when=NewMultiple(3)), "full"),
        (Scheme(welfare="log_nash"), "full"),
    ],
)
def test_the_return_is_the_score_of_the_scheme_minus_the_switches_and_the_memory_is_enough(scheme, memory):
    settings = {"episode_length": 6} | ({} if scheme is None else {"scheme": scheme})
    venv = sb3_fair.make_vec(VACCINES, 100, seed=0, monitor=False, **settings)
    venv.reset()
    actions = np.random.default_rng(0).integers(2, size=(100, 6))
    steps = [venv.step(column) for column in actions.T]
    granted = np.array([stack(infos, "fair_event").granted for *_, infos in steps])
    status = count_status(actions, granted.T, stakeholders=(0, 1))
    switches = (np.diff(actions) != 0).sum(axis=1)
    score = venv.get_attr("scheme")[0].score(status)
    assert_allclose(np.sum([rewards for _, rewards, *_ in steps], axis=0), score - 0.5 * switches)
    assert_array_equal(stack(steps[-1][3], "fairness")["switches"], switches)
    env = gym.make(VACCINES, memory=memory, disable_env_checker=True, **settings)
    assert find_counterexample(env, n_episodes=200) is None


def test_the_difference_does_not_tell_how_many_have_arrived():
    scheme = Scheme(welfare="relaxed_parity", when=NewMultiple(3))
    env = gym.make(VACCINES, memory="difference", scheme=scheme, episode_length=6, disable_env_checker=True)
    assert find_counterexample(env, n_episodes=200) is not None


def test_the_memory_that_is_named_fits_the_number_of_countries():
    assert gym.make(VACCINES).get_wrapper_attr("default_memory") == "difference"
    assert gym.make(VACCINES, countries=3).get_wrapper_attr("default_memory") == "full"


def test_rules_take_turns_or_send_blocks():
    world = started(countries=3, episode_length=6, arrives=1.0)
    plans = {"take-turns": [0, 1, 2, 0, 1, 2], "blocks": [0, 0, 1, 1, 2, 2]}
    for rule, plan in plans.items():
        world.reset(np.arange(1))
        for country in plan:
            assert_array_equal(world.rules[rule](world), np.eye(3)[[country]])
            world.step(np.array([country]))


@pytest.mark.parametrize(("countries", "rules"), [(3, 4), (4, 3)])
def test_there_is_an_oracle_where_an_exact_solution_fits(countries, rules):
    world = started(countries=countries)
    told = [rule(world) for rule in world.rules.values()]
    assert len(told) == rules and ("oracle" in world.rules) == (rules == 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"countries": 1}, r"countries must be an integer in \[2, 1_000_000\], got 1"),
        ({"countries": 2.0}, "countries must be an integer in .*, got 2.0"),
        ({"arrives": 1.1}, r"arrives must be in \[0, 1\], got 1.1"),
        ({"switch_cost": -1}, r"switch_cost must be in \[0, 1e6\], got -1"),
        ({"switch_cost": float("inf")}, r"switch_cost must be in \[0, 1e6\], got inf"),
        ({"episode_length": 0}, "episode_length must be a positive integer, got 0"),
    ],
)
def test_settings_that_are_not_allowed_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        VaccineDeliveryWorld(1, **settings)
