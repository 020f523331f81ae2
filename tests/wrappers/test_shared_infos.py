"""Are infos that share arrays read at once, and those of a wrapper in between one by one?"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import VecFairMDP
from sb3_fair.wrappers.infos import Infos
from tests.wrappers.bank import Bank, Foreign


class Ward(Foreign):
    """Each copy decides on two people, and tells beside them who needed it, in shared arrays or in plain dicts."""

    def __init__(self, shared, several):
        super().__init__(DummyVecEnv([partial(Bank, gym.spaces.Discrete(2))] * 3))
        self.shared, self.several, self.t = shared, several, 0

    def step_wait(self):
        obs, rewards, dones, _ = self.venv.step_wait()
        self.t += 1
        labels = (np.arange(6).reshape(3, 2) + self.t) % 2
        groups = {"gender": labels, "nat": 1 - labels} if self.several else labels
        people = {"group": groups, "action": np.arange(6).reshape(3, 2) // 2 % 2}
        infos = Infos({"individual": people, "needed": np.array([[1, 0], [np.nan, 1], [1, np.nan]])}, 3)
        return obs, rewards, dones, infos if self.shared else [dict(info) for info in infos]


@pytest.mark.parametrize(("group", "notions"), [(["gender", "nat"], ("OAE@gender", "EO@nat")), (None, ("OAE", "EO"))])
def test_feedback_under_a_key_is_read_from_shared_arrays_at_once(monkeypatch, group, notions):
    spec = FairnessSpec(group=group, feedback="needed", notions=notions, feedback_missing="ignore")
    individual, asked = FairnessSpec.individual, []
    monkeypatch.setattr(FairnessSpec, "individual", lambda *of: asked.append(1) or individual(*of))
    figures = {}
    for shared in (False, True):
        venv = VecFairMDP(Ward(shared, group is not None), spec)
        venv.reset()
        asked.clear()
        steps = [venv.step(np.zeros(3, dtype=int))[3] for _ in range(4)]
        assert len(asked) == (4 * (group is not None) if shared else 4 * 3)
        figures[shared] = [
            [(info["fairness"], str(sorted(info["individual"].items()))) for info in infos] for infos in steps
        ]
    assert figures[True] == figures[False]
    values = [value for infos in figures[True] for fairness, _ in infos for value in fairness.values()]
    assert {None, -1.0, 0.0} <= set(values)


class Editor(Foreign):
    """Changes the infos of a step with a function."""

    def __init__(self, venv, edit):
        super().__init__(venv)
        self.edit = edit

    def step_wait(self):
        *step, infos = self.venv.step_wait()
        self.edit(infos)
        return *step, infos


def nobody_needed(infos):
    for info in infos:
        info["needed"] = np.zeros(2)


def other_groups(infos):
    for info in infos:
        info.update(individual={**info["individual"], "group": np.array([0, 0])})


def another(infos):
    infos[2] = {**infos[2], "needed": np.zeros(2)}


def in_place_of_another(infos):
    infos[0] |= {"needed": np.ones(2)}
    del infos[1]["needed"]
    infos[1].setdefault("needed", np.ones(2))


def heard_of_late(infos):
    infos[0]["late_feedback"] = [(1, 1)]


@pytest.mark.parametrize("edit", [nobody_needed, other_groups, another, in_place_of_another, heard_of_late])
def test_what_a_wrapper_tells_counts(edit):
    spec = FairnessSpec(feedback="needed", notions=("OAE", "SP"), feedback_missing="ignore")
    told = []
    for shared in (True, False, None):
        venv = VecFairMDP(Ward(bool(shared), False) if shared is None else Editor(Ward(shared, False), edit), spec)
        venv.reset()
        infos = [venv.step(np.zeros(3, dtype=int))[3] for _ in range(3)][-1]
        counts = [venv.feedback_counts(copy) for copy in range(3)]
        told.append(([(info["fairness"], str(info["individual"]["feedback"])) for info in infos], counts))
    assert told[0] == told[1] != told[2]


def test_what_stands_in_the_place_of_nobody_is_not_looked_at():
    class Half(Foreign):
        def step_wait(self):
            *step, _ = self.venv.step_wait()
            people = {"group": np.array([np.nan, 1.0]), "action": np.array([-1, 0])}
            return *step, Infos({"individual": people, "needed": np.array([-1.0, 1.0])}, 2)

    venv = VecFairMDP(Half(DummyVecEnv([partial(Bank, gym.spaces.Discrete(2))] * 2)), FairnessSpec(feedback="needed"))
    venv.reset()
    first, second = venv.step(np.zeros(2, dtype=int))[3]
    assert first["individual"] is None and second["individual"]["id"] == 0
