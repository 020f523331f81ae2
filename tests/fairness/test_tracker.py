"""Does a tracker take every kind of label, keep its copies apart, and refuse what is wrong?"""

import copy
import math

import numpy as np
import pandas as pd
import pytest
import torch as th

from sb3_fair.fairness import (
    DiscountedHistory,
    FairnessSpec,
    FairnessTracker,
    FullHistory,
    Interaction,
    SlidingWindow,
    Tracker,
    individual_fairness,
)
from sb3_fair.fairness.tracking.counts import GroupCounts

ALL = ("SP", "EO", "IF", "LIP", "CSC")


def step(rng, n, **changes):
    return {
        "group": rng.integers(0, 3, n),
        "action": rng.integers(0, 2, n),
        "features": rng.random((n, 3)),
        "probabilities": rng.dirichlet([1, 1], n),
        "feedback": rng.integers(0, 2, n).astype(float),
        **changes,
    }


def test_a_copy_of_a_batch_is_a_single_tracker():
    rng = np.random.default_rng(0)
    batch = Tracker(4, notions=ALL, history=SlidingWindow(20))
    singles = [Tracker(1, notions=ALL, history=SlidingWindow(20)) for _ in range(4)]
    for t in range(80):
        which = None if t % 3 else np.flatnonzero(rng.random(4) < 0.6)
        people = step(rng, 4 if which is None else len(which))
        batch.add(**people, which=which)
        for index, single in enumerate(range(4) if which is None else which):
            singles[single].add(**{name: column[index : index + 1] for name, column in people.items()})
        if t % 17 == 0:
            batch.reset([t % 4])
            singles[t % 4].reset()
        values = batch.values()
        for name, value in values.items():
            assert value.shape == (4,) and value.dtype == np.float64
            np.testing.assert_allclose(value, [single.values()[name][0] for single in singles], atol=1e-12)


HISTORIES = [SlidingWindow(3), SlidingWindow(30), FullHistory(), DiscountedHistory(0.9, threshold=0.01)]


@pytest.mark.parametrize("notions", [ALL, ("SP", "EO")])
@pytest.mark.parametrize("history", HISTORIES)
def test_several_decisions_at_once_count_as_one_after_the_other(history, notions):
    if history.truncates and "IF" not in notions:
        history = DiscountedHistory(0.9)
    rng = np.random.default_rng(0)
    together, apart = (Tracker(3, notions=notions, history=history) for _ in range(2))
    for t in range(30):
        which = rng.integers(0, 3, rng.integers(0, 10))
        people = step(rng, len(which))
        ids = together.add_several(which, **people)
        for i, copy_ in enumerate(which):
            one = {name: column[i : i + 1] for name, column in people.items()}
            assert apart.add(**one, which=[copy_]).tolist() == [ids[i]]
        for tracker in (together, apart):
            tracker.reset([t % 3] if t % 7 == 0 else [])
            assert tracker.update_feedback(0, int(tracker.seen[0]) - 2, 1.0) in (True, False)
        for (name, value), (_, other) in zip(together.values().items(), apart.values().items(), strict=True):
            np.testing.assert_array_equal(value, other, err_msg=name)
        np.testing.assert_array_equal(together.kept, apart.kept)


def test_people_who_are_only_counted_take_one_call_each_step(monkeypatch):
    calls = []
    monkeypatch.setattr(GroupCounts, "add", lambda *_: calls.append(1))
    Tracker(2, notions=["SP"]).add_several([0, 0, 1, 1, 1], [0, 1, 0, 1, 0], [1, 1, 0, 0, 1])
    assert len(calls) == 1
    Tracker(2, notions=["SP"], history=SlidingWindow(50)).add_several([0] * 500, [0, 1] * 250, [1] * 500)
    assert len(calls) == 1 + 500 / 50


def test_what_was_handed_out_never_changes_again():
    rng = np.random.default_rng(0)
    tracker = Tracker(2, notions=ALL)
    kept = []
    for _ in range(20):
        ids = tracker.add(**step(rng, 2))
        values = tracker.values()
        kept.append((ids, ids.copy(), values, copy.deepcopy(values)))
    for ids, ids_then, values, values_then in kept:
        np.testing.assert_array_equal(ids, ids_then)
        for name in values:
            np.testing.assert_array_equal(values[name], values_then[name])


