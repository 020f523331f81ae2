"""How does a scenario's rule of thumb, which may look into the simulator, act like an SB3 model?"""

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.wrappers.choices import Choices
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
        worlds: list[World] = venv.get_attr("world")
        self.worlds = [worlds[0]] if all(world is worlds[0] for world in worlds) else worlds
        rules = worlds[0].rules
        if self.rule not in rules:
            raise ValueError(f"rule must be one of {tuple(rules)}, got {self.rule!r}{did_you_mean(self.rule, rules)}")
        return self

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Choices, None]:
        """Actions (n,) with their probabilities; ``deterministic`` does not matter: a rule is what it is."""
        rows = np.concatenate([world.rules[self.rule](world) for world in self.worlds])
        drawn = (rows.cumsum(axis=1) < self.rng.random((len(rows), 1))).sum(axis=1)
        return Choices(drawn, rows), None
