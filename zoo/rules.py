"""How does a scenario's rule of thumb, which may look into the simulator, act like an SB3 model?"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.wrappers.choices import Choices
from sb3_fair.wrappers.layer import attribute, different
from sb3_fair.zoo.envs.world import World


class RuleAgent:
    """A rule baseline of a scenario with SB3's ``predict``, so that whatever evaluates a model evaluates it.

    :param rule: a name in the scenario's ``World.rules``
    :param venv: the environments it will act in; :meth:`bind` gives it others
    :param seed: of its random choices
    :raises ValueError: if the scenario has no such rule
    """

    def __init__(self, rule: str, venv: VecEnv, seed: int | None = None) -> None:
        self.rule = rule
        self.rng = np.random.default_rng(seed)
        self.bind(venv)

    def bind(self, venv: VecEnv) -> "RuleAgent":
        """Act in these environments from now on; returns the agent."""
        rules = attribute(venv, "world").rules
        if self.rule not in rules:
            raise ValueError(f"rule must be one of {tuple(rules)}, got {self.rule!r}{did_you_mean(self.rule, rules)}")
        self.venv = venv
        return self

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Choices, None]:
        """Actions (n,) with their probabilities; ``deterministic`` does not matter: a rule is what it is."""
        rows = self.rows()
        return Choices(_drawn(rows, self.rng.random((len(rows), 1))), rows), None

    def rows(self) -> NDArray[np.float64]:
        """Probabilities of the actions (n, n_actions)."""
        worlds: list[World] = different(self.venv, "world")
        return np.concatenate([world.rules[self.rule](world) for world in worlds])


class RulePanel:
    """Several rules side by side, each in as many copies: one pass through the episodes serves them all.

    :param rules: names in the scenario's ``World.rules``; rule i acts in the i-th block of copies
    :param venv: the environments they act in, as many copies for each rule
    :param seed: of their random choices; all rules have the same luck
    :raises ValueError: if the scenario has no such rule, or the copies cannot be shared out evenly
    """

    def __init__(self, rules: Sequence[str], venv: VecEnv, seed: int | None = None) -> None:
        if not rules or venv.num_envs % len(rules):
            raise ValueError(f"venv must have as many copies for each of {tuple(rules)}, got {venv.num_envs}")
        self.agents = [RuleAgent(rule, venv) for rule in rules]
        self.size = venv.num_envs // len(rules)
        self.rng = np.random.default_rng(seed)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Choices, None]:
        """Actions (n,) with their probabilities, as :meth:`RuleAgent.predict` tells them for each block."""
        blocks = [slice(index * self.size, (index + 1) * self.size) for index in range(len(self.agents))]
        rows = np.concatenate([agent.rows()[block] for agent, block in zip(self.agents, blocks, strict=True)])
        chances = np.tile(self.rng.random((self.size, 1)), (len(self.agents), 1))
        return Choices(_drawn(rows, chances), rows), None


def _drawn(rows: NDArray[np.float64], chances: NDArray[np.float64]) -> NDArray[np.int64]:
    """An action (n,) for each row of probabilities (n, n_actions) and each chance (n, 1)."""
    return (rows.cumsum(axis=1) < chances).sum(axis=1)