def test_ids_run_on_after_a_reset_so_that_feedback_never_hits_a_stranger():
    tracker = Tracker(1, notions=["EO"])
    assert tracker.add([0], [1]).tolist() == [0]
    assert tracker.add([1], [1]).tolist() == [1]
    tracker.reset()
    assert tracker.add([0], [1]).tolist() == [2]
    assert not tracker.update_feedback(0, 1, 1.0)
    assert tracker.update_feedback(0, 2, 1.0)


def test_a_reset_of_some_leaves_the_others():
    tracker = Tracker(3, notions=["SP"])
    for action in (0, 1):
        tracker.add(np.full(3, action), np.full(3, action))
    tracker.reset([1])
    np.testing.assert_array_equal(tracker.values()["SP"], [-1, np.nan, -1])
    tracker.reset([])
    np.testing.assert_array_equal(tracker.values()["SP"], [-1, np.nan, -1])
    tracker.reset()
    np.testing.assert_array_equal(tracker.values()["SP"], [np.nan] * 3)


def test_nobody_in_which_adds_nobody():
    tracker = Tracker(2, notions=ALL)
    assert len(tracker.add(np.array([], int), np.array([], int), which=np.array([], int))) == 0


def pair(first, second):
    column = np.empty(2, dtype=object)
    column[:] = [first, second]
    return column


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 5]),
        np.array([0, 5], dtype=np.uint8),
        np.array([False, True]),
        np.array(["m", "w"]),
        [0, 10**9],
        np.array([3, 10**9]),
        [-1, 1],
        np.array([-1, 1]),
        ("m", 3),
        [("m", 1), ("m", 2)],
        pair(frozenset("a"), frozenset("b")),
        np.array([0.0, 1.0]),
        [np.array(0), np.array(1)],
        th.tensor([0, 1]),
    ],
    ids=repr,
)
def test_labels_of_any_kind(labels):
    tracker = Tracker(2, notions=["SP"])
    for action in (0, 1):
        tracker.add(labels, np.full(2, action), which=[0, 1])
    np.testing.assert_array_equal(tracker.values()["SP"], [np.nan, np.nan])
    tracker.add([labels[0], labels[1]], np.array([1, 1]), which=[1, 0])
    np.testing.assert_array_equal(tracker.values()["SP"], [-0.5, -0.5])
    tracker.add([labels[1], labels[0]], np.array([0, 0]))
    np.testing.assert_array_equal(tracker.values()["SP"], [0, 0])


def test_codes_and_labels_meet_in_the_same_group():
    tracker = Tracker(1, notions=["SP"])
    tracker.add(np.array([1]), [1])
    tracker.add([1], [1])
    tracker.add([1.0], [1])
    assert math.isnan(tracker.values()["SP"][0])
    tracker.add([2], [0])
    assert tracker.values()["SP"][0] == -1


def test_many_groups_may_turn_up():
    tracker = Tracker(1, notions=["SP"], history=FullHistory())
    for group in range(300):
        tracker.add(np.array([group]), [int(group < 299)])
    assert tracker.values()["SP"][0] == -1


@pytest.mark.parametrize("kind", [lambda label: np.array([label]), lambda label: [label]])
def test_only_the_compared_groups_count(kind):
    tracker = Tracker(1, notions=["SP"], groups=(0, 7))
    for group, action in [(0, 1), (3, 0), (9000, 0), (1, 0), (7, 1)]:
        tracker.add(kind(group), [action])
    assert tracker.values()["SP"][0] == 0


def test_favourable_actions():
    tracker = Tracker(1, notions=("SP", "OAE"), favourable=(2, 3))
    for group, action, feedback in [(0, 2, 3), (0, 1, 0), (1, 3, 3), (1, 0, 0)]:
        tracker.add([group], [action], feedback=[feedback])
    values = tracker.values()
    assert values["SP"][0] == 0  # 2 and 3 are both favourable
    assert values["OAE"][0] == -1  # but only the very action is right


