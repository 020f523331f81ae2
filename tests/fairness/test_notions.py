"""Does every row of the table keep the law of the notions, and do the functions agree with fairlearn?"""

import math
import pickle
import warnings
from itertools import permutations

import numpy as np
import pytest
import torch as th
from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_fair.fairness import (
    NOTIONS,
    FairnessTracker,
    GroupNotion,
    Interaction,
    SlidingWindow,
    Tracker,
    Welfare,
    action_counts,
    chance_level,
    consistency,
    find_notion,
    group_notion,
    individual_fairness,
    lipschitz_violation,
)
from tests.fairness.formulas import (
    GROUP_NOTIONS,
    Person,
    consistency_value,
    group_value,
    pair_value,
)


def people(size=30, n_groups=3, n_actions=3):
    return st.lists(
        st.builds(
            lambda x, y, group, action, p, feedback: Person((x, y), group, action, (p, 1 - p), feedback),
            st.sampled_from([0.0, 0.25, 1.0]),
            st.sampled_from([0.0, 0.5]),
            st.integers(0, n_groups - 1),
            st.integers(0, n_actions - 1),
            st.sampled_from([0.0, 0.3, 1.0]),
            st.none() | st.integers(0, n_actions - 1),
        ),
        min_size=1,
        max_size=size,
    )


def columns(history):
    return {
        "actions": np.array([p.action for p in history]),
        "feedback": np.array([np.nan if p.feedback is None else p.feedback for p in history]),
        "groups": np.array([p.group for p in history]),
    }


def same(value, expected):
    assert value == pytest.approx(expected, abs=1e-9, nan_ok=True)


MISSING = st.sampled_from(["undefined", "reweight", "ignore"])
weights_of = st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=30, max_size=30)


@settings(max_examples=50, deadline=None)
@given(people(), weights_of, st.sampled_from(GROUP_NOTIONS), st.sampled_from([(1,), (0, 2)]), MISSING)
def test_group_notion_is_the_formula(history, weights, notion, favourable, missing):
    m = {"feedback_missing": missing}
    same(
        group_notion(notion, **columns(history), favourable=favourable, **m),
        group_value(notion, history, None, None, favourable, **m),
    )
    weights = weights[: len(history)]
    same(group_notion(notion, **columns(history), weights=weights, **m), group_value(notion, history, weights, **m))
    compared = {"compared": (0, 2), **m}
    same(group_notion(notion, **columns(history), **compared), group_value(notion, history, **compared))


@settings(max_examples=50, deadline=None)
@given(people(15), st.sampled_from(["heom", "hmom", "braycurtis"]), st.integers(1, 4))
def test_individual_notions_are_the_formulas(history, name, k):
    features, probabilities = [p.features for p in history], [p.probabilities for p in history]
    metric = {"distance": name, "nominal": [1]}
    weights = [0.9 ** (len(history) - i) for i in range(len(history))]
    for notion, function in (("IF", individual_fairness), ("LIP", lipschitz_violation)):
        same(function(features, probabilities, **metric), pair_value(notion, history, name=name, nominal=[1]))
        weighted = pair_value(notion, history, weights, name=name, nominal=[1])
        same(function(features, probabilities, weights=weights, **metric), weighted)
    actions = columns(history)["actions"]
    same(consistency(features, actions, k=k, **metric), consistency_value(history, k, name=name, nominal=[1]))
    weighted = consistency_value(history, k, weights, name=name, nominal=[1])
    same(consistency(features, actions, k=k, weights=weights, **metric), weighted)


@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_people_who_are_equally_near_share_the_places_of_neighbours(k):
    """As on average over all orders in which they may have come."""
    features, actions = np.array([[0.0], [0.0], [0.0], [0.5], [1.0], [1.0]]), np.array([1, 0, 0, 1, 1, 0])
    orders = [list(order) for order in permutations(range(6))]
    mean = np.mean([consistency(features[order], actions[order], k=k) for order in orders])
    for order in orders[::100]:
        same(consistency(features[order], actions[order], k=k, ties="shared"), mean)


