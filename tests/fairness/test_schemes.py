"""Do schemes score whole traces, and running ones, as their definitions say?"""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sb3_fair.fairness import (
    Scheme,
    SchemeTracker,
    Welfare,
    balance,
    count_status,
    overall_unfairness,
    unfairness,
)

NAN = math.nan

# Eight doughnuts for three people; the third and the seventh are wasted.
TAKEN = (0, 1, 2, 0, 2, 1, 0, 2)
GRANTED = (1, 1, 0, 1, 1, 1, 0, 1)
COUNTS = ((1, 0, 0), (1, 1, 0), (1, 1, 0), (2, 1, 0), (2, 1, 1), (2, 2, 1), (2, 2, 1), (2, 2, 2))


def doubled(status, previous):
    """The total reaches a new multiple of 2."""
    return status.sum(axis=-1) // 2 > previous.sum(axis=-1) // 2


def thousands(u):
    """A welfare function of one's own."""
    return 1000 * u[..., 0] + u[..., -1]


NAMES = ("utilitarian", "rawls", "nash", "log_nash")
WORKED = [
    ({"temporal": "last"}, (6, 2, 8, 3.295837)),
    ({"when": "end"}, (6, 2, 8, 3.295837)),
    ({"temporal": "sum"}, (28, 5, 18, 16.818982)),
    ({"temporal": "mean"}, (3.5, 0.625, 2.25, 2.102373)),
    ({"temporal": "min"}, (1, 0, 0, 0.693147)),
    ({"temporal": "discounted", "gamma": 0.9}, (17.710836, 2.734625, 9.626299, 10.819437)),
    ({"when": ("period", 3)}, (7, 1, 4, 4.276666)),
    ({"when": ("period", 3), "temporal": "min"}, (2, 0, 0, 1.386294)),
    ({"when": ("period", 3), "temporal": "discounted", "gamma": 0.9}, (6.5, 0.9, 3.6, 3.987629)),
    ({"when": doubled}, (12, 3, 10, 7.167038)),
    ({"when": doubled, "temporal": "mean"}, (4, 1, 3.333333, 2.389013)),
    ({"when": ("period", 9)}, (0, 0, 0, 0)),
    ({"when": ("period", 9), "temporal": "discounted"}, (0, 0, 0, 0)),
    ({"when": ("period", 9), "temporal": "last"}, (NAN,) * 4),
    ({"when": ("period", 9), "temporal": "mean"}, (NAN,) * 4),
    ({"when": ("period", 9), "temporal": "min"}, (NAN,) * 4),
]


def test_counts_of_the_worked_trace():
    np.testing.assert_array_equal(count_status(TAKEN, GRANTED, stakeholders=(0, 1, 2)), COUNTS)


@pytest.mark.parametrize(("arguments", "scores"), WORKED, ids=range(len(WORKED)))
def test_scores_of_the_worked_trace(arguments, scores):
    found = [Scheme(welfare=name, **arguments).score(COUNTS) for name in NAMES]
    np.testing.assert_allclose(found, scores, atol=1e-6)


def test_rewards_of_the_worked_trace_are_those_of_steps_that_took_effect():
    welfare, assessed = Scheme().values(COUNTS)
    assert assessed.all()
    rewards = welfare * GRANTED
    np.testing.assert_allclose(rewards, [0.693147, 1.386294, 0, 1.791759, 2.484907, 2.890372, 0, 3.295837], atol=1e-6)
    np.testing.assert_allclose([rewards.sum(), rewards @ 0.99 ** np.arange(8)], [12.542316, 12.011763], atol=1e-6)


def test_unfairness_of_the_worked_trace():
    np.testing.assert_allclose(unfairness(COUNTS)[3], [1, 0, -1])
    np.testing.assert_allclose(overall_unfairness(COUNTS), [3.666667, 0.666667, -4.333333], atol=1e-6)
    np.testing.assert_allclose(balance(COUNTS), -32.666667, atol=1e-6)


# Vaccines for two regions, thousands after each month
WAVES = ((20, 0), (40, 0), (40, 20), (40, 40))
STEADY = ((10, 10), (20, 20), (30, 30), (40, 40))


@pytest.mark.parametrize("name", ["utilitarian", "rawls", "nash", "log_nash", "neg_gini", "jain", "ggf"])
def test_in_the_long_term_all_ways_to_the_same_end_are_alike(name):
    waves, steady = Scheme(welfare=name, when="end").score([WAVES, STEADY])
    assert waves == steady
    if name == "log_nash":
        np.testing.assert_allclose(waves, 7.427144, atol=1e-6)


