"""Do penalties follow their formulas, whatever cuts the steps into rollouts?"""

import pickle
import tracemalloc
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fair_ppo.retrospective import Retrospective
from sb3_fair.fairness.disparity.populations import Disparity, Population

MODES = ["telescoped", "terminal", "linear", "own_reweight", "constant"]
FOUR = Population(group=[0, 1, 0, 1], lf=[1, 1, 2, 2])
REWARDS = np.array([[3.0, 1, 1, 0], [5, 0, 3, 1], [0, 3, 1, 5]])
ENDS = np.array([[False] * 4, [False] * 4, [True] * 4])


def followed(retrospective, rewards, populations, dones, cuts=(), streaming=False):
    """The steps handed over in several rollouts."""
    borders = [0, *sorted(set(cuts)), len(rewards)]
    if isinstance(populations, Population):
        populations = [populations] * len(rewards)
    parts = [slice(a, b) for a, b in pairwise(borders) if a < b]
    return np.concatenate([retrospective(rewards[part], populations[part], dones[part], streaming) for part in parts])


# -------------------------------------------------------------------- worked example


@pytest.mark.parametrize("cut", [(), (1,), (2,), (1, 2)])
@pytest.mark.parametrize(
    ("retro", "disparity", "expected"),
    [
        ("telescoped", Disparity("dp"), [-3, -7, 6]),
        ("telescoped", Disparity("csp"), [-3, -7, 5]),
        ("terminal", Disparity("dp"), [0, 0, -4]),
        ("terminal", Disparity("csp"), [0, 0, -5]),
        ("linear", Disparity("dp"), [-3, -7, 7]),
        ("constant", Disparity("dp"), [0, 0, 0]),
    ],
)
def test_four_agents(retro, disparity, expected, cut):
    retrospective = Retrospective(retro, disparity)
    penalties = followed(retrospective, REWARDS, FOUR, ENDS, cut)
    assert_allclose(penalties, np.repeat(np.array(expected)[:, None], 4, axis=1), atol=1e-12)
    assert retrospective.scale == 5.75
    assert retrospective.past.disparity == (5 if disparity.fairness == "csp" else 4)
    assert retrospective.past.returns == {0: 6.5, 1: 5.0}
    retrospective(REWARDS[:1], [FOUR], ENDS[:1])
    retrospective.restart()
    again = followed(retrospective, REWARDS, FOUR, ENDS, cut)
    assert_allclose(again, penalties, atol=1e-12)


@pytest.mark.parametrize("retro", MODES)
def test_another_number_of_slots_begins_anew(retro):
    two, used, new = Population([0, 1]), Retrospective(retro), Retrospective(retro)
    used(REWARDS[:2], [FOUR] * 2, ENDS[:2])
    found = [each(REWARDS[:, :2], [two] * 3, ENDS[:, :2]) for each in (used, new)]
    assert_array_equal(*found)


def test_four_agents_are_reweighted():
    retrospective = Retrospective("own_reweight")
    assert retrospective.reweights and not Retrospective("linear").reweights
    factors = retrospective(REWARDS, [FOUR] * 3, ENDS)
    assert_array_equal(factors[-1], [1, -1, 0, 0])
    assert_allclose(retrospective.past.normalised, 4 / (2 * 5.75))
    # By average: group 0 has a mean g of 0.5, group 1 of -0.5.
    averaged = Retrospective("own_reweight", g="episode")
    assert_array_equal(averaged(REWARDS, [FOUR] * 3, ENDS), factors)
    assert_array_equal(averaged(REWARDS, [FOUR] * 3, ENDS), np.tile([0.5, -0.5], (3, 2)))


def test_equal_returns_in_single_precision_are_no_lead():
    rewards = np.float32([[0.1, 0.3], [0.1, 0], [0.1, 0]]).astype(np.float64)
    factors = Retrospective("own_reweight")(rewards, [Population([0, 1])] * 3, ENDS[:, :2])
    assert_array_equal(factors, [[-1, 1], [-1, 1], [0, 0]])
    steps = [Population([group]) for group in (0, 0, 0, 1)]
    means = Retrospective("own_reweight")(np.full((4, 1), 0.1), steps, np.zeros((4, 1), dtype=bool), True)
    assert_array_equal(means, np.zeros((4, 1)))


