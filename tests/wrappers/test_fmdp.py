"""Does any environment become a fairness MDP whose figures belong to the individual decided on?"""

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.fairness import FairnessSpec, FullHistory, SlidingWindow, group_notion, individual_fairness
from sb3_fair.wrappers import Choice, FairMDP, VecFairMDP
from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.infos import Infos
from tests.wrappers.bank import Bank, Counting, faces


def left_or_right(obs, info):
    """Made-up groups of CartPole: where the cart stands."""
    return int(obs[0] > 0)


def towards_the_pole(obs, action, info):
    """Made-up feedback of CartPole: push where the pole leans; unknown while it stands straight."""
    return None if abs(obs[2]) < 0.01 else float(obs[2] > 0)


CARTPOLE = FairnessSpec(
    group=left_or_right,
    features=slice(2, 4),
    low=(-0.5, -5.0),
    high=(0.5, 5.0),
    feedback=towards_the_pole,
    notions=("SP", "EO", "IF", "CSC"),
    history=SlidingWindow(20),
)


def upper_half(obs, info):
    return "upper" if obs < 8 else "lower"


FROZENLAKE = FairnessSpec(group=upper_half, favourable=(1, 2), notions=("SP",), history=FullHistory())


class Crowd(Counting):
    """Decides on three people at a time; the second one is present every other step."""

    action_space = gym.spaces.Discrete(3)

    def step(self, action):
        self.t += 1
        record = {
            "individual": {
                "group": np.array([[0, 1, 1]]),
                "action": np.array([[1, action == 1, action == 2]]).astype(int),
                "feedback": np.array([[1, np.nan, 0]]),
                "present": np.array([[True, self.t % 2 == 0, True]]),
            }
        }
        return np.zeros(1, np.float32), 0.0, False, self.t == 10, Infos(record, 1)[0]


def test_figures_belong_to_the_observation_the_action_was_chosen_on():
    env = FairMDP(gym.make("CartPole-v1"), CARTPOLE)
    rng = np.random.default_rng(0)
    seen, actions, rows = [], [], []
    obs, _ = env.reset(seed=1)
    over = False
    while not over:
        row = rng.dirichlet((1, 1))
        seen.append(obs)
        rows.append(row)
        actions.append(rng.choice(2, p=row))
        obs, _, over, _, info = env.step(Choice(actions[-1], row))
        window = slice(max(0, len(seen) - 20), None)
        past = np.array(seen)[window]
        groups = [left_or_right(one, {}) for one in past]
        feedback = np.array([towards_the_pole(one, 0, {}) for one in past], dtype=float)
        for name in ("SP", "EO"):
            expected = group_notion(name, actions=actions[window], feedback=feedback, groups=groups)
            assert info["fairness"][name] == (None if np.isnan(expected) else pytest.approx(expected, abs=1e-9))
        features = (past[:, 2:4] + [0.5, 5]) / [1, 10]
        expected = individual_fairness(features, np.array(rows)[window])
        assert info["fairness"]["IF"] == pytest.approx(expected, abs=1e-9)
    assert info["individual"]["id"] == len(seen) - 1
    assert info["individual"]["group"] == groups[-1]


def test_feedback_that_comes_late_counts():
    env = FairMDP(gym.make("FrozenLake-v1"), FairnessSpec(group=upper_half, notions=("OAE",), history=FullHistory()))
    env.reset(seed=0)
    ids = [env.step(action)[4]["individual"]["id"] for action in (0, 0)]
    assert ids == [0, 1]
    assert env.get_wrapper_attr("update_feedback")(0, 1) is True
    assert env.get_wrapper_attr("update_feedback")(99, 1) is False


def test_names_as_groups_on_an_env_with_discrete_observations():
    env = FairMDP(gym.make("FrozenLake-v1", is_slippery=False), FROZENLAKE)
    env.reset(seed=0)
    figures = [env.step(action)[4]["fairness"]["SP"] for action in (1, 1, 0, 0)]
    assert figures == [None, None, -1.0, -1.0]


def test_an_empty_history_begins_each_episode_unless_it_is_carried_over():
    for carried, expected in ((False, [None, None]), (True, [None, 0.0])):
        env = FairMDP(gym.make("FrozenLake-v1", is_slippery=False), FROZENLAKE, reset_on_episode=not carried)
        env.reset(seed=0)
        first = [env.step(action)[4]["fairness"]["SP"] for action in (1, 1, 2)]
        env.reset()
        again = env.step(1)[4]["fairness"]["SP"]
        assert [first[0], again] == expected
        assert first[2] == 0.0


