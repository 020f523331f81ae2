"""Are confidence intervals those of Student's t, and does what is missing not count?"""

import numpy as np
import pytest
from scipy import stats

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.fairness import Scheme
from sb3_fair.fairness.intervals import mean_and_interval, rate_and_interval, rate_difference
from sb3_fair.report.measures import Measure


def test_intervals_are_those_of_scipy():
    values = np.random.default_rng(0).random((6, 3))
    mean, low, high = mean_and_interval(values)
    expected = stats.t.interval(0.95, 5, values.mean(axis=0), stats.sem(values))
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose([low, high], expected)
    np.testing.assert_array_equal(mean_and_interval(values.T, axis=1).low, low)


def test_a_missing_value_does_not_count():
    np.testing.assert_array_equal(mean_and_interval([1.0, np.nan, 2.0, 4.0]), mean_and_interval([1.0, 2.0, 4.0]))


def test_one_value_has_a_mean_but_no_interval():
    mean, low, high = mean_and_interval([[3.0, np.nan]])
    np.testing.assert_array_equal(mean, [3.0, np.nan])
    assert np.isnan(low).all() and np.isnan(high).all()


@pytest.mark.filterwarnings("error")
def test_nothing_known_is_no_reason_to_warn():
    assert np.isnan(mean_and_interval([np.nan]).mean)


@pytest.mark.parametrize("sizes", [[20] * 25, [20] * 5 + [0] * 20, [20] * 3 + [0] * 22, [500] + [2] * 24])
def test_intervals_of_rates_hold_the_truth_wherever_the_people_are(sizes):
    """Though half of them are favoured, episodes have shares of their own, partly the same for both groups."""
    rng = np.random.default_rng(0)
    people = np.array(sizes)[:, None]
    common, own, others = 0.1 * rng.standard_normal((3, len(sizes), 2000))
    hits, other_hits = (rng.binomial(n, np.clip(0.5 + p + common, 0, 1)) for n, p in ((people, own), (80, others)))
    _, low, high = rate_and_interval(hits, people)
    assert np.mean((low <= 0.5) & (high >= 0.5)) > 0.93
    _, low, high = rate_difference(hits, people, other_hits, np.full(people.shape, 80))
    assert np.mean((low <= 0) & (high >= 0)) > 0.93


def test_one_episode_with_people_has_a_rate_but_no_interval():
    rate, *ends = rate_and_interval([[0], [3], [0]], [[0], [7], [0]])
    assert rate == 3 / 7 and np.isnan(ends).all()
    assert np.isnan(rate_difference([0, 3], [0, 7], [4, 1], [5, 5]).low)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_everything_that_has_an_interval_has_this_one(confidence):
    scores = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    expected = stats.t.interval(confidence, 4, scores.mean(), stats.sem(scores))
    scheme = Scheme(welfare=lambda status: status[..., 0], temporal="last")
    status = np.stack([scores, scores + 1], axis=-1)[:, None]
    np.testing.assert_allclose(mean_and_interval(scores, confidence=confidence)[1:], expected)
    np.testing.assert_allclose(scheme.expected_score(status, confidence=confidence)[1:], expected)
    if confidence == 0.95:
        policy = EvaluatedPolicy("p", ("R",), scores[:, None], np.ones(5))
        np.testing.assert_allclose(policy.ci, [expected])
        half = Measure("R", optimised=True, final=False).half_width(policy)
        np.testing.assert_allclose(half, (expected[1] - expected[0]) / 2)
