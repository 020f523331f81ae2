"""Learners of studies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecNormalize


@dataclass(frozen=True)
class Learner:
    """A way to learn.

    :param path: ``"module:Class"``
    :param settings: arguments of the class, over those of the experiment
    :param normalise: whether rewards are divided by the standard deviation of the return (SB3's VecNormalize)
    """

    path: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    normalise: bool = False

    def build(self, venv: VecEnv, seed: int, shared: Mapping[str, Any]) -> Any:
        """The model, ready to learn in ``venv``.

        :param shared: settings of the experiment
        """
        settings = {**shared, **self.settings}
        if self.normalise:
            venv = VecNormalize(venv, norm_obs=False, gamma=settings["gamma"])
        module, name = self.path.split(":")
        return getattr(import_module(module), name)(env=venv, seed=seed, **settings)
