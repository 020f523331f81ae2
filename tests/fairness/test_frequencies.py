"""Are the actions of every group counted one by one?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fairness.notions.frequencies import action_counts, action_frequencies


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_counts_are_those_of_looking_at_each_agent(seed, changing):
    rng = np.random.default_rng(seed)
    actions = rng.integers(-1, 4, (3, 2, 6))
    groups = rng.integers(0, 3, (3, 2, 6) if changing else 6)
    groups.flat[:2] = 0, 1  # who is in neither counts in neither
    counts = action_counts(actions, groups, 4)
    assert counts.shape == (3, 2, 2, 4)
    for place in np.ndindex(3, 2):
        labels = np.broadcast_to(groups, actions.shape)[place]
        for group, action in np.ndindex(2, 4):
            assert counts[place][group, action] == ((actions[place] == action) & (labels == group)).sum()


def test_one_moment_of_agents_has_one_table():
    assert action_counts([0, 1, 1, -1], ["a", "b", "b", "a"], 2, compared=("a", "b")).tolist() == [[1, 0], [0, 2]]


def test_frequencies_are_shares_of_each_group():
    found = action_frequencies([[1, 3], [0, 0]])
    assert_allclose(found[0], [0.25, 0.75])
    assert_array_equal(np.isnan(found[1]), True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0], 2), "groups must have one label per agent"),
        (([0, 2], [0, 1], 2), r"actions must be integers below n_actions \(2\)"),
        (([0.0, 1.0], [0, 1], 2), "actions must be integers"),
        (([0, 1], [0, 1], 0), "n_actions must be a positive integer"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        action_counts(*arguments)
