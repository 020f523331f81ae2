"""Penalties of agents whose episodes end apart, and of streams that go on over the ends of episodes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sb3_fair.fair_ppo.retrospective import Retrospective
from sb3_fair.fairness.disparity.populations import Disparity, Population


def test_agents_whose_episodes_end_apart_compare_mean_returns():
    """Episodes of agent 0 bring 1 and 3, that of agent 1 brings 6; slopes are -1 and 1."""
    two = [Population([0, 1])] * 4
    rewards = np.array([[1.0, 2], [1, 2], [2, 2], [5, 7]])
    dones = np.array([[True, False], [False, False], [True, True], [False, False]])
    for retro, expected in (
        ("telescoped", [-1, -1, 0, -2]),
        ("linear", [-1, -1, 0, -2]),
        ("terminal", [[-1, 0], [0, 0], [-1, -2], [0, 0]]),
        ("own_reweight", [[-1, 1]] * 4),
        ("constant", [0] * 4),
    ):
        retrospective = Retrospective(retro)
        penalties = retrospective(rewards, two, dones)
        assert_allclose(penalties, np.broadcast_to(np.reshape(expected, (4, -1)), (4, 2)))
        assert retrospective.past.disparity == 4 and retrospective.past.returns == {0: 2, 1: 6}
        assert retrospective.scale == 4 and retrospective.past.normalised == 1
    # 5 + 0 and 7 + 1 end now, and what ended before counts 5 % less: (1.9 * 2 + 5) / 2.9 and (.95 * 6 + 8) / 1.95
    retrospective(np.array([[0.0, 1]]), two[:1], np.ones((1, 2), dtype=bool))
    assert_allclose(retrospective.past.disparity, 13.7 / 1.95 - 8.8 / 2.9)
    scale = retrospective.scale
    running = np.zeros((2, 2), dtype=bool)
    retrospective(np.full((2, 2), 100.0), [Population([0, 1]), Population([1, 0])], running, streaming=True)
    assert retrospective.scale == scale, "running episodes do not count where some have ended"


def test_where_episodes_end_apart_only_groups_with_an_episode_are_compared_and_a_tolerance_holds():
    three = [Population([0, 1, 2], lf=[1, 1, 1])]
    rewards, dones = np.array([[4.0, 2, 9]]), np.array([[True, True, False]])
    for disparity in (Disparity(), Disparity("csp"), Disparity(aggregate="group_mean")):
        telescoped = Retrospective("telescoped", disparity)
        assert_allclose(telescoped(rewards, three, dones), np.full((1, 3), -2.0))
        assert telescoped.past.disparity == 2
    for w, due in ((0.5, True), (0.7, False)):  # D is 2, m the mean return 3
        linear = Retrospective("telescoped", tolerance=w)
        penalty = linear(rewards[:, :2], [Population([0, 1])], np.array([[True, True]]))
        linear.apart = True
        penalty = linear(rewards[:, :2], [Population([0, 1])], np.array([[True, True]]))
        assert_allclose(penalty, -2.0 * due)


def test_twins_whose_episodes_end_apart_share_what_rewards_add_once_both_are_known():
    twins, retrospective = [Population([0, 1], world=[0, 1], pair=[1, 0])], Retrospective(disparity=Disparity("cf"))
    assert not retrospective(np.array([[4.0, 1]]), twins, np.array([[True, False]])).any()
    penalties = retrospective(np.array([[2.0, 5]]), twins, np.array([[False, True]]))
    assert_allclose(penalties, [[2 - 5] * 2])  # 6 less 4


def test_a_lag_of_phases_is_no_disparity():
    """All earn 1 a step, in episodes of 5 steps, or of 4 and 6 in turn."""
    steps, two = np.arange(60), [Population([0, 1])] * 60
    dones = np.stack([steps % 5 == 4, (steps % 10 == 3) | (steps % 10 == 9)], axis=1)
    retrospective = Retrospective()
    assert not retrospective(np.ones((60, 2)), two, dones).any()
    assert retrospective.past.disparity == 0


def test_a_stream_that_carries_over_goes_on_where_episodes_end():
    steps = [Population([group]) for group in (0, 0, 1, 1)]
    rewards, dones = np.array([[1.0], [1], [0], [1]]), np.ones((4, 1), dtype=bool)
    for retro in ("telescoped", "terminal"):
        retrospective = Retrospective(retro)
        penalties = retrospective(rewards, steps, dones, streaming=True, carries=True)
        assert_allclose(penalties[:, 0], [0, 0, -1.5, 0.5])
        assert retrospective.past.disparity == 1 and retrospective.scale == 1.5
    # Half of it counts in the next rollout: one step of each group, with means of 1 and .5. D is .5, then .75.
    penalties = retrospective(rewards[:1], steps[:1], dones[:1], streaming=True, carries=True)
    assert_allclose(penalties[0], -0.25)
    late = Retrospective("terminal")
    dones[:3] = False
    assert_allclose(late(rewards, steps, dones, streaming=True, carries=True)[:, 0], [0, 0, 0, -1])
    late(rewards[:3], steps[:3], dones[:3], streaming=True, carries=True)
    late.restart()
    assert_allclose(late(rewards, steps, dones, streaming=True, carries=True)[:, 0], [0, 0, 0, -1])
    assert not Retrospective()(rewards, steps, np.ones((4, 1), dtype=bool), streaming=True).any()


@pytest.mark.parametrize(
    ("retro", "expected"), [("own_reweight", [1, 1, -1, -1]), ("linear", [0, 0, 9 * (3 + 2) / (2 * 2), 0])]
)
def test_a_stream_that_carries_over_remembers_who_led_in_the_rollouts_before(retro, expected):
    """Group 0 led, and the lead of group 1 in the third step is not looked at."""
    steps, dones = [Population([group]) for group in (0, 0, 1, 1)], np.ones((4, 1), dtype=bool)
    retrospective = Retrospective(retro, g="episode")
    retrospective(np.array([[1.0], [1], [0], [1]]), steps, dones, streaming=True, carries=True)
    found = retrospective(np.array([[0.0], [0], [9], [0]]), steps, dones, streaming=True, carries=True)
    assert_allclose(found[:, 0], expected)


@pytest.mark.parametrize(("others", "mean"), [([-1, -1], (2 + 1) / 2), ([0, 0], (2 + 1 + 10 + 5 + 5) / 5)])
def test_worlds_in_which_nobody_is_compared_do_not_count_where_episodes_end_apart(others, mean):
    rewards = np.array([[2.0, 1, 5, 5], [1, 1, 5, 5]])
    dones = np.array([[True, False, False, True], [True] * 4])
    worlds = Population([0, 1, *others], world=[0, 0, 1, 1])
    retrospective = Retrospective()
    retrospective(rewards, [worlds] * 2, dones)
    assert retrospective.apart
    assert retrospective.past.disparity == pytest.approx(abs(mean - 2))
    assert retrospective.scale == pytest.approx((mean + 2) / 2)
    assert retrospective.past.normalised == pytest.approx(abs(mean - 2) / retrospective.scale)
