"""Vector rewards and objectives that PCN reads from an environment."""

from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.evaluation import objective_names
from sb3_fair.common.rollout import vector_rewards
from sb3_fair.pcn.objectives import Array, Objectives, PerObjective
from sb3_fair.wrappers.choices import random_actions
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.scalarise import Scalarise


def with_scalar_reward(env: Any) -> Any:
    """``env``, an array reward (MO-Gymnasium's convention) moved to ``info["vector_reward"]``.

    SB3's Monitor and DummyVecEnv take scalar rewards only; the scalar is the sum of the objectives.
    """
    if not isinstance(env, gym.Env) or is_wrapped(env, Scalarise) or not env.has_wrapper_attr("reward_space"):
        return env
    if env.has_wrapper_attr("vector") and not env.get_wrapper_attr("vector"):  # VectorReward keeps a scalar
        return env
    return Scalarise(env, np.ones(env.get_wrapper_attr("reward_space").shape))


def names_of(venv: VecEnv) -> tuple[str, ...]:
    """Names of all objectives; their number is as announced, else that of one step."""
    if venv.has_attr("objective_names"):
        return tuple(venv.get_attr("objective_names")[0])
    if venv.has_attr("reward_space"):
        return objective_names(venv, venv.get_attr("reward_space")[0].shape[0])
    venv.reset()
    return objective_names(venv, vector_rewards(venv.step(random_actions(venv))[3]).shape[1])


def numbers_of(
    venv: VecEnv, argument: str, value: PerObjective | None, objectives: Objectives, missing: float = np.nan
) -> Array | None:
    """One number per optimised objective: the argument, else the environment's attribute of that name, else None."""
    if value is not None:
        return objectives.numbers(argument, value, missing)
    found = attribute(venv, argument)
    if found is None:
        return None
    row = np.broadcast_to(np.asarray(found, dtype=np.float64), (len(objectives.all_names),))
    return objectives.numbers(argument, row[objectives.columns])


def check_emit(name: str, venv: VecEnv, expected: str | None) -> None:
    """:raises ValueError: if both are known and the environment pays for notions at other times than ``expected``"""
    emit = attribute(venv, "emit")
    if None not in (emit, expected) and emit != expected:
        raise ValueError(f"{name} must have emit={expected!r}, as in training, got {emit!r}")