def test_several_people_are_recorded_one_after_the_other():
    env = FairMDP(Crowd(), FairnessSpec(notions=("SP", "EO"), history=SlidingWindow(100)))
    env.reset()
    history, groups, feedback = [], [], []
    for action in (1, 2, 1, 0):
        info = env.step(action)[4]
        present = [0, 2] if env.unwrapped.t % 2 else [0, 1, 2]
        history += [[1, int(action == 1), int(action == 2)][i] for i in present]
        groups += [[0, 1, 1][i] for i in present]
        feedback += [[1, np.nan, 0][i] for i in present]
        assert info["fairness"]["SP"] == pytest.approx(
            group_notion("SP", actions=history, feedback=np.array(feedback), groups=groups)
        )
        assert len(info["individual"]["id"]) == len(present)


def test_executed_actions_stand_in_for_probabilities():
    scales = {"low": -4.0, "high": 4.0}
    spec = FairnessSpec(group=left_or_right, features=slice(2, 4), notions=("IF",), history=SlidingWindow(50), **scales)
    rows = np.array([[0.5, 0.5], [0.3, 0.7], [0.9, 0.1]])
    for mode, used in (("policy", rows), ("executed", np.eye(2)[[1, 0, 1]])):
        env = FairMDP(gym.make("CartPole-v1"), spec, probabilities=mode)
        seen = [env.reset(seed=0)[0]]
        for action, row in zip((1, 0, 1), rows, strict=True):
            obs, *_, info = env.step(Choice(action, row))
            seen.append(obs)
        expected = individual_fairness(np.array(seen)[:3, 2:4] / 8 + 0.5, used)
        assert info["fairness"]["IF"] == pytest.approx(expected)
    env = FairMDP(gym.make("CartPole-v1"), spec)
    env.reset(seed=0)
    assert env.step(1)[4]["fairness"]["IF"] == 0.0


def test_a_carried_over_history_survives_seeds_but_not_forgetting():
    carried = {"spec": FROZENLAKE, "reset_on_episode": False}
    env = FairMDP(gym.make("FrozenLake-v1", is_slippery=False), **carried)
    venv = VecFairMDP(DummyVecEnv([lambda: gym.make("FrozenLake-v1", is_slippery=False)]), **carried)
    env.reset(seed=0)
    venv.seed(0)
    venv.reset()
    for action in (1, 1, 2):
        env.step(action)
        venv.step([action])
    env.reset(seed=0)
    venv.seed(0)
    venv.reset()
    assert env.step(1)[4]["fairness"]["SP"] == venv.step([1])[3][0]["fairness"]["SP"] == 0.0
    env.forget_history()
    venv.forget_history()
    assert env.step(1)[4]["fairness"]["SP"] is venv.step([1])[3][0]["fairness"]["SP"] is None


@pytest.mark.parametrize("row", [[np.nan, 1.0], [-0.1, 1.1], [0.5, 0.6], [0.2, 0.3, 0.5], [-1.2, -0.3]])
def test_rows_that_are_no_probabilities_are_refused(row):
    env = FairMDP(gym.make("CartPole-v1"), CARTPOLE)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="probabilities"):
        env.step(Choice(1, np.array(row)))


def raises(obs, info):
    raise KeyError("no such person")


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda: FairMDP(FairMDP(gym.make("CartPole-v1"), CARTPOLE), CARTPOLE), "already is a fairness MDP"),
        (lambda: FairMDP(gym.make("Pendulum-v1"), CARTPOLE), "favourable must be a predicate of the action"),
        (lambda: FairMDP(gym.make("CartPole-v1"), CARTPOLE, probabilities="logits"), "'policy', 'executed'"),
    ],
)
def test_errors_name_the_argument(wrap, message):
    with pytest.raises(ValueError, match=message):
        wrap()


def test_a_callable_that_raises_is_named():
    env = FairMDP(gym.make("CartPole-v1"), FairnessSpec(group=raises))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="group raised KeyError"):
        env.step(1)


def test_features_that_nobody_gave_are_missed_by_name():
    env = FairMDP(gym.make("CartPole-v1"), FairnessSpec(group=left_or_right, notions=("IF",)))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="features are needed by IF"):
        env.step(1)


def test_a_feature_outside_its_range_is_named():
    spec = FairnessSpec(group=left_or_right, features=[2], low=0.0, high=1e-6, notions=("IF",))
    env = FairMDP(gym.make("CartPole-v1"), spec)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="column 0"):
        env.step(1)