def test_twins_share_their_penalty():
    twins = Population([0] * 4 + [1] * 4, world=[0] * 4 + [1] * 4, pair=[4, 5, 6, 7, 0, 1, 2, 3])
    rewards, dones = np.array([[8.0, 4, 5, 6, 5, 4, 2, 7]]), np.ones((1, 8), dtype=bool)
    for retro, expected in (("telescoped", -7), ("terminal", -7), ("linear", -5)):
        retrospective = Retrospective(retro, Disparity("cf"))
        assert_array_equal(retrospective(rewards, [twins], dones), np.full((1, 8), expected))
        assert retrospective.past.disparity == 7
        assert_allclose(retrospective.past.normalised, np.mean([7 / (4 * retrospective.scale)]))
    retrospective(rewards, [twins], dones & (np.arange(8) < 4))
    assert retrospective.apart, "the episodes of one world go on"
    assert_array_equal(
        Retrospective("own_reweight", Disparity("cf"))(rewards, [twins], dones), [[1, 0, 1, -1, -1, 0, -1, 1]]
    )


def test_a_stream_of_two_groups():
    steps = [Population([group]) for group in (0, 0, 1, 1)]
    rewards, dones = np.array([[1.0], [1], [0], [1]]), np.array([[False]] * 3 + [[True]])
    telescoped = Retrospective("telescoped")
    penalties = telescoped(rewards, steps, dones, streaming=True)
    assert_allclose(penalties[:, 0], [0, 0, -1.5, 0.5])
    assert telescoped.past.disparity == 1 and telescoped.past.returns == {0: 2.0, 1: 1.0}
    assert telescoped.scale == 1.5
    assert_allclose(telescoped.past.normalised, 1 / 1.5)
    assert_allclose(Retrospective("terminal")(rewards, steps, dones, True)[:, 0], [0, 0, 0, -1])
    assert_allclose(Retrospective("own_reweight")(rewards, steps, dones, True)[:, 0], [0, 0, -1, -1])
    # sgn is +1; S: + r (k_U + k_S) / (2 k_S), that is 0 * 1.5 and 1 * 1
    linear = Retrospective("linear")
    assert_allclose(linear(rewards, steps, dones, True)[:, 0], [0, 0, 0, 1])
    # From now on sgn is known in the first step of an episode, but the other group must have had a step.
    assert_allclose(linear(rewards, steps[::-1], dones, True)[:, 0], [0, 0, -0.0, -1])


# -------------------------------------------------------------------- against a step-by-step account


def d_of(figures, groups, fairness="dp", factors=None):
    """D of one world."""
    total = 0.0
    for factor in [None] if fairness == "dp" else sorted(set(factors)):
        among = [x for x in range(len(figures)) if factor in (None, factors[x])]
        u, s = ([figures[x] for x in among if groups[x] == label] for label in (0, 1))
        if u and s:
            total += sum(abs(x - y) for x in u for y in s) / max(len(u), len(s))
    return total


@st.composite
def games(draw):
    """Worlds with agents whose labels are drawn anew for each episode; rewards, labels and ends of some steps."""
    agents, steps = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)), draw(st.integers(1, 9))
    worlds, slots = len(agents), sum(agents)
    row = lambda values: st.lists(values, min_size=slots, max_size=slots)  # noqa: E731
    world = np.repeat(np.arange(worlds), agents)
    labels = Population(draw(row(st.integers(0, 1))), draw(row(st.integers(1, 2))), world)
    rewards, populations, dones = [], [], []
    for _ in range(steps):
        rewards.append(draw(row(st.integers(-3, 3))))
        ends = np.array(draw(st.lists(st.booleans(), min_size=worlds, max_size=worlds)))[world]
        populations.append(labels)
        dones.append(ends)
        if ends.any():
            redrawn = np.array(draw(row(st.integers(0, 1))))
            labels = Population(np.where(ends, redrawn, labels.group), labels.lf, world)
    return np.array(rewards, dtype=float), populations, np.array(dones)


