"""Group counts and chance levels of episodes: are they of the very decisions the figures are about?"""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

import sb3_fair
from sb3_fair.common.group_counts import COUNTS
from sb3_fair.common.people import CHANCE, GROUPS, VecPeople
from sb3_fair.fairness import DiscountedHistory, FairnessSpec, FullHistory, SlidingWindow, chance_level
from sb3_fair.fairness.notions import chance
from sb3_fair.fairness.notions.chance import expected_sizes
from sb3_fair.wrappers import VecFairMDP
from tests.wrappers.bank import Bank, Foreign

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
            yield story, infos[0]
            story = [[], [], []]
            episodes -= 1


GENDERS = ("man", "woman")


def named(labels):
    return [GENDERS[label] for label in labels]


def counted(found, groups, actions, feedback):
    """Are the counts of every group what a loop over the decisions counts?"""
    assert set(found) == set(groups)
    for label, counts in found.items():
        own = np.array([group == label for group in groups])
        favourable, deserving, undeserving = actions == 1, feedback == 1, feedback == 0
        for name, number in zip(COUNTS, counts, strict=True):
            kinds = {"favourable": favourable, "deserving": deserving, "undeserving": undeserving}
            kinds["outcome known"] = deserving | undeserving
            wanted = [kinds[part] for part in name.split(", ") if part in kinds]
            assert number == np.sum(np.logical_and.reduce([own, *wanted])), (label, name)


def lone(t):
    """In every third step, nobody is decided on."""
    return None if t % 3 == 2 else {"group": "ab"[t % 2], "feedback": int(t % 4 < 2)}


@pytest.mark.parametrize("delay", [None, 2, 100])
def test_steps_on_nobody_are_left_out_and_late_outcomes_count_if_they_come_in_the_episode(delay):
    length, actions = 12, np.random.default_rng(0).integers(2, size=12)
    spec = FairnessSpec(notions=("SP",), feedback_delay=delay)
    tells = [lone, lambda t: {**(lone(0) if lone(t) is None else lone(t)), "group": "a"}]
    envs = [lambda tell=tell: Bank(gym.spaces.Discrete(2), tell, length=length) for tell in tells]
    venv = VecPeople(VecFairMDP(DummyVecEnv(envs), spec))
    venv.reset()
    for action in actions:
        infos = venv.step([action] * 2)[3]
    there = [t for t in range(length) if lone(t)]
    known = [t for t in there if t + (delay or 0) < length]
    groups = [lone(t)["group"] for t in there]
    feedback = np.array([lone(t)["feedback"] if t in known else np.nan for t in there])
    counted(infos[0][GROUPS][""], groups, actions[there], feedback)
    assert infos[1][GROUPS][""]["a"][0] == length


@pytest.mark.parametrize("history", [SlidingWindow(10), SlidingWindow(500), DiscountedHistory(1.0, -1.0, 5, 10, 10)])
def test_the_level_is_that_of_the_decisions_in_the_window_of_the_episode(history):
    venv = VecPeople(sb3_fair.make_vec(ID, n_envs=3, audit=("SP", "EO", "IF"), history=history), n_permutations=40)
    for (groups, actions, feedback), info in play(venv, 3, np.random.default_rng(1)):
        for notion in ("SP", "EO"):
            recent = slice(-history.decisions, None)
            expected = chance_level(
                notion, actions=actions[recent], groups=groups[recent], feedback=feedback[recent], n_permutations=40
            )
            np.testing.assert_equal(info[CHANCE][notion], expected)
        assert list(info[CHANCE]) == ["SP", "EO"]
        counted(info[GROUPS][""], named(groups), np.array(actions), np.array(feedback))


def test_notions_of_the_same_decisions_share_the_permutations(monkeypatch):
    drawn = []
    histories = {"SP": SlidingWindow(9), "EO": SlidingWindow(20), "OAE": SlidingWindow(20)}
    monkeypatch.setattr(chance, "expected_sizes", lambda *of: drawn.append(1) or expected_sizes(*of))
    venv = VecPeople(sb3_fair.make_vec(ID, audit=("SP", "EO", "OAE"), history=histories))
    ((_, info), *_) = play(venv, 1, np.random.default_rng(1))
    assert len(drawn) == 2 and list(info[CHANCE]) == ["SP", "EO", "OAE"]


@pytest.mark.parametrize(
    "settings",
    [
        {"history": DiscountedHistory(0.9, threshold=-1.0)},
        {"history": DiscountedHistory(1.0, 0.01, 5, 20), "audit": ("SP", "IF")},
        {"reset_on_episode": False},
    ],
    ids=["weighted", "truncated", "carried over"],
)
def test_there_is_no_level_where_decisions_are_weighted_dropped_or_carried_over(settings):
    venv = VecPeople(sb3_fair.make_vec(ID, n_envs=2, **{"audit": ("SP",), **settings}))
    for story, info in play(venv, 2, np.random.default_rng(1)):
        assert np.isnan(info[CHANCE]["SP"])
        counted(info[GROUPS][""], named(story[0]), *map(np.array, story[1:]))


