"""Are distances what their formulas say, and are wrong ones refused?"""

import math

import numpy as np
import pytest

from sb3_fair.fairness import (
    Distance,
    FairnessTracker,
    Interaction,
    consistency,
    distance_matrix,
    distances,
    hellinger,
    individual_fairness,
    lipschitz_violation,
)
from tests.fairness.formulas import distance as formula

PAIRS = [  # u, v, S, M, heom, hmom, braycurtis, exp(-0.1 S)
    ((0.1, 0.3, 0), (0.4, 0.3, 0), 0.09, 0.3, 0.173205, 0.100000, 0.272727, 0.991040),
    ((0.1, 0.3, 0), (0.5, 0.9, 1), 1.52, 2.0, 0.711805, 0.666667, 0.714286, 0.858988),
    ((0.5, 0.9, 1), (0.8, 0.6, 1), 0.18, 0.6, 0.244949, 0.200000, 0.125000, 0.982161),
    ((0.8, 0.6, 1), (0.7, 0.7, 1), 0.02, 0.2, 0.081650, 0.066667, 0.041667, 0.998002),
    ((0, 0, 0), (0, 0, 0), 0, 0, 0, 0, 0, 1),
]


@pytest.mark.parametrize("u, v, squares, absolute, heom, hmom, braycurtis, kernel", PAIRS)
def test_worked_pairs(u, v, squares, absolute, heom, hmom, braycurtis, kernel):
    def d(**settings):
        return distance_matrix([u, v], nominal=[2], **settings)[0, 1]

    assert d(distance="heom", normalise=False) == pytest.approx(math.sqrt(squares))
    assert d(distance="heom", normalise=False, root=False) == pytest.approx(squares)
    assert d(distance="heom", root=False) == pytest.approx(squares / 3)
    assert d(distance="hmom", normalise=False) == pytest.approx(absolute)
    assert d(distance="heom") == pytest.approx(heom, abs=1e-6)
    assert d(distance="hmom") == pytest.approx(hmom, abs=1e-6)
    assert d(distance="braycurtis") == pytest.approx(braycurtis, abs=1e-6)
    assert d(distance="heom", kernel="exp") == pytest.approx(kernel, abs=1e-6)
    assert d(distance="heom", kernel="exp", root=True, lam=2.0) == pytest.approx(math.exp(-2 * math.sqrt(squares)))


def test_hellinger():
    assert hellinger((1, 0), (0, 1)) == pytest.approx(1)
    assert hellinger((0.5, 0.5), (1, 0)) == pytest.approx(0.541196, abs=1e-6)
    assert hellinger((0.8, 0.2), (0.4, 0.6)) == pytest.approx(0.296487, abs=1e-6)
    assert hellinger((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)) == pytest.approx(0.259893, abs=1e-6)
    assert hellinger((0.1, 0.2, 0.7), (0.1, 0.2, 0.7)) == 0


@pytest.mark.parametrize("nominal", [(), (1,), (0, 3), (2, 3, 4)])
@pytest.mark.parametrize("name", ["heom", "hmom", "braycurtis"])
def test_matrices_are_symmetric_and_follow_the_formula(name, nominal):
    rng = np.random.default_rng(0)
    people = rng.integers(0, 4, (12, 5)) / 3
    matrix = distance_matrix(people, distance=name, nominal=nominal)
    expected = [[formula(name, tuple(u), tuple(v), nominal) for v in people] for u in people]
    np.testing.assert_allclose(matrix, expected, atol=1e-12)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert matrix.min() >= 0 and matrix.max() <= 1


def euclid(u, v):
    return float(np.sqrt(((u - v) ** 2).sum()))


def euclid_rows(u, crowd):
    return np.sqrt(((crowd - u) ** 2).sum(axis=1))


def euclid_in_place(u, v):
    u -= v
    u *= u
    return float(np.sqrt(u.sum()))


def euclid_rows_in_place(u, crowd):
    u *= -1
    crowd += u
    crowd *= crowd
    return np.sqrt(crowd.sum(axis=1))


def euclid_of_two(u, v):
    """Of a crowd it makes a number per feature, which are as many as people in a crowd of two."""
    return np.sqrt(((u - v) ** 2).sum(axis=0))


@pytest.mark.parametrize("function", [euclid, euclid_of_two, euclid_rows, euclid_in_place, euclid_rows_in_place])
def test_callables_may_take_one_or_all(function):
    people = np.random.default_rng(0).random((6, 2))
    np.testing.assert_allclose(
        distance_matrix(people, distance=function), distance_matrix(people, distance="heom", normalise=False)
    )
    scaled = Distance(function, scale=math.sqrt(2))
    np.testing.assert_allclose(distance_matrix(people, distance=scaled), distance_matrix(people, distance="heom"))
    np.testing.assert_array_equal(people, np.random.default_rng(0).random((6, 2)))


