"""Do the published worked examples come out, to six decimals, in every way the library can compute them?"""

import math

import numpy as np
import pytest

from sb3_fair.fairness import (
    DiscountedHistory,
    Distance,
    FairnessTracker,
    FullHistory,
    Interaction,
    SlidingWindow,
    consistency,
    group_notion,
    individual_fairness,
    lipschitz_violation,
)

NAN = math.nan
GROUP = ("SP", "EO", "OAE", "PP", "PE", "EqOdds", "CUAE", "TE")

# x1, x2 (numerical), c (nominal), group, action, probability of action 1, feedback
HISTORIES = {
    "A": """.2 .5 1 m 1 1 1
            .2 .5 1 f 0 0 1
            .6 .1 0 m 1 1 0
            .6 .1 0 f 0 0 0
            .9 .8 1 m 1 1 1
            .9 .8 1 f 0 0 0""",
    "B": """.1 .3 0 m 1 .8 1
            .4 .3 0 f 0 .4 1
            .5 .9 1 m 0 .1 0
            .8 .6 1 f 1 .6 0
            .2 .2 0 f 1 .9 1
            .7 .7 1 m 1 .5 0""",
    "C": """.1 .3 0 m 1 .8 1
            .4 .3 0 f 0 .4 .
            .5 .9 1 m 0 .1 .
            .8 .6 1 f 1 .6 0
            .2 .2 0 f 1 .9 1
            .7 .7 1 m 1 .5 1""",
    "D": """.0 .2 1 x 1 .7 1
            .3 .2 1 x 0 .3 1
            .3 .6 0 y 1 .9 1
            .6 .6 0 y 1 .6 0
            .9 1. 0 z 0 .2 0
            1. .4 1 z 0 .1 1""",
    "E": """.3 .3 0 m 1 1 1
            .3 .5 0 m 0 0 0
            .7 .5 1 m 1 1 0
            .7 .9 1 m 0 0 1""",
}

GROUP_VALUES = {
    "A": (-1, -1, 0, NAN, -1, -1, NAN, -1),
    "B": (0, -0.5, -0.333333, 0, -0.5, -0.5, -1, -0.5),
    "C": (0, 0, -0.5, -0.5, NAN, 0, -0.5, NAN),
    "D": (-1, -1, 0, -0.5, -1, -1, -0.5, -1),
    "E": (NAN,) * 8,
}

DISTANCES = {
    "heom": "heom",
    "hmom": "hmom",
    "braycurtis": "braycurtis",
    "heom exp": Distance("heom", kernel="exp"),
    "hmom exp": Distance("hmom", kernel="exp"),
}
INDIVIDUAL_VALUES = {  # IF for A, B, C, D, E, then LIP
    "heom": (
        (-1.112336, -0.803379, -0.803379, -0.740948, -1.170696),
        (-0.356168, -0.047799, -0.047799, -0.022030, -0.386660),
    ),
    "hmom": (
        (-1.173333, -0.854573, -0.854573, -0.825017, -1.255556),
        (-0.386667, -0.060912, -0.060912, -0.045317, -0.444444),
    ),
    "braycurtis": (
        (-1.182531, -0.813929, -0.813929, -0.819512, -1.263550),
        (-0.391266, -0.045643, -0.045643, -0.048858, -0.447024),
    ),
    "heom exp": ((-0.686976, -0.363112, -0.363112, -0.403512, -0.751190), (-0.043488, 0, 0, 0, -0.045067)),
    "hmom exp": ((-0.717643, -0.395869, -0.395869, -0.434317, -0.780585), (-0.058822, 0, 0, 0, -0.061820)),
}
CONSISTENCY = {1: (-1, -0.333333, -0.333333, -0.5, -1), 2: (-0.75, -0.666667, -0.666667, -0.666667, -0.75)}


def interactions(name):
    for line in HISTORIES[name].splitlines():
        x1, x2, c, group, action, p, feedback = line.split()
        yield Interaction(
            features=(float(x1), float(x2), float(c)),
            group=group,
            action=int(action),
            probabilities=(1 - float(p), float(p)),
            feedback=None if feedback == "." else int(feedback),
        )


def columns(name):
    people = list(interactions(name))
    return {
        "features": np.array([p.features for p in people]),
        "groups": [p.group for p in people],
        "actions": np.array([p.action for p in people]),
        "probabilities": np.array([p.probabilities for p in people]),
        "feedback": np.array([NAN if p.feedback is None else p.feedback for p in people]),
    }


