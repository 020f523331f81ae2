"""Connects policies with environments to be evaluated in: probabilities, scaled observations, what policies add."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import check_shape_equal
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_fair.wrappers.choices import VecChoices, compares_chances

SCALE = ("norm_obs", "norm_obs_keys", "obs_rms", "clip_obs", "epsilon")
"""Attributes of a ``VecNormalize`` that say how observations are normalised."""


def connected(policy: Any, venv: VecEnv) -> VecEnv:
    """``venv`` as the policy is to act in it.

    Notions that compare probabilities see those of the policy; observations are on the scale that it was trained with,
    which stays as it is, and have what it adds to them itself (``follow``, ``bind``) or SB3 changes in images.

    :param policy: anything with SB3's ``predict``
    """
    if isinstance(policy, BaseAlgorithm) and compares_chances(venv) and not isinstance(venv.action_space, spaces.Box):
        venv = VecChoices(venv).follow(policy)
    normaliser = normaliser_of(policy)
    if normaliser is None or normaliser.venv.observation_space == venv.observation_space:
        return _followed(policy, scaled(policy, venv))  # what the policy adds stays as it is
    return scaled(policy, _followed(policy, venv))


def scaled(policy: Any, venv: VecEnv) -> VecEnv:
    """``venv`` with observations on the scale that the policy was trained with, which learns no more, and rewards as
    they are. A ``VecNormalize`` that ``venv`` has gets the scale in :func:`own_scale`.

    :raises ValueError: if observations have another shape
    """
    normaliser, given = normaliser_of(policy), unwrap_vec_normalize(venv)
    if normaliser is None:
        return venv
    try:
        check_shape_equal(normaliser.observation_space, (given or venv).observation_space)
    except AssertionError as error:
        raise ValueError(f"env must have observations as the policy was trained on: {error}") from error
    if given is not None:
        return venv
    frozen: VecNormalize = pickle.loads(pickle.dumps(normaliser))  # as VecNormalize.save and load do
    frozen.set_venv(venv)
    frozen.training = frozen.norm_reward = False
    return frozen


@contextmanager
def own_scale(policy: Any, venv: VecEnv) -> Iterator[None]:
    """Meanwhile, a ``VecNormalize`` in ``venv`` learns nothing, leaves rewards as they are, and has the scale that the
    policy was trained with, if that is known."""
    normaliser, given = normaliser_of(policy), unwrap_vec_normalize(venv)
    settings = {} if given is None else vars(given)
    before = settings.copy()
    settings |= {"training": False, "norm_reward": False}
    if normaliser is not None:
        settings |= {name: value for name, value in vars(normaliser).items() if name in SCALE}
    try:
        yield
    finally:
        settings |= {name: before[name] for name in ("training", "norm_reward", *SCALE) if name in before}


def normaliser_of(policy: Any) -> VecNormalize | None:
    """What normalised observations in training."""
    return policy.get_vec_normalize_env() if isinstance(policy, BaseAlgorithm) else None


def reward_scale(normaliser: VecNormalize | None) -> float:
    """What ``VecNormalize`` multiplied the last step's rewards by; 1 where it leaves them as they are."""
    if normaliser is None or not normaliser.norm_reward:
        return 1.0
    return float(1 / np.sqrt(normaliser.ret_rms.var + normaliser.epsilon))


def apart(policy: Any) -> Any:
    """The policy; of one that can be bound to environments a copy, so that the policy itself stays bound to its own."""
    return copy(policy) if hasattr(policy, "bind") else policy


def _followed(policy: Any, venv: VecEnv) -> VecEnv:
    for connect in ("follow", "bind"):
        if hasattr(policy, connect):
            found = getattr(policy, connect)(venv)
            return found if isinstance(found, VecEnv) else venv
    return channels_first(venv, policy.observation_space) if isinstance(policy, BaseAlgorithm) else venv


def channels_first(venv: VecEnv, space: spaces.Space) -> VecEnv:
    """``venv`` with the channels of its images first, as SB3 trains on them, unless its observations are of ``space``.

    :raises AssertionError: if some images of a Dict have them first and others last
    """
    return venv if venv.observation_space == space else BaseAlgorithm._wrap_env(venv, monitor_wrapper=False)
