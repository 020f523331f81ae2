"""Do the representative policies and their colours follow the published recipe?"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sb3_fair.report.selection import ANCHORS, axis_order, colours, kind, min_max, representative_set

VALUES = arrays(
    float,
    st.tuples(st.integers(1, 14), st.integers(1, 4)),
    elements=st.integers(-6, 6).map(lambda number: number / 4),
)


def recipe(values, size):
    """Appendix C of FAReL, one policy and one objective at a time."""
    n, k = values.shape
    scaled = values.copy()
    for o in range(k):
        low, high = min(values[:, o]), max(values[:, o])
        for q in range(n):
            scaled[q, o] = (values[q, o] - low) / (high - low) if high > low else 0.5
    chosen = []
    for o in range(k):
        best = max(range(n), key=lambda q: (values[q, o], -q))
        if best not in chosen and len(chosen) < size:
            chosen.append(best)
    while len(chosen) < min(size, n):
        scores = {}
        for q in set(range(n)) - set(chosen):
            summed = [sum(abs(scaled[q, o] - scaled[c, o]) for c in chosen) for o in range(k)]
            scores[q] = np.mean(summed) - 0.25 * np.std(summed)
        top = max(scores.values())
        chosen.append(min(q for q in scores if scores[q] > top - 1e-9))
    return chosen


@given(VALUES, st.integers(1, 12))
def test_representatives_are_those_of_the_recipe_policy_by_policy(values, size):
    chosen, expected = representative_set(values, size), recipe(values, size)
    assert len(chosen) == len(set(chosen)) == min(size, len(values))
    first = min(size, len(set(values.argmax(axis=0))))
    assert chosen[:first] == expected[:first]


@given(st.integers(0, 10_000))
def test_without_ties_every_choice_is_the_recipes(seed):
    values = np.random.default_rng(seed).normal(size=(15, 3)) * [100, 0.1, 1]
    assert representative_set(values) == recipe(values, 10)


def test_the_best_of_each_objective_comes_first_and_the_middle_fills_up():
    values = [[0, 10], [10, 0], [5, 5], [9, 1], [1, 9]]
    assert representative_set(values, 3) == [1, 0, 2]
    assert representative_set(values, 2) == [1, 0]
    assert representative_set(np.zeros((0, 2))) == []


def test_a_tie_goes_to_the_first_policy():
    assert representative_set([[1, 0], [1, 0], [0, 1], [0, 1]], 2) == [0, 2]


def test_normalising_keeps_a_large_unit_from_deciding():
    values = [[100, 0], [0, 1], [50, 0.5], [45, 0.9], [15, 0.55]]
    assert representative_set(values, 4) == [0, 1, 2, 3]


def test_the_best_in_one_type_alone_gets_its_anchor_colour():
    values = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert colours(values, ("R", "SP", "IF")).tolist() == [list(anchor) for anchor in ANCHORS.values()]


def test_objectives_of_one_type_share_its_weight():
    values = [[1, 0, 1], [0, 1, 0]]
    red, green, _ = np.array(list(ANCHORS.values()))
    mixed = (1.0 * red + 0.5 * green) / 1.5
    assert colours(values, ("R", "SP", "EO"))[0].tolist() == np.rint(mixed).tolist()


def test_a_policy_worst_in_everything_and_a_constant_objective_get_even_weights():
    red, green, _ = np.array(list(ANCHORS.values()))
    assert colours([[1, 1], [0, 0]], ("R", "SP"))[1].tolist() == np.rint((red + green) / 2).tolist()
    assert colours([[3, 3]], ("R", "SP"))[0].tolist() == np.rint((red + green) / 2).tolist()


def test_what_is_unknown_is_neither_the_best_nor_in_the_colour_of_the_best():
    values = [[2, np.nan, np.nan], [1, -1, np.nan], [0, -2, np.nan]]
    assert min_max(values).tolist() == [[1, 0, 0], [0.5, 1, 0], [0, 0, 0]]
    assert representative_set(values, 2) == [0, 1]
    assert colours(values, ("R", "SP", "IF"))[0].tolist() == list(ANCHORS["performance"])


@given(VALUES)
def test_scaling_maps_every_objective_onto_zero_to_one(values):
    scaled = min_max(values)
    assert scaled.shape == values.shape
    for column, original in zip(scaled.T, values.T, strict=True):
        if len(set(original)) > 1:
            assert (column.min(), column.max()) == (0, 1)
            assert all(a <= b for a, b in pairwise(column[original.argsort(kind="stable")]))
        else:
            assert (column == 0.5).all()


def test_axes_go_round_in_the_papers_order_whatever_their_attribute_or_distance():
    assert axis_order(["IF@heom", "SP@gender", "CSC", "R", "PE", "EO", "SP@nationality"]) == [
        "R", "SP@gender", "SP@nationality", "EO", "PE", "IF@heom", "CSC",
    ]  # fmt: skip
    assert axis_order(["SP (return)", "d_s_estimated", "R", "luck"]) == ["luck", "R", "d_s_estimated", "SP (return)"]


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("R", "performance"),
        ("d_s", "group"),
        ("d_l_next", "group"),
        ("SP@gender", "group"),
        ("TE", "group"),
        ("IF@hmom", "individual"),
        ("CSC", "individual"),
    ],
)
def test_every_objective_has_one_of_three_types(objective, expected):
    assert kind(objective) == expected