@pytest.mark.parametrize("notion", GROUP_NOTIONS)
def test_order_of_people_and_names_of_groups_do_not_matter(notion):
    rng = np.random.default_rng(1)
    actions, feedback, groups = rng.integers(0, 2, 80), rng.integers(0, 2, 80).astype(float), rng.integers(0, 4, 80)
    value = group_notion(notion, actions=actions, feedback=feedback, groups=groups)
    order = rng.permutation(80)
    same(group_notion(notion, actions=actions[order], feedback=feedback[order], groups=groups[order]), value)
    names = np.array(["north", "east", "south", "west"])
    same(group_notion(notion, actions=actions, feedback=feedback, groups=names[groups]), value)
    same(
        group_notion(notion, actions=actions, feedback=feedback, groups=[("a", name) for name in names[groups]]), value
    )


@pytest.mark.parametrize("notion", NOTIONS.values(), ids=list(NOTIONS))
def test_values_stay_within_the_bounds_and_rows_tell_what_they_need(notion):
    rng = np.random.default_rng(2)
    tracker = FairnessTracker(notions=[notion.name])
    for _ in range(60):
        p = rng.dirichlet([0.3, 0.3])
        needed = {
            "group": int(rng.integers(2)) if notion.needs_groups else None,
            "features": rng.random(3) if notion.needs_features else None,
            "probabilities": p if notion.needs_probabilities else None,
            "feedback": int(rng.integers(2)) if notion.needs_feedback else None,
        }
        tracker.add(Interaction(action=int(rng.integers(2)), **needed))
        value = tracker.values()[notion.name]
        assert math.isnan(value) or notion.bounds[0] <= value <= notion.bounds[1]
    assert not math.isnan(value)
    assert notion.title and notion.source


def test_which_notions_need_feedback():
    assert [name for name, notion in NOTIONS.items() if not notion.needs_feedback] == ["SP", "IF", "LIP", "CSC"]
    assert [name for name, notion in NOTIONS.items() if notion.needs_probabilities] == ["IF", "LIP"]
    assert [name for name, notion in NOTIONS.items() if notion.needs_features] == ["IF", "LIP", "CSC"]
    assert all(isinstance(NOTIONS[name], GroupNotion) for name in GROUP_NOTIONS)
    pickle.loads(pickle.dumps(NOTIONS))


def test_fairlearn_agrees():
    rng = np.random.default_rng(3)
    for _ in range(20):
        truth, chosen, groups = rng.integers(0, 2, 200), rng.integers(0, 2, 200), rng.integers(0, 3, 200)
        parity = demographic_parity_difference(truth, chosen, sensitive_features=groups)
        odds = equalized_odds_difference(truth, chosen, sensitive_features=groups)
        same(group_notion("SP", actions=chosen, groups=groups), -parity)
        same(group_notion("EqOdds", actions=chosen, feedback=truth, groups=groups), -odds)


def test_unknown_notions_name_the_closest():
    with pytest.raises(ValueError, match=r"notions must be one of .*, got 'eqods' \(did you mean 'EqOdds'\?\)"):
        find_notion("eqods")
    assert find_notion("EqOdds@gender") is find_notion("EqOdds")
    with pytest.raises(ValueError, match=r"each name in notions must be one of \['SP', 'EO', .*\], got 'xyzzy'$"):
        FairnessTracker(notions=["xyzzy"])
    with pytest.raises(ValueError, match=r"each name in notions must be one of .*, got 'SP@gender'"):
        group_notion("SP@gender", actions=[1], groups=[0])
    with pytest.raises(ValueError, match=r"'IF' is not a group notion"):
        group_notion("IF", actions=[1], groups=[0])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([1, 0], [1], [0, 1]), r"feedback must have one entry per action \(2\), as actions, got shape \(1,\)"),
        (([1, 0], None, [0]), r"groups must have one entry per action \(2\), as actions, got shape \(1,\)"),
        (([0.5, 0], None, [0, 1]), r"actions must be a sequence of integers"),
    ],
)
def test_lengths_and_kinds_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        group_notion("SP", **dict(zip(("actions", "feedback", "groups"), arguments, strict=True)))


def test_columns_may_be_given_by_position():
    actions, feedback, groups = [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 0, 1]
    named = {"actions": actions, "groups": groups}
    assert group_notion("EO", actions, feedback, groups) == group_notion("EO", **named, feedback=feedback) != 0
    assert chance_level("SP", actions, groups) == chance_level("SP", **named)
    with pytest.raises(ValueError, match="groups must have one entry per action"):
        group_notion("SP", actions)