@settings(max_examples=50, deadline=None)
@given(games(), st.sampled_from(["dp", "csp"]), st.lists(st.integers(1, 8), max_size=3))
def test_penalties_are_those_of_a_world_by_itself(game, fairness, cuts):
    rewards, populations, dones = game
    cuts = [cut for cut in cuts if cut < len(rewards)]
    disparity = Disparity(fairness)
    telescoped = followed(Retrospective("telescoped", disparity), rewards, populations, dones, cuts)
    terminal = followed(Retrospective("terminal", disparity), rewards, populations, dones, cuts)
    for world in populations[0].worlds:
        members = np.flatnonzero(populations[0].world == world)
        cumulated, before, paid = np.zeros(len(members)), 0.0, 0.0
        for step, population in enumerate(populations):
            cumulated += rewards[step, members]
            now = d_of(cumulated, population.group[members], fairness, population.lf[members])
            assert_allclose(telescoped[step, members], before - now, atol=1e-9)
            paid += telescoped[step, members[0]]
            before = now
            if dones[step, members[0]]:
                assert_allclose(terminal[step, members], -now, atol=1e-9)
                assert_allclose(paid, -now, atol=1e-6)
                cumulated[:], before, paid = 0.0, 0.0, 0.0
            else:
                assert_array_equal(terminal[step, members], 0)


@pytest.mark.parametrize("cut", [(), (1,)])
@pytest.mark.parametrize(("factors", "left"), [([[0, 1, 0, 1], [0, 0, 1, 1]], 2), ([[0, 0, 1, 1], [0, 1, 0, 1]], 0)])
def test_telescoped_penalties_add_up_though_labels_change_in_an_episode(factors, left, cut):
    populations = [Population([0, 1, 0, 1], lf=lf) for lf in factors]
    rewards, dones = np.array([[3.0, 1, 0, 0], [1, 1, 1, 1]]), np.array([[False] * 4, [True] * 4])
    penalties = followed(Retrospective(disparity=Disparity("csp")), rewards, populations, dones, cut)
    assert_array_equal(penalties.sum(axis=0), np.full(4, -left))


@settings(max_examples=50, deadline=None)
@given(
    games(), st.sampled_from(MODES), st.sampled_from(["running", "episode"]), st.lists(st.integers(1, 8), max_size=3)
)
def test_rollout_borders_and_saving_change_nothing(game, retro, g, cuts):
    rewards, populations, dones = game
    cuts = [cut for cut in cuts if cut < len(rewards)]
    once, cut, saved = (Retrospective(retro, Disparity("csp"), g) for _ in range(3))
    whole = followed(once, rewards, populations, dones)
    assert_allclose(followed(cut, rewards, populations, dones, cuts), whole, atol=1e-9)
    half = len(rewards) // 2
    first = (
        followed(saved, rewards[:half], populations[:half], dones[:half]) if half else np.empty((0, rewards.shape[1]))
    )
    saved = pickle.loads(pickle.dumps(saved))
    second = followed(saved, rewards[half:], populations[half:], dones[half:])
    assert_allclose(np.concatenate([first, second]), whole, atol=1e-9)
    assert_allclose(cut.scale, once.scale)


@settings(max_examples=50, deadline=None)
@given(games())
def test_linear_follows_the_sign_of_an_average_over_episodes(game):
    rewards, populations, dones = game
    penalties = Retrospective("linear")(rewards, populations, dones)
    world_of = populations[0].world
    cumulated, average = np.zeros(rewards.shape[1]), None
    for step, population in enumerate(populations):
        cumulated += rewards[step]
        gaps = []
        for world in population.worlds:
            u, s = (np.flatnonzero((world_of == world) & (population.group == k)) for k in (0, 1))
            expected, gap = 0.0, np.nan
            if len(u) and len(s):
                gap = cumulated[u].mean() - cumulated[s].mean()
                sgn = np.sign(np.round(gap if average is None else average, 12))
                expected = -sgn * max(len(u), len(s)) * (rewards[step, u].mean() - rewards[step, s].mean())
            assert_allclose(penalties[step, world_of == world], expected, atol=1e-9)
            if dones[step, world_of == world].all() and not np.isnan(gap):
                gaps.append(gap)
        for gap in gaps:
            average = gap if average is None else 0.95 * average + 0.05 * gap
        cumulated[dones[step]] = 0