def test_one_name_per_attribute_and_distance():
    tracker = Tracker(
        1,
        notions=("IF", "SP", "CSC@hmom", "EO@a+b"),
        attributes=("a", ("a", "b")),
        distance=["heom", "hmom"],
    )
    assert tracker.names == ("IF@heom", "IF@hmom", "SP@a", "SP@a+b", "CSC@hmom", "EO@a+b")
    assert Tracker(1, notions=("SP@a",), attributes=("a",)).names == ("SP@a",)
    assert Tracker(1, notions=("SP", "IF")).names == ("SP", "IF")
    assert list(tracker.values()) == list(tracker.names)


def test_products_of_codes_and_of_labels_agree():
    rng = np.random.default_rng(0)
    attributes = ("a", "b", ("a", "b"))
    compared = {"a+b": [(0, 1), (1, 1), (1, 0)]}
    codes, labels = (Tracker(2, notions=["SP"], attributes=attributes, groups=compared) for _ in range(2))
    for _ in range(30):
        a, b, action = rng.integers(0, 3, (3, 2))
        codes.add({"a": a, "b": b}, action)
        labels.add({"a": a.tolist(), "b": b.tolist()}, action)
        for name, value in codes.values().items():
            np.testing.assert_array_equal(value, labels.values()[name])


def test_a_dict_of_one_attribute_needs_no_name():
    tracker = Tracker(1, notions=["SP"])
    tracker.add({"gender": ["m"]}, [1])
    tracker.add({"gender": ["w"]}, [0])
    assert tracker.values()["SP"][0] == -1


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"group": None}, "group is needed by SP, EO, got None"),
        ({"group": [0]}, r"group must have one label per individual \(2\), got 1"),
        ({"group": [0, None]}, "group must be a label, got None"),
        ({"group": np.array([0.0, np.nan])}, "group must be a label, got nan"),
        ({"group": {"a": [0, 1], "b": [0, 1]}}, r"group has no attribute '', only \['a', 'b'\]"),
        ({"action": [1]}, r"action must hold one integer per copy \(2\), got \[1\]"),
        ({"action": [0.5, 1]}, r"action must hold one integer per copy \(2\)"),
        ({"feedback": [1.0]}, r"feedback must have one number per copy \(2\)"),
        ({"features": None}, "features are needed by IF, LIP, CSC, got None"),
        ({"features": np.zeros((2, 0))}, r"features must have at least one column that is not sensitive"),
        ({"features": np.zeros(3)}, r"features must have shape"),
        ({"features": np.zeros((2, 4))}, r"features must have shape \(2, 3\), got \(2, 4\)"),
        ({"features": [[0, 0, np.nan], [0, 0, 0]]}, "features must be finite"),
        ({"features": [[0, 0, 0], [0, 1.5, 0]]}, r"features must be in \[0, 1\] with distance 'hmom', got 1.5"),
        ({"probabilities": None}, "probabilities are needed by IF, LIP, got None"),
        ({"probabilities": [[0.5, 0.5]]}, r"probabilities must have one row per individual \(2\), got 1"),
        ({"probabilities": [0.5, 0.5]}, "probabilities must have one row of 2 numbers per individual"),
        ({"probabilities": [[0.2, 0.3, 0.5]] * 2}, "probabilities must have one row of 2 numbers per individual"),
        ({"probabilities": [[0.5, 0.5], [0.5, 0.4998]]}, r"sum to 1 within 0.0001, got \[0.5, 0.4998\]"),
        ({"probabilities": np.log([[0.5, 0.5]] * 2)}, "probabilities must be finite, not negative and sum to 1"),
        ({"probabilities": [[0.5, 0.5], [3.0, -2.0]]}, r"sum to 1 within 0.0001, got \[3.0, -2.0\]"),
        ({"probabilities": [[0.5, 0.5], [np.nan, 1.0]]}, r"got \[nan, 1.0\]"),
        ({"probabilities": [[0.5, 0.5], [np.inf, 0.0]]}, r"got \[inf, 0.0\]"),
        ({"which": [1, 1]}, r"which must not repeat a copy, got \[1, 1\]"),
    ],
)
def test_wrong_fields_are_named_and_change_nothing(changes, message):
    rng = np.random.default_rng(0)
    tracker = Tracker(2, notions=ALL, n_actions=2)
    for _ in range(5):
        tracker.add(**step(rng, 2))
    before = tracker.values()
    with pytest.raises(ValueError, match=message):
        tracker.add(**step(rng, 2, **changes))
    for name, value in tracker.values().items():
        np.testing.assert_array_equal(value, before[name])


