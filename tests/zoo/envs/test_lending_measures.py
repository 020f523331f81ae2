"""Are the numbers of lending those that one can work out by hand?"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.fairness.disparity.measures import Measures, keys_of
from sb3_fair.wrappers.coming import coming, first
from sb3_fair.zoo.envs.lending.measures import LendingMeasures
from sb3_fair.zoo.envs.lending.world import LendingWorld
from sb3_fair.zoo.envs.world import WorldEnv, WorldVecEnv

DECIDED = [  # group, score, would repay, granted
    (0, 5, 1, 1),
    (0, 4, 0, 1),
    (1, 3, 1, 0),
    (1, 5, 1, 1),
    (0, 6, 1, 1),
    (1, 4, 1, 0),
    (0, 4, 1, 0),
    (1, 2, 0, 0),
]


def scripted(people, **config):
    """A bank to which these applicants come: (group, score, would repay)."""
    world = LendingWorld(1, detail=True, **config)
    queue = iter(people)

    def bring(*_):
        group, score, repays = next(queue)
        row = world.distributions[0, group]
        chances = {"group": group, "place": row[: score - 1].sum() + row[score - 1] / 2, "luck": 0.0 if repays else 0.9}
        world.tapes.now = world.tapes.now._replace(**{name: np.array([value]) for name, value in chances.items()})

    world.tapes.redraw = world.tapes.advance = bring
    world.reset(np.arange(1), [np.random.default_rng(0)])
    return world


def after_the_example(repays=True, then=(), **config):
    """A bank that decided on those eight; the next applicant has group 1 and score 3."""
    world = scripted([*(row[:3] for row in DECIDED), (1, 3, repays), *then], **config)
    for *_, granted in DECIDED:
        record = world.step(np.array([granted]))[4]
    return world, record


def test_the_gap_of_the_example():
    _, record = after_the_example()
    figures = record["fairness"]
    assert figures["d_s"][0] == pytest.approx(1 / 3)
    assert_allclose(record["detail"]["tpr"][0], [2 / 3, 1 / 3])
    assert_allclose(figures["tpr"][0], [2 / 2.6, 1 / 2.25])
    assert figures["d_s_estimated"][0] == pytest.approx(0.32479, abs=5e-6)
    assert figures["d_l_window"][0] == pytest.approx(1.35, abs=1e-12)
    _, record = after_the_example(oracle_outcomes=True)
    assert_allclose(record["fairness"]["tpr"][0], [2 / 3, 1 / 3])
    assert record["fairness"]["d_s_estimated"][0] == record["fairness"]["d_s"][0]


@pytest.mark.parametrize(
    "oracle, repays, grant, reject",
    [
        (True, True, 0.16667, 0.41667),
        (True, False, 0.33333, 0.33333),
        (False, True, 0.23219, 0.39886),
        (False, False, 0.23219, 0.39886),
    ],
)
def test_what_the_gap_would_be(oracle, repays, grant, reject):
    world, _ = after_the_example(repays, oracle_outcomes=oracle)
    would_be = world.measures.would_be(world.massage(), np.array([[1, 0]]))
    assert_allclose(would_be, [[grant, reject]], atol=5e-6)
    if oracle and not repays:
        assert would_be[0, 0] == would_be[0, 1]
    for column, action in enumerate((1, 0)):
        world, _ = after_the_example(repays, [(0, 4, True)], oracle_outcomes=oracle)
        figures = world.step(np.array([action]))[4]["fairness"]
        if oracle or not action:
            assert figures["d_s_estimated"][0] == would_be[0, column]


def massaged(world, iteration, action=0, grant=0.48):
    """The action that takes the place of a sampled one."""
    measures, massage, actions = world.measures, world.massage(), np.array([action])
    others, closeness, valid = measures.candidates(massage, actions, np.array([[1 - grant, grant]]))
    assert valid.all() and others.shape == closeness.shape == valid.shape == (1, 1)
    assert closeness[0, 0] == pytest.approx(abs(2 * grant - 1))
    gain = measures.would_be(massage, actions[:, None]) - measures.would_be(massage, others)
    changed = (closeness < measures.threshold(iteration)) & (gain > 1e-12)
    return int(np.where(changed, others, actions[:, None])[0, 0])


@pytest.mark.parametrize(
    "iteration, oracle, repays, result",
    [
        *[(iteration, *bank, 0) for iteration in (17, 18) for bank in ((False, True), (True, True), (True, False))],
        (20, False, True, 1),
        (20, False, False, 1),
        (20, True, True, 1),
        (20, True, False, 0),
    ],
)
def test_massaging_of_the_example(iteration, oracle, repays, result):
    world, _ = after_the_example(repays, oracle_outcomes=oracle)
    assert massaged(world, iteration) == result
    assert massaged(world, iteration, action=1) == 1
    assert massaged(world, 349, grant=0.999) == 0


def test_the_threshold_opens_slowly():
    tau = LendingMeasures().threshold
    known = {18: 0.015, 20: 0.04433, 50: 0.39271, 100: 0.71476, 200: 0.93707, 349: 0.99338}
    assert all(tau(iteration) == 0 for iteration in range(18))
    assert {iteration: round(tau(iteration), 5) for iteration in known} == known
    assert tau(30) == pytest.approx(1 - 2 * 0.5 * 0.985**13)


@pytest.mark.parametrize(
    "group, score, repaid, defaulted",
    [(1, 3, 0.99, 1.01), (0, 4, 1.01, 0.99), (1, 5, 0.99, 1.01), (0, 6, 1.01, 0.99)],
)
@pytest.mark.parametrize("source", ["exact", "expected"])
def test_w1_after_a_loan(group, score, repaid, defaulted, source):
    chance = (0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7)[score - 1]
    for repays, after in ((True, repaid), (False, defaulted)):
        world = scripted([(group, score, repays), (0, 4, True), (0, 4, True)], long_term_source=source)
        figures = world.step(np.array([1]))[4]["fairness"]
        assert figures["d_l"][0] == pytest.approx(1.0, abs=1e-12)
        assert figures["w1"][0] == pytest.approx(after, abs=1e-12)
        expected = chance * repaid + (1 - chance) * defaulted if source == "expected" else after
        assert figures["d_l_next"][0] == pytest.approx(expected, abs=1e-12)
        assert world.step(np.array([0]))[4]["fairness"]["d_l"][0] == figures["w1"][0]


def test_the_expected_w1_of_the_example():
    for person, expected in (((1, 3, True), 1.001), ((0, 4, True), 1.002)):
        world = scripted([person, (0, 4, True), (0, 4, True)], long_term_source="expected")
        assert world.step(np.array([1]))[4]["fairness"]["d_l_next"][0] == pytest.approx(expected, abs=1e-12)
        figures = world.step(np.array([0]))[4]["fairness"]
        assert figures["d_l_next"][0] == figures["d_l"][0]


def test_at_the_edges_nothing_moves():
    row = (0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5)
    for score, repays in ((1, False), (7, True)):
        world = scripted([(0, score, repays), (0, 7, True)], initial_distribution=(row, row))
        before = world.distributions
        world.step(np.array([1]))
        assert_array_equal(world.distributions, before)


def test_no_more_moves_than_there_is():
    world = scripted([(0, 3, True), (0, 4, True)], score_shift=0.4)
    world.step(np.array([1]))
    assert_allclose(world.distributions[0, 0], [0, 0.1, 0, 0.3, 0.3, 0.3, 0], atol=1e-12)


def test_a_gap_may_wait_until_all_groups_have_a_rate():
    granted, repaying = np.array([[1.0, 0.0, 1.0]]), np.array([[1.0, 0.0, 2.0]])
    assert LendingMeasures().gap(granted, repaying)[0] == 1
    assert LendingMeasures("skip").gap(granted, repaying)[0] == 0
    assert LendingMeasures("skip").gap(granted[:, ::2], repaying[:, ::2])[0] == 0.5
    with pytest.raises(ValueError, match=r"undefined_tpr must be one of 'zero', 'skip', got 'one'"):
        LendingMeasures("one")


def test_measures_are_values_that_travel():
    measures = LendingWorld(1, undefined_tpr="skip").fairness_spec.measures
    assert measures == LendingMeasures("skip") != LendingMeasures()
    assert pickle.loads(pickle.dumps(measures)) == measures
    assert isinstance(measures, Measures)
    assert set(measures.reported.values()) == {"cash", "d_s", "w1", "d_l_window"}
    keys = set(keys_of(measures))
    world = LendingWorld(2)
    world.reset(np.arange(2))
    assert keys | set(measures.reported.values()) <= set(world.step(np.array([0, 1]))[4]["fairness"])
    with pytest.raises(ValueError, match="probabilities must be those of both decisions"):
        measures.candidates(world.massage(), np.array([0, 1]), None)


@pytest.mark.parametrize("config", [{}, {"oracle_outcomes": True}])
def test_plain_infos_say_the_same_as_arrays(config):
    config["episode_length"] = 20
    arrays = WorldVecEnv(LendingWorld, 2, **config)
    plain = DummyVecEnv([lambda: WorldEnv(LendingWorld, **config)] * 2)
    candidates = np.array([[0, 1], [1, 0]])
    measures = arrays.get_attr("fairness_spec")[0].measures
    for env in (arrays, plain):
        env.seed(0)
        env.reset()
    told = [first(env) for env in (arrays, plain)]
    for actions in np.random.default_rng(0).integers(0, 2, (50, 2)):
        assert_array_equal(*(measures.would_be(massage, candidates) for massage in told))
        steps = [(env, *env.step(actions)) for env in (arrays, plain)]
        told = [coming(env, infos, dones) for env, _, _, dones, infos in steps]
