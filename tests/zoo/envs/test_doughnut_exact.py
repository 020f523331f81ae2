"""Are the exact values of the doughnut scenario those that are known, and those of plain enumeration?"""

from functools import cache
from itertools import product
from math import log

import numpy as np
import pytest

from sb3_fair.zoo.envs.doughnut.exact import optimum, policy_value, rule_value

SMALL = {"n_people": 3, "episode_length": 12}
TINY = {"n_people": 3, "episode_length": 4}
PAIR = {"n_people": 2, "episode_length": 3, "presence": 0.5}
UNLIKE = {"n_people": 2, "episode_length": 6, "presence": (0.9, 0.2)}


@pytest.mark.parametrize(
    ("config", "gamma", "best", "oracle", "random_present", "random_all"),
    [
        (SMALL, 1.0, 37.6332, 37.6332, 35.5780, 25.4786),
        (SMALL, 0.99, 35.1475, 35.1475, 33.2138, 23.7886),
        (SMALL | {"offset": 1.0001}, 1.0, 37.6347, 37.6347, None, None),
        (SMALL | {"offset": 1.0001}, 0.99, 35.1488, 35.1488, None, None),
        (TINY, 1.0, 6.478576, 6.478576, 5.990186, 4.359756),
        (PAIR, 1.0, 2.507984, 2.507984, 2.443771, 1.439030),
        (PAIR, 0.9, 2.207264, 2.207264, None, None),
        (UNLIKE, 1.0, 8.924861, 8.696994, None, None),
    ],
)
def test_known_values_are_reached_to_every_digit(config, gamma, best, oracle, random_present, random_all):
    digits = 5e-5 if config["n_people"] == 3 and config["episode_length"] == 12 else 5e-7
    assert optimum(gamma, **config) == pytest.approx(best, abs=digits)
    for rule, value in (("oracle", oracle), ("random-present", random_present), ("random-all", random_all)):
        if value is not None:
            assert rule_value(rule, gamma, **config) == pytest.approx(value, abs=digits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gamma", "best", "offset", "random_present", "random_all", "digits"),
    [
        (1.0, 1103.3363, 1103.3439, 1082.8830, 791.1364, 5e-5),
        (0.95, 132.3546, 132.358, 126.4314, 90.1630, 5e-5),
    ],
)
def test_known_values_of_the_large_scenario_are_reached(gamma, best, offset, random_present, random_all, digits):
    assert optimum(gamma) == pytest.approx(best, abs=digits)
    assert optimum(gamma, offset=1.0001) == pytest.approx(offset, abs=digits)
    assert rule_value("oracle", gamma) == pytest.approx(best, abs=digits)
    assert rule_value("random-present", gamma) == pytest.approx(random_present, abs=digits)
    assert rule_value("random-all", gamma) == pytest.approx(random_all, abs=digits)


def enumerated(presence, steps, welfare, waste, gamma, choose=None):
    """Value of the start, by recursion over all that can happen; ``choose(present, counts, time)`` or the best."""

    @cache
    def value(counts, time):
        if time == steps:
            return 0.0
        total = 0.0
        for present in product((False, True), repeat=len(presence)):
            chance = np.prod([p if here else 1 - p for p, here in zip(presence, present, strict=True)])
            worth = []
            for person, here in enumerate(present):
                after = tuple(count + (here and person == other) for other, count in enumerate(counts))
                paid = welfare(after) if here or waste == "welfare" else 0.0
                worth.append(paid + gamma * value(after, time + 1))
            total += chance * (max(worth) if choose is None else worth[choose(present, counts, time)])
        return total

    return value((0,) * len(presence), 0)


def log_nash(counts):
    return sum(log(count + 1) for count in counts)


def parity(counts):
    return min(counts) - max(counts)


@pytest.mark.parametrize("presence", [(0.8, 0.8, 0.8), (0.9, 0.3, 0.6), (1.0, 1.0, 1.0), (0.0, 0.5, 1.0)])
@pytest.mark.parametrize(("name", "welfare"), [("log_nash", log_nash), ("relaxed_parity", parity)])
@pytest.mark.parametrize("waste", ["zero", "welfare"])
@pytest.mark.parametrize("gamma", [1.0, 0.7])
def test_values_are_those_of_plain_enumeration(presence, name, welfare, waste, gamma):
    config = {"n_people": 3, "episode_length": 4, "presence": presence, "welfare": name, "waste": waste}

    def fewest(present, counts, time):
        return min(range(3), key=lambda person: (not present[person], counts[person], person))

    assert optimum(gamma, **config) == pytest.approx(enumerated(presence, 4, welfare, waste, gamma))
    by_hand = enumerated(presence, 4, welfare, waste, gamma, fewest)
    assert rule_value("oracle", gamma, **config) == pytest.approx(by_hand)

    def oracle(present, counts, time):
        return np.where(present, counts, 99).argmin(axis=1)

    assert policy_value(oracle, gamma, **config) == pytest.approx(by_hand)

    def odd(present, counts, time):
        return (sum(present) + 2 * counts[0] + time) % 3

    assert policy_value(
        lambda present, counts, time: (present.sum(axis=1) + 2 * counts[:, 0] + time) % 3, gamma, **config
    ) == pytest.approx(enumerated(presence, 4, welfare, waste, gamma, odd))


def test_a_welfare_that_tells_people_apart_is_taken_at_its_word():
    config = {"n_people": 3, "episode_length": 5, "welfare": lambda counts: counts[..., 2] * 1.0}
    assert optimum(**config) == pytest.approx(enumerated((0.8,) * 3, 5, lambda counts: counts[2], "zero", 1.0))


def test_random_policies_are_policies_of_probabilities():
    def present_only(present, counts, time):
        able = present | ~present.any(axis=1, keepdims=True)
        return able / able.sum(axis=1, keepdims=True)

    for config in (SMALL, UNLIKE):
        assert policy_value(present_only, 0.9, **config) == pytest.approx(rule_value("random-present", 0.9, **config))
        uniform = policy_value(lambda present, counts, time: np.full(present.shape, 1 / present.shape[1]), **config)
        assert uniform == pytest.approx(rule_value("random-all", **config))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: optimum(n_people=6, presence=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
            "episode_length must be smaller .*n_people = 6",
        ),
        (lambda: optimum(1.5, **PAIR), r"gamma must be in \[0, 1\], got 1.5"),
        (lambda: rule_value("random", **PAIR), "rule must be .*'random-all'.*got 'random'"),
        (
            lambda: policy_value(lambda p, c, t: np.full(len(p), 2), **PAIR),
            r"policy must return actions \(6,\), integers below 2",
        ),
        (
            lambda: policy_value(lambda p, c, t: np.ones(p.shape), **PAIR),
            r"policy must return actions .* float64 \(6, 2\)",
        ),
    ],
)
def test_what_is_not_allowed_is_an_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