def test_periodic_assessment_tells_them_apart():
    np.testing.assert_array_equal(Scheme(welfare="rawls", when=("period", 1)).score([WAVES, STEADY]), [60, 100])
    np.testing.assert_allclose(Scheme().score([WAVES, STEADY]), [20.943333, 25.179954], atol=1e-6)
    np.testing.assert_array_equal(balance([WAVES, STEADY]), [-3200, 0])


# The definitions, trace by trace in plain Python. A trace is the list of what was added to each stakeholder's status.


def nash(u):
    return sum(math.log(x + 1) for x in u)


def worst(u):
    return min(u)


def gap(u):
    return -(max(u) - min(u))


WELFARE = {"log_nash": nash, "rawls": worst, "relaxed_parity": gap}


def follow(trace, scheme):
    """(welfare, assessed) after each step."""
    status, found = [0] * len(trace[0]) if trace else [], []
    for t, added in enumerate(trace, start=1):
        if scheme.restart and found and found[-1][1]:
            status = [0] * len(status)
        previous, status = status, [x + y for x, y in zip(status, added, strict=True)]
        if scheme.when == "every":
            assessed = True
        elif scheme.when == "end":
            assessed = t == len(trace)
        elif callable(scheme.when):
            assessed = sum(status) // 2 > sum(previous) // 2
        else:
            assessed = t % scheme.when[1] == 0
        found.append((WELFARE[scheme.welfare](status), assessed))
    return found


def aggregate(found, scheme):
    chosen = [(t, welfare) for t, (welfare, assessed) in enumerate(found, start=1) if assessed]
    values = [welfare for _, welfare in chosen]
    if scheme.temporal == "sum":
        return sum(values)
    if scheme.temporal == "discounted" and scheme.discount_by == "assessment":
        return sum(scheme.gamma ** (j - 1) * value for j, value in enumerate(values, start=1))
    if scheme.temporal == "discounted":
        return sum(scheme.gamma ** (t - 1) * value for t, value in chosen)
    if not values:
        return NAN
    return {"last": values[-1], "mean": sum(values) / len(values), "min": min(values)}[scheme.temporal]


@st.composite
def schemes(draw):
    period = ("period", draw(st.integers(1, 5)))
    when = draw(st.sampled_from(["every", "end", period, doubled]))
    return Scheme(
        welfare=draw(st.sampled_from(sorted(WELFARE))),
        temporal=draw(st.sampled_from(["last", "sum", "mean", "min", "discounted"])),
        when=when,
        gamma=draw(st.sampled_from([0.5, 0.9, 1.0])),
        discount_by=draw(st.sampled_from(["assessment", "step"])),
        restart=when == period and draw(st.booleans()),
    )


@st.composite
def episodes(draw, most=4):
    """Traces of different lengths with the same number of stakeholders."""
    vector = st.lists(st.integers(0, 2), min_size=(n := draw(st.integers(1, 4))), max_size=n)
    return n, draw(st.lists(st.lists(vector, max_size=9), min_size=1, max_size=most))


def padded(traces, n, filler):
    """Statuses (traces, T, n), with ``filler`` after the end of each."""
    status = np.full((len(traces), max(map(len, traces)), n), filler)
    for row, trace in zip(status, traces, strict=True):
        row[: len(trace)] = np.cumsum(np.reshape(trace, (-1, n)), axis=0)
    return status


@settings(max_examples=200)
@given(scheme=schemes(), data=episodes(), filler=st.sampled_from([0.0, NAN, -9.0, 1e6]))
def test_values_and_scores_are_those_of_the_definitions(scheme, data, filler):
    n, traces = data
    status, lengths = padded(traces, n, filler), [len(trace) for trace in traces]
    values, scores = scheme.values(status, lengths), scheme.score(status, lengths)
    assert scores.shape == (len(traces),)
    for trace, welfare, assessed, score in zip(traces, values.welfare, values.assessed, scores, strict=True):
        found = follow(trace, scheme)
        np.testing.assert_allclose(welfare[: len(trace)], [w for w, _ in found])
        assert assessed[: len(trace)].tolist() == [b for _, b in found]
        assert not assessed[len(trace) :].any() and np.isnan(welfare[len(trace) :]).all()
        np.testing.assert_allclose(score, aggregate(found, scheme))
        whole = np.reshape(np.cumsum(np.reshape(trace, (-1, n)), axis=0), (-1, n))
        np.testing.assert_allclose(scheme.score(whole), score)


