"""Do values cost what their disparity is?"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fair_ppo.prospective import advantage_clip, state_cost, value_disparity
from sb3_fair.fairness.disparity.populations import Disparity, Population

FOUR = Population(group=[0, 1, 0, 1], lf=[1, 1, 2, 2])
VALUES = np.array([[10.0, 6, 8, 6], [0, 0, 0, 0], [1, 2, 1, 2]])
TWINS = Population([0, 0, 1, 1], world=[0, 0, 1, 1], pair=[2, 3, 0, 1])


def test_four_agents():
    worth = value_disparity(VALUES, [FOUR] * 3, Disparity("dp"), scale=3.0)
    assert_array_equal(worth.disparity, np.repeat([[6.0], [0], [2]], 4, axis=1))
    assert_allclose(worth.normalised, worth.disparity / 6)
    assert_allclose(state_cost(worth.disparity, gamma=0.99)[0], np.full(4, -0.06))
    assert not value_disparity(VALUES, [FOUR] * 3, Disparity("dp"), scale=0.0).normalised.any()


def test_each_step_has_labels_of_its_own():
    swapped = Population(group=[0, 0, 1, 1])
    worth = value_disparity(VALUES[[0, 0]], [FOUR, swapped], Disparity("dp"), scale=1.0)
    assert_array_equal(worth.disparity[:, 0], [6, (2 + 4 + 2 + 0) / 2])


def test_worlds_in_which_nobody_is_compared_do_not_count():
    beside, nobody = Population([0, 1, 0, 0], world=[0, 0, 1, 1]), Population([0] * 4)
    worth = value_disparity(VALUES, [beside] * 3, Disparity(), scale=2.0)
    assert_allclose(worth.means(), [(4 + 0 + 1) / 3, (4 + 0 + 1) / 3 / 2])
    assert value_disparity(VALUES, [nobody] * 3, Disparity(), scale=2.0).means() == (0, 0)


def test_where_episodes_end_apart_steps_add_up_to_the_disparity_of_the_groups_means():
    worth = value_disparity(VALUES, [FOUR] * 3, Disparity("dp"), scale=3.0, apart=True)
    assert_allclose(worth.disparity.mean(axis=0), 2 * (20 / 6 - 16 / 6))
    assert_allclose(worth.normalised, worth.disparity / 6)


def test_streams_compare_the_means_so_far():
    steps = [Population([group]) for group in (0, 1, 1, 0)]
    worth = value_disparity([[4.0], [1], [3], [2]], steps, Disparity("dp"), scale=2.0, streaming=True)
    assert_allclose(worth.disparity[:, 0], [0, 3, 2, 1])
    assert_allclose(worth.normalised, worth.disparity / 2)


def test_advantages_are_clipped_by_the_formula():
    normalised = np.array([[0.04], [0.15], [0.25], [0.20], [0.30]])
    dones = np.array([[False], [False], [False], [True], [False]])
    excess = [0, -0.10, -0.20, -0.15, -0.25]
    assert_allclose(advantage_clip(normalised, dones)[:, 0], np.add(excess, [0, -0.10, 0, 0, 0]))
    # With what comes after the last step, and another threshold.
    assert_allclose(advantage_clip(normalised, dones, [0.5])[-1], [-0.25 - 0.20])
    assert_allclose(advantage_clip(normalised, dones, threshold=0.2)[:, 0], [0, 0, -0.05, 0, -0.1])


def test_values_of_another_shape():
    with pytest.raises(ValueError, match=r"values must have one entry per step and slot \(3, 4\), got shape \(2, 4\)"):
        value_disparity(VALUES[:2], [FOUR] * 3, Disparity(), 1.0)
    with pytest.raises(ValueError, match="pair must be given for fairness='cf'"):
        value_disparity(VALUES, [FOUR] * 3, Disparity("cf"), 1.0)