def test_averages_are_over_the_worlds_whose_episodes_ended():
    worlds, dones = Population([0, 1, 1, 0, 1], world=[0, 0, 0, 1, 1]), np.array([[True] * 3 + [False] * 2])
    linear = Retrospective("linear")
    linear(np.array([[1.0, 2, 2, 100, 0]]), [worlds], dones)
    penalties = linear(np.array([[1.0, 0, 0, 1, 0]]), [worlds], np.zeros_like(dones))
    assert_array_equal(penalties, [[2, 2, 2, 1, 1]])


@st.composite
def streams(draw):
    slots, steps = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    row = lambda values: st.lists(values, min_size=slots, max_size=slots)  # noqa: E731
    populations = [Population(draw(row(st.integers(-1, 2))), draw(row(st.integers(1, 2)))) for _ in range(steps)]
    rewards = np.array([draw(row(st.integers(-3, 3))) for _ in range(steps)], dtype=float)
    return rewards, populations, np.array([draw(row(st.booleans())) for _ in range(steps)])


@settings(max_examples=50, deadline=None)
@given(streams(), st.sampled_from(["dp", "csp"]), st.lists(st.integers(1, 8), max_size=3))
def test_streams_follow_their_formula(stream, fairness, cuts):
    rewards, populations, dones = stream
    cuts = [cut for cut in cuts if cut < len(rewards)]
    penalties = followed(Retrospective("telescoped", Disparity(fairness)), rewards, populations, dones, cuts, True)
    for slot in range(rewards.shape[1]):
        got, before = {}, 0.0
        for step, population in enumerate(populations):
            factor = population.lf[slot] if fairness == "csp" else 0
            got.setdefault((factor, population.group[slot]), []).append(rewards[step, slot])
            now = 0.0
            for each in {f for f, _ in got}:
                groups = [got[each, group] for group in range(3) if (each, group) in got]
                for a, b in combinations(groups, 2):
                    now += (len(a) + len(b)) / 2 * abs(np.mean(a) - np.mean(b)) / (len(groups) - 1)
            assert_allclose(penalties[step, slot], before - now, atol=1e-9)
            before = now
            if dones[step, slot]:
                got, before = {}, 0.0


@pytest.mark.parametrize("retro", ["telescoped", "linear", "own_reweight"])
def test_pairs_of_many_groups_in_all_steps_are_not_held_at_once(retro):
    rng = np.random.default_rng(0)
    populations = [Population(rng.integers(0, 100, 2)) for _ in range(300)]
    rewards, dones = rng.random((300, 2)), np.zeros((300, 2), dtype=bool)
    tracemalloc.start()
    Retrospective(retro)(rewards, populations, dones, streaming=True)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < rewards.size * 100**2 * 8  # bytes of one array of them


@settings(max_examples=50, deadline=None)
@given(
    streams(), st.sampled_from(MODES), st.sampled_from(["running", "episode"]), st.lists(st.integers(1, 8), max_size=3)
)
def test_borders_change_nothing_for_streams(stream, retro, g, cuts):
    rewards, populations, dones = stream
    cuts = [cut for cut in cuts if cut < len(rewards)]
    once, cut = (Retrospective(retro, Disparity("csp"), g) for _ in range(2))
    whole = followed(once, rewards, populations, dones, streaming=True)
    assert_allclose(followed(cut, rewards, populations, dones, cuts, True), whole, atol=1e-9)


# -------------------------------------------------------------------- a tolerance