@pytest.mark.parametrize(
    "pack", [th.tensor, lambda labels: list(th.tensor(labels)), lambda labels: [*map(np.array, labels)]]
)
def test_labels_may_come_in_tensors_and_arrays(pack):
    actions, labels = [1, 0, 1, 1, 0], [0, 0, 1, 1, 2]
    for function in (group_notion, chance_level):
        found = function("SP", actions=actions, groups=pack(labels), compared=pack([0, 1]))
        assert found == function("SP", actions=actions, groups=labels, compared=[0, 1])
    tracker = FairnessTracker(notions=("SP",), groups=pack([0, 1]))
    tracker.add([Interaction(action=action, group=group) for action, group in zip(actions, pack(labels), strict=True)])
    assert tracker.values() == {"SP": -0.5}


def test_what_is_masked_is_unknown():
    actions, groups, features, chances = np.arange(6) % 2, np.arange(6) // 3, np.eye(6), np.full((6, 2), 0.5)
    feedback = np.ma.array([1, 1, 0, 1, 0, 0], mask=[0, 0, 1, 0, 0, 0])
    unknown = feedback.astype(float).filled(np.nan)
    for function in (group_notion, chance_level):
        same = (feedback, feedback.astype(object), unknown)
        found = [function("OAE", actions=actions, feedback=each, groups=groups) for each in same]
        assert len(set(found)) == 1
        assert found[0] != function("OAE", actions=actions, feedback=feedback.data, groups=groups)
    trackers = [FairnessTracker(notions=["OAE"]) for _ in range(2)]
    for tracker, known in zip(trackers, (feedback, unknown), strict=True):
        for action, group, outcome in zip(actions, groups, known, strict=True):
            tracker.add(Interaction(action=action, group=group, feedback=outcome))
    assert trackers[0].values() == trackers[1].values()
    batched = Tracker(6, notions=["OAE"])
    batched.add(groups, actions, feedback=feedback)
    assert batched.feedback_counts(2)[""][0] == {
        "unfavourable": 1,
        "unfavourable_known": 0,
        "favourable": 0,
        "favourable_known": 0,
    }
    hidden = np.ma.array(actions, mask=feedback.mask), np.ma.array(groups, mask=feedback.mask)
    with pytest.raises(ValueError, match=r"actions must be an array .*, got nan at \[2\]"):
        group_notion("SP", actions=hidden[0], groups=groups)
    with pytest.raises(ValueError, match="group must be a label, got None"):
        group_notion("SP", actions=actions, groups=hidden[1])
    with pytest.raises(ValueError, match="groups must be an array, got masked_array"):
        action_counts(actions, hidden[1], 2)
    with pytest.raises(ValueError, match="action must hold one integer per copy"):
        batched.add(groups, hidden[0])
    with pytest.raises(ValueError, match=r"features must be .*, got nan at \[0, 0\]"):
        individual_fairness(np.ma.masked_equal(features, 1), chances)
    assert np.isnan(Welfare("rawls")(np.ma.masked_equal([1.0, 0.0], 1)))


def test_further_arguments_are_checked():
    with pytest.raises(ValueError, match="weights must be 2 finite numbers"):
        group_notion("SP", actions=[1, 0], groups=[0, 1], weights=[1])
    with pytest.raises(ValueError, match="favourable must hold at least one action number"):
        group_notion("SP", actions=[1, 0], groups=[0, 1], favourable=())
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        consistency([[0.0], [1.0]], [0, 1], k=0)
    with pytest.raises(ValueError, match="probabilities must have one row per individual"):
        individual_fairness([[0.0], [1.0]], [[1.0, 0.0]])
    with pytest.raises(ValueError, match=r"features must be .* finite .*, got nan at \[1, 0\]"):
        consistency([[0.0], [np.nan]], [0, 1])
    with pytest.raises(ValueError, match="actions must have one entry per individual"):
        consistency([[0.0], [1.0]], [0])


def test_a_history_without_weight_is_undefined():
    people, chances = [[0.0], [0.5], [1.0]], [[1, 0], [0, 1], [0.5, 0.5]]
    for function in (individual_fairness, lipschitz_violation):
        assert math.isnan(function(people, chances, weights=[0, 0, 1])), "the newest is the older one of no pair"
    assert math.isnan(consistency(people, [1, 0, 1], weights=[0, 0, 0]))