def test_what_is_known_can_be_asked_after_a_refused_call():
    tracker = Tracker(4, notions=["EO@g", "EO@h"], attributes=["g", "h"])
    with pytest.raises(ValueError, match="group must be a label"):
        tracker.add({"g": np.array(list("abcd"), dtype=object), "h": np.array(["x", "y", "x", None])}, np.zeros(4, int))
    assert all(set(of.values()) == {0} for found in tracker.feedback_counts().values() for of in found.values())


def test_groups_that_are_no_labels():
    for label in ([0], th.tensor([0])):
        with pytest.raises(TypeError, match=r"group must be a hashable label, got \[0\]"):
            Tracker(1).add([label], [1])
    with pytest.raises(TypeError, match="group must have one label per individual, got 'm'"):
        Tracker(1).add("m", [1])
    with pytest.raises(ValueError, match="group must be a label, got <NA>"):
        Tracker(1).add([pd.NA], [1])
    for attributes in (("a", "b"), (("a", "b"),)):
        with pytest.raises(ValueError, match=r"group must be a dict with the attributes \['a', 'b'\], got \[1\]"):
            Tracker(1, attributes=attributes).add([1], [1])


@pytest.mark.parametrize("unknown", [None, math.nan, pd.NA])
def test_outcomes_that_are_unknown(unknown):
    tracker = FairnessTracker(notions=("EO",), n_actions=2, feedback_missing="ignore")
    for group, feedback in (("a", 1), ("b", 1), ("a", unknown), ("b", unknown)):
        tracker.add(Interaction(action=group == "a", group=group, feedback=feedback))
    assert tracker.values() == {"EO": -1}
    spec = FairnessSpec(group="group", feedback="outcome", notions=("EO",))
    assert spec.individual(None, 1, {"group": "a", "outcome": unknown}).feedback is None


