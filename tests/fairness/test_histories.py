"""Do the histories keep what they promise, and no more?"""

import pickle
import warnings
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_equal

from sb3_fair.fairness import (
    DiscountedHistory,
    FairnessTracker,
    FullHistory,
    Interaction,
    SlidingWindow,
    Tracker,
    consistency,
    group_notion,
    individual_fairness,
    lipschitz_violation,
)

ALL = ("SP", "EO", "OAE", "PP", "PE", "IF", "LIP", "CSC")


@pytest.mark.parametrize(
    "recipe, message",
    [
        (lambda: SlidingWindow(0), "window must be a positive integer, got 0"),
        (lambda: SlidingWindow(2.5), "window must be a positive integer, got 2.5"),
        (lambda: SlidingWindow(True), "window must be a positive integer, got True"),
        (lambda: FullHistory(reservoir=0), "reservoir must be a positive integer, got 0"),
        (lambda: FullHistory(seed=-1), "seed must be a non-negative integer, got -1"),
        (lambda: FullHistory(late=0), "late must be a positive integer, got 0"),
        (lambda: DiscountedHistory(0), r"factor must be in \(0, 1\], got 0"),
        (lambda: DiscountedHistory(1.1), r"factor must be in \(0, 1\], got 1.1"),
        (lambda: DiscountedHistory(threshold=float("nan")), "threshold must be a finite number, got nan"),
        (lambda: DiscountedHistory(delay=0), "delay must be a positive integer, got 0"),
        (lambda: DiscountedHistory(delay=5, min_window=6), r"min_window must exceed delay \+ 1 = 6, got 6"),
        (lambda: DiscountedHistory(max_size=50), "max_size must be at least min_window = 100, got 50"),
    ],
)
def test_wrong_arguments(recipe, message):
    with pytest.raises(ValueError, match=message):
        recipe()


def test_defaults_are_the_published_ones():
    assert SlidingWindow().window == 500
    history = DiscountedHistory()
    assert (history.factor, history.threshold, history.delay, history.min_window) == (1.0, 1e-4, 5, 100)
    assert history.max_size == 10_000
    assert FullHistory().reservoir == 1000


def feed(trackers, steps, seed=0, n=1, size=4):
    """The same random people for each of the trackers; returns them as arrays (steps, n, ...)."""
    rng = np.random.default_rng(seed)
    data = {
        "group": rng.integers(0, 3, (steps, n)),
        "action": rng.integers(0, 2, (steps, n)),
        "features": rng.integers(0, 5, (steps, n, size)) / 4,
        "probabilities": rng.dirichlet([1, 1], (steps, n)),
        "feedback": rng.integers(0, 2, (steps, n)).astype(float),
    }
    for t in range(steps):
        for tracker in trackers:
            tracker.add(**{name: column[t] for name, column in data.items()})
            tracker.values()
    return data


def agree(first, second, names=ALL):
    for name in names:
        np.testing.assert_allclose(first[name], second[name], atol=1e-9)


def test_endless_windows_are_the_full_history():
    histories = [SlidingWindow(10_000), FullHistory(), DiscountedHistory(1.0, threshold=-1)]
    trackers = [Tracker(2, notions=ALL, history=history) for history in histories]
    feed(trackers, 150, n=2)
    agree(trackers[0].values(), trackers[1].values())
    agree(trackers[0].values(), trackers[2].values())


def test_adding_and_expiring_are_inverse():
    """After a full turn nothing is left of what came before."""
    long, fresh = (Tracker(1, notions=ALL, history=SlidingWindow(40)) for _ in range(2))
    feed([long], 500, seed=1)
    feed([long, fresh], 40, seed=2)
    agree(long.values(), fresh.values())