def test_four_agents_who_tolerate_a_share():
    """C is (3, 1, 1, 0), (8, 1, 4, 1), (8, 4, 5, 6): D is 3, 10, 4, the mean of C 1.25, 3.5, 5.75, and m is 2."""
    for w, expected in ((0.0, [3, 10, 4]), (0.5, [1.75, 6.5, 0]), (1.0, [0.5, 3, 0]), (2.0, [0, 0, 0])):
        tolerant = {"tolerance": w}
        telescoped = Retrospective("telescoped", **tolerant)
        penalties = telescoped(REWARDS, [FOUR] * 3, ENDS)
        assert_allclose(penalties[:, 0], -np.diff([0, *expected]), atol=1e-12)
        assert telescoped.past.disparity == 4 and telescoped.past.normalised == pytest.approx(4 / 11.5)
        assert_allclose(Retrospective("terminal", **tolerant)(REWARDS, [FOUR] * 3, ENDS)[:, 0], [0, 0, -expected[-1]])
        due = np.array(expected)[:, None] > 0
        for retro in ("linear", "own_reweight"):
            whole = Retrospective(retro)(REWARDS, [FOUR] * 3, ENDS)
            assert_array_equal(Retrospective(retro, **tolerant)(REWARDS, [FOUR] * 3, ENDS), np.where(due, whole, 0))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 9), min_size=6, max_size=6), st.floats(0, 2))
