"""The evaluator: seeded episodes of any policy in any environment, as a table with a row per episode."""

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_fair.common.connection import apart, connected
from sb3_fair.common.evaluation import evaluate_vector, warn_of_undefined
from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.means import VecMeans
from sb3_fair.common.people import VecPeople
from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.group_returns import VecGroupReturns, games_of
from sb3_fair.wrappers.layer import Observations, attribute
from sb3_fair.wrappers.scalarise import with_scalar_reward
from sb3_fair.zoo.registry.build import Measurement, make_vec, unseen
from sb3_fair.zoo.registry.registration import ROWS, find
from sb3_fair.zoo.registry.rules import RuleAgent


@checked
def evaluate(
    policy: Any,
    env: str | gym.Env | VecEnv,
    n_episodes: int = 100,
    seed: int = 0,
    *,
    deterministic: bool = True,
    name: str = "policy",
    n_envs: int = 25,
    **env_kwargs: Any,
) -> EvaluatedPolicy:
    """Plays seeded episodes of any policy in any environment.

    :param policy: a model of SB3, of this package, or anything else with SB3's ``predict``; the name of one of the
        environment's ``rules``; or a function from one observation to an action. Models that take action masks, as
        sb3-contrib's ``MaskablePPO``, get those of the environment
    :param env: an ID of ours or of Gymnasium, for which ``n_envs`` parallel environments are made; an environment; or a
        VecEnv, which is seeded and reset. Its fairness histories begin empty. A ``VecNormalize`` in it has the scale
        that a model was trained with meanwhile, learns nothing and leaves rewards as they are
    :param n_episodes: number of episodes, shared out over the parallel environments. Where agents share a world, an
        episode is that of all of them: its returns are means over agents
    :param seed: of the environments and of what the policy samples from, which is put back afterwards
    :param deterministic: passed to ``predict``
    :param name: what to call the policy
    :param n_envs: number of parallel environments for an ID, at most one per episode
    :param env_kwargs: keyword arguments of the ID, such as ``objectives`` and ``audit``
    :return: the policy and a table with one row per episode, see :meth:`EvaluatedPolicy.table`
    :raises ValueError: if an argument is not allowed, or episodes never end
    :raises TypeError: if ``policy`` is none of these

    Example:
        >>> found = evaluate("hire-all", "sb3_fair/JobHiring-Small-v0", 10, audit=("SP",))
        >>> found.table()["length"].shape
        (10,)
    """
    venv = _parallel(env, min(n_envs, n_episodes), env_kwargs)
    try:
        if attribute(venv, "endless", False):
            raise ValueError("env must have an end for its episodes, got one without: set its episode_length")
        if games_of(venv) is not None:
            venv = VecGroupReturns(venv)
        elif attribute(venv, "fairness_spec") is not None and attribute(venv, "fairness_names", ()):
            venv = VecPeople(venv)
        agent = _agent(policy, venv, seed)
        measured = VecMeans(connected(agent, venv))
        found = evaluate_vector(agent, measured, n_episodes, deterministic, name, seed, scalar=True)
    finally:
        if isinstance(env, str):
            with suppress(Exception):  # which is no reason to lose what was found or went wrong
                venv.close()
    warn_of_undefined([found])
    return found


def _parallel(env: str | gym.Env | VecEnv, n_envs: int, env_kwargs: Mapping[str, Any]) -> VecEnv:
    if isinstance(env, str):
        if _is_plain(env, env_kwargs):
            return DummyVecEnv([lambda: with_scalar_reward(gym.make(env, **env_kwargs))] * n_envs)
        return make_vec(env, n_envs=n_envs, monitor=False, **env_kwargs, **unseen(env, env_kwargs))
    if env_kwargs:
        raise ValueError(f"env_kwargs must be left out unless env is an ID, got {sorted(env_kwargs)}")
    return env if isinstance(env, VecEnv) else DummyVecEnv([lambda: with_scalar_reward(env)])


def _is_plain(env_id: str, env_kwargs: Mapping[str, Any]) -> bool:
    """Whether only Gymnasium knows the environment, and nothing is to be measured in it."""
    if find(env_id).id in ROWS or {*Measurement.__dataclass_fields__, "vec_env"} & env_kwargs.keys():
        return False
    with closing(gym.make(env_id, **env_kwargs)) as env:
        return attribute(env, "fairness_spec") is None


def _agent(policy: Any, venv: VecEnv, seed: int) -> Any:
    if isinstance(policy, str):
        return RuleAgent(policy, venv, seed)
    if hasattr(policy, "predict"):
        return apart(policy)
    if not callable(policy):
        raise TypeError(f"policy must be a model with predict, the name of a rule, or a function, got {policy!r}")
    return FunctionPolicy(policy, venv.num_envs)


class FunctionPolicy:
    """A function from one observation to an action, with SB3's ``predict``."""

    def __init__(self, function: Callable[[Any], Any], n_envs: int) -> None:
        self.function, self.n_envs = function, n_envs

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[Any], None]:
        """Actions (n_envs, ...)."""
        return np.array([self.function(one) for one in Observations(observation, self.n_envs)]), None
