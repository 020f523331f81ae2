"""Are the right episodes kept, and do batches say what was still to come?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_fair.common.rollout import Step
from sb3_fair.pcn.buffer import Episode, EpisodeBuffer, episodes_of, priorities, to_go

COORDINATES = st.integers(-3, 3).map(float)
POINTS = st.integers(1, 3).flatmap(
    lambda k: st.lists(st.tuples(*[COORDINATES] * k), min_size=1, max_size=15).map(np.array)
)


def dominates(p, q):
    return all(a >= b for a, b in zip(p, q, strict=True)) and any(a > b for a, b in zip(p, q, strict=True))


def first_of_front(points, among):
    """Those not dominated, and not the copy of an earlier one, judged pair by pair."""
    return [
        i
        for i in among
        if not any(dominates(points[j], points[i]) for j in among)
        and not any(j < i and tuple(points[j]) == tuple(points[i]) for j in among)
    ]


def crowding(points):
    """Distance between the two neighbours per objective, counted point by point."""
    sums = np.zeros(len(points))
    for column in points.T:
        scaled = (column - column.min()) / (column.max() - column.min() + 1e-8)
        order = sorted(range(len(points)), key=lambda i: scaled[i])
        for place, i in enumerate(order):
            inside = 0 < place < len(order) - 1
            sums[i] += scaled[order[place + 1]] - scaled[order[place - 1]] if inside else 1
    return sums / points.shape[1]


def brute_force(returns, threshold, penalty):
    width = returns.max(axis=0) - returns.min(axis=0)
    y = np.where(width > 0, (returns - returns.min(axis=0)) / np.where(width > 0, width, 1), 0.0)
    left = list(range(len(y)))
    front = first_of_front(y, left)
    value = [-min(np.linalg.norm(y[i] - y[j]) for j in front) - (0 if i in front else 1e-5) for i in left]
    while left:
        rank = first_of_front(y, left)
        for i, distance in zip(rank, crowding(y[rank]), strict=True):
            if distance <= threshold:
                value[i] = value[i] * 2 if penalty == "double" else value[i] - 1
        left = [i for i in left if i not in rank]
    return np.array(value)


@given(POINTS, st.sampled_from([0.0, 0.2, 0.6, 1.0]), st.sampled_from(["double", "one"]))
def test_priorities_are_those_counted_point_by_point(returns, threshold, penalty):
    np.testing.assert_allclose(priorities(returns, threshold, penalty), brute_force(returns, threshold, penalty))


def test_threshold_and_penalty_have_an_effect():
    line = np.stack([np.arange(11.0), np.arange(11.0)[::-1]], axis=1)
    below = line - 1
    points = np.concatenate([line, below])
    usual, wide = priorities(points, 0.15), priorities(points, 0.3)
    assert (wide < usual).any()
    assert priorities(points, 0.3, "one").min() < -1


@given(st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=20), st.floats(0.1, 1.0))
def test_return_to_go_is_the_discounted_sum_of_what_follows(rewards, discount):
    rewards = np.array(rewards)
    expected = [
        [sum(g**i * r for i, r in enumerate(column[t:])) for column, g in zip(rewards.T, (1.0, discount), strict=True)]
        for t in range(len(rewards))
    ]
    np.testing.assert_allclose(to_go(rewards, [1.0, discount]), expected, atol=1e-9)


def episode(length, value, k=2):
    shown = {"observation": np.full((length, 3), value, np.float32), "clock": np.arange(length)}
    return Episode(shown, np.arange(length) % 4, np.full((length, k), float(value)))


def buffer(capacity=4, columns=(0, 1), **more):
    k = len(columns)
    return EpisodeBuffer(capacity, np.array(columns), np.ones(k), np.zeros(k, bool), **more)


def test_batches_pair_what_was_seen_with_what_was_still_to_come():
    kept = buffer()
    for value, length in ((1, 2), (10, 5), (100, 1), (1000, 7)):
        kept.add(episode(length, value))
    batch = kept.sample(2_000, np.random.default_rng(0))
    value = batch.observations["observation"][:, 0]
    length = np.select([value == 1, value == 10, value == 100], [2, 5, 1], 7)
    time = batch.observations["clock"]
    assert np.array_equal(batch.horizons, length - time)
    assert np.array_equal(batch.returns, np.stack([value * (length - time)] * 2, axis=1))
    assert np.array_equal(batch.actions, time % 4)


def test_episodes_are_equally_likely_and_so_are_their_steps():
    kept = buffer()
    kept.add(episode(2, 1))
    kept.add(episode(10, 2))
    batch = kept.sample(30_000, np.random.default_rng(0))
    short = batch.observations["observation"][:, 0] == 1
    assert short.mean() == pytest.approx(0.5, abs=0.01)
    assert np.bincount(batch.observations["clock"][~short].astype(int)) / (~short).sum() == pytest.approx(0.1, abs=0.01)


def test_all_steps_are_those_that_were_stored():
    kept = buffer()
    for value, length in ((1, 2), (10, 5)):
        kept.add(episode(length, value))
    assert kept.seen()["clock"].tolist() == [0, 1, 0, 1, 2, 3, 4]
    assert kept.labels()[:, 0].tolist() == [2, 1, 50, 40, 30, 20, 10]


def test_the_worst_episode_makes_room_and_new_ones_are_safe_until_ranked():
    kept = buffer(capacity=3)
    for value in (1, 3, 2):
        kept.add(episode(1, value))
    kept.rank()
    kept.add(episode(1, 0))
    assert sorted(kept.points[:, 0]) == [0, 2, 3]
    kept.add(episode(1, 5))
    assert sorted(kept.points[:, 0]) == [0, 3, 5]
    kept.rank()
    kept.add(episode(1, 4))
    assert sorted(kept.points[:, 0]) == [3, 4, 5]


def test_only_optimised_objectives_decide_but_all_are_kept():
    kept = buffer(columns=(1,))
    for first, second in ((5.0, 1.0), (1.0, 5.0)):
        kept.add(Episode({"observation": np.zeros((1, 1))}, np.zeros(1, int), np.array([[first, second]])))
    kept.rank()
    assert kept.best(2).tolist() == [1]
    assert kept.returns[:2].tolist() == [[5, 1], [1, 5]]


def test_candidates_for_commands_are_the_best_n():
    kept = buffer(capacity=10)
    for first, second in ((3, 0), (2, 2), (0, 3), (1, 1), (2, 2)):
        kept.add(Episode({"observation": np.zeros((1, 1))}, np.zeros(1, int), np.array([[first, second]], float)))
    kept.rank()
    assert sorted(kept.best(10)) == [0, 1, 2]
    assert len(kept.best(2)) == 2


def test_of_equal_returns_the_shortest_is_the_command_and_the_longest_makes_room():
    kept = buffer(capacity=4)
    for length in (8, 2, 4, 1):
        kept.add(episode(length, 8 / length))  # a return of 8 each
    kept.rank()
    assert kept.lengths[kept.best(4)].tolist() == [1]
    kept.add(episode(1, 5))
    assert sorted(kept.lengths) == [1, 1, 2, 4]


def test_complete_episodes_that_count_are_cut_out():
    """Copy 0 finishes episodes of 2 and 1 steps and begins another, copy 1 finishes one of 3 and then only goes on."""
    done = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], bool)
    counts = np.array([[1, 1], [1, 1], [1, 1], [1, 0]], bool)
    steps = [
        Step(
            {"observation": np.array([[t], [10 + t]]), "desired_return": np.zeros((2, 1))},
            np.array([t, t]),
            np.array([[1.0 * t], [2.0 * t]]),
            done[t],
            [],
            counts[t],
        )
        for t in range(4)
    ]
    cut = episodes_of(steps, ignore=("desired_return",))
    assert [one.observations["observation"][:, 0].tolist() for one in cut] == [[0, 1], [2], [10, 11, 12]]
    assert [one.rewards[:, 0].tolist() for one in cut] == [[0, 1], [2], [0, 2, 4]]
    assert all(list(one.observations) == ["observation"] for one in cut)
