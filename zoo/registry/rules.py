"""Rule baselines of an environment as agents with SB3's predict."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Space
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.wrappers.choices import Choices, drawn
from sb3_fair.wrappers.layer import Observations, attribute, different
from sb3_fair.zoo.envs.world import World
from sb3_fair.zoo.names import why


class RuleError(ValueError):
    """A rule that fails or returns no action.

    :param rule: its name
    :param what: what it does, as in "fails: KeyError: 3"
    """

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"rule {rule!r} {what}")
        self.rule, self.what = rule, what


class RuleAgent:
    """A rule baseline of an environment with SB3's ``predict``, so that whatever evaluates a model evaluates it.

    Several rules act side by side, so that one pass through the episodes serves them all.

    :param rule: a name in the environment's ``rules``, or several: rule i acts in the i-th block of copies
    :param venv: the environments it will act in, as many copies for each rule; :meth:`bind` gives it others
    :param seed: of its random choices; all rules have the same luck
    :raises ValueError: if the environment has no such rule, or the copies cannot be shared out evenly
    """

    def __init__(self, rule: str | Sequence[str], venv: VecEnv, seed: int | None = None) -> None:
        self.rule = rule
        self.names = (rule,) if isinstance(rule, str) else tuple(rule)
        self.rng = np.random.default_rng(seed)
        self.bind(venv)

    def bind(self, venv: VecEnv) -> "RuleAgent":
        """Act in these environments from now on; returns the agent."""
        world = attribute(venv, "world")  # from another process it comes without its class, so rules need no pickling
        rules = attribute(venv, "rules", {}) if world is None else world.rules
        for rule in self.names:
            if rule not in rules:
                raise ValueError(f"rule must be one of {tuple(rules)}, got {rule!r}{did_you_mean(rule, rules)}")
        if not self.names or venv.num_envs % len(self.names):
            raise ValueError(f"venv must have as many copies for each of {self.names}, got {venv.num_envs}")
        self.venv, self.rules = venv, [rules[rule] for rule in self.names]
        return self

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, None]:
        """Actions (n, ...), with their probabilities if they are Discrete; ``deterministic`` does not matter: a rule is
        what it is.

        :raises RuleError: if a rule fails
        """
        if attribute(self.venv, "world") is None:
            return self._answers(observation), None
        rows = self.rows()
        luck = self.rng.random((len(rows) // len(self.rules), 1))
        return drawn(rows, np.tile(luck, (len(self.rules), 1))), None

    def rows(self) -> NDArray[np.float64]:
        """Probabilities of the actions (n, n_actions) in copies of a World."""
        worlds: list[World] = different(self.venv, "world")
        rules = zip(self.names, self.rules, strict=True)
        told = [np.concatenate([_asked(name, rule, world) for world in worlds]) for name, rule in rules]
        return np.concatenate([np.split(rows, len(told))[index] for index, rows in enumerate(told)])

    def _answers(self, observation: Any) -> NDArray[Any]:
        """Actions of rules that look at one observation."""
        n, space = self.venv.num_envs, self.venv.action_space
        rules = [pair for pair in zip(self.names, self.rules, strict=True) for _ in range(n // len(self.rules))]
        seen = Observations(observation, n)
        actions = np.array([_action(*rule, one, space) for rule, one in zip(rules, seen, strict=True)])
        return Choices(actions, np.eye(int(space.n))[actions - space.start]) if isinstance(space, Discrete) else actions


def _asked(name: str, rule: Callable[[Any], Any], seen: Any) -> Any:
    try:
        return rule(seen)
    except Exception as error:  # a user's function may raise anything
        raise RuleError(name, f"fails: {why(error)}") from error


def _action(name: str, rule: Callable[[Any], Any], seen: Any, space: Space) -> NDArray[Any]:
    """What a rule does, as an action of a space."""
    answer = _asked(name, rule, seen)
    with suppress(TypeError, ValueError):
        action = np.asarray(answer, dtype=space.dtype)
        # the bounds of a Box are the environment's affair
        if isinstance(space, Box) or (space.contains(action) and np.array_equal(action, answer)):
            return action
    raise RuleError(name, f"must return an action of {space}, got {answer!r}")