def test_of_means_of_two_equal_groups_twice_their_difference_over_their_sum_is_tolerated(returns, w):
    rewards, groups = np.array([returns]), Population([0, 0, 0, 1, 1, 1])
    u, s = rewards[0, :3].mean(), rewards[0, 3:].mean()
    penalty = Retrospective("terminal", Disparity(aggregate="group_mean"), tolerance=w)(
        rewards, [groups], np.ones((1, 6), dtype=bool)
    )
    share = abs(u - s) / (u + s) if u + s else 0.0
    assert_allclose(penalty[0], -3 * (u + s) / 2 * max(0.0, 2 * share - w), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(games(), st.sampled_from(["dp", "csp"]), st.floats(0.01, 1.5), st.lists(st.integers(1, 8), max_size=3))
def test_only_what_exceeds_the_tolerance_is_paid_for(game, fairness, w, cuts):
    rewards, populations, dones = game
    cuts = [cut for cut in cuts if cut < len(rewards)]
    disparity = Disparity(fairness)
    found = {
        retro: followed(Retrospective(retro, disparity, tolerance=w), rewards, populations, dones, cuts)
        for retro in ("telescoped", "terminal", "linear", "own_reweight")
    }
    whole = {retro: followed(Retrospective(retro, disparity), rewards, populations, dones) for retro in MODES}
    for world in populations[0].worlds:
        members = np.flatnonzero(populations[0].world == world)
        cumulated, before, paid = np.zeros(len(members)), 0.0, 0.0
        for step, population in enumerate(populations):
            cumulated += rewards[step, members]
            groups, factors = population.group[members], population.lf[members]
            size, compared = 0, np.zeros(len(members), dtype=bool)
            for factor in set(factors) if fairness == "csp" else (None,):
                same = (factors == factor) | (factor is None)
                sizes = [(same & (groups == label)).sum() for label in (0, 1)]
                if min(sizes):
                    size, compared = size + max(sizes), compared | same
            level = np.abs(cumulated[compared]).mean() if size else 0.0
            excess = d_of(cumulated, groups, fairness, factors) - w * size * level
            now = max(0.0, excess)
            assert_allclose(found["telescoped"][step, members], before - now, atol=1e-9)
            paid += found["telescoped"][step, members[0]]
            for retro in ("linear", "own_reweight"):
                if abs(excess) > 1e-9:
                    expected = whole[retro][step, members] * (excess > 0)
                    assert_allclose(found[retro][step, members], expected, atol=1e-9)
            before = now
            ended = dones[step, members[0]]
            assert_allclose(found["terminal"][step, members], -now * ended, atol=1e-9)
            if ended:
                assert_allclose(paid, -now, atol=1e-6)
                cumulated[:], before, paid = 0.0, 0.0, 0.0


def test_twins_tolerate_a_share_of_what_both_worlds_have():
    twins = Population([0] * 4 + [1] * 4, world=[0] * 4 + [1] * 4, pair=[4, 5, 6, 7, 0, 1, 2, 3])
    rewards, dones = np.array([[8.0, 4, 5, 6, 5, 4, 2, 7]]), np.ones((1, 8), dtype=bool)
    for aggregate, whole in (("pairs", 7.0), ("group_mean", 5.0)):
        for retro in ("telescoped", "terminal"):
            penalties = Retrospective(retro, Disparity("cf", aggregate=aggregate), tolerance=0.1)(
                rewards, [twins], dones
            )
            assert_allclose(penalties, np.full((1, 8), -(whole - 0.1 * 4 * 41 / 8)))


def test_who_is_not_compared_does_not_count_as_having():
    population = Population([0, 1, -1])
    rewards, dones = np.array([[3.0, 1, 100]]), np.ones((1, 3), dtype=bool)
    assert_allclose(Retrospective("terminal", tolerance=0.5)(rewards, [population], dones)[0], -(2 - 0.5 * 2))


@settings(max_examples=50, deadline=None)
@given(streams(), st.sampled_from(["dp", "csp"]), st.floats(0.01, 1.5), st.lists(st.integers(1, 8), max_size=3))
def test_streams_tolerate_a_share_of_the_groups_mean_sum(stream, fairness, w, cuts):
    rewards, populations, dones = stream
    cuts = [cut for cut in cuts if cut < len(rewards)]
    tolerant, whole = (
        followed(Retrospective("telescoped", Disparity(fairness), tolerance=w), rewards, populations, dones, c, True)
        for w, c in ((w, cuts), (0.0, ()))
    )
    for slot in range(rewards.shape[1]):
        sums, d, before = {}, 0.0, 0.0
        for step, population in enumerate(populations):
            factor = population.lf[slot] if fairness == "csp" else 0
            if population.group[slot] >= 0:
                key = (factor, population.group[slot])
                sums[key] = sums.get(key, 0.0) + rewards[step, slot]
            d -= whole[step, slot]
            factors = [each for each, _ in sums]
            compared = [abs(sums[key]) for key in sums if factors.count(key[0]) > 1]
            now = max(0.0, d - w * sum(compared) / 2)  # m is half the number of groups, level their mean
            assert_allclose(tolerant[step, slot], before - now, atol=1e-9)
            before = now
            if dones[step, slot]:
                sums, d, before = {}, 0.0, 0.0


# -------------------------------------------------------------------- one side, three groups, who is compared


def test_only_a_lead_of_the_lower_label_counts_if_one_sided():
    two, dones = Population([0, 1]), np.zeros((1, 2), dtype=bool)
    for lead in ([1.0, 0.0], [0.0, 1.0]):
        for retro in ("telescoped", "linear"):
            penalty = Retrospective(retro, Disparity(sign="one_sided"))(np.array([lead]), [two], dones)
            assert_array_equal(penalty[0], np.full(2, -lead[0]))
        factors = Retrospective("own_reweight", Disparity(sign="one_sided"))(np.array([lead]), [two], dones)
        assert_array_equal(factors[0], [lead[0], -lead[0]])


def test_three_groups_are_compared_two_by_two():
    three, dones = Population([0, 1, 2]), np.zeros((1, 3), dtype=bool)
    for retro in ("telescoped", "linear"):
        penalty = Retrospective(retro)(np.array([[3.0, 1, 0]]), [three], dones)
        assert_allclose(penalty[0], np.full(3, -(2 + 3 + 1) / 2))


def test_before_an_episode_ended_the_figures_are_those_so_far():
    retrospective = Retrospective("constant")
    retrospective(REWARDS[:1], [FOUR], ENDS[:1])
    assert retrospective.past.disparity == 3 and retrospective.scale == 1.25
    assert_allclose(retrospective.past.normalised, 3 / (2 * 1.25))
    retrospective.restart()
    retrospective(REWARDS, [FOUR] * 3, ENDS)
    assert retrospective.past.disparity == 4
    retrospective(REWARDS[:1], [FOUR], ENDS[:1])
    assert retrospective.past.disparity == 4, "no episode ended: the latest figure stays"
    retrospective.restart()
    retrospective(2 * REWARDS, [FOUR] * 3, ENDS)
    assert_allclose(retrospective.scale, 0.95 * 5.75 + 0.05 * 11.5)


@pytest.mark.parametrize(
    ("disparity", "population"),
    [(Disparity("dp"), Population([0, 1, -1])), (Disparity("csp"), Population([0, 1, 0], lf=[1, 1, 2]))],
)
def test_scale_and_size_are_of_those_who_are_compared(disparity, population):
    retrospective = Retrospective(disparity=disparity)
    retrospective(np.array([[2.0, 1.0, 1000.0]]), [population], np.ones((1, 3), dtype=bool))
    assert retrospective.scale == 1.5
    assert_allclose(retrospective.past.normalised, 1 / 1.5)


@pytest.mark.parametrize("carries", [False, True])
def test_a_stream_of_one_group_does_not_count(carries):
    rewards, groups = np.array([[1.0, 9], [1, 9], [0, 9], [1, 9]]), ([0, 0, 1, 1], [0, 0, 0, 0])
    dones = np.array([[False] * 2] * 3 + [[True] * 2])
    alone, beside, nobody = (Retrospective() for _ in range(3))
    for retrospective, slots in ((alone, [0]), (beside, [0, 1]), (nobody, [1])):
        steps = [Population([groups[slot][step] for slot in slots]) for step in range(4)]
        retrospective(rewards[:, slots], steps, dones[:, slots], True, carries)
    assert (beside.past, beside.scale) == (alone.past, alone.scale)
    assert nobody.past.normalised == nobody.scale == 0


@pytest.mark.parametrize(
    ("disparity", "nobody"),
    [
        (Disparity("dp"), {"group": [-1] * 4}),
        (Disparity("dp"), {"group": [0] * 4}),
        (Disparity("csp"), {"lf": [-1] * 4}),
        (Disparity("csp"), {"lf": [1, 2, 3, 4]}),
    ],
)
@pytest.mark.parametrize("ended", [True, False])
def test_a_world_in_which_nobody_is_compared_counts_only_when_somebody_is(disparity, nobody, ended):
    alone, beside, late = (Retrospective(disparity=disparity) for _ in range(3))
    labels = {"group": [0, 1, 0, 1], "lf": [1, 1, 2, 2]}
    four, outside = Population(**labels), Population(**(labels | nobody))
    alone(REWARDS, [four] * 3, ENDS)

    worlds = {name: [*labels[name], *(labels | nobody)[name]] for name in labels}
    two = Population(**worlds, world=np.repeat([0, 1], 4))
    beside(np.tile(REWARDS, 2), [two] * 3, np.tile(ENDS, 2))
    assert (beside.past, beside.scale) == (alone.past, alone.scale)

    late(REWARDS, [outside] * 3, ENDS & ended)
    assert late.past.normalised == late.scale == 0
    late.restart()
    late(REWARDS, [four] * 3, ENDS)
    assert (late.past, late.scale) == (alone.past, alone.scale)


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(("argument", "allowed"), [("retro", "telescoped"), ("g", "running")])
def test_unknown_names(argument, allowed):
    with pytest.raises(ValueError, match=f"{argument} must be one of .*{allowed}.* got 'potential'"):
        Retrospective(**{argument: "potential"})


def test_a_tolerance_is_not_negative():
    with pytest.raises(ValueError, match=r"tolerance must be a non-negative number, got -0\.1"):
        Retrospective(tolerance=-0.1)


def test_shapes_and_labels_that_do_not_fit():
    with pytest.raises(ValueError, match=r"rewards must have one entry per step and slot \(2, 4\), got"):
        Retrospective()(REWARDS, [FOUR] * 2, ENDS)
    with pytest.raises(
        ValueError, match=r"rewards must have one entry per step and slot \(3, 4\), got .*dones \(2, 4\)"
    ):
        Retrospective()(REWARDS, [FOUR] * 3, ENDS[:2])
    with pytest.raises(ValueError, match="pair must be given for fairness='cf'"):
        Retrospective(disparity=Disparity("cf"))(REWARDS, [FOUR] * 3, ENDS)
    with pytest.raises(ValueError, match="fairness must be 'dp' or 'csp' for streams"):
        Retrospective(disparity=Disparity("cf"))(REWARDS, [FOUR] * 3, ENDS, streaming=True)
    with pytest.raises(ValueError, match="lf must be given for fairness='csp'"):
        Retrospective(disparity=Disparity("csp"))(REWARDS, [Population([0, 1, 0, 1])] * 3, ENDS)
