"""Do steps that decide on several people, or on different numbers of them, count everybody as who they are?"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.wrappers import FairMDP, VecFairMDP
from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.labels import of_infos
from tests.wrappers.bank import Bank, Counting


class Queue(Counting):
    """Decides on as many people at a time as its copy has in turn."""

    def __init__(self, sizes):
        self.sizes = sizes

    def step(self, action):
        size = self.sizes[self.t % len(self.sizes)]
        self.t += 1
        groups = np.array(["m", "f", "m", "f"], dtype=object)[:size]
        people = {"group": groups, "action": np.arange(size) // 2, "features": np.full((size, 2), 0.5), "world": self.t}
        return np.zeros(1, np.float32), 0.0, False, False, {"individual": people}


def told_together_and_alone(queues):
    """Info of each copy in a batch, and of the same queue by itself, step by step."""
    spec = FairnessSpec(notions=("SP", "IF"), history=SlidingWindow(20))
    venv = VecFairMDP(DummyVecEnv(queues), spec)
    singles = [FairMDP(queue(), spec) for queue in queues]
    for env in (venv, *singles):
        env.reset()
    for _ in range(6):
        infos = venv.step(np.zeros(len(queues), dtype=int))[3]
        for info, single in zip(infos, singles, strict=True):
            yield info, single.step(0)[4]


def test_copies_may_decide_on_different_numbers_of_people():
    for info, alone in told_together_and_alone([partial(Queue, each) for each in [(4, 0, 3), (1, 2, 3), (2, 2, 2)]]):
        assert info["fairness"] == alone["fairness"]
        assert info["individual"]["id"].tolist() == alone["individual"]["id"].tolist()
        assert info["individual"]["group"].tolist() == alone["individual"]["group"].tolist()


@pytest.mark.parametrize("nobody", [{}, {"individual": {"group": None}}])
def test_copies_may_decide_on_several_people_and_on_nobody(nobody):
    class Ward(Queue):
        def step(self, action):
            *told, info = super().step(action)
            return *told, info if len(info["individual"]["group"]) else dict(nobody)

    for info, alone in told_together_and_alone([partial(Ward, each) for each in [(4, 0, 3), (1, 2, 3), (0, 0, 2)]]):
        assert info["fairness"] == alone["fairness"]


class Listing(Queue):
    """Tells of several people in a list of dicts, or whatever it is given."""

    def __init__(self, told):
        super().__init__([1])
        self.told = told

    def step(self, action):
        return *super().step(action)[:4], {"individual": self.told}


@pytest.mark.parametrize("told", [[{"group": 0, "action": 1}, {"group": 1, "action": 0}], [], "m", np.zeros(2)])
@pytest.mark.parametrize("group", [None, "sex", lambda obs, info: 0])
def test_individuals_are_told_in_a_dict_of_arrays(told, group):
    for spec in (FairnessSpec(group=group), FairnessSpec(group=group, features=slice(0, 1))):
        for env in (FairMDP(Listing(told), spec), VecFairMDP(DummyVecEnv([lambda: Listing(told)]), spec)):
            env.reset()
            with pytest.raises(TypeError, match=r"info\['individual'\] must be a dict: .*an array per key"):
                env.step(np.zeros(1, dtype=int)[0] if isinstance(env, FairMDP) else np.zeros(1, dtype=int))
    with pytest.raises(TypeError, match=r"info\['individual'\] must be a dict"):
        of_infos([{"individual": told}])


def test_each_of_several_people_has_a_label_and_features():
    two = {"group": np.array(["m", "f"]), "action": np.array([1, 0])}
    for told, spec, message in (
        (
            {**two, "group": np.array(["m"])},
            FairnessSpec(),
            "group must have one entry per person, or one for all, got 1",
        ),
        (two, FairnessSpec(features=slice(0, 1), notions=("IF",)), "features must have"),
    ):
        env = FairMDP(Listing(told), spec)
        env.reset()
        with pytest.raises(ValueError, match=message):
            env.step(0)


@pytest.mark.parametrize(
    "labels",
    [
        ([0, 1], [0, "1"]),
        ([0, 1], [("f", "BE"), 0, "f"]),
        ([("f", "BE"), ("m", "NL")], [(0, 1), (1, 0)]),
        (np.array([0, 1]), np.array(["0", "m", "f"])),
        (np.array(["0", "1"], dtype=object), ["0", "1"]),
    ],
)
def test_labels_of_several_people_stay_what_they_are(labels):
    told = [{"action": np.arange(len(each)) % 2} for each in labels]
    for spec, groups in ((FairnessSpec(), labels), (FairnessSpec(group=["who"]), [{"who": each} for each in labels])):
        people = [{**each, "group": group} for each, group in zip(told, groups, strict=True)]
        venv = VecFairMDP(DummyVecEnv([partial(Listing, each) for each in people]), spec)
        venv.reset()
        for info, each in zip(venv.step(np.zeros(2, dtype=int))[3], labels, strict=True):
            published = info["individual"]["group"]
            assert list(published["who"] if spec.attributes else published) == list(each)
            assert info["fairness"]["SP"] == -1.0


@pytest.mark.parametrize("key", ["group", "feedback"])
def test_what_is_told_of_more_people_than_there_are_is_refused(key):
    told = {"group": [0, 1], "feedback": [1, 0], "action": np.array([1, 0]), key: np.array([0, 1, 1, 0])}
    with pytest.raises(ValueError, match="must have one entry per person, or one for all, got 4 for 2 people"):
        step_of(told, FairnessSpec(notions=("OAE",)))


def step_of(told, spec, action_space=None, action=0):
    """The info of a first step that tells this."""
    env = FairMDP(Bank(action_space or gym.spaces.Discrete(2), lambda t: told), spec)
    env.reset()
    return env.step(action)[4]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("people", [2, 3])
def test_doses_of_several_people_are_compared_by_the_bounds_of_each(n, people):
    """Half, a quarter and an eighth of the largest doses, for people who are alike."""
    space = gym.spaces.Box(0, np.array([1, 2, 4], np.float32), (3,))
    doses = np.array([0.5, 0.5, 0.5], np.float32)
    told = {"group": np.arange(people), "features": np.zeros((people, 1)), "action": doses[:people]}
    spec = FairnessSpec(favourable=lambda doses: doses > 0.2, notions=("LIP",), history=SlidingWindow(3))
    venv = VecFairMDP(DummyVecEnv([partial(Bank, space, lambda t: told)] * n), spec)
    venv.reset()
    for info in venv.step(np.tile(doses, (n, 1)))[3]:
        assert info["fairness"]["LIP"] == pytest.approx(-0.25)


@pytest.mark.parametrize("nobody", [None, {"group": None}])
@pytest.mark.parametrize("feedback", ["sick", lambda obs, action, info: 1, None])
def test_a_step_on_nobody_is_not_counted_wherever_feedback_comes_from(nobody, feedback):
    class Clinic(Bank):
        def step(self, action):
            *step, info = super().step(action)
            return *step, {**info, "sick": 1}

    told = {"group": 0, "features": np.zeros(2)}
    env = FairMDP(
        Clinic(gym.spaces.Discrete(2), lambda t: told if t % 2 else nobody),
        FairnessSpec(feedback=feedback, notions=("CSC",)),
    )
    env.reset()
    infos = [env.step(t % 2)[4] for t in range(4)]
    assert [info["individual"] and info["individual"]["id"] for info in infos] == [None, 0, None, 1]


def test_what_is_carried_out_and_is_no_action_needs_a_treatment():
    told = {"group": np.array([0, 1]), "features": np.zeros((2, 1)), "action": np.array([1, 6])}
    spec = FairnessSpec(favourable=lambda units: units > 0, notions=("IF",))
    with pytest.raises(ValueError, match=r"treatment must be given .* no action of MultiDiscrete\(\[3 3\]\), got 6"):
        step_of(told, spec, gym.spaces.MultiDiscrete([3, 3]), [0, 0])
    for space, doses in ((gym.spaces.Box(0, 1, (2,)), [0.5, 50]), (gym.spaces.Box(0, 1, (1,)), [0.5, 0.5])):
        with pytest.raises(ValueError, match=r"treatment must be given .* no action of Box\(0"):
            step_of({**told, "action": np.array(doses)}, spec, space, np.zeros(space.shape))
    assert step_of({**told, "action": np.ones(2)}, spec, gym.spaces.Box(0, 1, ()), 0.0)["fairness"]["IF"] == 0
    del told["features"]
    with pytest.raises(ValueError, match="features are needed by IF"):
        step_of(told, spec, gym.spaces.MultiDiscrete([3, 3]), [0, 0])


def test_gymnasiums_vector_tells_of_different_numbers_of_people():
    queues = DummyVecEnv([partial(Queue, (1,)), partial(Queue, (3,))])
    venv = GymnasiumVector(VecFairMDP(queues, FairnessSpec()))
    venv.reset()
    people = venv.step(np.zeros(2, dtype=int))[4]["individual"]
    assert [list(labels) for labels in people["group"]] == [["m"], ["m", "f", "m"]]
    assert [list(ids) for ids in people["id"]] == [[0], [0, 1, 2]]