def test_the_full_history_counts_everyone_and_samples_people():
    reservoir, steps = 20, 300
    tracker = Tracker(2, notions=ALL, history=FullHistory(reservoir=reservoir, seed=7), k=3)
    data = feed([tracker], steps, n=2)
    values = tracker.values()
    for copy in range(2):
        history = {
            "actions": data["action"][:, copy],
            "feedback": data["feedback"][:, copy],
            "groups": data["group"][:, copy],
        }
        for notion in ("SP", "EO", "OAE", "PP", "PE"):
            assert values[notion][copy] == pytest.approx(group_notion(notion, **history))
        rng = np.random.default_rng(7)  # as if the copy were alone
        kept = list(range(reservoir))  # Vitter's algorithm R
        for t in range(reservoir, steps):
            slot = rng.integers(t + 1)
            if slot < reservoir:
                kept[slot] = t
        kept.sort()
        people, chances = data["features"][kept, copy], data["probabilities"][kept, copy]
        assert values["IF"][copy] == pytest.approx(individual_fairness(people, chances), abs=1e-9)
        assert values["LIP"][copy] == pytest.approx(lipschitz_violation(people, chances), abs=1e-9)
        assert values["CSC"][copy] == pytest.approx(consistency(people, data["action"][kept, copy], k=3), abs=1e-9)


def test_the_sample_is_an_estimate_of_the_whole():
    sampled = Tracker(1, notions=["IF"], history=FullHistory(reservoir=300))
    data = feed([sampled], 2000)
    exact = individual_fairness(data["features"][:, 0], data["probabilities"][:, 0])
    assert sampled.values()["IF"][0] == pytest.approx(exact, abs=0.03)


