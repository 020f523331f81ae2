"""Are labels found wherever an environment may tell them, and are they those of the transition?"""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from numpy.testing import assert_array_equal
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_fair.fair_ppo.labels import Labels
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import FairMDP, VecFairMDP
from sb3_fair.wrappers.infos import Infos
from sb3_fair.zoo.envs.lending.world import LendingWorld
from sb3_fair.zoo.envs.world import WorldVecEnv


class Told(gym.Env):
    """Three steps per episode; the info is what it is given."""

    observation_space = spaces.Box(-1, 9, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, *individuals):
        self.individuals = individuals

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action):
        individual = self.individuals[self.time % len(self.individuals)]
        self.time += 1
        info = {} if individual is None else {"individual": individual}
        return np.full(1, self.time, dtype=np.float32), 0.0, self.time == 3, False, info


class Slots(DummyVecEnv):
    """Its arrays change with the reset after the third step."""

    def __init__(self, **labels):
        super().__init__([lambda: Told(None)] * 2)
        self.labels = labels
        self.episodes = 0

    @property
    def slot_group(self):
        return np.array([0, 1]) if self.episodes % 2 == 0 else np.array([1, 0])

    def step_wait(self):
        obs, rewards, dones, infos = super().step_wait()
        self.episodes += int(dones.all())
        return obs, rewards, dones, infos


def walk(venv, labels, steps):
    """Labels of each transition."""
    obs = venv.reset()
    labels.begin()
    found = []
    for _ in range(steps):
        coming, _, dones, infos = venv.step(np.zeros(venv.num_envs, dtype=int))
        found.append(labels.at(infos, obs, dones))
        obs = coming
    return found


def of_infos(*individuals):
    return DummyVecEnv([lambda individual=individual: Told(*individual) for individual in individuals])


def test_arrays_are_found_under_wrappers_and_are_those_before_the_reset():
    venv = Slots()
    venv.slot_lf, venv.slot_world, venv.slot_pair = np.array([1, 2]), np.array([0, 0]), np.array([-1, -1])
    wrapped = VecNormalize(VecMonitor(venv))
    labels = Labels(wrapped)
    found = walk(wrapped, labels, 7)
    assert [population.group.tolist() for population in found] == [[0, 1]] * 3 + [[1, 0]] * 3 + [[0, 1]]
    assert found[0] is found[2] and found[2] is not found[3]
    assert_array_equal(found[0].lf, [1, 2])
    assert_array_equal(found[0].world, [0, 0])
    assert not labels.streaming


def test_a_function_comes_before_arrays_and_infos_which_tell_the_rest():
    venv = Slots()
    venv.slot_world = np.array([3, 4])
    population = walk(venv, Labels(venv, group_fn=lambda obs, infos: [5, 6]), 1)[0]
    assert_array_equal(population.group, [5, 6])
    assert_array_equal(population.world, [3, 4])
    venv = of_infos([{"group": "no", "lf": 1}], [{"group": "yes", "lf": 2}])
    population = walk(venv, Labels(venv, group_fn=lambda obs, infos: [9, 8]), 1)[0]
    assert_array_equal(population.group, [9, 8])
    assert_array_equal(population.lf, [1, 2])


def test_infos_tell_groups_factors_and_worlds():
    venv = of_infos([{"group": 0, "lf": 1, "world": 3}], [{"group": 1, "lf": 2, "world": 4}])
    labels = Labels(venv)
    population = walk(venv, labels, 4)[-1]
    assert_array_equal(population.group, [0, 1])
    assert_array_equal(population.lf, [1, 2])
    assert_array_equal(population.world, [3, 4])
    assert population.pair is None and not labels.streaming


@pytest.mark.parametrize(
    "pack", [list, np.array, lambda labels: np.array(labels, dtype=object)], ids=["list", "array", "objects"]
)
def test_labels_of_any_kind_are_numbered_as_they_come(pack):
    given = iter((["b", "a", "b"], ["c", "b", "a"], [0, 1, 0]))
    labels = Labels(of_infos([None], [None], [None]), group_fn=lambda obs, infos: pack(next(given)))
    ends = np.zeros(3, dtype=bool)
    found = [labels.at([{}] * 3, None, ends).group.tolist() for _ in range(2)]
    assert found == [[0, 1, 0], [2, 0, 1]] and [labels.name(number) for number in range(3)] == ["b", "a", "c"]
    with pytest.raises(ValueError, match="either whole numbers or other hashable values"):
        labels.at([{}] * 3, None, ends)


def test_pairs_of_labels_are_labels_and_unknown_ones_none():
    venv = of_infos(*[[{"group": group}] for group in (("f", 1), None, ("m", 1))])
    assert_array_equal(walk(venv, Labels(venv), 1)[0].group, [0, -1, 1])


@pytest.mark.parametrize("kind", [np.array, th.tensor])
def test_labels_in_arrays_and_tensors_are_what_these_hold(kind):
    venv = of_infos(*[[{"group": kind(group)}] for group in (1, 0, 1)])
    assert_array_equal(walk(venv, Labels(venv), 1)[0].group, [1, 0, 1])


@pytest.mark.parametrize("batched", [False, True])
def test_in_a_fairness_mdp_nobody_is_not_compared(batched):
    envs = [lambda: Told(None, {"group": 0}, None), lambda: Told({"group": 1}, {"group": None}, None)]
    if batched:
        venv = VecFairMDP(DummyVecEnv(envs), FairnessSpec())
    else:
        venv = DummyVecEnv([lambda env=env: FairMDP(env(), FairnessSpec()) for env in envs])
    found = [population.group.tolist() for population in walk(venv, Labels(venv), 3)]
    assert found == [[-1, 1], [0, -1], [-1, -1]]


