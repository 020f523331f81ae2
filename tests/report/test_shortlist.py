"""Are policies that are the same, alike or beaten told apart from those worth a look?"""

from dataclasses import replace

import numpy as np
import pytest

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.pareto import front_of
from sb3_fair.report.content import content
from sb3_fair.report.shortlist import beaten, same, short_list, told_apart

NOISE = np.array([-1.0, 1.0] * 5)


def policy(*means, noise=0.1, objectives=("R", "SP", "IF")):
    returns = np.array(means)[None] + noise * NOISE[:, None]
    return EvaluatedPolicy(str(means), objectives[: len(means)], returns, np.ones(10))


def undefined(policy, known=0):
    """The policy with a second objective that has a figure in the first ``known`` episodes only, and counts 0 else."""
    values = np.where(np.arange(10) < known, policy.returns[:, 1], np.nan)
    returns = policy.returns.copy()
    returns[:, 1] = np.nan_to_num(values)
    return replace(policy, returns=returns, final={policy.objectives[1]: values})


def one_episode(policy):
    return replace(policy, returns=policy.returns[:1], lengths=policy.lengths[:1])


def test_the_very_same_policies_are_shown_once():
    once, twice = policy(1, 0, 0), policy(1, 0, 0)
    assert same([once, policy(2, 0, 0), twice]) == [0, 1, 0]
    shown = content(Front((once, policy(2, -1, 0), twice)))["policies"]
    assert [each["id"] for each in shown] == [0, 1] and shown[0]["same"] == [twice.name]


def test_policies_of_the_same_returns_are_not_the_same_if_anything_else_differs():
    hires_none = replace(policy(0, 0), final={"PP": np.full(10, np.nan)}, groups={"": {"f": np.zeros((10, 8))}})
    others = [
        replace(hires_none, lengths=hires_none.lengths * 5),
        replace(hires_none, final={"PP": np.zeros(10)}),
        replace(hires_none, groups={"": {"f": np.ones((10, 8))}}),
    ]
    assert same([hires_none, *others, replace(hires_none)]) == [0, 1, 2, 3, 0]


def test_only_policies_that_differ_from_each_other_are_counted_as_told_apart():
    noisy = policy(11.5, 0, 0, noise=3)
    front = Front((policy(11, 0, 0), noisy, policy(10, 0, 0), policy(10.02, 0, 0)))
    assert told_apart(front) == [0, 2]
    assert "4 ways of deciding. At least 2 of them differ from each other" in content(front)["lead"]
    assert told_apart(Front(())) == []
    assert "differ" not in content(Front((noisy, policy(11, 0, 0))))["lead"]
    twice = content(Front((noisy, noisy)))
    assert twice["lead"].startswith("One way of deciding") and twice["policies"][0]["roles"] == []


def test_policies_that_are_the_same_but_for_chance_are_neither_told_apart_nor_beaten():
    rng = np.random.default_rng(0)
    for _ in range(5):
        returns = rng.standard_normal((60, 25, 3))
        policies = [
            EvaluatedPolicy(str(number), ("R", "SP", "IF"), each, np.ones(25)) for number, each in enumerate(returns)
        ]
        assert len(told_apart(front_of(policies))) == 1
        assert not beaten(Front(tuple(policies)), policies[::-1]).any()


def test_beaten_is_who_is_worse_in_something_beyond_chance_and_better_in_nothing():
    here = Front((policy(1, 0, 0),))
    others = [policy(2, 0, 0), policy(1.05, 0, 0), policy(2, -0.01, 0), policy(0.5, 0, 0)]
    assert beaten(here, others).tolist() == [[True, False, False, False]]
    assert content(here, baselines=others)["policies"][0]["beaten"] == [others[0].name]


def test_objectives_are_compared_by_name_and_nobody_beats_where_one_is_missing():
    here = Front((policy(1, 0, 0),))
    others = [policy(0, 2, 0, objectives=("SP", "R", "IF")), policy(2, objectives=("R",)), policy(2, 0)]
    assert beaten(here, others).tolist() == [[True, False, False]]


def test_one_episode_tells_nothing_apart():
    here = Front((one_episode(policy(1, 0, 0)), one_episode(policy(2, -1, 0))))
    assert not beaten(here, [one_episode(policy(9, 0, 0)), policy(9, 0, 0)]).any()
    assert told_apart(here) == [0]


@pytest.mark.parametrize("known", [0, 1])
def test_an_undefined_notion_is_not_fair(known):
    front = Front((policy(10, -0.8), policy(9, -0.4), undefined(policy(0, -0.9), known)))
    ignore = undefined(policy(20, -0.9), known)
    assert not beaten(front, [ignore])[:2].any()
    roles, rule = short_list(front, [ignore])
    assert roles == {0: ["best performance"], 1: ["fairest to groups", "best compromise"]}
    assert rule == (0 if known else None)
    nobody = Front((undefined(policy(10, 0)), undefined(policy(9, 0))))
    assert short_list(nobody)[0] == {0: ["best performance"]}
    green = content(Front((policy(10, -0.8), undefined(policy(0, -0.9)))))["policies"][1]["colour"]
    assert green != "rgb(77, 175, 74)"


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
    beyond = policy(1000, -0.1, -0.1)  # counts as the best
    assert short_list(front, [policy(9, -0.6, -0.6), beyond])[1] == 1


def test_the_fairest_to_groups_is_found_by_disparities_too():
    front = Front(tuple(policy(*means, objectives=("R", "d_s")) for means in ((100, -50), (70, -12), (0, 0))))
    assert short_list(front)[0] == {0: ["best performance"], 1: ["best compromise"], 2: ["fairest to groups"]}


@pytest.mark.parametrize("rules", [(), (policy(1, objectives=("R",)),)])
def test_one_policy_has_no_roles_and_other_objectives_no_rule(rules):
    assert short_list(Front((policy(1, 0, 0),)), rules) == ({}, None)


def test_noise_is_not_stretched_over_a_whole_axis():
    alike = Front((policy(1, -0.5, 0, noise=1), policy(1.02, -0.1, 0, noise=1)))
    low, high = content(alike)["measures"][0]["span"]
    assert high - low > 0.5 and low < 1 < 1.02 < high
    assert high - low == pytest.approx(2 * content(alike)["policies"][0]["half"][0])