def test_feedback_may_be_late_by_as_much_as_the_history_says():
    tracker = FairnessTracker(notions=["EO"], history=FullHistory(late=5))
    for step in range(8):
        tracker.add(Interaction(group=step % 2, action=step // 2 % 2))
    assert [tracker.update_feedback(id, 1) for id in range(8)] == [False] * 3 + [True] * 5
    assert tracker.values()["EO"] == pytest.approx(1 / 2 - 2 / 3)  # of 4, 6 one was accepted, of 3, 5, 7 two


def test_max_size_warns_once_and_forgets_the_oldest():
    history = DiscountedHistory(1.0, threshold=-1, min_window=10, max_size=30)
    capped, window = Tracker(1, notions=ALL, history=history), Tracker(1, notions=ALL, history=SlidingWindow(30))
    with pytest.warns(UserWarning, match="has reached max_size=30") as caught:
        feed([capped, window], 80)
    assert len(caught) == 1
    agree(capped.values(), window.values())


def test_a_settled_history_becomes_short():
    tracker = Tracker(1, notions=("SP", "IF"), history=DiscountedHistory(0.9, 1e-4, 5, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = feed([tracker], 700)
    newest = slice(600, 700)
    weights = 0.9 ** np.arange(100)[::-1].astype(float)
    expected = individual_fairness(data["features"][newest, 0], data["probabilities"][newest, 0], weights=weights)
    assert tracker.values()["IF"][0] == pytest.approx(expected, abs=1e-9)
    assert not tracker.update_feedback(0, 599, 1.0)
    assert tracker.update_feedback(0, 600, 1.0)


def test_late_feedback_in_a_discounted_history_leaves_no_trace_where_it_was():
    """The newest weighs 1, the oldest 0.1 ** 30: subtracting would lose it."""
    tracker = FairnessTracker(notions=["EO"], history=DiscountedHistory(0.1, threshold=-1))
    oldest = tracker.add(Interaction(group="m", action=1, feedback=1))
    tracker.add(Interaction(group="w", action=0, feedback=1))
    for _ in range(28):
        tracker.add(Interaction(group="x", action=0))
    newest = tracker.add(Interaction(group="m", action=1, feedback=1))
    assert tracker.update_feedback(newest, 0)
    assert tracker.values()["EO"] == -1.0
    assert tracker.update_feedback(oldest, 0)
    assert np.isnan(tracker.values()["EO"])


def test_a_weight_too_small_for_its_digits_is_none():
    """0.9 ** 7080 is smaller than any number, but numbers that small are rounded up when they are multiplied by 0.9."""
    tracker = Tracker(1, notions=["SP"], history=DiscountedHistory(0.9, threshold=-1))
    tracker.add_several([0] * 20, ["rare"] * 20, [0, *[1] * 9] * 2)
    for ages, expected in ((6500, -0.0595), (580, np.nan)):
        tracker.add_several([0] * ages, ["usual"] * ages, [1] * ages)
        assert tracker.values()["SP"] == pytest.approx(expected, abs=1e-4, nan_ok=True)


def test_several_individuals_in_a_step_end_it_together():
    history = DiscountedHistory(0.5, threshold=0.11, delay=2, min_window=4)
    one, many = (FairnessTracker(notions=["IF"], history=history) for _ in range(2))
    rng = np.random.default_rng(0)
    people = [
        Interaction(group=0, action=1, features=rng.random(2), probabilities=rng.dirichlet([1, 1])) for _ in range(9)
    ]
    assert many.add(people) == list(range(9))
    assert [one.add(person) for person in people] == list(range(9))
    assert abs(one.values()["IF"] - many.values()["IF"]) < 1  # both valid; their steps differ


def test_histories_by_notion():
    tracker = Tracker(
        1,
        notions=("SP", "IF", "CSC"),
        history={"SP": SlidingWindow(10), "IF": FullHistory(), "CSC": SlidingWindow(10)},
    )
    windowed, full = Tracker(1, notions=ALL, history=SlidingWindow(10)), Tracker(1, notions=ALL, history=FullHistory())
    feed([tracker, windowed, full], 60)
    values = tracker.values()
    assert list(values) == ["SP", "IF", "CSC"]
    agree(values, windowed.values(), ("SP", "CSC"))
    agree(values, full.values(), ("IF",))
    twice = Tracker(1, notions=("EO", "SP"), history={"SP": SlidingWindow(10), "EO": SlidingWindow(20)})
    feed([twice], 30)
    counts = twice.feedback_counts()[""].values()
    assert sum(of["unfavourable"] + of["favourable"] for of in counts) == 20
    assert twice.kept.tolist() == [20]
    assert [twice.update_feedback(0, id, 1.0) for id in (9, 10, 20)] == [False, True, True]
    with pytest.raises(ValueError, match="history must have an entry for each notion, none for 'IF'"):
        Tracker(1, notions=("SP", "IF"), history={"SP": SlidingWindow(10)})
    with pytest.raises(ValueError, match=r"each name in history must be one of \['EO'\], got 'EOO'"):
        Tracker(1, notions=("EO",), history={"EO": SlidingWindow(10), "EOO": SlidingWindow(10)})
    with pytest.raises(TypeError, match="history must be a SlidingWindow, FullHistory or DiscountedHistory, got 500"):
        Tracker(1, history=500)


def numbers_held(thing, seen):
    """How many numbers are reachable from an object."""
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.size + (0 if thing.base is None else numbers_held(thing.base, seen))
    if isinstance(thing, dict):
        return sum(numbers_held(each, seen) for each in thing.values())
    if isinstance(thing, (list, tuple, set)):
        return sum(numbers_held(each, seen) for each in thing) + len(thing)
    return numbers_held(vars(thing), seen) if hasattr(thing, "__dict__") else 0


@pytest.mark.parametrize(
    "history", [SlidingWindow(50), FullHistory(reservoir=30, late=200), DiscountedHistory(0.9, 1e-3, 5, 60)]
)
@pytest.mark.parametrize("notions", [("SP", "EO"), ALL])
def test_nothing_grows(history, notions):
    n = 20
    tracker = Tracker(n, notions=notions, history=history)
    rng = np.random.default_rng(0)
    held = []
    for t in range(1500 if "IF" in notions else 10_000):
        if t in (400, 1000):
            held.append(numbers_held(tracker, set()))
        tracker.add(
            rng.integers(0, 3, n),
            rng.integers(0, 2, n),
            features=rng.integers(0, 3, (n, 3)) / 2,
            probabilities=np.full((n, 2), 0.5),
            feedback=rng.integers(0, 2, n),
        )
        tracker.values()
    held.append(numbers_held(tracker, set()))
    assert max(held) <= 1.01 * held[0]


def test_memory_at_window_1000_is_far_below_20_megabytes():
    tracker = Tracker(1, notions=ALL, history=SlidingWindow(1000))
    feed([tracker], 1100, size=7)
    assert numbers_held(tracker, set()) * 8 < 5e6


@pytest.mark.parametrize("threshold, longest", [(-1, 300), (3e-4, 299)])
def test_long_discounted_histories_equal_the_whole_history_functions(threshold, longest):
    """The store grows, turns around and is shortened while each copy goes its own way."""
    rng = np.random.default_rng(0)
    history = DiscountedHistory(0.99, threshold, delay=3, min_window=20, max_size=300)
    tracker = Tracker(2, notions=ALL, history=history, k=2)
    seen: list[list[dict]] = [[], []]
    lengths = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in range(420):
            which = np.array([0, 1] if t % 5 else [t % 2])
            if t == 61:
                tracker.reset([1])
                seen[1].clear()
            people = {
                "group": rng.integers(0, 3, len(which)),
                "action": rng.integers(0, 2, len(which)),
                "features": rng.integers(0, 4, (len(which), 3)) / 3,
                "probabilities": rng.dirichlet([1, 1], len(which)),
                "feedback": rng.integers(0, 2, len(which)).astype(float),
            }
            tracker.add(**people, which=which)
            for index, copy in enumerate(which):
                seen[copy].append({name: column[index] for name, column in people.items()})
            values = tracker.values()
            if not t or (t % 20 and t < 415):
                continue
            for copy in (0, 1):
                size = int(tracker._tracks[0].individuals.size[copy])
                lengths.add(size)
                kept = {name: np.array([person[name] for person in seen[copy][-size:]]) for name in people}
                weights = 0.99 ** np.arange(size)[::-1].astype(float)
                for notion in ("SP", "EO", "OAE", "PP", "PE"):
                    expected = group_notion(
                        notion, actions=kept["action"], feedback=kept["feedback"], groups=kept["group"], weights=weights
                    )
                    assert values[notion][copy] == pytest.approx(expected, abs=1e-9, nan_ok=True)
                pairs = kept["features"], kept["probabilities"]
                assert values["IF"][copy] == pytest.approx(individual_fairness(*pairs, weights=weights), abs=1e-9)
                assert values["LIP"][copy] == pytest.approx(lipschitz_violation(*pairs, weights=weights), abs=1e-9)
                expected = consistency(kept["features"], kept["action"], k=2, weights=weights)
                assert values["CSC"][copy] == pytest.approx(expected, abs=1e-9)
    assert len(lengths) > 5 and max(lengths) <= longest


def test_groups_that_a_discounted_history_has_lost_are_undefined_also_after_a_reset():
    """Rests of rounding would be rates of nobody."""
    history = DiscountedHistory(0.9, threshold=-1, delay=1, min_window=3, max_size=3)
    used, fresh = (FairnessTracker(notions=("SP", "EO"), history=history) for _ in range(2))
    for group, action in (("m", 1), ("f", 1), ("m", 0)):
        used.add(Interaction(group=group, action=action, feedback=1))
    used.reset()
    for tracker in (used, fresh):
        for group, action in (("m", 1), ("m", 1), ("f", 0), ("f", 0), ("f", 0)):
            tracker.add(Interaction(group=group, action=action, feedback=1))
        assert all(np.isnan(value) for value in tracker.values().values())


@pytest.mark.parametrize("history", [SlidingWindow(7), FullHistory(reservoir=7), DiscountedHistory(0.8, threshold=-1)])
@pytest.mark.parametrize("duplicate", [deepcopy, lambda tracker: pickle.loads(pickle.dumps(tracker))])
def test_a_copy_goes_on_like_its_original(history, duplicate):
    tracker = Tracker(2, notions=ALL, history=history, k=3)
    feed([tracker], 20, n=2)
    twin = duplicate(tracker)
    feed([tracker, twin], 20, n=2)
    assert tracker.update_feedback(1, 39, 0.0) and twin.update_feedback(1, 39, 0.0)
    assert_equal(twin.values(), tracker.values())
