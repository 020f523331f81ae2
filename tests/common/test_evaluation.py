"""Does evaluation report complete episodes of any agent, and leave the world as it was?"""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_fair.common.evaluation import evaluate_vector, outcomes
from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.monitor import VectorMonitor
from sb3_fair.common.rollout import play, seeded, shares, twin
from tests.pcn.chain import Chain


class Always:
    def __init__(self, action):
        self.action = action

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.full(len(observation), self.action), state


class Fair(gym.Wrapper):
    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        info["fairness"] = {"SP": -0.5 if terminated else -0.1, "EO": None, "table": np.zeros(3)}
        return obs, reward, terminated, truncated, info


def chains(n=3, **kind):
    return DummyVecEnv([lambda: Chain(**kind) for _ in range(n)])


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("n_episodes", [1, 4, 7])
def test_exactly_so_many_episodes_are_shared_out(n, n_episodes):
    policy = evaluate_vector(Always(1), chains(n), n_episodes, name="right")
    assert policy.returns.tolist() == [[0, 3]] * n_episodes
    assert policy.lengths.tolist() == [3] * n_episodes
    assert (policy.name, policy.objectives) == ("right", ("left", "right"))
    assert sum(shares(n_episodes, n)) == n_episodes
    assert max(shares(n_episodes, n)) - min(shares(n_episodes, n)) <= 1


def test_short_episodes_are_not_preferred():
    """Whichever come first would be of mean length well below the true 1 + 0.5 + 0.25."""
    policy = evaluate_vector(Always(0), chains(50, early=0.5), 4_000)
    assert policy.length == pytest.approx(1.75, abs=0.05)


def test_the_last_figures_of_each_episode_are_kept():
    venv = DummyVecEnv([lambda: Fair(Chain()) for _ in range(2)])
    final = evaluate_vector(Always(0), venv, 3).final
    assert final["SP"].tolist() == [-0.5] * 3
    assert np.isnan(final["EO"]).all()
    assert set(final) == {"SP", "EO"}


@pytest.mark.parametrize("algorithm", [PPO, DQN])
def test_sb3_models_are_evaluated_reproducibly(algorithm):
    model = algorithm("MlpPolicy", Chain(), seed=0, device="cpu")
    if algorithm is DQN:
        model.exploration_rate = 0.5
    one, two, other = (
        evaluate_vector(model, chains(noise=0.1), 6, deterministic=False, seed=seed).returns for seed in (0, 0, 1)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_global_generators_are_put_back():
    legacy = np.random.mtrand._rand  # the global generator behind np.random, which SB3's DQN draws from
    legacy.seed(0), th.manual_seed(0)
    expected = legacy.rand(), th.rand(1)
    legacy.seed(0), th.manual_seed(0)
    with seeded(5):
        legacy.rand(9), th.rand(9)
    assert (legacy.rand(), th.rand(1)) == expected


def test_outcomes_know_their_copy():
    played = outcomes(Always(0), chains(3), np.array([1, 0, 2]))
    assert sorted(outcome.copy for outcome in played) == [0, 2, 2]


def test_copies_may_have_the_same_seed():
    one, same, other = outcomes(Always(0), chains(3, noise=1.0), np.ones(3, int), seeds=[5, 5, 6])
    assert np.array_equal(one.vector, same.vector)
    assert not np.array_equal(one.vector, other.vector)


def test_copies_that_are_done_go_on_without_counting():
    steps = list(play(chains(2), lambda obs, begins: np.zeros(2, int), np.array([1, 2])))
    assert [step.counts.tolist() for step in steps] == [[True, True]] * 3 + [[False, True]] * 3


def test_agents_hear_when_an_episode_begins():
    heard = []
    list(play(chains(2), lambda obs, begins: heard.append(begins.tolist()) or np.zeros(2, int), np.array([2, 1])))
    assert heard == [[True] * 2, [False] * 2, [False] * 2] * 2


def test_a_twin_goes_its_own_way(tmp_path):
    venv = VectorMonitor(VecNormalize(VectorMonitor(chains(2, noise=1.0), tmp_path / "log")))
    venv.seed(0)
    venv.reset()
    for _ in range(3):
        venv.step(np.zeros(2, int))
    other = twin(venv)
    before = venv.venv.obs_rms.mean.copy()
    one, same = venv.step(np.ones(2, int)), other.step(np.ones(2, int))
    np.testing.assert_allclose(one[3][0]["vector_reward"], same[3][0]["vector_reward"])
    for _ in range(5):
        other.step(np.ones(2, int))
    assert np.array_equal(other.venv.obs_rms.mean, before)
    assert other.unwrapped is not venv.unwrapped
    assert len((tmp_path / "log.monitor.csv").read_text().splitlines()) == 4
    venv.close()


def test_wrong_numbers_of_episodes_and_scalar_envs_are_refused():
    with pytest.raises(ValueError, match="n_eval_episodes must be a positive integer, got 0"):
        evaluate_vector(Always(0), chains(), 0)
    with pytest.raises(ValueError, match="env must have a vector reward"):
        evaluate_vector(Always(0), DummyVecEnv([lambda: gym.make("CartPole-v1")]), 1)


def test_histories_that_outlive_episodes_are_emptied_first():
    class Carrying(VectorMonitor):
        forgotten = 0

        def forget_history(self):
            self.forgotten += 1

    venv = Carrying(chains(2))
    evaluate_vector(Always(0), venv, 4)
    assert venv.forgotten == 1


def test_a_policy_says_in_a_line_what_it_is_worth():
    policy = EvaluatedPolicy("PCN 3", ("R", "SP"), np.array([[12.0, -0.25], [13.0, 0.0]]), np.array([5.0, 6.0]))
    assert repr(policy) == "<PCN 3: R=12.5, SP=-0.125; 2 episodes>"
