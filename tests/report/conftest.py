"""A trade-off as PCN might find it on hiring, and rules beside it; made of random numbers."""

import numpy as np
import pytest

from sb3_fair.common.front import Command, EvaluatedPolicy, Front

CHANCE = {"SP": 0.14, "EO": 0.17}


def evaluated(name, returns, length, rng, command=None, episodes=10):
    returns = np.asarray(returns) + rng.normal(size=(episodes, 3)) * [1.3, 0.02, 0.03]
    final = {name: rng.uniform(-0.4, 0, episodes) for name in ("EO", "OAE", "PP", "PE", "CSC")}
    final["PP"][0] = np.nan
    return EvaluatedPolicy(
        name=name,
        objectives=("R", "SP", "IF"),
        returns=returns,
        lengths=np.full(episodes, length),
        command=command,
        final={**final, "SP": returns[:, 1], "IF": returns[:, 2]},
        chance=CHANCE,
    )


@pytest.fixture
def front():
    rng = np.random.default_rng(3)
    policies = []
    for index, share in enumerate(np.linspace(0, 1, 18)):
        returns = [17 - 13 * share**1.5, -0.2 + rng.uniform(0, 0.15), -0.92 + 0.32 * share]
        command = Command(np.array(returns) + [0.8, 0.02, 0.01], 95 - index)
        policies.append(evaluated(f"PCN {index}", returns, 96.0, rng, command))
    return Front(tuple(policies))


@pytest.fixture
def baselines():
    rng = np.random.default_rng(4)
    rules = {
        "hire all": ([-1.9, -0.01, -0.6], 20),
        "reject all": ([4.1, 0.0, -0.6], 100),
        "random": ([0.2, -0.2, -1.1], 39),
        "patient oracle": ([16.3, -0.12, -1.0], 100),
    }
    return tuple(evaluated(name, returns, length, rng) for name, (returns, length) in rules.items())


@pytest.fixture
def curves():
    steps = np.arange(2_000, 120_001, 2_000)
    rise = 1 - np.exp(-steps / 40_000)
    return {
        "time/total_timesteps": steps.tolist(),
        "eval/hypervolume": (4 * rise).tolist(),
        "train/loss": [None, *(0.69 - 0.4 * rise[1:]).tolist()],
        "pcn/desired_R": (16 * rise + 0.5).tolist(),
        "pcn/reached_R": (15 * rise).tolist(),
    }