def test_without_notions_any_action_space_will_do():
    env = FairMDP(gym.make("Pendulum-v1"), FairnessSpec(notions=()))
    env.reset(seed=0)
    assert env.step(env.action_space.sample())[4]["fairness"] == {}


class InPlace(gym.Env):
    """Writes each new person into the array that it has shown before."""

    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.shown = np.ones(1, np.float32)
        return self.shown, {}

    def step(self, action):
        self.shown *= -1
        return self.shown, 0.0, False, False, {}


def test_environments_may_change_their_observation_in_place():
    env = FairMDP(InPlace(), FairnessSpec(group=lambda obs, info: "pos" if obs[0] > 0 else "neg"))
    obs, _ = env.reset()
    for _ in range(6):
        obs, *_, info = env.step(int(obs[0] > 0))
    assert info["fairness"]["SP"] == -1.0


def test_favourable_actions_are_actions():
    with pytest.raises(ValueError, match=r"favourable must have actions of Discrete\(2\), got 7"):
        FairMDP(InPlace(), FairnessSpec(group="g", favourable=(1, 7)))


class Told(InPlace):
    """Tells attributes beside the individual, and three people at a time if asked."""

    def __init__(self, people=None):
        self.people = people

    def step(self, action):
        obs, *rest, _ = super().step(action)
        return obs, *rest, {"gender": "mf"[action], "nat": "b", "individual": self.people or {"features": np.zeros(2)}}


@pytest.mark.parametrize("group", [("gender", "nat"), ["gender", "nat"], {"G": "gender", "N": "nat"}])
def test_attributes_may_stand_beside_the_individual(group):
    env = FairMDP(Told(), FairnessSpec(group=group))
    env.reset()
    for action in (1, 0):
        *_, info = env.step(action)
    assert -1.0 in info["fairness"].values()


def test_what_several_people_have_in_common_may_be_told_once():
    people = {"group": np.array([0, 1]), "action": np.array([1, 0]), "world": 3}
    env = FairMDP(Told(people), FairnessSpec())
    env.reset()
    *_, info = env.step(0)
    assert info["fairness"]["SP"] == -1.0 and info["individual"]["id"].tolist() == [0, 1]


def test_gymnasium_s_own_vector_environments_carry_partial_feedback():
    spec = FairnessSpec(group=left_or_right, feedback=lambda obs, action, info: 1 if action else None)
    venv = gym.vector.SyncVectorEnv([lambda: FairMDP(gym.make("CartPole-v1"), spec)] * 2)
    venv.reset(seed=0)
    feedback = venv.step(np.array([1, 0]))[-1]["individual"]["feedback"]
    assert feedback[0] == 1 and np.isnan(feedback[1])


def test_gymnasium_s_vector_form_of_copies_carries_partial_feedback():
    tells = [lambda t: {"group": "a", "feedback": 1}, lambda t: {"group": "b", "feedback": None if t % 2 else 0}]
    envs = [lambda tell=tell: Bank(gym.spaces.Discrete(2), tell) for tell in tells]
    venv = GymnasiumVector(VecFairMDP(DummyVecEnv(envs), FairnessSpec()))
    venv.reset(seed=0)
    for expected in ([1, 0], [1, np.nan]):
        person = venv.step(np.array([1, 0]))[-1]["individual"]
        np.testing.assert_array_equal(person["feedback"], expected)
        assert person["group"].tolist() == ["a", "b"]
    venv.set_attr("open", [True, False])
    assert venv.get_attr("open") == (True, False)
    venv.set_attr("open", False)
    assert venv.get_attr("open") == (False, False)
    with pytest.raises(ValueError, match=r"values must be one per copy \(2\), got 3"):
        venv.set_attr("open", [1, 2, 3])


class Full(Crowd):
    """Grants the first request and refuses all others; everybody asks for it."""

    def step(self, action):
        self.t += 1
        person = {"group": self.t % 2, "action": int(action and self.t == 1)}
        return np.zeros(1, np.float32), 0.0, False, False, {"individual": person}


@pytest.mark.parametrize("vec", [False, True])
@pytest.mark.parametrize("group", [None, lambda obs, info: info["individual"]["group"]])
def test_what_was_carried_out_counts_not_what_was_asked_for(vec, group):
    spec = FairnessSpec(notions=("SP",), group=group)
    env = VecFairMDP(DummyVecEnv([Full]), spec) if vec else FairMDP(Full(), spec)
    env.reset()
    for expected in (None, -1.0, -0.5, -0.5):
        told = env.step([1])[3][0] if vec else env.step(1)[4]
        assert told["fairness"]["SP"] == expected