def test_the_groups_of_a_fairness_spec_are_compared_and_no_others():
    def labels_of(*groups):
        spec = FairnessSpec(groups=groups)
        told = (
            [[{"group": group}] for group in ("x", "b", "a")] if "a" in groups else [[{"group": i}] for i in range(3)]
        )
        venv = VecFairMDP(of_infos(*told), spec)
        return walk(venv, Labels(venv), 1)[0].group.tolist()

    assert labels_of("a", "b") == [-1, 1, 0]
    assert labels_of(2, 1) == [-1, 1, 2]


def test_single_decisions_of_one_slot_are_a_stream_that_carries_over():
    for slots, ends, streaming in ((1, True, True), (1, False, True), (2, True, False)):
        labels = Labels(of_infos(*[[None]] * slots))
        for group in (0, 0, 1):
            labels.at([{"individual": {"group": group}}] * slots, None, np.full(slots, ends))
        assert labels.streaming is streaming and labels.carries is (streaming and ends)


def test_light_infos_are_read_without_cutting_them_up():
    record = {"individual": {"group": np.array([1.0, np.nan, 0]), "lf": np.array([1, 1, 2])}}
    labels = Labels(of_infos(*[[{"group": 0}]] * 3))
    population = labels.at(Infos(record, 3), None, np.zeros(3, dtype=bool))
    assert_array_equal(population.group, [1, -1, 0])
    assert_array_equal(population.lf, [1, 1, 2])


def test_a_function_sees_the_observations_that_the_actions_answered():
    venv = of_infos([None], [None])
    labels = Labels(venv, group_fn=lambda obs, infos: obs[:, 0] >= 1)
    assert [population.group[0] for population in walk(venv, labels, 5)] == [0, 1, 1, 0, 1]
    assert labels.streaming
    labels = Labels(venv, group_fn=lambda obs, infos: {"group": [0, 1], "lf": [1, 1]})
    assert_array_equal(walk(venv, labels, 1)[0].lf, [1, 1])


def test_a_label_that_changes_inside_an_episode_means_streaming():
    within = [{"group": 0}, {"group": 1}, {"group": 1}]
    labels = Labels(of_infos(within))
    assert not labels.streaming
    walk(of_infos(within), labels, 2)
    assert labels.streaming
    for mode, expected in (("population", False), ("streaming", True)):
        chosen = Labels(of_infos(within), mode=mode)
        walk(of_infos(within), chosen, 2)
        assert chosen.streaming is expected
    told = [{"group": 0, "world": 0}, {"group": 1, "world": 0}]
    worlds = Labels(of_infos(told))
    walk(of_infos(told), worlds, 2)
    assert not worlds.streaming, "slots of a world are a population"
    constant = Labels(of_infos([None]))
    for group, done in ((0, False), (0, True), (1, False)):  # another label, but in another episode
        constant.at([{"individual": {"group": group}}], None, np.array([done]))
    assert not constant.streaming


def test_applicants_for_loans_are_a_stream():
    venv = WorldVecEnv(LendingWorld, 2)
    venv.seed(0)
    labels = Labels(venv)
    groups = np.array([population.group for population in walk(venv, labels, 30)])
    assert labels.streaming and set(groups.ravel().tolist()) == {0, 1}


def test_labels_that_are_missing():
    venv = of_infos([{"group": 0}], [None])
    with pytest.raises(ValueError, match=r"slot_group .*info\['individual'\]\['group'\].*group_fn\(obs, infos\)"):
        walk(venv, Labels(venv), 1)


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ({"sex": 0}, "group must be one label for each of the 1 slots, .*hashable"),
        ([0, 1], "group must be one label for each of the 1 slots, .*hashable"),
        (0.5, "group must be whole numbers of at least -1"),
        *[
            (one, "must be a whole number from 0 on, another hashable value .*, or None for nobody, got -1")
            for one in (-1, np.array(-1), th.tensor(-1))
        ],
    ],
)
def test_labels_that_are_no_numbers(group, words):
    venv = of_infos([{"group": group}])
    with pytest.raises(ValueError, match=words):
        walk(venv, Labels(venv), 1)


def test_a_batch_does_not_take_a_negative_label_for_nobody():
    venv = VecFairMDP(DummyVecEnv([lambda: Told({"group": -1}), lambda: Told({"group": 1})]), FairnessSpec())
    with pytest.raises(ValueError, match=r"must be a whole number from 0 on, .* got -1"):
        walk(venv, Labels(venv), 1)


def test_settings_that_are_not_allowed():
    venv = of_infos([None])
    with pytest.raises(ValueError, match=r"mode must be None or one of .* got 'stream'"):
        Labels(venv, mode="stream")
    with pytest.raises(TypeError, match=r"group_fn must be a function of \(obs, infos\) or None, got 3"):
        Labels(venv, group_fn=3)
    labels = Labels(venv, group_fn=lambda obs, infos: {"gruop": [0]})
    with pytest.raises(ValueError, match=r"group_fn must return labels, or a dict of .* with 'group', got"):
        walk(venv, labels, 1)


def test_a_label_that_is_unknown_now_and_then_is_no_other_label():
    nobody = {"individual": {"group": None}}["individual"]
    venv = DummyVecEnv([lambda: Told({"group": 0}, nobody, {"group": 0}), lambda: Told({"group": 1})])
    labels = Labels(venv)
    assert [population.group.tolist() for population in walk(venv, labels, 3)] == [[0, 1], [-1, 1], [0, 1]]
    assert not labels.streaming
    stream = DummyVecEnv([lambda: Told({"group": 0}, nobody, {"group": 1})])
    labels = Labels(stream)
    walk(stream, labels, 3)
    assert labels.streaming
