"""Is the chance level beside a figure that of the very decisions the figure is about?"""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

import sb3_fair
from sb3_fair.common.chance import SUFFIX, VecChance
from sb3_fair.fairness import FullHistory, chance_level

ID = "sb3_fair/JobHiring-Small-v0"


def play(venv, episodes, rng):
    """Random decisions; for each finished episode of copy 0 its groups, actions, feedback and final figures."""
    venv.seed(0)
    venv.reset()
    story = [[], [], []]
    while episodes:
        _, _, dones, infos = venv.step(rng.integers(2, size=venv.num_envs))
        person = infos[0]["individual"]
        for column, key in zip(story, ("group", "action", "feedback"), strict=True):
            column.append(person[key])
        if dones[0]:
            yield story, infos[0]["fairness"]
            story = [[], [], []]
            episodes -= 1


@pytest.mark.parametrize("window", [10, 500])
def test_the_level_is_that_of_the_decisions_in_the_window_of_the_episode(window):
    venv = VecChance(sb3_fair.make_vec(ID, n_envs=3, audit=("SP", "EO", "IF"), window=window), n_permutations=40)
    for (groups, actions, feedback), figures in play(venv, 3, np.random.default_rng(1)):
        for notion in ("SP", "EO"):
            recent = slice(-window, None)
            expected = chance_level(
                notion, actions=actions[recent], groups=groups[recent], feedback=feedback[recent], n_permutations=40
            )
            np.testing.assert_equal(figures[notion + SUFFIX], expected)
        assert "IF" + SUFFIX not in figures


def test_intersections_and_several_attributes_have_levels_of_their_own():
    groups = ["gender", "nationality", ("gender", "nationality")]
    venv = VecChance(sb3_fair.make_vec(ID, n_envs=2, audit=("SP",), group=groups))
    ((story, figures),) = play(venv, 1, np.random.default_rng(1))
    names = [name for name in figures if name.endswith(SUFFIX)]
    assert sorted(names) == ["SP@gender by chance", "SP@gender+nationality by chance", "SP@nationality by chance"]
    assert figures["SP@gender+nationality by chance"] > figures["SP@gender by chance"]
    assert figures["SP@nationality by chance"] == chance_level(
        "SP", actions=story[1], groups=[group["nationality"] for group in story[0]], n_permutations=50
    )


def test_nothing_is_recorded_where_no_group_notion_is_measured():
    venv = VecChance(sb3_fair.make_vec(ID, n_envs=2, audit=("IF",)))
    ((_, figures),) = play(venv, 1, np.random.default_rng(1))
    assert list(figures) == ["IF"] and venv._steps == []


@pytest.mark.parametrize(("history", "last"), [({}, 500), ({"history": FullHistory()}, None)], ids=["window", "all"])
def test_everybody_who_is_there_counts_where_a_step_decides_on_several(history, last):
    venv = VecChance(sb3_fair.make_vec("sb3_fair/LoanAllocation-v0", n_envs=2, audit=("SP", "EO"), **history))
    rng = np.random.default_rng(3)
    venv.seed(0)
    venv.reset()
    groups, actions, feedback = [], [], []
    for _ in range(40):
        _, _, dones, infos = venv.step(rng.integers(4, size=2))
        for column, key in ((groups, "group"), (actions, "action"), (feedback, "feedback")):
            column.extend(infos[0]["individual"][key])
    assert dones[0] and 120 < len(actions) < 160
    recent = slice(None if last is None else -last, None)
    for notion in ("SP", "EO"):
        expected = chance_level(
            notion,
            actions=actions[recent],
            groups=groups[recent],
            feedback=[np.nan if known is None else known for known in feedback[recent]],
            n_permutations=50,
        )
        np.testing.assert_equal(infos[0]["fairness"][notion + SUFFIX], expected)


def test_single_environments_tell_the_same_as_a_batch():
    levels = []
    for venv in (
        DummyVecEnv([lambda: gym.make("sb3_fair/LoanAllocation-v0", audit=("SP",), window=30)]),
        sb3_fair.make_vec("sb3_fair/LoanAllocation-v0", audit=("SP",), window=30, monitor=False),
    ):
        chance = VecChance(venv)
        chance.seed(0)
        chance.reset()
        dones = [False]
        while not dones[0]:
            _, _, dones, infos = chance.step(np.array([1]))
        levels.append(infos[0]["fairness"]["SP" + SUFFIX])
    assert levels[0] == levels[1] > 0


def test_what_was_seen_is_forgotten_when_all_episodes_over_it_have_ended():
    """What people look like takes most of the room, and nobody asks for it."""
    venv = VecChance(sb3_fair.make_vec(ID, n_envs=2, audit=("SP",), episode_length=20, team_size=5))
    venv.seed(0)
    venv.reset()
    for _ in range(100):
        venv.step(np.array([0, 0]))
        assert len(venv._steps) <= 20
    assert all("features" not in step for step in venv._steps)


def test_only_the_notions_that_were_asked_for_have_a_level():
    venv = VecChance(sb3_fair.make_vec(ID, n_envs=2, audit=("SP", "EO")), notions=["EO"])
    (_, figures), *_ = play(venv, 1, np.random.default_rng(1))
    assert "EO" + SUFFIX in figures and "SP" + SUFFIX not in figures