@pytest.mark.parametrize("face", [0, 1])
def test_steps_without_an_individual_are_left_out(face):
    everybody = [{"group": 0, "feedback": 1}, None, {"group": 1, "feedback": 0}, {"group": None}, {"group": 1}]
    actions = [1, 1, 0, 0, 1]
    spec = FairnessSpec(notions=("SP",))
    infos = faces(lambda: Bank(gym.spaces.Discrete(2), everybody.__getitem__), spec)[face](actions)
    assert [info["fairness"]["SP"] for info in infos] == [None, None, -1.0, -1.0, -0.5]
    assert [info["individual"] and info["individual"]["id"] for info in infos] == [0, None, 1, None, 2]


@pytest.mark.parametrize("face", [0, 1])
@pytest.mark.parametrize("feedback", [np.ma.masked, np.ma.array(1, mask=True), np.ma.array([1, 1], mask=[False, True])])
def test_masked_feedback_is_unknown(face, feedback):
    several = np.ndim(feedback)
    space = gym.spaces.MultiBinary(2) if several else gym.spaces.Discrete(2)
    told = {"group": np.array([0, 1]) if several else 1, "feedback": feedback}
    step = faces(lambda: Bank(space, lambda t: told), FairnessSpec(notions=("OAE",)))[face]
    (info,) = step([np.ones(2, dtype=int) if several else 1])
    assert info["fairness"] == {"OAE": None}
    assert np.array_equal(info["individual"]["feedback"], [1, None] if several else None)


def group_told(obs, info):
    return info.get("individual", {}).get("group")


PARTS = {"gender": "f", "nat": "b"}
NOBODY = [None, *({"group": group} for group in (None, np.nan, pd.NA, dict.fromkeys(PARTS)))]
NOBODY += [{"group": None, "features": None, "action": None}]


@pytest.mark.parametrize("face", [0, 1])
@pytest.mark.parametrize("nobody", NOBODY)
@pytest.mark.parametrize("group", [None, group_told, ["gender", "nat"], ("gender", "nat")])
def test_a_step_on_nobody_is_left_out_whatever_is_measured(group, nobody, face):
    people = [
        {
            "group": {**PARTS, "gender": "mf"[t % 2]} if isinstance(group, list | tuple) else "mf"[t % 2],
            "features": np.array([t % 5 / 4]),
            "action": t % 3 % 2,
        }
        for t in range(8)
    ]
    among_nobody = [told for person in people for told in (nobody, person)]
    for notions in (("CSC",), ("CSC", "SP")):
        spec = FairnessSpec(group=group, notions=notions, low=0, high=1)
        alone, infos = (
            faces(lambda told=told: Bank(gym.spaces.Discrete(2), told.__getitem__), spec)[face]([0] * len(told))
            for told in (people, among_nobody)
        )
        assert [info["fairness"] for info in infos[1::2]] == [info["fairness"] for info in alone]
        assert infos[-1]["individual"]["id"] == 7 and infos[-2]["individual"] is None


@pytest.mark.parametrize("other", [None, "f"])
def test_who_is_nobody_does_not_depend_on_other_copies(other):
    copies = [["m", np.nan, "f"], ["f", other, "m"]]
    tells = [lambda t, labels=labels: {"group": labels[t]} for labels in copies]
    spec = FairnessSpec(notions=("SP",))
    venv = VecFairMDP(DummyVecEnv([lambda tell=tell: Bank(gym.spaces.Discrete(2), tell) for tell in tells]), spec)
    venv.reset()
    infos = [venv.step([action] * 2)[3] for action in (1, 0, 0)]
    assert [step[0]["individual"] and step[0]["individual"]["id"] for step in infos] == [0, None, 1]
    assert infos[-1][0]["fairness"]["SP"] == -1


def test_in_arrays_nobody_is_a_label_that_is_nan():
    class Sparse(Crowd):
        def step(self, action):
            self.t += 1
            people = {"group": np.array([np.nan if self.t % 2 else 1.0]), "features": np.zeros((1, 1))}
            return np.zeros(1, np.float32), 0.0, False, False, Infos({"individual": people}, 1)[0]

    for notions in (("CSC",), ("CSC", "SP")):
        env = FairMDP(Sparse(), FairnessSpec(notions=notions))
        env.reset()
        told = [env.step(0)[4]["individual"] for _ in range(4)]
        assert [person and person["id"] for person in told] == [None, 0, None, 1]


