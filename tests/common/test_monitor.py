"""Does every finished episode report what it brought, objective by objective?"""

import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sb3_fair.common.monitor import VectorMonitor
from tests.pcn.chain import Chain


def run(venv, n_steps=20, seed=0):
    """Episodes (rewards, vectors, infos of the last step) as seen from outside, and infos of the other steps."""
    venv.seed(seed)
    venv.reset()
    rng = np.random.default_rng(0)
    episodes, others = [], []
    rewards, vectors = [[] for _ in range(venv.num_envs)], [[] for _ in range(venv.num_envs)]
    for _ in range(n_steps):
        _, reward, dones, infos = venv.step(rng.integers(3, size=venv.num_envs))
        for i in range(venv.num_envs):
            rewards[i].append(reward[i])
            vectors[i].append(infos[i]["vector_reward"])
            if dones[i]:
                episodes.append((rewards[i], vectors[i], infos[i]))
                rewards[i], vectors[i] = [], []
            else:
                others.append(infos[i])
    return episodes, others


def chains(n=3, wrap=lambda env: env):
    return DummyVecEnv([lambda: wrap(Chain(noise=0.5, early=0.2)) for _ in range(n)])


@pytest.mark.parametrize("below", [chains, lambda: chains(wrap=Monitor), lambda: VecMonitor(chains())])
def test_each_episode_has_its_return_length_and_vector_return(below):
    episodes, others = run(VectorMonitor(below()))
    assert len(episodes) > 15
    for rewards, vectors, info in episodes:
        assert info["episode"]["r"] == pytest.approx(sum(rewards), abs=1e-5)
        assert info["episode"]["l"] == len(rewards)
        assert info["episode"]["t"] >= 0
        np.testing.assert_allclose(info["episode"]["v"], np.sum(vectors, axis=0))
    assert not any("episode" in info for info in others)


def test_a_reset_begins_new_sums():
    venv = VectorMonitor(DummyVecEnv([Chain]))
    venv.reset()
    venv.step(np.array([0]))
    venv.reset()
    for _ in range(3):
        _, _, _, infos = venv.step(np.array([1]))
    assert infos[0]["episode"]["v"].tolist() == [0, 3]
    assert infos[0]["episode"]["l"] == 3


def test_without_vector_rewards_it_says_so():
    venv = VectorMonitor(DummyVecEnv([lambda: Chain(array=True)]))
    venv.reset()
    with pytest.raises((ValueError, TypeError)):
        venv.step(np.array([0]))
