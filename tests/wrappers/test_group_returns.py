"""Disparities of returns where agents share worlds: sb3_fair.wrappers.group_returns."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

import sb3_fair
from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.fairness import demographic_disparity, gini, twin_disparity
from sb3_fair.wrappers.group_returns import VecGroupReturns, games_of
from sb3_fair.wrappers.layer import seed_copies
from sb3_fair.zoo.envs.harvest import HarvestVecEnv
from sb3_fair.zoo.evaluation.harvest_evaluation import RandomAgent, harvest_figures

ALL = "sb3_fair/AllelopathicHarvest-All-v0"
SETTINGS = {"objectives": ("R",), "horizon": 6, "monitor": False}


def test_the_id_of_all_agents_plays_what_the_bare_game_plays():
    by_id, bare = sb3_fair.make_vec(ALL, 2, seed=3, **SETTINGS), HarvestVecEnv(2, {"horizon": 6}, seed=3)
    np.testing.assert_array_equal(by_id.reset(), bare.reset())
    rng = np.random.default_rng(0)
    for _ in range(15):
        actions = rng.integers(8, size=80)
        for one, other in zip(by_id.step(actions)[:3], bare.step(actions)[:3], strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="one slot per agent"):
        gym.make(ALL)


@pytest.mark.parametrize("twins", [False, True])
def test_a_game_ends_with_the_disparities_of_its_returns(twins):
    venv = VecGroupReturns(sb3_fair.make_vec(ALL.replace("All-", "AllTwins-") if twins else ALL, 3, seed=0, **SETTINGS))
    assert games_of(venv).tolist() == np.repeat(range(3), 80 if twins else 40).tolist()
    venv.reset()
    rng, returns = np.random.default_rng(1), np.zeros(venv.num_envs)
    for step in range(1, 13):
        groups = venv.venv.unwrapped.slot_group.copy()
        _, rewards, dones, infos = venv.step(rng.integers(8, size=venv.num_envs))
        returns += rewards
        assert dones.all() == (step % 6 == 0)
        if dones.all():
            for slot in (0, venv.num_envs // 3, venv.num_envs - 1):
                of = games_of(venv) == games_of(venv)[slot]
                told = infos[slot]["fairness"]
                assert told["dp_norm"] == abs(demographic_disparity(returns[of], groups[of], normalise="sum"))
                assert told["gini"] == gini(returns[of]) and set(venv.return_names) <= told.keys()
                if twins:
                    assert told["twins"] == twin_disparity(*np.split(returns[of], 2))
            returns[:] = 0


def test_an_evaluated_episode_is_a_game_with_the_mean_return_of_its_agents():
    venv = VecGroupReturns(sb3_fair.make_vec(ALL, 4, **SETTINGS))
    policy = evaluate_vector(RandomAgent(5), venv, 4, seed=5)
    rows = harvest_figures(RandomAgent(5), 4, 6, 5)
    np.testing.assert_allclose(policy.returns[:, 0], (rows["U"] + rows["S"]) / 40)
    np.testing.assert_allclose(policy.final["dp_norm"], np.abs(rows["dp_norm"]))
    assert policy.lengths.tolist() == [6] * 4
    with pytest.raises(ValueError, match="agents that share worlds"):
        VecGroupReturns(sb3_fair.make_vec("sb3_fair/Doughnut-v0", 2))


@pytest.mark.parametrize("names", [(0, 1, 2), ("slow", "mid", "fast"), (5, 3, 9)])
def test_of_several_groups_the_two_furthest_apart_are_told(names):
    """Whoever is in no group counts in no gap, nor does a group without members in a game."""
    lengths, groups = [1, 1, 2, 2, 4, 4, 4, 4], [0, 0, 1, 1, 2, 2, 0, 2]
    venv = DummyVecEnv([lambda n=n: Paid(n) for n in [*lengths, *lengths]])
    venv.slot_world = np.repeat([0, 1], 8)
    unknown = -1 if isinstance(names[0], int) else None
    telling = dict(enumerate(names))
    venv.slot_group = [telling[group] for group in groups] + [{**telling, 2: unknown}[group] for group in groups]
    venv.slot_lf = np.array([1, 2] * 8)
    found = {name: values.tolist() for name, values in sb3_fair.evaluate(lambda observation: 0, venv, 2).final.items()}
    assert found["dp"] == [12 - 4, 6 - 4]  # 0 has 1 + 1 + 4, 1 has 2 + 2, 2 has 4 + 4 + 4
    assert found["dp_norm"] == [8 / 16, 2 / 10]
    assert found["dp_pc"] == [2, 0] and found["dp_pc_norm"] == [2 / 6, 0]
    assert found["csp_G1_pc"] == [4 - 2, 2.5 - 2] and found["csp_G2_pc"] == [4 - 1, 2 - 1]
    assert found["pairs"] == [(6 * 3) / 9, (1 + 1 + 1 + 1 + 2 + 2) / 6]
    assert found["gini"][0] == found["gini"][1] == pytest.approx(gini(lengths))


@pytest.mark.parametrize(
    ("world", "pair"), [([0, 0, 1, 1], [2, 3, 0, 1]), ([0, 1, 0, 1], [1, 0, 3, 2]), ([1, 1, 0, 0], [3, 2, 1, 0])]
)
def test_agents_are_compared_with_their_own_twins_wherever_these_stand(world, pair):
    venv = DummyVecEnv([lambda n=n: Paid(n) for n in (1, 4, 2, 8)])
    venv.slot_world, venv.slot_pair, venv.slot_group = np.array(world), np.array(pair), np.array(world)
    pays = np.array([1, 4, 2, 8])
    found = {name: values.tolist() for name, values in sb3_fair.evaluate(lambda observation: 0, venv, 1).final.items()}
    assert found["twins"] == [np.abs(pays - pays[pair]).mean()]
    assert found["cf"] == [abs(pays[venv.slot_world == 0].sum() - pays[venv.slot_world == 1].sum())]


class Paid(gym.Env):
    """Pays once, so much, and takes two steps."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2)

    def __init__(self, pay):
        self.pay = pay

    def reset(self, *, seed=None, options=None):
        self.over = True
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.over = not self.over
        return np.zeros(1, np.float32), self.pay * self.over, self.over, False, {}


