"""Do intervals of notions hold the true value as often as they say?"""

import numpy as np
import pytest

from sb3_fair.audit.resampling import notion_intervals
from sb3_fair.fairness.notions.table import CELLS, NOTIONS, GapTable, cells_of

CELL = cells_of(np.repeat([0, 1], 2), np.tile([0.0, 1.0], 2), (1,))
"""Refused, accepted; each undeserving, deserving."""


def shares(deserving, accepted, of_others):
    """Shares (CELLS,) of a group whose deserving people are accepted with one probability, the others with another."""
    found = np.zeros(CELLS)
    found[CELL] = [
        (1 - deserving) * (1 - of_others), deserving * (1 - accepted), (1 - deserving) * of_others, deserving * accepted
    ]  # fmt: skip
    return found


def missed(names, sizes, groups, logs=400):
    """In how many logs an interval of 95 % leaves out the true value of each notion."""
    rng = np.random.default_rng(0)
    table = GapTable([NOTIONS[name] for name in names])
    probabilities = np.array([shares(*group) for group in groups])
    truth = table(probabilities[None])[0]
    found = np.zeros(len(names), dtype=int)
    for _ in range(logs):
        counts = rng.multinomial(sizes, probabilities).astype(float)
        low, high = notion_intervals(counts, table, 200, rng, 0.95).T
        found += (low > truth + 1e-9) | (high < truth - 1e-9)
    return found.tolist()


ALIKE = (0.5, 0.7, 0.3)


@pytest.mark.parametrize("sizes", [[100] * 2, [30] * 10, [30] * 20, [30] * 70, [15, 15, 400], [5, 5, 5, 200]])
def test_groups_that_are_treated_alike_seldom_seem_to_differ_however_many_and_small_they_are(sizes):
    (found,) = missed(["SP"], sizes, [ALIKE] * len(sizes))
    assert 4 <= found <= 32  # of 400; 20 are to be expected


@pytest.mark.parametrize("size", [100, 1000])
def test_of_notions_of_two_rates_both_are_covered(size):
    for found in missed(["EO", "EqOdds", "CUAE"], [size] * 2, [ALIKE] * 2):
        assert 4 <= found <= 32


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([200] * 2, [(0.5, 0.8, 0.3), (0.5, 0.6, 0.3)]),
        ([1000] * 2, [(0.5, 0.8, 0.4), (0.5, 0.6, 0.2)]),
        ([200] * 3, [(0.5, 0.2, 0.2), (0.5, 0.4, 0.4), (0.5, 0.6, 0.6)]),
        ([15, 400], [(0.5, 0.2, 0.2), (0.5, 0.05, 0.05)]),
    ],
)
def test_true_differences_are_covered(sizes, groups):
    names = ["SP", "EO", "EqOdds"]
    for name, found in zip(names, missed(names, sizes, groups), strict=True):
        assert found <= 32, name


def test_an_interval_is_not_much_wider_than_it_has_to_be():
    """By hand: of 1000 people each, 55 % and 45 % are accepted; the standard error is sqrt(2 * 0.2475 / 1000)."""
    counts = np.zeros((2, CELLS))
    counts[:, :2] = [[450, 550], [550, 450]]
    ((low, high),) = notion_intervals(counts, GapTable([NOTIONS["SP"]]), 20_000, np.random.default_rng(0), 0.95)
    assert (low, high) == pytest.approx((-0.1436, -0.0564), abs=0.001)