def test_a_callable_is_never_asked_about_absent_people():
    def picky(u, crowd):
        assert len(crowd) and (crowd.sum(axis=1) > 0).all()
        return np.abs(crowd - u).sum(axis=1)

    tracker = FairnessTracker(notions=["IF", "CSC"], distance=picky)
    for x in (0.1, 0.5, 0.9):
        tracker.add(Interaction(features=[x, 1 - x], action=1, probabilities=[0, 1]))
    assert tracker.values()["IF"] == pytest.approx(-1 + (0.8 + 0.8 + 1.6) / 3)


def test_an_always_same_action_policy_gets_the_mean_distance_minus_one():
    people = np.random.default_rng(0).random((9, 4))
    matrix = distance_matrix(people)
    value = individual_fairness(people, np.tile([0.0, 1.0], (9, 1)))
    assert value == pytest.approx(matrix[np.triu_indices(9, 1)].mean() - 1)


def test_people_who_are_compared_in_parts_are_compared_alike(monkeypatch):
    rng = np.random.default_rng(0)
    people, chances, weights = rng.integers(0, 4, (23, 3)) / 3, rng.dirichlet([1, 1], 23), rng.random(23)

    def figures():
        pairs = [notion(people, chances, weights=weights) for notion in (individual_fairness, lipschitz_violation)]
        actions = chances[:, 0] > 0.5
        near = [consistency(people, actions, k=2, weights=weights, ties=ties) for ties in ("older", "shared")]
        return [*pairs, *near, *distance_matrix(people).ravel()]

    whole = figures()
    monkeypatch.setattr(distances, "_CHUNK", 500)
    np.testing.assert_allclose(figures(), whole, atol=1e-12)


def test_empty_matrix():
    assert distance_matrix(np.zeros((0, 3))).shape == (0, 0)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"name": "hmon"}, r"distance name must be a callable or one of .* got 'hmon' \(did you mean 'hmom'\?\)"),
        ({"kernel": "rbf"}, "kernel must be 'exp' or None, got 'rbf'"),
        ({"kernel": "exp", "lam": 0}, "lam must be a positive number, got 0"),
        ({"lam": "a"}, "lam must be a positive number, got 'a'"),
        ({"root": True}, "root is only for distance 'heom'"),
        ({"scale": 2.0}, "scale is only for a callable, got 2.0"),
        ({"name": euclid, "scale": 0}, "scale must be a positive number"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Distance(**settings)


def test_wrong_features():
    with pytest.raises(ValueError, match="features must not be negative with distance 'braycurtis', got -1"):
        distance_matrix([[0.0], [-1.0]], distance="braycurtis")
    with pytest.raises(ValueError, match="nominal has column 3, but features have 2 columns"):
        distance_matrix(np.zeros((2, 2)), nominal=[3])
    with pytest.raises(ValueError, match="nominal must not repeat a column"):
        distance_matrix(np.zeros((2, 2)), nominal=[1, 1])
    with pytest.raises(ValueError, match=r"nominal must be a sequence .*, got \[-1\]"):
        distance_matrix(np.zeros((2, 2)), nominal=[-1])
    with pytest.raises(ValueError, match=r"features must have shape \(individuals, columns\), got shape \(3,\)"):
        distance_matrix(np.zeros(3))


def test_a_callable_that_gives_no_number_is_refused():
    def broken(u, v):
        raise RuntimeError("no")

    with pytest.raises(ValueError, match="distance must give one number per row") as caught:
        distance_matrix(np.zeros((2, 2)), distance=broken)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize("p", [(0.5, 0.6), (-0.1, 1.1), (float("nan"), 1), (float("inf"), 0), (-0.7, -0.7)])
def test_hellinger_takes_distributions_only(p):
    with pytest.raises(ValueError, match=r"must be .*finite"):
        hellinger(p, (0.5, 0.5))


@pytest.mark.parametrize("p, q", [((0.5, 0.5), (0.5, 0.25, 0.25)), ([[1, 0], [1, 0]], [[0, 1], [0, 1]])])
def test_hellinger_compares_one_pair_of_distributions(p, q):
    with pytest.raises(ValueError, match=r"p and q must be of shape \(n_actions,\)"):
        hellinger(p, q)