def test_empty_and_tiny_histories():
    assert math.isnan(group_notion("SP", actions=[], groups=[]))
    assert individual_fairness(np.zeros((2, 1)), [[1, 0], [0, 1]]) == 0
    assert lipschitz_violation(np.zeros((1, 1)), [[1, 0]]) == 0
    assert lipschitz_violation(np.zeros((2, 1)), [[1, 0], [0, 1]]) == -1
    assert consistency(np.zeros((1, 1)), [1]) == 0
    assert individual_fairness(np.zeros((0, 1)), np.zeros((0, 2))) == 0


@pytest.mark.parametrize("feedback", [0.7, -0.5])
def test_feedback_is_an_action_or_unknown(feedback):
    with pytest.raises(ValueError, match="feedback must be the right actions, whole numbers or NaN"):
        group_notion("EO", actions=[1, 0, 1], feedback=[1, np.nan, feedback], groups=[0, 1, 1])


def selective(share, n=6000):
    """Group 1 is granted with 0.9, group 0 with 0.1; outcomes are known of the granted and a share of the refused."""
    rng = np.random.default_rng(0)
    groups, deserving = rng.integers(0, 2, n), rng.random(n) < 0.7
    actions = (rng.random(n) < np.where(groups == 1, 0.9, 0.1)).astype(int)
    known = (actions == 1) | (rng.random(n) < share)
    return {"actions": actions, "groups": groups, "feedback": np.where(known, deserving, np.nan)}


@pytest.mark.parametrize(
    ("share", "missing", "expected"),
    [
        (1.0, "ignore", -0.8),
        (0.0, "ignore", 0.0),
        (0.0, "undefined", math.nan),
        (0.0, "reweight", math.nan),
        (0.1, "ignore", -0.46),
        (0.1, "undefined", -0.46),
        (0.1, "reweight", -0.8),
    ],
)
def test_outcomes_of_the_granted_alone_do_not_make_equal_opportunity(share, missing, expected):
    assert group_notion("EO", **selective(share), feedback_missing=missing) == pytest.approx(
        expected, abs=0.05, nan_ok=True
    )


def test_notions_that_are_undefined_for_the_same_reason_share_a_warning():
    columns = selective(0.0, 300)
    tracker = FairnessTracker(notions=("EO", "PE", "OAE"), history=SlidingWindow(300))
    with pytest.warns(UserWarning, match=r"EO, OAE, PE are undefined: none of 30 unfavourable decisions") as warned:
        for action, group, feedback in zip(*columns.values(), strict=True):
            known = None if np.isnan(feedback) else float(feedback)
            tracker.add(Interaction(action=int(action), group=int(group), feedback=known))
            tracker.values()
    assert len(warned) == 1


def test_outcomes_that_never_come_are_warned_of_in_short_episodes_too():
    """But not where an outcome comes now and then, or no decision has one."""
    for granted, seen, told in ((1.0, False, 1), (1.0, True, 0), (np.nan, False, 0)):
        tracker = Tracker(1, notions=("EO",), history=SlidingWindow(100), groups=("a", "b"))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for episode in range(20):
                for group in "ab":
                    for action in (0, 0, 1):
                        known = action or (seen and episode % 5 == 0)
                        tracker.add([group], [action], feedback=[granted if known else np.nan])
                tracker.values()
                tracker.reset([0])
        assert len(warned) == told
        assert all("EO is undefined: none of 30 unfavourable" in str(one.message) for one in warned)


def test_outcomes_that_never_come_are_warned_of_once_and_counted():
    columns = selective(0.0, 300)
    tracker = FairnessTracker(notions=("EO", "PP"), history=SlidingWindow(300))
    with pytest.warns(UserWarning, match=r"EO is undefined: .* on group 0.*--feedback-missing ignore") as warned:
        for action, group, feedback in zip(*columns.values(), strict=True):
            known = None if np.isnan(feedback) else float(feedback)
            tracker.add(Interaction(action=int(action), group=int(group), feedback=known))
            values = tracker.values()
    assert len(warned) == 1
    assert math.isnan(values["EO"]) and values["PP"] <= 0
    counts = tracker.feedback_counts()[""]
    for group in (0, 1):
        mine = columns["actions"][columns["groups"] == group]
        refused, granted = np.bincount(mine, minlength=2).tolist()
        assert counts[group] == {
            "unfavourable": refused,
            "unfavourable_known": 0,
            "favourable": granted,
            "favourable_known": granted,
        }