@settings(max_examples=200)
@given(scheme=schemes(), data=episodes(most=8), n_copies=st.integers(1, 3))
def test_a_tracker_says_of_running_episodes_what_the_definitions_say(scheme, data, n_copies):
    n, traces = data
    queues = [[trace for trace in traces[copy::n_copies] if trace] for copy in range(n_copies)]
    tracker = SchemeTracker(scheme, n_copies, n)
    playing = [list(queue.pop(0)) if queue else None for queue in queues]
    found = [[] for _ in range(n_copies)]
    expected = [follow(trace, scheme) if trace else [] for trace in playing]
    while any(playing):
        added = [trace.pop(0) if trace else [0] * n for trace in playing]
        ended = np.array([trace == [] for trace in playing])
        welfare, assessed = tracker.step(np.array(added), ended)
        for copy in range(n_copies):
            found[copy].append((welfare[copy], assessed[copy]))
        over = np.flatnonzero(ended)
        for copy in over:
            np.testing.assert_allclose(found[copy], expected[copy])
            playing[copy] = list(queues[copy].pop(0)) if queues[copy] else None
            found[copy], expected[copy] = [], follow(playing[copy] or [], scheme)
        tracker.restart(over)
        assert not tracker.status[over].any()


@pytest.mark.parametrize("which", [[1], slice(1, 2), np.array([False, True, False])])
def test_a_restart_concerns_the_named_copies_only(which):
    tracker = SchemeTracker(Scheme(when=("period", 2)), 3, 2)
    tracker.step(np.ones((3, 2)), np.zeros(3, dtype=bool))
    tracker.restart(which)
    np.testing.assert_array_equal(tracker.status, [[1, 1], [0, 0], [1, 1]])
    assert tracker.step(np.ones((3, 2)), np.zeros(3, dtype=bool))[1].tolist() == [True, False, True]


@pytest.mark.parametrize("when", ["every", "end", ("period", 2), doubled])
def test_what_a_tracker_returned_is_never_changed_later(when):
    tracker = SchemeTracker(Scheme(when=when), 2, 3)
    ended = np.array([False, True])
    welfare, assessed = tracker.step(np.ones((2, 3)), ended)
    status = tracker.status
    copies = welfare.copy(), assessed.copy(), status.copy()
    ended[:] = [True, False]
    tracker.restart([0])
    tracker.step(np.ones((2, 3)), ended)
    for now, then in zip((welfare, assessed, status), copies, strict=True):
        np.testing.assert_array_equal(now, then)


def test_restart_lets_everybody_begin_anew_after_each_period():
    rounds = Scheme(welfare="rawls", when=("period", 2), restart=True)
    status = [[1, 0], [1, 1], [2, 1], [3, 1], [3, 2]]
    np.testing.assert_array_equal(rounds.values(status).welfare, [0, 1, 0, 0, 0])
    assert rounds.score(status) == 1
    assert Scheme(welfare="rawls", when=("period", 2)).score(status) == 2
    tracker = SchemeTracker(rounds, 1, 2)
    seen = []
    for added in np.diff(status, axis=0, prepend=[[0, 0]]):
        tracker.step(added[None], np.array([False]))
        seen.append(tracker.status[0].tolist())
    assert seen == [[1, 0], [1, 1], [1, 0], [2, 0], [0, 1]]


def test_discounts_count_assessments_or_steps():
    status = np.ones((6, 2))
    arguments = {"welfare": "rawls", "temporal": "discounted", "when": ("period", 3), "gamma": 0.5}
    assert Scheme(**arguments).score(status) == 1 + 0.5
    assert Scheme(**arguments, discount_by="step").score(status) == 0.5**2 + 0.5**5


def test_a_callable_may_be_the_welfare_function():
    scheme = Scheme(welfare=thousands)
    np.testing.assert_array_equal(scheme.values(COUNTS).welfare[:4], [1000, 1000, 1000, 2000])


def worst_two(u):
    """Counts the worst off twice; sorts in place."""
    u.sort(axis=-1)
    return 2 * u[..., 0] + u[..., 1]


def first_has_more(status, previous):
    """Computes in place."""
    status -= previous
    return status[..., 0] > 0


