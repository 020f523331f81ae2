"""Means of measures over the steps of an episode."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.descriptions import MEAN
from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.wrappers.infos import figures_in, figures_of
from sb3_fair.wrappers.layer import VecLayer


class VecMeans(VecLayer):
    """Puts means over an episode's steps beside its last figures: ``info["fairness"]["mean_d_s"]``.

    :param venv: any, copies of which may tell different figures
    :param names: figures in ``info["fairness"]``; None: all numbers that are there at the first step and have no mean
        yet. Steps in which one is undefined or missing do not count
    """

    def __init__(self, venv: VecEnv, names: Sequence[str] | None = None) -> None:
        super().__init__(venv)
        self.names = None if names is None else list(names)
        self._totals = np.zeros((2, 0, self.num_envs))  # sums of the figures, and of how many steps

    def reset(self) -> VecEnvObs:
        self._totals = np.zeros_like(self._totals)
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        fairness = figures_of(infos) if self.names != [] else {}
        if self.names is None and fairness:
            self.names = [
                name
                for name, values in fairness.items()
                if self._is_figure(values) and not name.startswith(MEAN) and MEAN + name not in fairness
            ]
        if not self.names:
            return obs, rewards, dones, infos
        missing = np.full(self.num_envs, np.nan)
        told = [fairness.get(name) for name in self.names]
        values = np.array([each if self._is_figure(each) else missing for each in told], dtype=np.float64)
        known = ~np.isnan(values)
        if not self._totals.size:
            for name in self.names:
                if name not in fairness:
                    raise ValueError(
                        f"names must be figures in info['fairness'], got {name!r}{did_you_mean(name, fairness)}"
                    )
            self._totals = np.zeros((2, *values.shape))
        self._totals += np.where(known, values, 0.0), known
        for copy in np.flatnonzero(dones).tolist():
            totals = zip(self.names, *self._totals[:, :, copy].tolist(), strict=True)
            means = {f"{MEAN}{name}": total / count if count else None for name, total, count in totals}
            infos[copy]["fairness"] = {**figures_in(infos[copy]), **means}
        self._totals[:, :, dones] = 0.0
        return obs, rewards, dones, infos

    def _is_figure(self, values: Any) -> bool:
        """Whether these are one number per copy."""
        return np.shape(values) == (self.num_envs,) and np.asarray(values).dtype.kind in "biuf"
