"""Is D what the formulas say, pair by pair, and are its slopes those of D?"""

import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fairness.disparity.populations import Disparity, Population

FOUR = Population(group=[0, 1, 0, 1], lf=[1, 1, 2, 2])
RETURNS = np.array([8.0, 4.0, 5.0, 6.0])
STEPS = np.array([[3.0, 1, 1, 0], [8, 1, 4, 1], [8, 4, 5, 6]])
TWINS = Population(group=[0] * 4 + [1] * 4, world=[0] * 4 + [1] * 4, pair=[4, 5, 6, 7, 0, 1, 2, 3])
TWIN_RETURNS = np.array([8.0, 4, 5, 6, 5, 4, 2, 7])


# -------------------------------------------------------------------- the formulas, person by person


def strata_of(population, disparity):
    """Per world: lists of the members who are compared with each other, of two groups or more."""
    by_factor = disparity.fairness == "csp" and not disparity.include_cross_lf
    for world in np.unique(population.world):
        members = [x for x in range(len(population)) if population.world[x] == world and population.group[x] >= 0]
        factors = sorted({population.lf[x] for x in members if population.lf[x] >= 0}) if by_factor else [None]
        strata = [[x for x in members if f is None or population.lf[x] == f] for f in factors]
        yield [stratum for stratum in strata if len(set(population.group[stratum])) > 1]


def gap(lower, higher, disparity):
    """Of a figure in the group with the lower label over one in the other."""
    return abs(lower - higher) if disparity.sign == "absolute" else max(lower - higher, 0.0)


def between(a, b, figures, disparity):
    """Two groups of a stratum, lists of members."""
    if not a or not b:
        return 0.0
    larger = max(len(a), len(b))
    if disparity.aggregate == "group_mean":
        return larger * gap(np.mean(figures[a]), np.mean(figures[b]), disparity)
    return sum(gap(figures[x], figures[y], disparity) for x in a for y in b) / larger


def group_disparity(figures, population, disparity):
    """(W,) of dp and csp."""
    totals = []
    for strata in strata_of(population, disparity):
        total = 0.0
        for stratum in strata:
            labels = sorted(set(population.group[stratum].tolist()))
            members = {label: [x for x in stratum if population.group[x] == label] for label in labels}
            pairs = [between(members[a], members[b], figures, disparity) for a, b in combinations(labels, 2)]
            total += sum(pairs) / (len(labels) - 1)
        totals.append(total)
    return totals


def group_size(population, disparity):
    """(W,) of dp and csp with two labels."""
    return [
        sum(max(sum(population.group[x] == label for x in stratum) for label in (0, 1)) for stratum in strata)
        for strata in strata_of(population, disparity)
    ]


def group_envy(figures, population, disparity):
    """(S,) of dp and csp."""
    envy = np.zeros(len(population))
    for strata in strata_of(population, disparity):
        for stratum in strata:
            for x in stratum:
                signs, near = [], 1e-6 * np.abs(figures[stratum]).max()
                for y in stratum:
                    own, other = population.group[x], population.group[y]
                    if own != other:
                        sign = int(figures[x] > figures[y] + near) - int(figures[y] > figures[x] + near)
                        counts = disparity.sign == "absolute" or (sign > 0) == (own < other)
                        signs.append(sign if counts else 0.0)
                envy[x] = np.mean(signs) if signs else 0.0
    return envy


def twin_disparity(figures, population, disparity):
    """D of each pair of worlds, told for both."""
    differences = {world: [] for world in population.worlds.tolist()}
    for x, y in enumerate(population.pair.tolist()):
        if y >= 0 and (population.group[x], x) < (population.group[y], y):
            for world in {population.world[x], population.world[y]}:
                differences[world].append((figures[x], figures[y]))
    if disparity.aggregate == "group_mean":
        return [len(d) * gap(*np.mean(d, axis=0), disparity) if d else 0.0 for d in differences.values()]
    return [sum(gap(one, other, disparity) for one, other in d) for d in differences.values()]


# -------------------------------------------------------------------- cases

DISPARITIES = st.builds(
    Disparity,
    fairness=st.sampled_from(["dp", "csp"]),
    include_cross_lf=st.booleans(),
    sign=st.sampled_from(["absolute", "one_sided"]),
    aggregate=st.sampled_from(["pairs", "group_mean"]),
)
TWIN_DISPARITIES = st.builds(
    Disparity,
    fairness=st.just("cf"),
    sign=st.sampled_from(["absolute", "one_sided"]),
    aggregate=st.sampled_from(["pairs", "group_mean"]),
)


@st.composite
def populations(draw, groups=3):
    size = draw(st.integers(1, 14))
    labels = [st.integers(-1, groups - 1), st.integers(-1, 2), st.integers(0, 3)]
    group, lf, world = (np.array(draw(st.lists(each, min_size=size, max_size=size))) for each in labels)
    return Population(group, lf, world)


