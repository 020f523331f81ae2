"""Are advantages changed by what the disparities did, and by nothing else?"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.f_ppo import regularise_advantages
from sb3_fair.f_ppo.regulariser import Columns, regulariser

A = np.array([0.5, -0.2, 1.0, 0.0, -1.0, 0.3])
STEPS = Columns(
    d_s=np.array([0.02, 0.10, 0.04, 0.20, 0.30, 0.05]),
    d_s_prev=np.array([0.03, 0.08, 0.04, 0.25, 0.20, 0.06]),
    d_l=np.array([1.00, 0.99, 1.00, 1.01, 0.98, 0.97]),
    d_l_next=np.array([0.99, 1.00, 1.01, 1.00, 0.98, 0.99]),
)
numbers = arrays(np.float64, 7, elements=st.floats(-2, 2))
disparities = arrays(np.float64, 7, elements=st.floats(0, 1))
columns = st.builds(Columns, disparities, disparities, disparities, disparities)
weights = st.floats(0.01, 10)


def test_the_regulariser_is_a_bonus_or_a_penalty_and_0_in_conflicts():
    assert_allclose(regulariser(STEPS, delta=0.05), [0.01, -0.01, 0, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"reg_lambda": 1}, [0.51, -0.21, 1.0, 0, -1.0, 0.3]),
        ({"reg_lambda": 50}, [1.0, -0.7, 1.0, 0, -1.0, 0.3]),
        ({"reg_lambda": 1, "scaling": "std"}, [2.5361, -2.0537, 1.6082, 0, -1.6082, 0.4825]),
        ({"reg_lambda": 1, "scaling": "minmax"}, [1.4816, -1.4199, 0.5556, -0.0617, -0.6791, 0.1235]),
        ({"beta1": 0.25, "beta2": 0.25}, [0.5, -0.2175, 1.0, -0.0375, -1.0875, 0.3]),
    ],
    ids=str,
)
def test_worked_examples(settings, expected):
    assert_allclose(regularise_advantages(A, STEPS, delta=0.05, omega=0.05, **settings), expected, atol=1e-4)


def test_minmax_adds_up_stretched_parts_before_it_standardises():
    total = np.array([2.75, 0.40, 2.00, 1.50, 1.00, 1.65])
    expected = (total - total.mean()) / total.std(ddof=1)
    assert_allclose(regularise_advantages(A, STEPS, reg_lambda=1, scaling="minmax"), expected, atol=1e-5)
    weighted = np.array([0.75, 0.4, 1, 0.5, 0, 0.65]) + 2 * np.array([1, 0, 1, 1, 1, 1]) + 3 * np.eye(6)[0]
    expected = (weighted - weighted.mean()) / weighted.std(ddof=1)
    for weights in ((2, 3), np.array([2, 3])):
        found = regularise_advantages(A, STEPS, reg_lambda=1, scaling="minmax", minmax_weights=weights)
        assert_allclose(found, expected, atol=1e-5)


def test_minmax_of_one_step_is_a_number():
    one = Columns(*(column[:1] for column in STEPS))
    assert np.isfinite(regularise_advantages(A[:1], one, reg_lambda=1, scaling="minmax")).all()


def test_the_parts_of_a_ppo():
    none = Columns(*np.zeros((4, 6)))._replace(d_s=STEPS.d_s, d_s_prev=STEPS.d_s_prev)
    assert_allclose(regularise_advantages(np.zeros(6), none, beta1=1), [0, -0.05, 0, -0.15, -0.25, 0], atol=1e-12)
    assert_allclose(regularise_advantages(np.zeros(6), none, beta2=1), [0, -0.02, 0, 0, -0.1, 0], atol=1e-12)


@given(numbers, columns, st.sampled_from(["none", "std", "minmax"]))
def test_without_weights_nothing_changes(advantages, steps, scaling):
    given_weights = {"scaling": scaling, "minmax_weights": (1.0, 1.0)}
    assert_array_equal(regularise_advantages(advantages, steps, **given_weights), advantages)


@given(numbers, columns, weights, st.floats(0, 1))
def test_each_step_counts_as_the_definition_says(advantages, steps, weight, delta):
    found = regularise_advantages(advantages, steps, reg_lambda=weight, delta=delta)
    for index, (d_s, _, d_l, d_l_next) in enumerate(zip(*steps, strict=True)):
        change = d_l - d_l_next
        reward = min(0, change) if d_s > delta else max(0, change)
        assert found[index] == advantages[index] + weight * reward


@given(numbers, columns, weights)
def test_std_keeps_the_signs_of_the_regulariser(advantages, steps, weight):
    reward = regulariser(steps, 0.05)
    size = np.sqrt(np.mean(reward**2))
    assume(advantages.std() > 0.01 and size > 0.01)
    added = regularise_advantages(advantages, steps, reg_lambda=weight, scaling="std") - advantages / advantages.std()
    assert_allclose(added, weight * reward / size, atol=1e-9)


def test_std_leaves_alone_what_does_not_vary():
    alike, fair = np.full(6, 1 / 3), Columns(*np.zeros((4, 6)))
    assert_array_equal(regularise_advantages(alike, fair, reg_lambda=1, scaling="std"), alike)


@given(numbers, columns, weights)
def test_the_shape_of_a_rollout_does_not_matter(advantages, steps, weight):
    cut = Columns(*(column[:6].reshape(3, 2) for column in steps))
    for scaling in ("none", "std", "minmax"):
        settings = {"reg_lambda": weight, "beta1": weight, "beta2": weight, "scaling": scaling}
        flat = regularise_advantages(advantages[:6], Columns(*(column[:6] for column in steps)), **settings)
        shaped = regularise_advantages(advantages[:6].reshape(3, 2), cut, **settings)
        assert_allclose(shaped.ravel(), flat, rtol=1e-9, atol=1e-9)