def test_functions_of_ones_own_may_work_in_place():
    scheme = Scheme(welfare=worst_two, when=first_has_more)
    values, tracker = scheme.values(COUNTS), SchemeTracker(scheme, 1, 3)
    steps = [tracker.step(added[None], np.array([False])) for added in np.diff(COUNTS, axis=0, prepend=[[0] * 3])]
    for welfare, assessed in (values, np.array(steps)[..., 0].T):
        np.testing.assert_array_equal(welfare, [0, 1, 1, 1, 3, 4, 4, 6])
        np.testing.assert_array_equal(assessed, [1, 0, 0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(tracker.status, [COUNTS[-1]])


def test_welfare_of_minus_infinity_stays_outside_where_it_is_not_assessed():
    scheme = Scheme(welfare=Welfare("alpha_fair", alpha=2), when="end")
    with pytest.warns(RuntimeWarning, match="is -inf"):
        np.testing.assert_allclose(scheme.score(COUNTS), -1.5)


def test_nothing_to_assess_in_an_empty_trace():
    empty = np.zeros((2, 0, 3))
    np.testing.assert_array_equal(Scheme().score(empty), [0, 0])
    assert np.isnan(Scheme(temporal="min").score(empty)).all()
    assert np.isnan(Scheme(temporal="last").score(COUNTS, 0))


@given(scheme=schemes(), seed=st.integers(0, 99))
def test_leading_axes_are_kept(scheme, seed):
    status = np.random.default_rng(seed).integers(0, 2, (2, 3, 5, 4)).cumsum(axis=2)
    lengths = np.random.default_rng(seed).integers(0, 6, (2, 3))
    scores = scheme.score(status, lengths)
    assert scores.shape == (2, 3)
    np.testing.assert_allclose(scores[1, 2], scheme.score(status[1, 2], lengths[1, 2]))


def test_expected_score_is_a_mean_with_students_interval():
    status = np.random.default_rng(1).integers(0, 3, (2, 5, 6, 3)).cumsum(axis=2)
    scheme = Scheme()
    scores = scheme.score(status).ravel()
    mean, low, high = scheme.expected_score(status, confidence=0.9)
    np.testing.assert_allclose(mean, scores.mean())
    np.testing.assert_allclose((low, high), stats.t.interval(0.9, 9, scores.mean(), stats.sem(scores)))
    alone = scheme.expected_score(status[0, 0])
    assert alone.mean == scores[0] and np.isnan([alone.low, alone.high]).all()
    assert np.isnan(scheme.expected_score(np.zeros((0, 6, 3))).mean)
    assert np.isnan(Scheme(when=("period", 9), temporal="last").expected_score(status).mean)


@given(data=episodes())
def test_favour_is_summed_over_the_steps_of_an_episode(data):
    n, traces = data
    status, lengths = padded(traces, n, NAN), [len(trace) for trace in traces]
    for trace, row, overall, squares in zip(
        traces, status, overall_unfairness(status, lengths), balance(status, lengths), strict=True
    ):
        expected = [sum(u[i] - sum(u) / n for u in row[: len(trace)]) for i in range(n)]
        np.testing.assert_allclose(overall, expected, atol=1e-9)
        np.testing.assert_allclose(squares, -sum(x**2 for x in expected), atol=1e-9)


@given(
    decisions=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12),
    stakeholders=st.lists(st.integers(-1, 2), min_size=4, max_size=4).filter(lambda whom: max(whom) >= 0),
    length=st.integers(0, 12),
)
def test_counts_are_those_of_the_decisions_one_by_one(decisions, stakeholders, length):
    length = min(length, len(decisions))
    counts, expected = [0] * (max(stakeholders) + 1), []
    for t, (action, granted) in enumerate(decisions):
        if t < length and granted and stakeholders[action] >= 0:
            counts[stakeholders[action]] += 1
        expected.append(list(counts))
    actions = np.array([action if t < length else -7 for t, (action, _) in enumerate(decisions)], dtype=int)
    granted = np.array([flag for _, flag in decisions], dtype=bool)
    found = count_status(actions, granted, stakeholders=stakeholders, lengths=length)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.reshape(expected, (-1, max(stakeholders) + 1)))


def test_two_people_of_a_group_share_a_stakeholder():
    found = count_status([[0, 1, 2], [3, 3, 0]], stakeholders=(0, 0, 1, 1))
    np.testing.assert_array_equal(found, [[[1, 0], [2, 0], [2, 1]], [[0, 1], [0, 2], [1, 2]]])


