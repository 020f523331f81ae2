"""Does the loan scenario keep its rules?"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sb3_fair.fairness import group_notion
from sb3_fair.zoo.envs.loans.exact import rule_worth
from sb3_fair.zoo.envs.loans.world import LoanAllocationWorld, LoansConfig
from tests.zoo.forms import assert_close, begun, returns_of

# applied, choice, luck, levels after, loans of A and B, net, reward, reward had A been 3 loans ahead from the start
TRACE = [
    ("1111", 2, 0.95, (3, 3, 6, 7), (0, 1), -1, -1, -2),
    ("1011", 0, 0.30, (4, 3, 6, 7), (1, 1), 0, 0, -3),
    ("1101", 2, 0.50, (4, 3, 6, 7), (1, 1), 0, -5, -5),
    ("1111", 1, 0.62, (4, 2, 6, 7), (2, 1), -1, -1, -4),
    ("1110", 0, 0.50, (5, 2, 6, 7), (3, 1), 0, -50, -50),
]

started = partial(begun, LoanAllocationWorld, detail=True)


def apply(world, applied, luck=0.5):
    """Just these people apply in the coming step of every copy, and luck decides on repayment."""
    rows = np.tile([letter == "1" for letter in applied], (world.n_worlds, 1))
    world.tapes.now = world.tapes.now._replace(applied=rows, luck=np.full(world.n_worlds, luck))


def play_trace(ahead=0, **config):
    world = started(episode_length=5, **config)
    world.counts[:, 0] += ahead
    steps = []
    for applied, choice, luck, *_ in TRACE:
        apply(world, applied, luck)
        steps.append(world.step(np.array([choice])))
    return steps


def test_the_worked_example_pays_what_it_should():
    for time, (expected, step) in enumerate(zip(TRACE, play_trace(), strict=True)):
        applied, choice, _, levels, loans, net, reward, shifted = expected
        obs, paid, terminated, truncated, record = step
        granted = applied[choice] == "1"
        detail, people, figures = (record[key] for key in ("detail", "individual", "fairness"))
        assert_array_equal(detail["levels"][0], levels)
        assert_array_equal(detail["counts"][0], loans)
        assert (detail["net"][0], paid[0]) == (net, reward)
        assert_allclose(obs[0, 4:], [*np.array(levels) / 7, net / 5, (time + 1) / 5], atol=1e-6)
        assert_array_equal(people["present"][0], [letter == "1" for letter in applied])
        assert_array_equal(people["action"][0], np.eye(4)[choice] * granted)
        assert_array_equal(people["group"][0], [0, 0, 1, 1])
        assert_array_equal(np.isnan(people["feedback"][0]), people["action"][0] == 0)
        assert not granted or people["feedback"][0, choice] == (time in (1, 4))
        event = record["fair_event"]
        base, mask = (-50, False) if time == 4 else (0, True) if granted else (-5, False)
        assert (event.granted[0], event.base[0], event.mask[0]) == (granted, base, mask)
        assert event.base[0] - event.mask[0] * abs(loans[0] - loans[1] + 3) == shifted
        assert figures["difference"][0] == abs(loans[0] - loans[1])
        assert figures["refused"][0] == (time >= 2)
        assert figures["margin_met"][0] == 0
        assert (terminated[0], truncated[0]) == (time == 4, False)
    assert sum(step[1][0] for step in play_trace()) == -57
    assert figures["parity"][0] == -1 - 0 - 0 - 1 - 2


def test_had_a_been_ahead_the_same_steps_would_pay_what_the_event_says():
    steps = play_trace(ahead=3)
    assert [step[1][0] for step in steps] == [row[-1] for row in TRACE]
    assert steps[-1][4]["fairness"]["parity"][0] == -2 - 3 - 3 - 4 - 5  # the refusal leaves the groups 3 apart


def test_the_last_step_is_one_like_any_other_if_the_margin_is_met():
    last = play_trace(margin=0)[-1]
    assert last[1][0] == -2 and last[4]["fairness"]["margin_met"][0] == 1


def test_a_margin_is_met_where_it_is_reached_exactly():
    for length in (10, 30, 40, 70):
        assert np.ceil(LoansConfig(episode_length=length).required) == length // 10


def test_a_refusal_in_the_last_step_pays_the_smaller_penalty_only_if_the_margin_is_met():
    for margin, reward in ((0, -1), (1, -10)):
        world = started(episode_length=1, margin=margin)
        apply(world, "0111")
        assert world.step(np.array([0]))[1][0] == reward


def test_levels_stay_on_the_ladder():
    world = started(start_levels=(0, 0, 7, 7), margin=-1)
    for choice, luck in ((0, 0.99), (2, 0.0)):
        apply(world, "1111", luck)
        world.step(np.array([choice]))
        assert_array_equal(world.levels[0], (0, 0, 7, 7))
    assert world.net[0] == 0


def test_people_repay_and_apply_as_often_as_is_said():
    world = started(4_000, start_levels=(0, 3, 5, 7), apply_probability=0.6)
    applied = world.present.copy()
    assert_allclose(applied.mean(axis=0), 0.6, atol=0.03)
    for person, score in enumerate((0.2, 0.5, 0.7, 0.9)):
        world.reset(np.arange(4_000))
        feedback = world.step(np.full(4_000, person))[4]["individual"]["feedback"][:, person]
        assert np.isnan(feedback).mean() == pytest.approx(0.4, abs=0.03)
        assert np.nanmean(feedback) == pytest.approx(score, abs=0.04)


def test_gaussian_credit_moves_by_the_normal_steps_of_the_paper():
    world = started(5_000, credit="gaussian", start_levels=(3, 3, 3, 3), apply_probability=1.0)
    obs, *_, record = world.step(np.zeros(5_000, dtype=int))
    repaid = record["individual"]["feedback"][:, 0] == 1
    score = obs[:, 4].astype(float)
    assert_allclose(obs[:, 5:8], 0.5, atol=1e-6)
    assert repaid.mean() == pytest.approx(0.5, abs=0.03)
    for outcome, mean in ((repaid, 0.55), (~repaid, 0.45)):
        assert score[outcome].mean() == pytest.approx(mean, abs=0.008)
        assert score[outcome].std() == pytest.approx(0.1, abs=0.006)
    assert_array_equal(world.net, np.where(repaid, 1, -1))
    for _ in range(30):
        obs, *_ = world.step(np.zeros(5_000, dtype=int))
        assert world.observation_space.low[4] <= obs[:, 4].min() <= obs[:, 4].max() <= world.observation_space.high[4]
    assert obs[:, 4].min() == np.float32(0.2) and obs[:, 4].max() == np.float32(0.9)


def test_the_time_is_hidden_and_goes_on_as_in_the_paper_on_request():
    ours, paper, mixed = started(), started(paper=True), started(paper=True, clock=True)
    assert (ours.end, ours.clock, ours.observation_space.shape) == ("terminated", True, (10,))
    assert (paper.end, paper.clock, paper.observation_space.shape) == ("truncated", False, (9,))
    assert (mixed.end, mixed.clock) == ("truncated", True)
    for _ in range(40):
        _, _, terminated, truncated, _ = paper.step(np.array([0]))
    assert truncated[0] and not terminated[0]


def test_the_ids_have_their_settings():
    plain, code, gaussian = (
        gym.make(f"sb3_fair/LoanAllocation{name}-v0").unwrapped for name in ("", "-Code", "-Gaussian")
    )
    assert_allclose(plain.reset(seed=0)[0][4:8], np.array([3, 3, 7, 7]) / 7)
    assert_allclose(code.reset(seed=0)[0][4:8], np.array([4, 4, 7, 7]) / 7)
    assert_allclose(gaussian.reset(seed=0)[0][4:8], [0.5, 0.5, 0.9, 0.9])
    assert plain.max_return == -20 and plain.stakeholders == (0, 0, 1, 1) and plain.default_memory == "difference"
    assert plain.scheme.W([3, 1]) == -2


def test_fairness_between_the_groups_can_be_measured():
    env = gym.make("sb3_fair/LoanAllocation-v0", audit=("SP", "EO"))
    env.reset(seed=0)
    actions, groups = [], []
    for time in range(40):
        info = env.step(2 if time % 3 else time % 2)[4]
        for column, name in ((actions, "action"), (groups, "group")):
            column.extend(info["individual"][name])
    assert info["fairness"]["SP"] == pytest.approx(group_notion("SP", actions=actions, groups=groups))
    assert info["fairness"]["EO"] is None  # nobody knows who else would have repaid
    assert info["fairness"]["SP"] < -0.1
    assert env.unwrapped.fairness_spec.group_names == ("A", "B")


@pytest.mark.parametrize("rule", LoanAllocationWorld.rules)
def test_rules_earn_what_they_should(rule):
    config = {"episode_length": 8, "start_levels": (4, 6, 5, 2), "apply_probability": 0.7}
    world, worth = started(10_000, **config), rule_worth(rule, **config)
    total = returns_of(world.rules[rule], world)
    assert_close(total, worth.value)
    assert_close(world.figures()["margin_met"], worth.margin_met)
    assert total.max() <= world.max_return


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "start_levels", "value", "met"),
    [
        ("oracle", (4, 4, 7, 7), -29.61702, 0.977365),
        ("random-applicants", (4, 4, 7, 7), -151.48372, 0.963819),
        ("random-all", (4, 4, 7, 7), -295.18656, 0.954549),
        ("best-credit", (4, 4, 7, 7), -791.12884, 0.999801),
        ("oracle", (3, 3, 7, 7), -54.19547, 0.915915),
        ("random-applicants", (3, 3, 7, 7), -181.21788, 0.888473),
        ("random-all", (3, 3, 7, 7), -329.24097, 0.867552),
        ("best-credit", (3, 3, 7, 7), -802.11080, 0.999597),
    ],
)
def test_rules_of_the_paper_reach_their_exact_values(rule, start_levels, value, met):
    world = started(10_000, start_levels=start_levels)
    assert_close(returns_of(world.rules[rule], world), value)
    assert_close(world.figures()["margin_met"], met)


def test_the_oracle_serves_the_group_behind_first_and_only_applicants():
    world = started(start_levels=(1, 4, 7, 2))
    for loans, applied, chosen in (
        ((0, 1), "1111", 1),
        ((0, 1), "1011", 0),
        ((0, 1), "0011", 2),
        ((1, 0), "1111", 2),
        ((1, 0), "1100", 1),
        ((2, 2), "1111", 2),
        ((2, 2), "1101", 1),
    ):
        world.counts[:] = loans
        apply(world, applied)
        assert_array_equal(world.rules["oracle"](world), np.eye(4)[[chosen]])
    assert_array_equal(world.rules["best-credit"](world), np.eye(4)[[1]])
    assert_allclose(world.rules["random-applicants"](world), [[1 / 3, 1 / 3, 0, 1 / 3]])
    apply(world, "0000")
    assert_array_equal(world.rules["random-applicants"](world), np.full((1, 4), 0.25))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start_levels": 3}, "start_levels must be a sequence .*, got 3"),
        ({"start_levels": (3, 3, 7)}, r"start_levels must be 4 levels from 0 to 7, got \(3, 3, 7\)"),
        ({"start_levels": (3, 3, 7, 8)}, r"start_levels must be 4 levels from 0 to 7, got \(3, 3, 7, 8\)"),
        ({"start_levels": (3, 3, 7, 0.5)}, r"start_levels must be a sequence .* an integer\), got .*0.5"),
        ({"credit": "normal"}, r"credit must be one of 'discrete', 'gaussian', got 'normal'"),
        ({"apply_probability": 2}, r"apply_probability must be in \[0, 1\], got 2"),
        ({"episode_length": -4}, "episode_length must be a positive integer, got -4"),
        ({"margin": "10 %"}, r"margin must be in \[-1, 1\], got '10 %'"),
        ({"end": "over"}, r"end must be one of 'truncated', 'terminated' or None, got 'over'"),
        ({"clock": "no"}, r"clock must be True or False or None, got 'no'"),
        ({"paper": 1}, r"paper must be True or False, got 1"),
    ],
)
def test_settings_that_are_not_allowed_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        LoanAllocationWorld(1, **settings)
