"""Are the disparities of an epidemic those that one can work out by hand, and is massaging offered what it may do?"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fairness.disparity.measures import Measures
from sb3_fair.zoo.envs.epidemic.measures import EpidemicMeasures, long_term, short_term
from sb3_fair.zoo.envs.epidemic.world import EpidemicWorld
from tests.zoo.forms import begun

# A node of community 0, then of community 1: a, b, c, and one that is infected; then nobody.
SMALL = EpidemicMeasures((0, 1, 1, 1, 1))
MASSAGE = {
    "vaccines": np.array([[2.0, 1.0]]),
    "new_infections": np.array([[3.0, 5.0]]),
    "susceptible": np.array([[True, True, True, True, False]]),
}
PROBABILITIES = np.array([[0.050, 0.045, 0.060, 0.070, 0.050, 0.040]])


def test_short_term_disparity_of_the_worked_example():
    assert short_term(np.array([2, 1]), np.array([3, 5])) == pytest.approx(1 / 3)
    assert short_term(np.array([[2, 1, 8]]), np.array([[3, 5, 1]]))[0] == pytest.approx(4 - 1 / 6)


def test_long_term_disparity_of_the_worked_example():
    counts = np.array([[[5, 6, 4], [10, 7, 2]], [[15, 0, 0], [19, 0, 0]]])
    shares = counts / np.array([[15], [19]])
    assert_allclose(long_term(shares), [0.25356, 0], atol=5e-6)
    assert_allclose(long_term(shares, "w1"), [0.19298, 0], atol=5e-6)
    assert_allclose(long_term(counts), [np.sqrt(30), 4])


def test_long_term_disparity_of_several_communities_is_that_of_the_two_farthest():
    shares = np.array([[[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1.0]]])
    assert long_term(shares)[0] == pytest.approx(np.sqrt(2)) and long_term(shares, "w1")[0] == pytest.approx(1)


def test_would_be_disparity_counts_one_vaccine_more():
    expected = [0.58333, 0.16667, 0.16667, 0.16667, 0.16667, 0.33333]
    assert_allclose(SMALL.would_be(MASSAGE, np.arange(6)[None]), [expected], atol=5e-6)
    effective = EpidemicMeasures(SMALL.communities, count_wasted=False)
    expected[4] = 0.33333  # nobody is served by a vaccine for the infected one
    assert_allclose(effective.would_be(MASSAGE, np.arange(6)[None]), [expected], atol=5e-6)


def massaged(action, threshold, measures=SMALL):
    """What a filter chooses: the fairest of the close ones, the first of several, if fairer than the sampled one."""
    actions, closeness, valid = measures.candidates(MASSAGE, np.array([action]), PROBABILITIES)
    would_be = np.where(valid & (closeness < threshold), measures.would_be(MASSAGE, actions), np.inf)
    best = would_be[0].argmin()
    now = measures.would_be(MASSAGE, np.array([[action]]))[0, 0]
    return actions[0, best] if would_be[0, best] < now - 1e-12 else action


def test_massaging_takes_the_likelier_of_two_equally_fair_ones():
    actions, closeness, valid = SMALL.candidates(MASSAGE, np.array([0]), PROBABILITIES)
    assert_array_equal(actions, [[3, 2, 0, 4, 1, 5]])
    assert_allclose(closeness, [[0.02, 0.01, 0, 0, 0.005, 0.01]], atol=1e-12)
    assert_array_equal(valid, [[True, True, False, False, True, True]])
    assert massaged(0, 0.012) == 2
    assert massaged(0, 0.006) == 1
    assert massaged(0, 0.03) == 3
    assert massaged(0, 0) == 0
    assert massaged(1, 0.012) == 1  # nothing is strictly fairer
    assert massaged(5, 0.006) == 1


def test_whoever_is_not_susceptible_is_a_candidate_only_on_request():
    wasteful = EpidemicMeasures(SMALL.communities, massage_allow_wasted=True)
    candidates = wasteful.candidates(MASSAGE, np.array([0]), PROBABILITIES)
    assert (candidates.valid == (candidates.actions != 0)).all()  # what was sampled does not take its own place
    assert massaged(0, 0.001, wasteful) == 4 and massaged(0, 0.001) == 0


def test_the_threshold_opens_after_fifty_rollouts():
    thresholds = [SMALL.threshold(iteration) for iteration in (0, 49, 50, 51, 60, 69, 70, 10**6)]
    assert_allclose(thresholds, [0, 0, 0.01, 0.012, 0.06192, 0.31948, 0.35, 0.35], atol=5e-6)


def test_probabilities_are_needed():
    with pytest.raises(ValueError, match="probabilities must be those of all actions"):
        SMALL.candidates(MASSAGE, np.array([0]), None)


def test_a_world_publishes_its_measures_which_pickle_and_are_equal_by_value():
    world = EpidemicWorld(1, count_wasted=False, massage_allow_wasted=True)
    measures = world.fairness_spec.measures
    assert isinstance(measures, Measures)
    assert measures == EpidemicMeasures(tuple(world.communities.tolist()), False, True)
    measures.would_be(world.massage(), np.zeros((1, 1), dtype=int))
    assert (
        pickle.loads(pickle.dumps(measures))
        == measures
        == EpidemicWorld(2, **vars(world.config)).fairness_spec.measures
    )
    assert hash(measures) == hash(EpidemicMeasures(tuple(world.communities.tolist()), False, True))


@pytest.mark.parametrize("config", [{}, {"count_wasted": False, "massage_allow_wasted": True}, {"window": 3}])
def test_massaging_never_makes_the_short_term_disparity_larger(config):
    """And the predicted disparity is the true one, but for the infections of the step: without any, exactly."""
    n, rng = 2500, np.random.default_rng(0)
    world = begun(EpidemicWorld, n, initial_infected=3, infection_probability=0.2, **config)
    measures = world.fairness_spec.measures
    for _ in range(4):
        massage, actions = world.massage(), rng.integers(0, 35, n)
        probabilities = rng.dirichlet(np.ones(35), n)
        candidates = measures.candidates(massage, actions, probabilities)
        likelihoods = np.take_along_axis(probabilities, candidates.actions, axis=1)
        assert (np.diff(likelihoods, axis=1) <= 0).all()
        assert_allclose(
            candidates.closeness, np.abs(likelihoods - np.take_along_axis(probabilities, actions[:, None], axis=1))
        )
        expected = measures.would_be(massage, actions[:, None])[:, 0]
        usable = candidates.valid & (candidates.closeness < 0.02)
        would_be = np.where(usable, measures.would_be(massage, candidates.actions), np.inf)
        best, rows = would_be.argmin(axis=1), np.arange(n)
        fairer = would_be[rows, best] < expected - 1e-12
        assert 0.1 < fairer.mean() < 0.9
        chosen = np.where(fairer, candidates.actions[rows, best], actions)
        expected = np.minimum(expected, would_be[rows, best])
        *_, record = world.step(chosen)
        figures = record["fairness"]
        quiet = (figures["new_infections"] == massage["new_infections"]).all(axis=1)
        assert quiet.any()
        assert_allclose(figures["d_s"][quiet], expected[quiet], atol=1e-12)