def carts(lengths, worlds):
    venv = DummyVecEnv([lambda n=n: gym.make("CartPole-v1", max_episode_steps=n) for n in lengths])
    venv.slot_world, venv.slot_group = np.array(worlds), np.arange(len(worlds)) % 2
    return venv


def test_games_of_any_vec_env_are_evaluated_if_their_agents_are_as_many_and_end_together():
    venv = carts([3] * 4, [0, 0, 1, 1])
    found = sb3_fair.evaluate(lambda observation: 0, venv, 4)
    assert found.lengths.tolist() == [3] * 4 and found.final["dp"].tolist() == [0] * 4
    seed_copies(venv, [5, 9])
    assert venv._seeds == [5, 9, 7, 8]
    for lengths in ([3, 5, 3, 5], [5, 3, 3, 3]):
        with pytest.raises(ValueError, match="of all agents of a game in the same step, got a game of which 1 of 2"):
            sb3_fair.evaluate(lambda observation: 0, carts(lengths, [0, 0, 1, 1]), 4)
    alone = carts([3] * 4, [1, 1, 0, 0])
    alone.slot_pair = np.full(4, -1)
    assert games_of(alone).tolist() == [1, 1, 0, 0]
    with pytest.raises(ValueError, match=r"slot_world must give all games the same number of agents, got \[2, 3\]"):
        sb3_fair.evaluate(lambda observation: 0, carts([3] * 5, [0, 0, 1, 1, 1]), 4)