def test_probabilities_are_renormalised():
    first, second = Tracker(1, notions=["IF"]), Tracker(1, notions=["IF"])
    rng = np.random.default_rng(0)
    for _ in range(5):
        person = step(rng, 1)
        first.add(**person)
        second.add(**{**person, "probabilities": person["probabilities"] * (1 + 9e-5)})
    np.testing.assert_allclose(first.values()["IF"], second.values()["IF"], atol=1e-14)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"n": 0}, "n must be a positive integer, got 0"),
        ({"notions": "SP"}, "notions must be a sequence .*, got 'SP'"),
        ({"notions": ("SP", "SP")}, "notions must not repeat 'SP'"),
        ({"notions": ("SQ",)}, "each name in notions must be one of .* got 'SQ'"),
        (
            {"notions": ("SP@gendr",), "attributes": ("gender", "age")},
            r"notions must be one of \['SP@gender', 'SP@age'\], got 'SP@gendr' \(did you mean 'SP@gender'\?\)",
        ),
        ({"k": 0}, "k must be a positive integer, got 0"),
        ({"favourable": ()}, "favourable must hold at least one action number"),
        ({"groups": ("m",)}, r"groups must hold at least two different labels, got \('m',\)"),
        ({"groups": ("m", "m")}, "groups must hold at least two different labels"),
        ({"groups": "mf"}, "groups must hold the labels to compare, got 'mf'"),
        ({"groups": ("m", "f"), "attributes": ("a", "b")}, "groups must be a dict attribute -> labels with several"),
        ({"groups": {"c": ("m", "f")}, "attributes": ("a", "b")}, "groups has 'c', which is not among the attributes"),
        ({"distance": ["heom", "heom"]}, "distance must be one distance or a list of different ones"),
        ({"distance": []}, "distance must be one distance or a list of different ones"),
        ({"n_actions": 0}, "n_actions must be a positive integer or None, got 0"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Tracker(**{"n": 1, **settings})


def test_needs_are_told():
    tracker = Tracker(1, notions=["SP"])
    assert (tracker.needs_feedback, tracker.needs_features, tracker.needs_probabilities) == (False, False, False)
    assert Tracker(1, notions=["EO"]).needs_feedback
    consistency = Tracker(1, notions=["CSC"])
    assert consistency.needs_features and not consistency.needs_probabilities and not consistency.needs_groups
    assert Tracker(1, notions=["LIP"]).needs_probabilities


def test_truncation_needs_people_even_for_group_notions():
    tracker = Tracker(1, notions=["SP"], history=DiscountedHistory())
    with pytest.raises(ValueError, match="features are needed by the truncation of DiscountedHistory"):
        tracker.add([0], [1])
    Tracker(1, notions=["SP"], history=DiscountedHistory(threshold=-1)).add([0], [1])


def test_deep_copies_go_their_own_way():
    rng = np.random.default_rng(0)
    tracker = Tracker(1, notions=ALL)
    for _ in range(10):
        tracker.add(**step(rng, 1))
    before, other = tracker.values(), copy.deepcopy(tracker)
    for _ in range(10):
        other.add(**step(rng, 1))
    for name, value in tracker.values().items():
        np.testing.assert_array_equal(value, before[name])


class TestFairnessTracker:
    def test_undefined_values_are_replaced(self):
        assert math.isnan(FairnessTracker().values()["SP"])
        assert FairnessTracker(undefined=-1.0).values() == {"SP": -1.0}

    def test_a_dict_of_labels_names_the_attributes(self):
        tracker = FairnessTracker(notions=["SP"])
        for gender, country, action in [("m", "b", 1), ("w", "b", 0), ("w", "f", 0)]:
            tracker.add(Interaction(group={"gender": gender, "country": country}, action=action))
        assert tracker.values() == {"SP@gender": -1.0, "SP@country": -0.5}

    def test_what_is_asked_for_by_attribute_and_for_all_attributes_comes_once(self):
        tracker = FairnessTracker(notions=["SP@country", "SP"], attributes=("gender", "country"))
        assert list(tracker.values()) == ["SP@country", "SP@gender"]

    def test_values_are_plain_floats(self):
        assert all(type(value) is float for value in FairnessTracker(notions=ALL).values().values())

    def test_reset_empties(self):
        tracker = FairnessTracker()
        tracker.add(Interaction(group=0, action=1))
        tracker.add(Interaction(group=1, action=0))
        assert tracker.values()["SP"] == -1
        tracker.reset()
        assert math.isnan(tracker.values()["SP"])

    def test_a_missing_field_is_named(self):
        with pytest.raises(ValueError, match="group is needed by SP"):
            FairnessTracker().add(Interaction(action=1))
        with pytest.raises(ValueError, match="value must be a finite number, got 'yes'"):
            FairnessTracker().update_feedback(0, "yes")
        with pytest.raises(ValueError, match="value must be one of the 2 actions"):
            FairnessTracker(n_actions=2).update_feedback(0, 2)
        with pytest.raises(ValueError, match="notions must be a sequence"):
            FairnessTracker(notions="SP")


def test_late_feedback_must_be_a_number():
    tracker = Tracker(1, notions=["PE"])
    for group, action in (("m", 1), ("w", 0)):
        tracker.add([group], [action])
    for nothing in (None, float("nan"), "hire"):
        with pytest.raises(ValueError, match="value must be a finite number"):
            tracker.update_feedback(0, 0, nothing)
    assert np.isnan(tracker.values()["PE"][0])


def test_nominal_features_may_be_any_codes():
    tracker = Tracker(1, notions=["IF"], nominal=[1])
    people, rows = [[0.5, 7], [0.2, -3], [0.5, 7]], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    for person, row in zip(people, rows, strict=True):
        tracker.add([0], [0], features=[person], probabilities=[row])
    assert tracker.values()["IF"][0] == pytest.approx(individual_fairness(people, rows, nominal=[1]))
