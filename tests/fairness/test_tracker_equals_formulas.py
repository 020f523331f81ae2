"""Is every incremental value what the formula gives for the people in the history?"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_fair.fairness import (
    DiscountedHistory,
    Distance,
    FullHistory,
    SlidingWindow,
    Tracker,
    consistency,
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
    truncated,
)

ALL = (*GROUP_NOTIONS, "IF", "LIP", "CSC")
MISSING = st.sampled_from(["undefined", "reweight", "ignore"])
EXAMPLES = settings(max_examples=60, deadline=None)


def person(n_groups, n_actions):
    """Coarse grids: ties are the rule."""
    return st.builds(
        lambda x, y, c, group, action, p, feedback: Person(
            (x, y, c), group, action, tuple(np.array([p, *[(1 - p) / (n_actions - 1)] * (n_actions - 1)])), feedback
        ),
        st.sampled_from([0.0, 0.1, 0.3, 1.0]),
        st.sampled_from([0.0, 0.5]),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.integers(0, n_groups - 1),
        st.integers(0, n_actions - 1),
        st.sampled_from([0.0, 0.2, 0.5, 1.0]),
        st.none() | st.integers(0, n_actions - 1),
    )


@st.composite
def stories(draw):
    """What happens to a few copies: people arrive (in all or some of them), feedback comes late, copies restart."""
    n = draw(st.integers(1, 3))
    n_actions = draw(st.integers(2, 3))
    someone = person(draw(st.integers(1, 5)), n_actions)
    arrival = st.tuples(st.just("add"), st.lists(someone, min_size=n, max_size=n), st.just(tuple(range(n))))
    some = st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True).map(tuple)
    partial = st.tuples(st.just("add"), st.lists(someone, min_size=n, max_size=n), some)
    late = st.tuples(st.just("late"), st.integers(0, n - 1), st.integers(0, 15), st.integers(0, n_actions - 1))
    restart = st.tuples(st.just("reset"), some)
    events = draw(st.lists(st.one_of(arrival, arrival, arrival, arrival, partial, late, restart), max_size=40))
    return n, events


def play(tracker, n, events, history, check):
    """Tells the story to the tracker and to plain lists; ``check(copy, people, values)`` after every event."""
    people = [[] for _ in range(n)]
    first = [0] * n
    for event in events:
        if event[0] == "add":
            _, arrivals, copies = event
            here = [arrivals[copy] for copy in copies]
            for copy in copies:
                people[copy].append(arrivals[copy])
            ids = tracker.add(
                np.array([p.group for p in here]),
                np.array([p.action for p in here]),
                features=np.array([p.features for p in here]),
                probabilities=np.array([p.probabilities for p in here]),
                feedback=[p.feedback for p in here],
                which=None if copies == tuple(range(n)) else np.array(copies),
            )
            assert ids.tolist() == [first[copy] + len(people[copy]) - 1 for copy in copies]
        elif event[0] == "late":
            _, copy, age, value = event
            index = len(people[copy]) - 1 - age
            held = index >= 0 and (people[copy][index] in history(people[copy])) and age < len(history(people[copy]))
            assert tracker.update_feedback(copy, first[copy] + index, value) == held
            if held:
                people[copy][index] = people[copy][index]._replace(feedback=value)
        else:
            for copy in event[1]:
                first[copy] += len(people[copy])
                people[copy] = []
            tracker.reset(event[1])
        values = tracker.values()
        for copy in range(n):
            check(copy, people[copy], {name: value[copy] for name, value in values.items()})


def same(value, formula):
    assert (math.isnan(value) and math.isnan(formula)) or abs(value - formula) < 1e-9, (value, formula)


@EXAMPLES
@given(stories(), st.integers(1, 12), st.integers(1, 3), st.sampled_from(["heom", "hmom", "braycurtis"]), MISSING)
def test_sliding_window(story, window, k, name, missing):
    n, events = story
    recipe = {"history": SlidingWindow(window), "distance": name, "feedback_missing": missing}
    tracker = Tracker(n, notions=ALL, nominal=[2], k=k, **recipe)

    def check(copy, people, values):
        people = people[-window:]
        for notion in GROUP_NOTIONS:
            same(values[notion], group_value(notion, people, feedback_missing=missing))
        for notion in ("IF", "LIP"):
            same(values[notion], pair_value(notion, people, name=name, nominal=[2]))
        same(values["CSC"], consistency_value(people, k, name=name, nominal=[2]))

    play(tracker, n, events, lambda people: people[-window:], check)


@EXAMPLES
@given(stories(), st.integers(1, 3))
def test_full_history_is_exact_while_the_sample_holds_everyone(story, k):
    n, events = story
    distances = ["heom", Distance("hmom", kernel="exp"), manhattan, manhattan_rows]
    tracker = Tracker(
        n,
        notions=ALL,
        history=FullHistory(),
        distance=distances,
        nominal=[0],
        k=k,
        groups=(0, 2),
        favourable=(1, 2),
    )

    def check(copy, people, values):
        for notion in GROUP_NOTIONS:
            same(values[notion], group_value(notion, people, compared=(0, 2), favourable=(1, 2)))
        for label, metric in {
            "heom": {"name": "heom", "nominal": [0]},
            "hmom-exp": {"name": "hmom", "nominal": [0], "kernel": "exp"},
            "manhattan": {"name": manhattan},
            "manhattan_rows": {"name": manhattan},
        }.items():
            for notion in ("IF", "LIP"):
                same(values[f"{notion}@{label}"], pair_value(notion, people, **metric))
            metric.pop("kernel", None)
            same(values[f"CSC@{label}"], consistency_value(people, k, favourable=(1, 2), **metric))

    play(tracker, n, events, lambda people: people, check)


def manhattan(u, v):
    return float(sum(abs(x - y) for x, y in zip(u, v, strict=True)))


def manhattan_rows(u, crowd):
    return np.abs(crowd - u).sum(axis=1)


@EXAMPLES
@given(
    stories(),
    st.sampled_from([0.5, 0.9, 1.0]),
    st.sampled_from([-1.0, 0.0, 0.01, 0.1, 1.0]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([6, 15, 50]),
)
def test_discounted_history(story, factor, threshold, delay, k, max_size):
    n, events = story
    min_window = delay + 2
    tracker = Tracker(
        n, notions=ALL, history=DiscountedHistory(factor, threshold, delay, min_window, max_size), distance="heom", k=k
    )
    kept = {}

    def retained(copy, people):
        """Keeps what the last step kept, and the newcomers; drops once per step."""
        length, size = kept.get(copy, (0, 0))
        if len(people) < length or not people:
            length = size = 0
        size = min(size + len(people) - length, max_size)
        now = people[len(people) - size :]
        if threshold >= 0 and len(people) > length:
            now = truncated(now, factor, threshold, delay, min_window, name="heom")
        kept[copy] = len(people), len(now)
        return now

    def check(copy, people, values):
        people = retained(copy, people)
        weights = [factor ** (len(people) - 1 - i) for i in range(len(people))]
        for notion in GROUP_NOTIONS:
            same(values[notion], group_value(notion, people, weights))
        for notion in ("IF", "LIP"):
            same(values[notion], pair_value(notion, people, weights, name="heom"))
        same(values["CSC"], consistency_value(people, k, weights, name="heom"))

    def play_history(people):
        return people[len(people) - next(size for length, size in kept.values() if length == len(people)) :]

    events = [event for event in events if event[0] != "late"]
    play(tracker, n, events, play_history, check)


@pytest.mark.parametrize("distance", ["heom", "hmom", "braycurtis", Distance("heom", kernel="exp")])
@pytest.mark.parametrize("window", [30, 200])
@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_long_runs_equal_the_whole_history_functions(distance, window, levels):
    """Lists overflow, run short and are rebuilt; the store grows; every copy has its own age."""
    rng = np.random.default_rng(levels)
    n, steps, k = 2, 450, 2
    tracker = Tracker(n, notions=ALL, history=SlidingWindow(window), distance=distance, nominal=[0, 3], k=k)
    features = rng.integers(0, levels, (steps, n, 4)) / levels
    probabilities = rng.dirichlet([1, 1, 1], (steps, n))
    actions, groups = rng.integers(0, 3, (steps, n)), rng.integers(0, 4, (steps, n))
    feedback = rng.integers(0, 3, (steps, n)).astype(float)
    feedback[rng.random((steps, n)) < 0.3] = np.nan
    start = [0] * n
    for t in range(steps):
        if t in (90, 260):
            tracker.reset([t % n])
            start[t % n] = t
        tracker.add(groups[t], actions[t], features=features[t], probabilities=probabilities[t], feedback=feedback[t])
        values = tracker.values()
        if t % 23 and t < steps - 2:
            continue
        for copy in range(n):
            held = slice(max(start[copy], t + 1 - window), t + 1)
            history = {"actions": actions[held, copy], "feedback": feedback[held, copy], "groups": groups[held, copy]}
            people = features[held, copy]
            metric = {"distance": distance, "nominal": [0, 3]}
            for notion in GROUP_NOTIONS:
                same(values[notion][copy], group_notion(notion, **history))
            same(values["IF"][copy], individual_fairness(people, probabilities[held, copy], **metric))
            same(values["LIP"][copy], lipschitz_violation(people, probabilities[held, copy], **metric))
            same(values["CSC"][copy], consistency(people, actions[held, copy], k=k, **metric))