def test_intersections_and_several_attributes_have_levels_of_their_own():
    groups = ["gender", "nationality", ("gender", "nationality")]
    venv = VecPeople(sb3_fair.make_vec(ID, n_envs=2, audit=("SP",), group=groups))
    ((story, info),) = play(venv, 1, np.random.default_rng(1))
    figures = info[CHANCE]
    assert sorted(figures) == ["SP@gender", "SP@gender+nationality", "SP@nationality"]
    labels = named(group["gender"] for group in story[0])
    counted(info[GROUPS]["gender"], labels, np.array(story[1]), np.array(story[2]))
    assert set(info[GROUPS]["gender+nationality"]) == {f"{a}+{b}" for a in GENDERS for b in ("Belgian", "foreign")}
    assert figures["SP@gender+nationality"] > figures["SP@gender"]
    nationality = [group["nationality"] for group in story[0]]
    assert figures["SP@nationality"] == chance_level(
        "SP", actions=story[1], groups=nationality, feedback=story[2], n_permutations=50
    )


def test_nothing_is_recorded_where_no_group_notion_is_measured():
    venv = VecPeople(sb3_fair.make_vec(ID, n_envs=2, audit=("IF",)))
    ((_, info),) = play(venv, 1, np.random.default_rng(1))
    assert GROUPS not in info and CHANCE not in info and venv._steps == []


@pytest.mark.parametrize(("history", "last"), [({}, 500), ({"history": FullHistory()}, None)], ids=["window", "all"])
def test_everybody_who_is_there_counts_where_a_step_decides_on_several(history, last):
    venv = VecPeople(sb3_fair.make_vec("sb3_fair/LoanAllocation-v0", n_envs=2, audit=("SP", "EO"), **history))
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
        np.testing.assert_equal(infos[0][CHANCE][notion], expected)


def test_single_environments_tell_the_same_as_a_batch():
    levels = []
    for venv in (
        DummyVecEnv([lambda: gym.make("sb3_fair/LoanAllocation-v0", audit=("SP",), window=30)]),
        sb3_fair.make_vec("sb3_fair/LoanAllocation-v0", audit=("SP",), window=30, monitor=False),
    ):
        chance = VecPeople(venv)
        chance.seed(0)
        chance.reset()
        dones = [False]
        while not dones[0]:
            _, _, dones, infos = chance.step(np.array([1]))
        levels.append(
            (infos[0][CHANCE]["SP"], {name: counts.tolist() for name, counts in infos[0][GROUPS][""].items()})
        )
    assert levels[0] == levels[1] and levels[0][0] > 0


def test_infos_that_a_wrapper_made_anew_are_told_of():
    class Anew(Foreign):
        def step_wait(self):
            *step, infos = self.venv.step_wait()
            infos[1] = dict(infos[1])
            return *step, infos

    told = []
    for around in (Anew, lambda venv: venv):
        venv = VecPeople(around(sb3_fair.make_vec(ID, 2, audit=("SP",))))
        told.append([info[GROUPS][""]["man"].tolist() for _, info in play(venv, 2, np.random.default_rng(0))])
    assert told[0] == told[1]


def test_what_was_seen_is_forgotten_when_all_episodes_over_it_have_ended():
    """What people look like takes most of the room, and nobody asks for it."""
    venv = VecPeople(sb3_fair.make_vec(ID, n_envs=2, audit=("SP",), episode_length=20, team_size=5))
    venv.seed(0)
    venv.reset()
    for _ in range(100):
        venv.step(np.array([0, 0]))
        assert len(venv._steps) <= 20
    assert all("features" not in step for step in venv._steps)


def test_only_the_notions_that_were_asked_for_have_a_level():
    venv = VecPeople(sb3_fair.make_vec(ID, n_envs=2, audit=("SP", "EO")), notions=["EO"])
    (_, info), *_ = play(venv, 1, np.random.default_rng(1))
    assert list(info[CHANCE]) == ["EO"]


@pytest.mark.parametrize("group", [("gender", "nationality"), [("gender", "nationality")]])
def test_a_lone_intersection_has_groups_and_a_level(group):
    venv = VecPeople(sb3_fair.make_vec(ID, n_envs=2, audit=("SP",), group=group))
    ((story, info),) = play(venv, 1, np.random.default_rng(1))
    assert set(info[GROUPS][""]) == {f"{a}+{b}" for a in GENDERS for b in ("Belgian", "foreign")}
    labels = [tuple(group.values()) for group in story[0]]
    told = {"actions": story[1], "groups": labels, "feedback": story[2]}
    assert info[CHANCE]["SP"] == chance_level("SP", **told, n_permutations=50)


def test_a_lone_attribute_is_told_of_once_whether_named_or_not():
    of = "gender+nationality"
    settings = {"audit": ("SP", f"SP@{of}"), "group": ("gender", "nationality")}
    ((_, info),) = play(VecPeople(sb3_fair.make_vec(ID, n_envs=2, **settings)), 1, np.random.default_rng(1))
    assert list(info[GROUPS]) == [""]
    assert info[CHANCE]["SP"] == info[CHANCE][f"SP@{of}"] > 0


