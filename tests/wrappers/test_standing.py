"""Do agents see how far their group is ahead, whoever tells the groups and wherever episodes end?"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_fair import FairPPO
from sb3_fair.common.rollout import twin
from sb3_fair.wrappers import VecStanding
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from sb3_fair.zoo.envs.lending.world import LendingWorld
from sb3_fair.zoo.envs.world import WorldVecEnv
from tests.wrappers.bank import Foreign


class Paid(gym.Env):
    """Pays what it is given, step by step; its info may tell a group."""

    action_space = spaces.Discrete(2)

    def __init__(self, rewards=(), ends=(), group=None, keyed=False):
        self.rewards, self.ends, self.group, self.keyed = rewards, ends, group, keyed
        seen = spaces.Box(0, 99, (2,), np.float32)
        self.observation_space = spaces.Dict({"seen": seen}) if keyed else seen
        self.time = 0

    def _observe(self):
        seen = np.array([self.time, 7], dtype=np.float32)
        return {"seen": seen} if self.keyed else seen

    def reset(self, *, seed=None, options=None):
        return self._observe(), {}

    def step(self, action):
        reward, end = self.rewards[self.time], self.ends[self.time]
        self.time += 1
        info = {} if self.group is None else {"individual": {"group": self.group}}
        return self._observe(), float(reward), bool(end), False, info


class Redrawn(Foreign):
    """Groups and worlds of all slots, the groups new after every step in which all episodes ended."""

    def __init__(self, venv, groups, world):
        super().__init__(venv)
        self.groups, self.world, self.episode = groups, world, 0

    @property
    def slot_group(self):
        return np.array(self.groups[self.episode % len(self.groups)])

    @property
    def slot_world(self):
        return np.array(self.world)

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        self.episode += int(dones.all())
        return obs, rewards, dones, infos


def played(rewards, ends, groups=None, world=None, told=None, keyed=False):
    """The wrapper on slots that get rewards (T, S) and whose episodes end."""
    individuals = [None] * rewards.shape[1] if told is None else told
    envs = [
        partial(Paid, rewards[:, slot], ends[:, slot], individual, keyed) for slot, individual in enumerate(individuals)
    ]
    venv = DummyVecEnv(envs)
    return VecStanding(VecMonitor(venv if groups is None else Redrawn(venv, groups, world)))


def by_hand(rewards, groups, world):
    """Of each slot, for cumulated rewards (S,)."""
    found = []
    for group, home in zip(groups, world, strict=True):
        own = [x for x, g, w in zip(rewards, groups, world, strict=True) if w == home and g == group]
        others = [x for x, g, w in zip(rewards, groups, world, strict=True) if w == home and g not in (group, -1)]
        lead = 0.0
        if group >= 0 and others:
            mine, theirs = sum(own) / len(own), sum(others) / len(others)
            if abs(mine) + abs(theirs) > 0:
                lead = (mine - theirs) / (abs(mine) + abs(theirs))
        found.append(lead)
    return np.array(found)


@st.composite
def games(draw):
    slots, steps = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    row = lambda values: draw(st.lists(values, min_size=slots, max_size=slots))  # noqa: E731
    rewards = np.array([row(st.integers(-3, 3)) for _ in range(steps)])
    ends = np.array([row(st.booleans()) for _ in range(steps)])
    return rewards, ends, [row(st.integers(-1, 2)) for _ in range(2)], row(st.integers(0, 2))


@settings(max_examples=60, deadline=None)
@given(games())
def test_it_is_the_lead_of_the_own_group_in_the_running_episode(game):
    rewards, ends, groups, world = game
    venv = played(*game)
    assert_array_equal(venv.reset()[:, 2], 0)
    cumulated, episode = np.zeros(len(world)), 0
    for got, ended in zip(rewards, ends, strict=True):
        cumulated += got
        whole = by_hand(cumulated, groups[episode % 2], world)
        obs, _, dones, infos = venv.step(np.zeros(len(world), dtype=int))
        assert_array_equal(dones, ended)
        for slot in np.flatnonzero(ended):
            last = infos[slot]["terminal_observation"]
            assert last.dtype == np.float32 and last.shape == (3,)
            assert last[2] == pytest.approx(whole[slot], abs=1e-6)
        cumulated[ended] = 0
        episode += int(ended.all())
        expected = np.where(ended, 0, by_hand(cumulated, groups[episode % 2], world))
        assert_allclose(obs[:, 2], expected, atol=1e-6)
        assert obs.dtype == np.float32 and all(venv.observation_space.contains(row) for row in obs)
        assert_array_equal(obs[:, :2], [[env.time, 7] for env in venv.unwrapped.envs])


def test_infos_may_tell_the_groups_of_one_world_and_observations_may_be_dicts():
    rewards, ends = np.array([[3, 1], [0, 0]]), np.array([[False, False], [True, True]])
    venv = played(rewards, ends, told=[0, 1], keyed=True)
    assert venv.observation_space["standing"] == spaces.Box(-1, 1, (1,), np.float32)
    assert_array_equal(venv.reset()["standing"], [[0], [0]])
    assert_array_equal(venv.step([0, 0])[0]["standing"], [[0.5], [-0.5]])
    obs, _, _, infos = venv.step([0, 0])
    assert_array_equal(obs["standing"], [[0], [0]])
    assert [float(info["terminal_observation"]["standing"][0]) for info in infos] == [0.5, -0.5]
    assert set(infos[0]["terminal_observation"]) == set(obs) == {"seen", "standing"}


def test_a_reset_forgets_what_was_earned():
    venv = played(np.array([[1, 0], [1, 1]]), np.zeros((2, 2), dtype=bool), [[0, 1]], [0, 0])
    venv.reset()
    assert_array_equal(venv.step([0, 0])[0][:, 2], [1, -1])
    assert_array_equal(venv.reset()[:, 2], [0, 0])
    assert_array_equal(venv.step([0, 0])[0][:, 2], [0, 0])


def test_a_copy_with_all_its_layers_goes_on_by_itself():
    rewards = np.array([[3, 1], [0, 8]])
    venv = played(rewards, np.array([[True, True], [False, False]]), [[0, 1], [1, 0]], [0, 0])
    venv.reset()
    copied = twin(venv)
    for each in (copied, venv):
        last = [info["terminal_observation"][2] for info in each.step([0, 0])[3]]
        assert last == [0.5, -0.5]
        assert_array_equal(each.step([0, 0])[0][:, 2], [-1, 1])


def test_harvesters_see_the_lead_of_the_fast_and_everything_else_stays_reachable():
    plain, venv = (HarvestVecEnv(2, {"horizon": 30}, seed=0) for _ in range(2))
    venv = VecStanding(VecMonitor(venv))
    before, obs = plain.reset(), venv.reset()
    assert_array_equal(venv.slot_group, plain.slot_group)
    assert_array_equal(venv.get_attr("slot_lf"), plain.slot_lf)
    rng, earned = np.random.default_rng(0), np.zeros(80)
    group, world = plain.slot_group.copy(), plain.slot_world.copy()
    for step in range(30):
        assert_array_equal(obs[:, :-1], before)
        assert_array_equal(venv.env_method("action_masks"), plain.env_method("action_masks"))
        assert_allclose(obs[:, -1], by_hand(earned, group, world), atol=1e-6)
        actions = rng.integers(8, size=80)
        before, rewards, _, _ = plain.step(actions)
        obs, _, dones, infos = venv.step(actions)
        earned += rewards
        assert dones.all() == (step == 29)
    last = np.array([info["terminal_observation"][-1] for info in infos])
    assert_allclose(last, by_hand(earned, group, world), atol=1e-6)
    assert np.abs(last).max() > 0.1 and (obs[:, -1] == 0).all()


def test_fair_ppo_trains_on_it_and_goes_on_after_loading(tmp_path):
    def harvest():
        return VecNormalize(VecStanding(HarvestVecEnv(1, {"horizon": 10, "obs_scale": True}, seed=0)), norm_obs=False)

    settings = {"policy_kwargs": {"group_index": 2, "net_arch": [8]}, "n_steps": 10, "batch_size": 200, "seed": 0}
    model = FairPPO("GroupedPolicy", harvest(), alpha=2.0, aggregate="group_mean", tolerance=0.2, **settings)
    model.learn(400).save(tmp_path / "model")
    loaded = FairPPO.load(tmp_path / "model", harvest())
    assert loaded.tolerance == loaded.retrospective.tolerance == 0.2
    loaded.learn(400, reset_num_timesteps=False)
    assert loaded.num_timesteps == 800 and loaded.observation_space.shape == (11,)
    assert not loaded.labels.streaming and loaded.retrospective.past.disparity > 0


def test_what_cannot_be_told_is_named():
    nobody = played(np.zeros((1, 2)), np.zeros((1, 2)))
    nobody.reset()
    with pytest.raises(ValueError, match=r"slot_group of the VecEnv, or by info\['individual'\]\['group'\]"):
        nobody.step([0, 0])
    with pytest.raises(ValueError, match="already has observations with the key 'standing'"):
        VecStanding(played(np.zeros((1, 2)), np.zeros((1, 2)), keyed=True))
    with pytest.raises(ValueError, match="vectors or Dicts, got Discrete"):
        VecStanding(DummyVecEnv([lambda: gym.make("FrozenLake-v1")]))
    applicants = VecStanding(WorldVecEnv(LendingWorld, 2))
    applicants.seed(0)
    applicants.reset()
    with pytest.raises(ValueError, match="stay the same during an episode"):
        for _ in range(50):
            applicants.step(np.zeros(2, dtype=int))
