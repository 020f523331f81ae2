"""Do values cost what their disparity is?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fair_ppo.prospective import advantage_clip, critic_slopes, state_cost, value_disparity
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


@settings(max_examples=30, deadline=None)
@given(arrays(float, (3, 4), elements=st.integers(-5, 5)), st.booleans(), st.sampled_from(["pairs", "group_mean"]))
def test_slopes_times_values_are_the_mean_disparity(values, one_sided, aggregate):
    sign = "one_sided" if one_sided else "absolute"
    for population, fairness in ((FOUR, "dp"), (FOUR, "csp"), (TWINS, "cf")):
        disparity = Disparity(fairness, sign=sign, aggregate=aggregate)
        slopes = critic_slopes(values, [population] * 3, disparity)
        expected = (disparity(values, population) / disparity.size(population)).mean()
        assert_allclose((slopes * values).sum(), expected, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    arrays(float, (5, 2), elements=st.integers(-5, 5)),
    arrays(int, (5, 2), elements=st.integers(-1, 1)),
    st.sampled_from(["absolute", "one_sided"]),
)
def test_slopes_of_streams_too(values, groups, sign):
    populations = [Population(group) for group in groups]
    slopes = critic_slopes(values, populations, Disparity(sign=sign), streaming=True)
    last = value_disparity(values, populations, Disparity(sign=sign), 1.0, streaming=True).normalised[-1]
    assert_allclose((slopes * values).sum(), last.mean(), atol=1e-12)


def test_values_of_another_shape():
    with pytest.raises(ValueError, match=r"values must have one entry per step and slot \(3, 4\), got shape \(2, 4\)"):
        value_disparity(VALUES[:2], [FOUR] * 3, Disparity(), 1.0)
    with pytest.raises(ValueError, match="pair must be given for fairness='cf'"):
        critic_slopes(VALUES, [FOUR] * 3, Disparity("cf"))
