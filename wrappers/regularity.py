"""find_counterexample: refutes that a memory makes a fairness scheme Markov.

The status of the stakeholders, or the reward, should be a function of the augmented state (Alamdari et al.,
"Remembering to Be Fair", Section 5.1). Traces can refute this, never prove it.
"""

from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.layer import attribute, kept


@dataclass(frozen=True, eq=False)
class CounterExample:
    """Two traces that lead to the same augmented state and yet differ.

    :param of: what differs, ``"reward"`` or ``"status"``
    :param actions: of both traces up to the step in question
    :param values: rewards (of the last step) or status vectors
    :param observation: the augmented observation at the end of both
    """

    of: str
    actions: tuple[tuple[Any, ...], tuple[Any, ...]]
    values: tuple[Any, Any]
    observation: Any

    def __str__(self) -> str:
        first, second = self.actions
        return (
            f"after the actions {list(first)} the {self.of} is {self.values[0]}, after {list(second)} it is "
            f"{self.values[1]}, though both end in the same observation {self.observation}"
        )


@checked
def find_counterexample(
    env: gym.Env, of: Literal["reward", "status"] = "reward", n_episodes: int = 100, seed: int = 0
) -> CounterExample | None:
    """Plays random episodes and looks for two steps that the memory cannot tell apart, but that differ.

    :param env: with a memory in its observations; for the status, with a FairnessScheme inside
    :param of: ``"reward"``: the reward should follow from the observations before and after the step and the action;
        ``"status"``: the status should follow from the observation after the step
    :param n_episodes: how many episodes to play
    :param seed: of environment and actions
    :return: None if nothing speaks against the memory
    :raises ValueError: if there is no memory, or no status to look at
    """
    if not env.has_wrapper_attr("memory"):
        raise ValueError("env must have a memory: wrap it in MemoryAugmentation")
    if of == "status" and not env.has_wrapper_attr("status"):
        raise ValueError("env must have a status: wrap it in FairnessScheme")
    env.action_space.seed(seed)
    seen: dict[Any, tuple[tuple[Any, ...], Any]] = {}
    for episode in range(n_episodes):
        before = _key(env.reset(seed=seed + episode)[0])
        actions: list[Any] = []
        over = False
        while not over:
            action = env.action_space.sample()
            after, reward, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
            actions.append(np.asarray(action).tolist())
            now = _key(after)
            if of == "reward":
                key: Any = (before, _key(action), now)
                value: Any = float(reward)
            else:
                key, value = now, np.asarray(attribute(env, "status")).tolist()
            trace, known = seen.setdefault(key, (tuple(actions), value))
            if not np.allclose(known, value):
                return CounterExample(of, (trace, tuple(actions)), (known, value), kept(after))
            before = now
    return None


def _key(observation: Any) -> Any:
    if isinstance(observation, dict):
        return tuple(_key(observation[name]) for name in sorted(observation))
    return np.asarray(observation).tobytes()
