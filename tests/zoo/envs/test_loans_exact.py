"""Are the exact values of the loan scenario those that are known, and those of plain enumeration?"""

from functools import cache
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sb3_fair.zoo.envs.loans.exact import LoansPolicy, optimal_policy, optimum, rule_worth
from sb3_fair.zoo.envs.loans.world import LoanAllocationWorld
from tests.zoo.forms import assert_close, begun


def enumerated(levels, steps, applies, margin, gamma, choose=None):
    """(Value, probability of the margin), by recursion over all that can happen; ``choose`` or the best."""

    @cache
    def value(levels, lead, net, time):
        if time == steps:
            return 0.0, float(net >= margin * steps)
        total = np.zeros(2)
        for applied in product((False, True), repeat=4):
            chance = np.prod([applies if here else 1 - applies for here in applied])
            worths = [worth(levels, lead, net, time, person, applied[person]) for person in range(4)]
            chosen = max(worths) if choose is None else worths[choose(applied, levels, lead)]
            total += chance * np.array(chosen)
        return tuple(total)

    def worth(levels, lead, net, time, person, granted):
        if not granted:
            return outcome(levels, lead, net, time, -steps)
        score = (levels[person] + 2) / 10
        lead_after = lead + (1 if person < 2 else -1)
        total = np.zeros(2)
        for chance, change in ((score, 1), (1 - score, -1)):
            after = list(levels)
            after[person] = min(7, max(0, after[person] + change))
            total += chance * np.array(outcome(tuple(after), lead_after, net + change, time, -abs(lead_after)))
        return tuple(total)

    def outcome(levels, lead, net, time, reward):
        if time + 1 == steps and net < margin * steps:
            reward = -10 * steps
        later = value(levels, lead, net, time + 1)
        return reward + gamma * later[0], later[1]

    return value(tuple(levels), 0, 0, 0)


CASES = [
    ((3, 3, 7, 7), 3, 0.9, 0.1, 1.0),
    ((0, 6, 7, 2), 3, 0.5, 0.1, 0.9),
    ((5, 1, 0, 7), 3, 0.7, -1 / 3, 1.0),
    ((2, 2, 3, 4), 3, 1.0, 1.0, 1.0),
    ((7, 7, 7, 0), 4, 0.0, 0.5, 0.8),
    ((7, 3, 4, 4), 4, 0.6, 0.5, 1.0),
]


@pytest.mark.parametrize(("levels", "steps", "applies", "margin", "gamma"), CASES)
def test_values_are_those_of_plain_enumeration(levels, steps, applies, margin, gamma):
    config = {"start_levels": levels, "episode_length": steps, "apply_probability": applies, "margin": margin}
    best, _ = enumerated(levels, steps, applies, margin - 1e-12, gamma)
    assert optimum(gamma, **config) == pytest.approx(best)
    if gamma == 1:
        assert optimal_policy(**config).worth.value == pytest.approx(best)

    def best_credit(applied, levels, lead):
        return max(range(4), key=lambda person: (applied[person], levels[person], -person))

    def oracle(applied, levels, lead):
        def key(person):
            behind = lead <= 0 if person < 2 else lead >= 0
            return applied[person], behind, levels[person], -person

        return max(range(4), key=key)

    for name, choose in (("oracle", oracle), ("best-credit", best_credit)):
        assert rule_worth(name, **config) == pytest.approx(
            enumerated(levels, steps, applies, margin - 1e-12, 1.0, choose)
        )


def play(policy, episodes, **config):
    world = begun(LoanAllocationWorld, episodes, **config)
    total, refused = np.zeros(episodes), 0
    for _ in range(world.max_steps):
        rows = policy(world)
        assert_allclose(np.sort(rows, axis=1), np.tile([0, 0, 0, 1], (episodes, 1)))
        actions = rows.argmax(axis=1)
        refused += (world.present.any(axis=1) & ~world.present[np.arange(episodes), actions]).sum()
        total += world.step(actions)[1]
    return total, world.figures()["margin_met"], refused


@pytest.mark.parametrize(
    "config", [{"episode_length": 10}, {"episode_length": 7, "start_levels": (6, 2, 3, 7), "apply_probability": 0.6}]
)
def test_the_best_policy_earns_its_worth_when_it_is_played(config):
    policy = optimal_policy(**config)
    total, met, refused = play(policy, 10_000, **config)
    assert_close(total, policy.worth.value)
    assert_close(met, policy.worth.margin_met)
    assert refused > 0, "being refused on purpose is part of the best policy"
    assert policy.worth.value == pytest.approx(optimum(**config))
    assert policy.worth.value > max(rule_worth("oracle", **config).value, optimal_policy(0.5, **config).worth.value)


def test_a_policy_is_played_where_copies_are_at_different_times():
    policy: LoansPolicy = optimal_policy(episode_length=6)
    world = LoanAllocationWorld(40, episode_length=6)
    world.reset(np.arange(40), [np.random.default_rng(index % 20) for index in range(40)])
    behind = np.arange(20)
    for _ in range(3):
        world.step(policy(world).argmax(axis=1))
    world.reset(behind, [np.random.default_rng(index) for index in behind])
    first = policy(world)[:20]
    assert_allclose(first, policy(begun(LoanAllocationWorld, 20, episode_length=6)))


@pytest.mark.slow
def test_the_optimum_of_the_paper_is_reached_to_every_digit():
    worth = optimal_policy(start_levels=(4, 4, 7, 7)).worth
    assert worth.value == pytest.approx(-22.5936, abs=5e-5)
    assert worth.margin_met == pytest.approx(0.998, abs=5e-4)


@pytest.mark.slow
def test_rules_of_the_paper_have_their_values():
    for rule, value, met in (("oracle", -29.61702, 0.977365), ("random-all", -295.18656, 0.954549)):
        worth = rule_worth(rule, start_levels=(4, 4, 7, 7))
        assert worth == pytest.approx((value, met), abs=5e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optimum(credit="gaussian"), "credit must be 'discrete' for an exact solution, got 'gaussian'"),
        (lambda: optimum(-0.1, episode_length=2), r"gamma must be in \[0, 1\], got -0.1"),
        (lambda: optimal_policy(2, episode_length=2), r"gamma must be in \[0, 1\], got 2"),
        (lambda: rule_worth("orakle", episode_length=2), "rule must be .*got 'orakle'"),
    ],
)
def test_what_is_not_allowed_is_an_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