SEXES = {"groups": [0, 1], "group_names": ["man", "woman", "other"]}


@pytest.mark.parametrize(
    "spec",
    [
        {"group": "sex", **SEXES},
        {"group": ["sex"], **SEXES},
        {"group": {"sex": "sex"}, **{name: {"sex": value} for name, value in SEXES.items()}},
    ],
)
def test_one_attribute_is_the_same_however_it_is_given(spec):
    """Also where steps on nobody make floats of its numbers."""
    length, actions = 30, np.random.default_rng(0).integers(2, size=30)
    labels = [None if t % 5 == 4 else t % 3 for t in range(length)]
    envs = [lambda: Bank(gym.spaces.Discrete(2), lambda t: {"group": {"sex": labels[t]}}, length=length)] * 2
    venv = VecPeople(VecFairMDP(DummyVecEnv(envs), FairnessSpec(**spec)))
    venv.reset()
    for action in actions:
        infos = venv.step([action] * 2)[3]
    assert {name: counts[0] for name, counts in infos[0][GROUPS][""].items()} == {"man": 8, "woman": 8}
    there = [t for t in range(length) if labels[t] is not None]
    compared = {"groups": [labels[t] for t in there], "compared": [0, 1]}
    assert infos[0][CHANCE]["SP"] == chance_level("SP", actions=actions[there], **compared, n_permutations=50)


def test_labels_may_be_tuples_and_outcomes_unknown_where_a_step_decides_on_several():
    labels = np.empty(3, dtype=object)
    labels[:] = [("a", 1), ("b", 2), ("b", 2)]
    spec = FairnessSpec(group=lambda obs, info: labels)
    venv = VecPeople(VecFairMDP(DummyVecEnv([lambda: Bank(gym.spaces.MultiBinary(3), lambda t: None, length=4)]), spec))
    venv.reset()
    for _ in range(4):
        infos = venv.step(np.array([[1, 0, 1]]))[3]
    assert {name: counts[:2].tolist() for name, counts in infos[0][GROUPS][""].items()} == {
        "('a', 1)": [4, 4],
        "('b', 2)": [8, 4],
    }


def told_groups(*episodes):
    """How many decisions were on a group, by its name, in episodes with these labels."""
    tells = [lambda t, labels=labels: {"group": labels[t]} for labels in episodes]
    banks = [lambda tell=tell: Bank(gym.spaces.Discrete(2), tell, length=len(episodes[0])) for tell in tells]
    spec = FairnessSpec(group=("x", "y") if isinstance(episodes[0][0], dict) else None)
    venv = VecPeople(VecFairMDP(DummyVecEnv(banks), spec))
    venv.reset()
    for _ in episodes[0]:
        infos = venv.step([1] * len(banks))[3]
    return [{name: int(counts[0]) for name, counts in info[GROUPS][""].items()} for info in infos]


def test_a_group_has_the_same_name_in_every_episode():
    assert told_groups([0.0, 1.0, 1.0], [0.0, 0.5, 1.0]) == [{"0": 1, "1": 2}, {"0": 1, "0.5": 1, "1": 1}]


def test_groups_have_different_names():
    with pytest.raises(ValueError, match=r"labels that are written differently, got \[1, '1'\]"):
        told_groups([1, "1", 1])
    first, second = {"x": "a+b", "y": "c"}, {"x": "a", "y": "b+c"}
    assert told_groups([first, first], [first, second]) == [{"'a+b'+c": 2}, {"'a+b'+c": 1, "a+'b+c'": 1}]


def test_late_outcomes_may_be_an_array():
    bank = Bank(gym.spaces.Discrete(2), late=lambda t: np.array([[0, 1], [1, 0]]) if t == 3 else (), length=4)
    venv = VecPeople(VecFairMDP(DummyVecEnv([lambda: bank]), FairnessSpec()))
    venv.reset()
    infos = [venv.step([1])[3][0] for _ in range(4)]
    known = list(COUNTS).index("outcome known")
    assert [int(counts[known]) for counts in infos[-1][GROUPS][""].values()] == [1, 1]


def test_late_outcomes_of_an_episode_that_was_broken_off_are_forgotten():
    """A seeded reset numbers decisions from 0 on again."""
    told = iter([(), np.array([[0, 1]]), (), (), (), ()])
    bank = Bank(gym.spaces.Discrete(2), late=lambda t: next(told), length=4)
    venv = VecPeople(VecFairMDP(DummyVecEnv([lambda: bank]), FairnessSpec()))
    for steps in (2, 4):
        venv.seed(0)
        venv.reset()
        infos = [venv.step([1])[3][0] for _ in range(steps)]
    known = list(COUNTS).index("outcome known")
    assert [int(counts[known]) for counts in infos[-1][GROUPS][""].values()] == [0, 0]
