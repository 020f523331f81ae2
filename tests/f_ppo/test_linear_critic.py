"""Are the values of a linear critic those of the process it has seen?"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sb3_fair.f_ppo.linear_critic import LinearCritic


def drifting(rng, n, decay=0.99, noise=0.01):
    """States that return slowly to (1, -1), the signal -2 x0 + x1 of each."""
    rest = np.array([1.0, -1.0])
    before = rest + rng.normal(scale=0.2, size=(n, 2))
    after = rest + decay * (before - rest) + rng.normal(scale=noise, size=(n, 2))
    return before, after, before @ [-2.0, 1.0]


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.99])
def test_values_of_a_linear_process_are_exact_sums(gamma):
    rng = np.random.default_rng(0)
    critic = LinearCritic(gamma)
    for _ in range(20):
        before, after, signal = drifting(rng, 2000)
        critic.fit(before, after, signal, np.zeros(2000, dtype=bool))
    states = np.array([[1.0, -1.0], [1.5, -1.0], [1.0, 0.0]])
    away = states - [1.0, -1.0]
    expected = -3 / (1 - gamma) + away @ [-2.0, 1.0] / (1 - 0.99 * gamma)
    assert_allclose(critic.values(states), expected, rtol=0.03)


def test_where_the_numbers_are_counted_from_does_not_matter():
    before, after, signal = drifting(np.random.default_rng(0), 2000)
    found = []
    for shift in (0.0, 30.0):
        critic = LinearCritic(0.9)
        critic.fit(before + shift, after + shift, signal, np.zeros(2000, dtype=bool))
        found.append(critic.values(before + shift))
    assert_allclose(*found, rtol=1e-3)


def test_nothing_comes_after_the_end():
    critic = LinearCritic(0.9)
    before = np.random.default_rng(0).normal(size=(500, 3))
    critic.fit(before, before + 7, before @ [1.0, 2.0, 3.0] - 1, np.ones(500, dtype=bool))
    assert_allclose(critic.values(np.eye(3)), [0.0, 1.0, 2.0], atol=0.01)


def test_old_transitions_are_forgotten():
    critic, rng = LinearCritic(0.0), np.random.default_rng(0)
    for slope in [1.0] * 50 + [-1.0] * 100:
        before = rng.normal(size=(100, 1))
        critic.fit(before, before, slope * before[:, 0], np.zeros(100, dtype=bool))
    assert_allclose(critic.weights[0], -1, atol=0.05)


def test_a_number_that_never_varies_or_repeats_another_does_no_harm():
    critic, rng = LinearCritic(1.0), np.random.default_rng(0)
    varying = rng.normal(size=(1000, 1))
    before = np.hstack([varying, varying, np.full((1000, 1), 5.0)])
    critic.fit(before, 0.5 * before, varying[:, 0], np.zeros(1000, dtype=bool))
    assert np.isfinite(critic.weights).all()
    assert_allclose(
        critic.values(before[:5]) - critic.values(before[5:10]), 2 * (varying[:5, 0] - varying[5:10, 0]), rtol=0.01
    )


def test_before_the_first_fit_everything_is_worth_nothing():
    assert_allclose(LinearCritic(0.9).values(np.ones((4, 2))), np.zeros(4))
