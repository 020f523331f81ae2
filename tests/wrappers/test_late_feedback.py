"""Does feedback reach the decision it is about, late or by id, and nobody after a reset?"""

import copy
import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecMonitor

import sb3_fair
from sb3_fair.fairness import FairnessSpec, FullHistory, SlidingWindow, group_notion
from sb3_fair.wrappers import FairMDP, VecFairMDP
from tests.wrappers.bank import Bank, Counting, faces

LATE = FairnessSpec(notions=("EO",), history=FullHistory())


class Clients(Counting):
    """Decides on one client a step, or on two; nobody knows yet what would have been right."""

    action_space = gym.spaces.Discrete(2, start=1)

    def __init__(self, several=False, **said):
        self.several, self.said = several, said

    def step(self, action):
        self.t += 1
        person = {"group": self.t % 2, "action": int(action), **self.said}
        if self.several:
            person = {"group": np.array([0, 1]), "action": np.array([2, 1]), **self.said}
        return np.zeros(1, np.float32), 0.0, False, self.t == 4, {"individual": person}


FACES = {
    "single": lambda several: FairMDP(Clients(several), LATE),
    "dummy": lambda several: DummyVecEnv([lambda: FairMDP(Clients(several), LATE)] * 2),
    "subproc": lambda several: SubprocVecEnv([lambda: FairMDP(Clients(several), LATE)] * 2, "fork"),
    "vec": lambda several: VecMonitor(VecFairMDP(DummyVecEnv([lambda: Clients(several)] * 2), LATE)),
    "make_vec": lambda several: sb3_fair.make_vec("sb3_fair/FraudDetection-v0", 2),
    "gym.make_vec": lambda several: gym.make_vec("sb3_fair/FraudDetection-v0", 2),
}


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_an_id_from_before_a_reset_reaches_nobody(face, seed, several):
    """Also where the same seed gives the same ids again."""
    env = FACES[face](several)

    def reset(seed):
        if isinstance(env, gym.Env | gym.vector.VectorEnv):
            env.reset(seed=seed)
        else:
            if seed is not None:
                env.seed(seed)
            env.reset()

    def step():
        infos = env.step(env.action_space.sample() if face == "gym.make_vec" else 2 if face == "single" else [1, 1])[-1]
        infos = [infos] if isinstance(infos, dict) else infos
        found = infos[-1]["individual"]["id"] if face != "gym.make_vec" else infos[0]["individual"]["id"][1]
        return found.tolist()[-1] if np.ndim(found) else found

    def update(id, value=1.0):
        if face == "single":
            return env.update_feedback(id, value)
        assert env.env_method("update_feedback", id, value, indices=1) == env.env_method(
            "update_feedback", id, value, indices=[1]
        )
        return env.env_method("update_feedback", id, value, indices=1)[0]

    reset(1)
    before = [step(), step()]
    assert all(update(each) is True for each in before)
    reset(seed)
    now = [step(), step()]
    assert (now == before) == (seed is not None), "ids begin at 0 again with a seed"
    assert [update(each) for each in (*before, *map(pickle_and_back, before))] == [False] * 4
    assert [update(each) for each in (*now, *map(pickle_and_back, now), 10**6)] == [True] * 4 + [False]
    for wrong in ({"id": 0, "value": 7.0}, {"id": 0, "value": np.nan}, {"id": -1}, {"id": 0.5}, {"id": "0"}):
        if face != "subproc":  # where it ends the worker
            with pytest.raises(ValueError, match="must be"):
                update(**wrong)
    if isinstance(env, VecEnv | gym.vector.VectorEnv):
        env.close()


def pickle_and_back(one):
    return pickle.loads(pickle.dumps(copy.deepcopy(one)))


def test_arrays_of_ids_keep_their_reset():
    env = FairMDP(Clients(several=True), LATE)
    env.reset(seed=0)
    ids = env.step(1)[4]["individual"]["id"]
    many = [ids, ids[::-1], copy.deepcopy(ids), pickle_and_back(ids), list(ids)]
    assert all(env.update_feedback(each, 2) for one in many for each in one)
    env.forget_history()
    env.step(1)
    assert not any(env.update_feedback(each, 2) for one in many for each in one)