def filled(name, **settings):
    settings = {"feedback_missing": "ignore", **settings}
    tracker = FairnessTracker(nominal=[2], groups=("m", "f") if name == "E" else None, **settings)
    for interaction in interactions(name):
        tracker.add(interaction)
    return tracker


def approx(values):
    return pytest.approx(values, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("history", [SlidingWindow(6), FullHistory(), DiscountedHistory(threshold=-1)])
@pytest.mark.parametrize("name", HISTORIES)
def test_group_notions(name, history):
    expected = dict(zip(GROUP, GROUP_VALUES[name], strict=True))
    assert filled(name, notions=GROUP, history=history).values() == approx(expected)


@pytest.mark.parametrize("notion", GROUP)
@pytest.mark.parametrize("name", HISTORIES)
def test_group_notions_of_whole_histories(name, notion):
    c = columns(name)
    compared = ("m", "f") if name == "E" else None
    history = {key: c[key] for key in ("actions", "feedback", "groups")} | {"feedback_missing": "ignore"}
    value = group_notion(notion, **history, compared=compared)
    expected = GROUP_VALUES[name][GROUP.index(notion)]
    assert value == approx(expected)
    instead = group_notion(notion, **history, compared=compared, undefined=-1.0)
    assert instead == approx(-1.0 if math.isnan(expected) else expected)


@pytest.mark.parametrize("history", [SlidingWindow(6), FullHistory(), DiscountedHistory(threshold=-1)])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("index, name", list(enumerate(HISTORIES)))
def test_individual_notions(index, name, distance, history):
    fairness, violation = (values[index] for values in INDIVIDUAL_VALUES[distance])
    settings = {"notions": ("IF", "LIP"), "distance": DISTANCES[distance], "history": history}
    assert filled(name, **settings).values() == approx({"IF": fairness, "LIP": violation})
    c = columns(name)
    metric = {"distance": DISTANCES[distance], "nominal": [2]}
    assert individual_fairness(c["features"], c["probabilities"], **metric) == approx(fairness)
    assert lipschitz_violation(c["features"], c["probabilities"], **metric) == approx(violation)


@pytest.mark.parametrize("k", CONSISTENCY)
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("index, name", list(enumerate(HISTORIES)))
def test_consistency(index, name, distance, k):
    expected = CONSISTENCY[k][index]
    assert filled(name, notions=["CSC"], distance=DISTANCES[distance], k=k).values() == approx({"CSC": expected})
    c = columns(name)
    metric = {"distance": DISTANCES[distance], "nominal": [2]}
    assert consistency(c["features"], c["actions"], k=k, **metric) == approx(expected)


@pytest.mark.parametrize("history", [SlidingWindow(6), FullHistory(), DiscountedHistory(threshold=-1)])
def test_late_feedback_moves_the_interaction_into_its_cell(history):
    tracker = filled("C", notions=GROUP, history=history)
    assert tracker.update_feedback(1, 1)
    once = {"SP": 0, "EO": -0.5, "OAE": -0.666667, "PP": -0.5, "PE": NAN, "EqOdds": -0.5, "CUAE": -0.5, "TE": NAN}
    assert tracker.values() == approx(once)
    assert tracker.update_feedback(2, 0)
    assert tracker.values() == approx({**once, "PE": -1, "EqOdds": -1, "CUAE": -1})


def test_feedback_for_an_interaction_that_has_left_changes_nothing():
    tracker = filled("C", notions=GROUP, history=SlidingWindow(4))
    before = tracker.values()
    assert not tracker.update_feedback(1, 1)
    assert not tracker.update_feedback(6, 1)
    assert not tracker.update_feedback(-1, 1)
    assert tracker.values() == approx(before)
    assert tracker.update_feedback(2, 0)


OTHER = [("EU", 1, 1), ("NA", 1, 0), ("AS", 0, 1), ("EU", 0, 0), ("NA", 1, 1), ("EU", 0, 1)]


def test_people_of_other_groups_are_left_out():
    tracker = FairnessTracker(notions=GROUP, groups=("EU", "NA"))
    for group, action, feedback in OTHER:
        tracker.add(Interaction(group=group, action=action, feedback=feedback))
    expected = (-0.666667, -0.5, -0.166667, -0.5, -1, -1, -0.5, -1)
    assert tracker.values() == approx(dict(zip(GROUP, expected, strict=True)))


def test_intersections_are_the_product_partition():
    tracker = FairnessTracker(
        notions=("SP", "EO", "OAE"), attributes=("gender", "nationality", ("gender", "nationality"))
    )
    for gender, nationality, action, feedback in [
        ("m", "b", 1, 1),
        ("m", "f", 0, 0),
        ("w", "b", 0, 1),
        ("w", "f", 1, 0),
    ]:
        tracker.add(Interaction(group={"gender": gender, "nationality": nationality}, action=action, feedback=feedback))
    assert tracker.values() == approx(
        {
            "SP@gender": 0,
            "SP@nationality": 0,
            "SP@gender+nationality": -1,
            "EO@gender": -1,
            "EO@nationality": NAN,
            "EO@gender+nationality": -1,
            "OAE@gender": -1,
            "OAE@nationality": 0,
            "OAE@gender+nationality": -1,
        }
    )


def test_one_of_two_rates_undefined():
    tracker = FairnessTracker(notions=("EqOdds", "CUAE", "PE", "TE"))
    for group, action, feedback in [("m", 1, 1), ("m", 0, 1), ("f", 1, 1), ("f", 1, 0)]:
        tracker.add(Interaction(group=group, action=action, feedback=feedback))
    assert tracker.values() == approx({"EqOdds": -0.5, "CUAE": -0.5, "PE": NAN, "TE": -1})


def test_sliding_window_of_four():
    tracker = FairnessTracker(
        notions=("SP", "EO", "IF", "LIP", "CSC"), history=SlidingWindow(4), distance="heom", nominal=[2], k=2
    )
    steps = [
        (NAN, NAN, 0, 0, 0),
        (-1, -1, 0, -0.123282, -1),
        (-0.5, -1, -0.844051, -0.041094, -0.666667),
        (0, -1, -0.767983, -0.045350, -0.875),
        (-0.666667, NAN, -0.823298, -0.068914, -0.75),
        (-0.5, NAN, -0.894657, -0.051739, -0.5),
    ]
    for interaction, expected in zip(interactions("B"), steps, strict=True):
        tracker.add(interaction)
        assert tuple(tracker.values().values()) == approx(expected)


def discounted(history, **settings):
    return filled("B", notions=(*GROUP, "IF", "LIP", "CSC"), distance="heom", history=history, k=2, **settings).values()


DISCOUNTED = (
    -0.031185,
    -0.111111,
    -0.480249,
    -0.636364,
    -0.111111,
    -0.111111,
    -1,
    -0.2,
    -0.780115,
    -0.033561,
    -0.547619,
)


@pytest.mark.parametrize(
    "history",
    [
        DiscountedHistory(0.5, threshold=-1),
        DiscountedHistory(0.5, threshold=0.02, delay=2, min_window=4),  # settles only at m* = 6
    ],
)
def test_discounted_history_with_nothing_dropped(history):
    assert tuple(discounted(history).values()) == approx(DISCOUNTED)


def test_discounted_history_drops_the_two_oldest():
    values = discounted(DiscountedHistory(0.5, threshold=0.11, delay=2, min_window=4))
    assert values["IF"] == approx(-0.795849)  # F_4
    assert values["EO"] == approx(NAN)  # only one woman who deserved it is left


def test_a_larger_change_resets_the_counter():
    values = discounted(DiscountedHistory(1.0, threshold=0.1, delay=2, min_window=4))
    assert values["IF"] == approx(-0.803379)  # F_6


@pytest.mark.parametrize(
    "factor, expected",
    [
        (1.0, (-0.716923, -0.894657, -0.813440, -0.803379)),
        (0.9, (-0.713384, -0.880188, -0.812685, -0.804236)),
        (0.5, (-0.692146, -0.795849, -0.779813, -0.780115)),
    ],
)
def test_fairness_of_the_m_newest(factor, expected):
    c = columns("B")
    for m, value in zip(range(3, 7), expected, strict=True):
        newest = slice(6 - m, 6)
        weights = factor ** np.arange(m)[::-1].astype(float)
        fairness = individual_fairness(
            c["features"][newest], c["probabilities"][newest], distance="heom", nominal=[2], weights=weights
        )
        assert fairness == approx(value)


@pytest.mark.parametrize("history", [SlidingWindow(3), FullHistory(), DiscountedHistory(0.9, threshold=-1)])
def test_hiring_every_man_and_no_woman_is_as_unfair_as_can_be(history):
    tracker = FairnessTracker(notions=("SP", "EO", "PE"), history=SlidingWindow(40) if history.people == 3 else history)
    rng = np.random.default_rng(0)
    for _ in range(100):
        man = bool(rng.integers(2))
        tracker.add(Interaction(group="man" if man else "woman", action=int(man), feedback=int(rng.integers(2))))
    assert tracker.values() == {"SP": -1.0, "EO": -1.0, "PE": -1.0}
