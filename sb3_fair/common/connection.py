"""Connects policies with environments to be evaluated in: probabilities, scaled observations, what policies add."""

import pickle
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, VecTransposeImage

from sb3_fair.wrappers.choices import VecChoices, compares_chances


def connected(policy: Any, venv: VecEnv) -> VecEnv:
    """``venv`` as the policy is to act in it.

    Notions that compare probabilities see those of the policy; observations are on the scale that it was trained with,
    which stays as it is, and have what it adds to them itself (``follow``, ``bind``) or SB3 changes in images.

    :param policy: anything with SB3's ``predict``
    """
    if isinstance(policy, BaseAlgorithm) and compares_chances(venv) and not isinstance(venv.action_space, spaces.Box):
        venv = VecChoices(venv).follow(policy)
    normaliser = policy.get_vec_normalize_env() if isinstance(policy, BaseAlgorithm) else None
    if normaliser is None:
        return _followed(policy, venv)
    if normaliser.venv.observation_space == venv.observation_space:  # what the policy adds stays as it is
        return _followed(policy, scaled(normaliser, venv))
    return scaled(normaliser, _followed(policy, venv))


def scaled(normaliser: VecNormalize, venv: VecEnv) -> VecNormalize:
    """``venv`` with observations on the scale of ``normaliser``, which learns no more, and rewards as they are.

    :raises ValueError: if observations have another shape
    """
    frozen: VecNormalize = pickle.loads(pickle.dumps(normaliser))  # as VecNormalize.save and load do
    try:
        frozen.set_venv(venv)
    except AssertionError as error:
        raise ValueError(f"env must have observations as the policy was trained on: {error}") from error
    frozen.training = frozen.norm_reward = False
    return frozen


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
    observed = venv.observation_space
    parts = observed.spaces.values() if isinstance(observed, spaces.Dict) else (observed,)
    images = [part for part in parts if isinstance(part, spaces.Box) and is_image_space(part)]
    channels_last = not all(map(is_image_space_channels_first, images))
    return VecTransposeImage(venv) if channels_last and observed != space else venv