@pytest.mark.parametrize("batched", [False, True])
def test_feedback_is_in_the_action_space(batched):
    def wrapped(env, **spec):
        spec = FairnessSpec(notions=("EO",), **spec)
        return VecFairMDP(DummyVecEnv([lambda: env]), spec) if batched else FairMDP(env, spec)

    for said in ({"feedback": 0}, {"feedback": 3.0}, {"action": 0}):
        env = wrapped(Clients(**said))
        env.reset()
        (name, value), *_ = said.items()
        with pytest.raises(ValueError, match=rf"{name} must be an action of Discrete\(2, start=1\), got {value:g}"):
            env.step([1] if batched else 1)
    env = wrapped(Clients(several=True, feedback=np.array([0.0, 2.0]), present=np.array([False, True])))
    env.reset()
    env.step([1] if batched else 1)  # of who is not there nothing is asked


def test_a_key_that_info_lacks_is_named():
    for name in ("group", "features", "feedback"):
        env = FairMDP(Clients(), FairnessSpec(notions=("EO", "IF"), **{"features": [0], name: "tpyo"}))
        env.reset()
        with pytest.raises(ValueError, match=rf"FairnessSpec.{name} asks for 'tpyo', but info has only"):
            env.step(1)


def each(kind):
    return lambda pairs: [(kind(id), kind(value)) for id, value in pairs]


@pytest.mark.parametrize(
    "pack",
    [list, np.array, each(np.array), each(th.tensor), lambda pairs: [(id, bool(value)) for id, value in pairs]],
)
@pytest.mark.parametrize("face", [0, 1])
def test_late_feedback_in_infos_and_feedback_delay_count_when_they_come(face, pack):
    truth, actions = [1, 0, 1, 1, 0, 0, 1, 1, 0, 1], [1, 1, 0, 1, 0, 1, 1, 0, 0, 1]

    def told(t):
        return {"group": t % 2, "feedback": truth[t]}

    history = {"notions": ("OAE", "SP"), "feedback_missing": "ignore"}
    late = faces(
        lambda: Bank(gym.spaces.Discrete(2), late=lambda t: pack([(t - 3, truth[t - 3])] if t > 2 else [])),
        FairnessSpec(**history),
    )
    for delay in (3, lambda obs, info: 3):
        delayed = faces(lambda: Bank(gym.spaces.Discrete(2), told), FairnessSpec(**history, feedback_delay=delay))
        for t, pair in enumerate(zip(late[face](actions), delayed[face](actions), strict=True)):
            feedback = np.where(np.arange(t + 1) <= t - 3, truth[: t + 1], np.nan)
            now = {"actions": actions[: t + 1], "groups": np.arange(t + 1) % 2, "feedback": feedback}
            value = group_notion("OAE", **now, feedback_missing="ignore")
            for info in pair:
                assert info["fairness"]["OAE"] == (None if np.isnan(value) else pytest.approx(value))
                assert info["individual"].get("feedback") is None
    never = faces(lambda: Bank(gym.spaces.Discrete(2), told), FairnessSpec(**history, feedback_delay=lambda *_: None))
    assert never[face](actions)[-1]["fairness"]["OAE"] is None


@pytest.mark.parametrize("face", ["single", "vec"])
def test_ids_count_from_the_seeded_reset_also_where_the_history_is_carried_over(face):
    """The right action for everybody is 1, as the environment has heard a step later."""
    spec = FairnessSpec(notions=("EO",), feedback_missing="ignore")
    bank = partial(Bank, gym.spaces.Discrete(2), late=lambda t: [(t - 1, 1)] if t else ())
    env, reset, step, *copy = carrying(face, bank, spec)

    def known():
        return [[of["unfavourable_known"], of["favourable_known"]] for of in env.feedback_counts(*copy)[""].values()]

    ids = []
    for seeded in (1, 2):
        reset()
        ids.append([step(action)["individual"]["id"] for action in (1, 0, 1, 0)])
        assert ids[-1] == [0, 1, 2, 3] and known() == [[0, 2 * seeded], [seeded, 0]]
    for last in (ids[0][3], 3):
        assert env.update_feedback(*copy, last, 1) is True
    assert known() == [[0, 4], [4, 0]]
    env.forget_history()
    assert [step(action)["individual"]["id"] for action in (1, 0, 1)] == [4, 5, 6]
    assert known() == [[0, 1], [1, 0]]
    assert not any(env.update_feedback(*copy, id, 1) for id in (*ids[0], *ids[1]))