@st.composite
def paired_populations(draw):
    """Pairs of worlds whose members were shuffled; some have no twin."""
    world, pair = [], []
    for couple in range(draw(st.integers(1, 3))):
        members = draw(st.integers(1, 4))
        first = len(world)
        world += [2 * couple] * members + [2 * couple + 1] * members
        pair += [first + members + x for x in range(members)] + [first + x for x in range(members)]
    alone = draw(st.integers(0, 2))
    world, pair = np.array(world + [9] * alone), np.array(pair + [-1] * alone)
    group = np.array(draw(st.lists(st.integers(0, 1), min_size=len(world), max_size=len(world))))
    order = np.array(draw(st.permutations(range(len(world)))))
    back = np.argsort(order)
    return Population(group[order], None, world[order], np.where(pair[order] >= 0, back[pair[order]], -1))


def figures_of(data, population):
    """Some of them equal."""
    figure = st.one_of(st.integers(-3, 3), st.floats(-10, 10))
    return np.array(data.draw(st.lists(figure, min_size=len(population), max_size=len(population))), dtype=float)


# -------------------------------------------------------------------- equal to the formulas


@settings(max_examples=50, deadline=None)
@given(populations(), DISPARITIES, st.data())
def test_d_is_the_sum_over_pairs_of_members(population, disparity, data):
    figures = figures_of(data, population)
    assert_allclose(disparity(figures, population), group_disparity(figures, population, disparity), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(paired_populations(), TWIN_DISPARITIES, st.data())
def test_d_of_twins_is_the_sum_over_twins_for_both_worlds(population, disparity, data):
    figures = figures_of(data, population)
    assert_allclose(disparity(figures, population), twin_disparity(figures, population, disparity), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(populations(), DISPARITIES, st.data())
def test_envy_is_the_mean_sign_over_the_members_of_other_groups(population, disparity, data):
    figures = figures_of(data, population)
    assert_allclose(disparity.envy(figures, population), group_envy(figures, population, disparity), atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(populations(groups=2).filter(lambda p: p.groups.tolist() == [0, 1]), DISPARITIES)
def test_the_size_is_the_larger_group_summed_over_legitimate_factors(population, disparity):
    assert_allclose(disparity.size(population), group_size(population, disparity))


# -------------------------------------------------------------------- laws


@settings(max_examples=50, deadline=None)
@given(st.one_of(st.tuples(populations(), DISPARITIES), st.tuples(paired_populations(), TWIN_DISPARITIES)), st.data())
def test_d_is_the_sum_of_slopes_times_figures(case, data):
    population, disparity = case
    figures = figures_of(data, population)
    slopes = disparity.slopes(figures, population)
    worlds = disparity(figures, population)
    total = worlds.sum()
    if disparity.fairness == "cf":
        total = worlds[np.unique(population.home)].sum()
    assert_allclose((slopes * figures).sum(), total, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.one_of(st.tuples(populations(), DISPARITIES), st.tuples(paired_populations(), TWIN_DISPARITIES)), st.data())
def test_the_slopes_are_those_of_d_where_no_two_figures_are_equal(case, data):
    population, disparity = case
    figures = np.array(data.draw(st.permutations(range(len(population))))) * 1.0 + 1e-3 * np.sqrt(
        np.arange(len(population)) + 1
    )
    worlds = np.arange(len(population.worlds)) if disparity.fairness != "cf" else np.unique(population.home)
    nudge = 1e-6
    moved = disparity(figures + nudge * np.eye(len(population)), population)[:, worlds].sum(axis=-1)
    still = disparity(figures, population)[worlds].sum()
    slopes = disparity.slopes(figures, population)
    assert_allclose((moved - still) / nudge, slopes, atol=1e-6)
    if disparity.aggregate == "pairs":
        assert (np.abs(slopes) <= 1 + 1e-12).all()


@settings(max_examples=50, deadline=None)
@given(populations(), DISPARITIES, st.data())
def test_the_order_of_slots_does_not_matter_and_steps_are_looked_at_one_by_one(population, disparity, data):
    figures = np.stack([figures_of(data, population) for _ in range(3)])
    order = np.array(data.draw(st.permutations(range(len(population)))))
    shuffled = Population(population.group[order], population.lf[order], population.world[order])
    together = disparity(figures, population)
    assert_allclose(together, [disparity(step, population) for step in figures])
    assert_allclose(disparity(figures[:, order], shuffled), together, atol=1e-9)
    assert_allclose(disparity.envy(figures[:, order], shuffled), disparity.envy(figures, population)[:, order])
    assert_allclose(disparity.slopes(figures[:, order], shuffled), disparity.slopes(figures, population)[:, order])


@settings(max_examples=50, deadline=None)
@given(populations(), DISPARITIES, st.data())
def test_it_does_not_matter_who_is_in_other_worlds(population, disparity, data):
    figures = figures_of(data, population)
    together = [figure(figures, population) for figure in (disparity, disparity.level)] + [disparity.size(population)]
    for world, *expected in zip(population.worlds, *together, strict=True):
        members = population.world == world
        alone, own = Population(population.group[members], population.lf[members]), figures[members]
        found = [disparity(own, alone), disparity.level(own, alone), disparity.size(alone)]
        assert_allclose(np.concatenate(found), expected, atol=1e-9)


def test_a_group_without_members_contributes_nothing_and_equals_are_no_disparity():
    lonely = Population(group=[0, 0, 1, 0, -1], lf=[1, 1, 2, 2, 2], world=[0, 0, 1, 1, 1])
    for fairness in ("dp", "csp"):
        for aggregate in ("pairs", "group_mean"):
            disparity = Disparity(fairness, aggregate=aggregate)
            assert_array_equal(disparity([1.0, 5, 3, 7, 100], lonely), [0, 4])
            assert_array_equal(disparity(np.full(5, 0.1), lonely), [0, 0])
            assert_array_equal(disparity.slopes(np.full(5, 0.1), lonely), np.zeros(5))
            assert_array_equal(disparity.size(lonely), [0, 1])


def test_populations_survive_pickling():
    population = pickle.loads(pickle.dumps(FOUR))
    assert_array_equal(Disparity("csp")(RETURNS, population), Disparity("csp")(RETURNS, FOUR))


# -------------------------------------------------------------------- worked example


@pytest.mark.parametrize(
    ("disparity", "expected"),
    [
        (Disparity("dp"), 4),
        (Disparity("csp"), 5),
        (Disparity("csp", include_cross_lf=True), 4),
        (Disparity("dp", sign="one_sided"), 3.5),
        (Disparity("dp", aggregate="group_mean"), 3),
    ],
)
def test_four_agents(disparity, expected):
    assert_array_equal(disparity(RETURNS, FOUR), [expected])
    assert_array_equal(disparity.size(FOUR), [2])


def test_four_agents_step_by_step():
    assert_array_equal(Disparity("dp")(STEPS, FOUR), [[3], [10], [4]])
    assert_array_equal(Disparity("csp")(STEPS, FOUR), [[3], [10], [5]])
    assert_array_equal(Disparity("dp").envy(RETURNS, FOUR), [1, -1, 0, 0])
    assert_array_equal(Disparity("dp")([10.0, 6, 8, 6], FOUR), [6])


def test_four_agents_and_their_twins():
    assert_array_equal(Disparity("cf")(TWIN_RETURNS, TWINS), [7, 7])
    assert_array_equal(Disparity("cf", aggregate="group_mean")(TWIN_RETURNS, TWINS), [5, 5])
    assert_array_equal(Disparity("cf").size(TWINS), [4, 4])
    assert_array_equal(Disparity("cf").envy(TWIN_RETURNS, TWINS), [1, 0, 1, -1, -1, 0, -1, 1])


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"group": [[0, 1]]}, r"group must have one label per slot, got shape \(1, 2\)"),
        ({"group": [0, 0.5]}, "group must be whole numbers of at least -1, got"),
        ({"group": ["a", "b"]}, "group must be whole numbers of at least -1, got"),
        ({"group": [0, -2]}, "group must be whole numbers of at least -1, got"),
        ({"group": [0, 1], "lf": [0]}, r"lf must have one label for each of the 2 slots, got shape \(1,\)"),
        ({"group": [0, 1], "pair": [1, -1]}, r"pair must name slots that name each other, got \[1, -1\]"),
        ({"group": [0, 1], "pair": [0, -1]}, "pair must name slots that name each other"),
        ({"group": [0, 1], "pair": [2, -1]}, "pair must name slots that name each other"),
    ],
)
def test_labels_that_are_not_allowed(labels, words):
    with pytest.raises(ValueError, match=words):
        Population(**labels)


def test_labels_that_are_missing():
    plain = Population([0, 1, 0])
    with pytest.raises(ValueError, match="lf must be given for fairness='csp'"):
        Disparity("csp")([1.0, 2, 3], plain)
    for pair in (None, [-1, -1, -1]):
        with pytest.raises(ValueError, match="pair must be given for fairness='cf'"):
            Disparity("cf")([1.0, 2, 3], Population([0, 1, 0], pair=pair))
    with pytest.raises(ValueError, match="pair must link every world with one other world only"):
        Disparity("cf")(np.ones(4), Population([0] * 4, world=[0, 0, 1, 2], pair=[2, 3, 0, 1]))
    with pytest.raises(ValueError, match=r"figures must have one entry per slot \(3\), got shape \(2,\)"):
        Disparity()([1.0, 2], plain)


@pytest.mark.parametrize("argument", ["fairness", "sign", "aggregate"])
def test_names_that_are_unknown(argument):
    with pytest.raises(ValueError, match=f"{argument} must be one of .* got 'pears'"):
        Disparity(**{argument: "pears"})