@pytest.mark.parametrize(
    ("when", "time_based"), [("every", False), ("end", True), (("period", 2), True), (doubled, False)]
)
def test_only_a_callable_looks_at_the_status(when, time_based):
    scheme = Scheme(when=when)
    status, before = np.array(COUNTS[1:], dtype=float), np.array(COUNTS[:-1], dtype=float)
    assert scheme.time_based is time_based
    expected = [True, False, False, True, False, False, True] if when is doubled else [True] * 7
    assert scheme.holds(status, before).tolist() == expected


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (lambda: Scheme(status="count"), r"status must be one of .* or a callable, .* \(did you mean 'counts'\?\)"),
        (lambda: Scheme(welfare="lognash"), r"welfare must be .* \(did you mean 'log_nash'\?\)"),
        (lambda: Scheme(welfare="gini"), "welfare must be higher where it is better, got 'gini'; take 'neg_gini'"),
        (lambda: Scheme(welfare=Welfare("gini")), "welfare must be higher where it is better, got 'gini'"),
        (lambda: Scheme(temporal="men"), r"temporal must be one of .* \(did you mean 'mean'\?\)"),
        (lambda: Scheme(temporal=len), "temporal must be one of"),
        (lambda: Scheme(when="evry"), r"when must be .*, got 'evry' \(did you mean 'every'\?\)"),
        (lambda: Scheme(when=("period",)), "when must be .*, got \\('period',\\)"),
        (lambda: Scheme(when=("perod", 2)), "when must be .*, got \\('perod', 2\\)"),
        (lambda: Scheme(when=("period", 0)), r"when must be .*\('period', a positive integer\).*, got \('period', 0\)"),
        (lambda: Scheme(when=("period", 2.5)), r"when must be .*, got \('period', 2.5\)"),
        (lambda: Scheme(gamma=0), r"gamma must be in \(0, 1\], got 0"),
        (lambda: Scheme(gamma=1.1), r"gamma must be in \(0, 1\], got 1.1"),
        (lambda: Scheme(gamma="a"), r"gamma must be in \(0, 1\], got 'a'"),
        (lambda: Scheme(discount_by="steps"), r"discount_by must be one of .* \(did you mean 'step'\?\)"),
        (lambda: Scheme(restart=True), r"restart is only for when=\('period', p\), got 'every'"),
        (lambda: Scheme(restart=1), "restart must be True or False, got 1"),
        (lambda: Scheme().score([1, 2]), r"status must have the shape \(..., T, n\) with n > 0, got \(2,\)"),
        (lambda: Scheme().score(COUNTS, [8]), r"lengths must be integers of shape \(\), got \[8\]"),
        (lambda: Scheme().score(COUNTS, 8.0), "lengths must be integers"),
        (lambda: Scheme().score(COUNTS, 9), r"lengths must be in 0..8, got 9"),
        (lambda: Scheme().expected_score(COUNTS, confidence=95), r"confidence must be in \(0, 1\), got 95"),
        (lambda: Scheme(welfare=np.mean).score(COUNTS), "welfare must return one entry per status vector"),
        (lambda: Scheme(when=lambda u, v: True).score(COUNTS), "when must return one entry per status vector"),
        (lambda: SchemeTracker(Scheme(), 0, 3), "n_copies must be a positive integer, got 0"),
        (lambda: SchemeTracker(Scheme(), 2, 3).step([1, 1, 1], None), r"increments must have the shape \(2, 3\)"),
        (lambda: SchemeTracker(Scheme(welfare=lambda u: u[0] * u[1]), 2, 2), "welfare as a function must map"),
        (lambda: SchemeTracker(Scheme(when=lambda u, v: u[0] > 3), 2, 2), "when as a function must map"),
        (lambda: count_status([0, 1], stakeholders=()), "stakeholders must serve somebody"),
        (lambda: count_status([0, 1], stakeholders=(-1, -1)), "stakeholders must serve somebody"),
        (lambda: count_status([0, 1], stakeholders=(0, -2)), "stakeholders must be a sequence"),
        (lambda: count_status([0, 2], stakeholders=(0, 1)), r"actions must be in 0..1, got 0..2"),
        (lambda: count_status([0.5], stakeholders=(0, 1)), "actions must be integers"),
        (lambda: count_status([0, 1], [True], stakeholders=(0, 1)), r"granted must have the shape of actions \(2,\)"),
    ],
)
def test_wrong_arguments(recipe, message):
    with pytest.raises(ValueError, match=message):
        recipe()


def test_schemes_pickle_hash_and_read_lists():
    scheme = Scheme(welfare=Welfare("relaxed_parity", groups=(0, 0, 1, 1)), when=["period", 3], restart=True)
    assert scheme.when == ("period", 3)
    status = np.random.default_rng(0).integers(0, 2, (7, 4)).cumsum(axis=0)
    score = scheme.score(status)
    again = pickle.loads(pickle.dumps(scheme))
    assert again == scheme and hash(again) == hash(scheme)
    assert again.score(status) == score
    assert pickle.loads(pickle.dumps(Scheme(when=doubled))) == Scheme(when=doubled)
