"""Are the best deliveries the best, and as different as they are said to be?"""

from itertools import pairwise, product

import numpy as np
import pytest

from sb3_fair.fairness import NewMultiple, Scheme, count_status
from sb3_fair.zoo.envs.vaccines.exact import policy_value, solved
from sb3_fair.zoo.envs.vaccines.world import VaccineDeliveryWorld, VaccinesConfig
from tests.zoo.forms import assert_close, begun, returns_of

PARITY = "relaxed_parity"
ANYTIME, PERIODIC = Scheme(welfare=PARITY), Scheme(welfare=PARITY, when=("period", 6))
BOUNDED, LONG_TERM = Scheme(welfare=PARITY, when=NewMultiple(6)), Scheme(welfare=PARITY, temporal="last")
SCHEMES = {"anytime": ANYTIME, "periodic": PERIODIC, "bounded": BOUNDED, "long-term": LONG_TERM}


def letters(route):
    return "".join("ABC"[country] for country in route)


def best_of_all(config, scheme):
    """The highest expected return, by trying every tree of decisions."""

    def score(sent, arrived):
        status = count_status(sent, arrived, stakeholders=range(config.countries))
        return scheme.score(status) - config.switch_cost * sum(one != other for one, other in pairwise(sent))

    def value(sent, arrived):
        if len(sent) == config.episode_length:
            return score(sent, arrived)
        options = []
        for country in range(config.countries):
            better = value((*sent, country), (*arrived, True)), value((*sent, country), (*arrived, False))
            options.append(config.arrives * better[0] + (1 - config.arrives) * better[1])
        return max(options)

    return value((), ())


@pytest.mark.parametrize(
    "scheme",
    [
        ANYTIME,
        LONG_TERM,
        Scheme(welfare=PARITY, when=("period", 2)),
        Scheme(welfare=PARITY, when=NewMultiple(2)),
        Scheme(welfare="log_nash", when="end"),
        Scheme(welfare="rawls"),
    ],
)
@pytest.mark.parametrize("config", [VaccinesConfig(2, 0.8, 0.3, 5), VaccinesConfig(3, 0.6, 0.7, 3)])
def test_the_optimum_is_the_best_of_all_decision_trees(config, scheme):
    assert solved(config, scheme).value == pytest.approx(best_of_all(config, scheme))


@pytest.mark.parametrize(
    ("name", "value", "route", "with_losses"),
    [
        ("anytime", -17.521899, "ABBAABBAABBAABBAABBAABBA", "ABBBBBAABBAABBAABBAABBAA"),
        ("periodic", -3.948871, "AAABBBBBBAAAAAABBBBBBAAA", "AAABBBBBBAAAAABBBBBBAAAA"),
        ("bounded", -1.553075, "AAABBBBBBAAAAAABBBBBBAAA", "AAAAAABBBBBBAAAAAABBBBBB"),
        ("long-term", -1.212801, "AAAAAAAAAAABBBBBBBBBBBBA", "AAAAAAAAAAAAABBBBBBBBBBB"),
    ],
)
def test_what_is_best_depends_on_when_fairness_is_assessed(name, value, route, with_losses):
    best = solved(VaccinesConfig(), SCHEMES[name])
    assert best.value == pytest.approx(value, abs=1e-4)
    assert letters(best.route()) == route
    assert letters(best.route(lost=(2, 3, 4))) == with_losses
    assert policy_value(best.decide, VaccinesConfig(), SCHEMES[name]) == pytest.approx(best.value)


def test_each_best_policy_is_a_bad_one_for_all_other_schemes():
    config = VaccinesConfig()
    for own, other in product(SCHEMES, SCHEMES):
        if own != other:
            foreign = policy_value(solved(config, SCHEMES[other]).decide, config, SCHEMES[own])
            assert foreign < solved(config, SCHEMES[own]).value - 1


@pytest.mark.parametrize("countries", [2, 3])
@pytest.mark.parametrize("rule", VaccineDeliveryWorld.rules)
def test_rules_earn_what_they_should(rule, countries):
    config = VaccinesConfig(countries=countries, episode_length=12)

    def act(time, last, counts):
        if rule == "oracle":
            return solved(config).decide(time, last, counts)
        if rule == "random-all":
            return np.full(counts.shape, 1 / countries)
        return np.eye(countries)[time % countries if rule == "take-turns" else time * countries // 12]

    world = begun(VaccineDeliveryWorld, 4000, countries=countries, episode_length=12)
    exact = policy_value(act, config)
    assert_close(returns_of(world.rules[rule], world), exact)
    assert exact <= solved(config).value + 1e-9 and (rule == "oracle") == (exact > solved(config).value - 1e-9)


def test_a_short_sight_prefers_one_country():
    assert letters(solved(VaccinesConfig(switch_cost=2.5, episode_length=6), ANYTIME, gamma=0.0).route()) == "AAAAAA"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((VaccinesConfig(), ANYTIME, 1.5), r"gamma must be in \[0, 1\], got 1.5"),
        ((VaccinesConfig(), Scheme(temporal="min")), "temporal must be"),
        ((VaccinesConfig(), Scheme(when=("period", 2), restart=True)), "count shipments over the whole episode"),
        ((VaccinesConfig(), Scheme(status="rewards")), "count shipments over the whole episode"),
        ((VaccinesConfig(countries=5),), "episode_length must be smaller .* countries = 5, got 24"),
    ],
)
def test_what_cannot_be_solved_is_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        solved(*arguments)
