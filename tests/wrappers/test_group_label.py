"""Does an observation tell the group of whom the next action is for, also where an episode ends?"""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_array_equal
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sb3_fair.wrappers import GroupLabelObs, VecGroupLabelObs
from tests.wrappers.bank import Foreign


class Queue(gym.Env):
    """Who comes next is of a random group, which attribute, info and observation tell."""

    action_space = spaces.Discrete(2)

    def __init__(self, length=3, keyed=False):
        self.length = length
        seen = spaces.Box(0, 1, (2,), np.float32)
        self.observation_space = spaces.Dict({"seen": seen}) if keyed else seen
        self.keyed = keyed

    def _next(self):
        self.present = int(self.np_random.integers(2))
        seen = np.array([self.present, self.np_random.random()], np.float32)
        return ({"seen": seen} if self.keyed else seen), {"who": self.present}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._next()

    def step(self, action):
        self.t += 1
        obs, info = self._next()
        return obs, 0.0, False, self.t == self.length, info


def by_info(obs, info):
    return info["who"]


@pytest.mark.parametrize("group", ["present", by_info, 1], ids=["attribute", "callable", "constant"])
@pytest.mark.parametrize("keyed", [False, True])
def test_a_dict_holds_observation_and_group(group, keyed):
    env = GroupLabelObs(Queue(keyed=keyed), group)
    check_env(env, skip_render_check=True)
    obs, _ = env.reset(seed=1)
    for _ in range(3):
        assert set(obs) == {"seen" if keyed else "state", "group"}
        assert obs["group"] == (1 if group == 1 else env.unwrapped.present)
        assert env.observation_space.contains(obs)
        obs = env.step(0)[0]


def test_a_vector_may_have_the_group_last():
    env = GroupLabelObs(Queue(), "present", n_groups=2, flatten=True)
    assert env.observation_space.shape == (3,)
    obs, _ = env.reset(seed=1)
    assert obs.dtype == np.float32 and obs[2] == obs[0]
    assert env.observation_space.contains(obs)


class Shuffled(Foreign):
    """Every copy of a DummyVecEnv gets a new group when an episode begins."""

    slot_group = np.array([0, 1, 0])

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        self.slot_group = np.where(dones, 1 - self.slot_group, self.slot_group)
        return obs, rewards, dones, infos


def test_an_array_of_slots_tells_the_group_of_a_whole_episode():
    venv = VecGroupLabelObs(VecMonitor(Shuffled(DummyVecEnv([lambda: Queue(keyed=True)] * 3))))
    assert_array_equal(venv.reset()["group"], [0, 1, 0])
    for _ in range(2):
        assert_array_equal(venv.step(np.zeros(3, int))[0]["group"], [0, 1, 0])
    obs, _, _, infos = venv.step(np.zeros(3, int))
    assert_array_equal(obs["group"], [1, 0, 1])
    assert [info["terminal_observation"]["group"] for info in infos] == [0, 1, 0]


def test_groups_of_all_copies_may_be_given():
    groups = np.array([2, 0, 1])
    venv = VecGroupLabelObs(DummyVecEnv([Queue] * 3), groups, n_groups=3, flatten=True)
    groups[:] = 0  # the caller's own
    assert_array_equal(venv.reset()[:, -1], [2, 0, 1])


def test_what_is_not_allowed_is_named():
    with pytest.raises(ValueError, match="already has observations with the key 'group'"):
        GroupLabelObs(GroupLabelObs(Queue(), 1), 1)
    with pytest.raises(ValueError, match="vectors, got Dict"):
        GroupLabelObs(Queue(keyed=True), 1, flatten=True)
    with pytest.raises(ValueError, match="n_groups must be a positive integer, got 0"):
        GroupLabelObs(Queue(), 1, n_groups=0)
    with pytest.raises(ValueError, match="attribute of env, a group or a callable, got 'nobody'"):
        GroupLabelObs(Queue(), "nobody").reset()
    with pytest.raises(ValueError, match="from 0 to 1, got 2"):
        GroupLabelObs(Queue(), 2).reset()
    with pytest.raises(ValueError, match=r"from 0 to 1, got 0\.5"):
        GroupLabelObs(Queue(), lambda obs, info: 0.5).reset()
    with pytest.raises(ValueError, match="'slot_group', got None"):
        VecGroupLabelObs(DummyVecEnv([Queue]))
    with pytest.raises(ValueError, match=r"one group per copy \(1\)"):
        VecGroupLabelObs(DummyVecEnv([Queue]), [0, 1])