@pytest.mark.parametrize("missing", PARTS)
def test_a_label_of_several_must_not_be_missing(missing):
    env = FairMDP(Told({"group": {**PARTS, missing: None}}), FairnessSpec(group=list(PARTS)))
    env.reset()
    with pytest.raises(ValueError, match="group must be a label"):
        env.step(0)


@pytest.mark.parametrize("nobody", [None, {"group": None, "action": None}])
def test_copies_without_an_individual_are_left_out(nobody):
    def person(t):
        return {"group": t % 2, "action": t // 2 % 2}

    tells = [lambda t: person(t) if t % 3 else nobody, person]
    venv = VecFairMDP(
        DummyVecEnv([lambda tell=tell: Bank(gym.spaces.Discrete(2), tell) for tell in tells]), FairnessSpec()
    )
    venv.reset()
    for t in range(12):
        infos = venv.step([t // 2 % 2] * 2)[3]
        for index, tell in enumerate(tells):
            past = [step for step in range(t + 1) if tell(step) != nobody]
            value = group_notion("SP", actions=[step // 2 % 2 for step in past], groups=[step % 2 for step in past])
            assert infos[index]["fairness"]["SP"] == (None if np.isnan(value) else value)


def test_which_probabilities_were_seen_is_recorded_and_executed_ones_are_warned_of_once():
    env = FairMDP(gym.make("CartPole-v1"), CARTPOLE)
    env.reset(seed=0)
    assert env.probabilities_used is None
    env.step(Choice(1, np.array([0.5, 0.5])))
    assert env.probabilities_used == "policy"
    with pytest.warns(UserWarning, match="no action probabilities came with the actions") as warned:
        env.step(1)
        env.step(0)
    assert len(warned) == 1 and env.probabilities_used == "mixed"


def test_of_one_action_about_several_people_no_probabilities_are_missed(recwarn):
    """Those of the action are not those of what each of them gets."""
    people = {"features": np.eye(3), "action": np.array([1, 0, 0])}
    env = FairMDP(Told(people), FairnessSpec(notions=("IF",)))
    env.reset()
    env.step(1)
    assert env.probabilities_used == "executed" and not [w for w in recwarn if w.category is UserWarning]


def test_what_only_some_copies_tell_counts():
    """Group 1 never gets what it is granted, which only its copy says."""
    unserved, served = (lambda t: {"group": t % 2, "action": 0, "feedback": 1}), (lambda t: {"group": t % 2})
    for tells in ([served, unserved], [unserved, served]):
        envs = [lambda tell=tell: Bank(gym.spaces.Discrete(2), tell) for tell in tells]
        venv = VecFairMDP(DummyVecEnv(envs), FairnessSpec())
        venv.reset()
        infos = [venv.step([action] * 2)[3] for action in (1, 0)][-1]
        assert [info["fairness"]["SP"] for info in infos] == [-1.0 if tell is served else 0.0 for tell in tells]
        assert [info["individual"]["feedback"] for info in infos] == [None if tell is served else 1 for tell in tells]


def test_the_individual_that_is_told_is_the_one_that_is_compared():
    told = {"group": {"gender": "f", "nat": "b"}, "action": 1, "feedback": 0}
    for group, expected in (("nat", "b"), ({"sex": "gender"}, {"sex": "f"}), (lambda obs, info: "x", "x")):
        env = FairMDP(Told(told), FairnessSpec(group=group, feedback=lambda obs, action, info: 1.0))
        env.reset()
        person = env.step(1)[4]["individual"]
        assert person["group"] == expected and person["feedback"] == 1


def test_parts_of_an_observation_stay_together():
    class Pair(Bank):
        observation_space = gym.spaces.Tuple([gym.spaces.Discrete(2), gym.spaces.Discrete(2)])

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return (0, 1), {}

        def step(self, action):
            return (0, 1), *super().step(action)[1:]

    spec = FairnessSpec(group=lambda obs, info: "ab"[int(obs[1])])
    venv = VecFairMDP(DummyVecEnv([lambda: Pair(gym.spaces.Discrete(2), lambda t: None)] * 2), spec)
    venv.reset()
    assert [info["individual"]["group"] for info in venv.step([0, 0])[3]] == ["b", "b"]
