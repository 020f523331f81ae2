"""Are policies that are the same, alike or beaten told apart from those worth a look?"""

import numpy as np
import pytest

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.report.content import content
from sb3_fair.report.shortlist import bands, beaten, same, short_list

NOISE = np.array([-1.0, 1.0] * 5)


def policy(*means, noise=0.1, objectives=("R", "SP", "IF")):
    returns = np.array(means)[None] + noise * NOISE[:, None]
    return EvaluatedPolicy(str(means), objectives[: len(means)], returns, np.ones(10))


def test_the_very_same_policies_are_shown_once():
    once, twice = policy(1, 0, 0), policy(1, 0, 0)
    assert same([once, policy(2, 0, 0), twice]) == [0, 1, 0]
    shown = content(Front((once, policy(2, -1, 0), twice)))["policies"]
    assert [each["id"] for each in shown] == [0, 1] and shown[0]["same"] == [twice.name]


def test_policies_within_their_intervals_are_of_one_band():
    assert bands([policy(1, 0, 0), policy(1.05, 0.02, 0), policy(5, 0, 0), policy(5.02, 0, 0)]) == [0, 0, 2, 2]
    assert bands([]) == []


def test_beaten_is_who_is_worse_in_something_beyond_chance_and_better_in_nothing():
    here = [policy(1, 0, 0)]
    others = [policy(2, 0, 0), policy(1.05, 0, 0), policy(2, -0.01, 0), policy(0.5, 0, 0)]
    assert beaten(here, others).tolist() == [[True, False, False, False]]
    assert content(Front((here[0],)), baselines=others)["policies"][0]["beaten"] == [others[0].name]


def test_the_short_list_has_the_best_of_each_kind_the_compromise_and_the_closest_rule():
    front = Front(
        (policy(10, -1, -1), policy(0, 0, -0.8), policy(2, -0.9, 0), policy(7, -0.2, -0.2), policy(6.0, -0.3, -0.3))
    )
    roles, rule = short_list(front, [policy(0, -1, -1), policy(9, -0.2, -0.5), policy(9, objectives=("R",))])
    assert roles == {
        0: ["best performance"],
        1: ["fairest to groups"],
        2: ["fairest to individuals"],
        3: ["best compromise"],
    }
    assert rule == 1
    oracle = policy(1000, 0, 0)  # which nobody can act like
    assert short_list(front, [oracle])[0] == roles


@pytest.mark.parametrize("rules", [(), (policy(1, objectives=("R",)),)])
def test_one_policy_has_no_roles_and_other_objectives_no_rule(rules):
    assert short_list(Front((policy(1, 0, 0),)), rules) == ({}, None)


def test_noise_is_not_stretched_over_a_whole_axis():
    alike = Front((policy(1, -0.5, 0, noise=1), policy(1.02, -0.1, 0, noise=1)))
    low, high = content(alike)["measures"][0]["span"]
    assert high - low > 0.5 and low < 1 < 1.02 < high