@pytest.mark.parametrize("face", ["single", "vec"])
def test_feedback_that_was_put_off_survives_a_seed_where_the_history_is_carried_over(face):
    spec = FairnessSpec(notions=("EO",), feedback_missing="ignore", feedback_delay=2)
    told = {"group": 0, "feedback": 1}
    env, reset, step, *copy = carrying(face, lambda: Bank(gym.spaces.Discrete(2), lambda t: told), spec)
    for known in (1, 4):
        reset()
        assert [step(1).get("late_feedback") for _ in range(3)] == [None, None, [(0, 1)]]
        assert env.feedback_counts(*copy)[""][0]["favourable_known"] == known


def test_each_copy_waits_for_its_feedback_as_long_as_its_infos_say():
    tells = [lambda t: {"group": 1, "feedback": t % 2}, lambda t: {"group": 3, "feedback": 1}]
    spec = FairnessSpec(notions=("EO",), feedback_delay=lambda obs, info: info["individual"]["group"])
    venv = VecFairMDP(DummyVecEnv([lambda tell=tell: Bank(gym.spaces.Discrete(2), tell) for tell in tells]), spec)
    venv.reset()
    told = [[info.get("late_feedback") for info in venv.step([1, 1])[3]] for _ in range(5)]
    assert told == [[None, None], [[(0, 0)], None], [[(1, 1)], None], [[(2, 0)], [(0, 1)]], [[(3, 1)], [(1, 1)]]]


@pytest.mark.parametrize("unknown", [None, np.nan, np.ma.masked])
def test_late_feedback_may_still_be_unknown(unknown):
    env = FairMDP(Bank(gym.spaces.Discrete(2), lambda t: {"group": 0}, late=lambda t: [(0, unknown)]), LATE)
    env.reset()
    env.step(1)
    assert env.feedback_counts()[""][0]["favourable_known"] == 0


def test_late_feedback_that_is_no_number_is_refused():
    env = FairMDP(Bank(gym.spaces.Discrete(2), lambda t: {"group": 0}, late=lambda t: [(0, "yes")]), LATE)
    env.reset()
    with pytest.raises(ValueError, match="feedback must be a number or an array of numbers, got 'yes'"):
        env.step(1)


@pytest.mark.parametrize("late", [(0, 1), [(0, 1, 2)], {0: 1}, 3])
def test_late_feedback_that_is_no_pairs_is_refused(late):
    env = FairMDP(Bank(gym.spaces.Discrete(2), late=lambda t: late), LATE)
    env.reset()
    with pytest.raises(ValueError, match=r"info\['late_feedback'\] must hold pairs of id and value, got "):
        env.step(1)


@pytest.mark.parametrize("face", ["single", "vec"])
def test_of_resets_whose_decisions_are_forgotten_nothing_is_kept(face):
    spec = FairnessSpec(notions=("EO",), feedback_missing="ignore", history=SlidingWindow(4))
    told = {"group": 0}
    env, reset, step, *copy = carrying(face, lambda: Bank(gym.spaces.Discrete(2), lambda t: told), spec)
    ids = []
    for length in (0, 1, 2, 0, 3, 4, 2, 1, 1):
        reset()
        ids += [step(1)["individual"]["id"] for _ in range(length)]
        assert [env.update_feedback(*copy, id, 1) for id in ids] == [len(ids) - i <= 4 for i in range(len(ids))]
    assert len(env._begun) == 4  # its last decisions are of three resets, and one has just come


def carrying(face, make, spec):
    """An environment that carries its history over; its seeded reset; its step, which returns one info; and, of a
    batch, the copy that it is of."""
    if face == "single":
        env = FairMDP(make(), spec, reset_on_episode=False)
        return env, lambda: env.reset(seed=0), lambda action: env.step(action)[4]
    venv = VecFairMDP(DummyVecEnv([make] * 2), spec, reset_on_episode=False)
    return venv, lambda: (venv.seed(0), venv.reset()), lambda action: venv.step([action] * 2)[3][1], 1
