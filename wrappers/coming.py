"""VecComing: what a filter between policy and environment may know before the next decision."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.wrappers.infos import Record, figures_in, record_of, stacked
from sb3_fair.wrappers.layer import VecLayer

MASSAGE = "massage"


def first(venv: VecEnv) -> Record | None:
    """``info["massage"]`` after a reset, arrays (n, ...); None if the environment publishes none."""
    return told(getattr(venv.unwrapped, "reset_infos", ()))  # those of VecMonitor and VecNormalize stay empty


def coming(venv: VecEnv, infos: Sequence[Mapping[str, Any]], dones: NDArray[np.bool_]) -> Record | None:
    """``info["massage"]`` of the coming decisions, arrays (n, ...); None if the environment publishes none.

    :param infos: of the step before
    :param dones: (n,), whose episode ended with it: what counts for them is in the info of their reset
    """
    which = np.flatnonzero(dones)
    resets: Any = getattr(venv.unwrapped, "reset_infos", [{}] * len(dones))  # some VecEnvs have none
    begun = [resets[copy] for copy in which]
    if not all(MASSAGE in info for info in begun) and any(MASSAGE in info for info in infos):
        raise ValueError(f"an environment with info[{MASSAGE!r}] after steps must have it after resets too, got none")
    record = record_of(infos, MASSAGE)
    if record is None or MASSAGE not in record:
        latest = list(infos)
        for copy, info in zip(which, begun, strict=True):
            latest[copy] = info
        return told(latest)
    restarted = told(begun)
    if restarted is None:
        return dict(record[MASSAGE])
    rows = np.arange(len(dones))
    rows[which] = len(dones) + np.arange(len(which))
    return {key: np.concatenate((value, restarted[key]))[rows] for key, value in record[MASSAGE].items()}


def told(infos: Sequence[Mapping[str, Any]]) -> Record | None:
    """``info["massage"]`` in each of n infos, whatever copies they are of, as arrays (n, ...); None if one has none."""
    if not infos or not all(MASSAGE in info for info in infos):
        return None
    known = [info[MASSAGE] for info in infos]
    try:
        return dict(stacked(known))
    except ValueError as error:  # of numpy
        raise ValueError(
            f"info[{MASSAGE!r}] must have the same shapes in all copies (groups of FairnessSpec must be given for a "
            f"Disparity in each of them), got {known}"
        ) from error


class VecComing(VecLayer):
    """A VecEnv that remembers in ``coming`` what is known before its next decisions: None before the first reset, or
    if the environment publishes no ``info["massage"]``.

    A filter that says in ``changed``, (n,), which decisions it replaced has their share of an episode told at its end,
    as ``info["fairness"]["filtered"]``.
    """

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.coming: Record | None = None
        self.changed: NDArray[np.bool_] | None = None
        self._replaced = np.zeros((2, venv.num_envs))

    def reset(self) -> VecEnvObs:
        obs = self.venv.reset()
        self.coming, self.changed = first(self.venv), None
        self._replaced[:] = 0.0
        return obs

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self.coming = coming(self.venv, infos, dones)
        if self.changed is not None:
            self._replaced += self.changed, np.ones(len(dones))
            for copy in np.flatnonzero(dones):
                replaced, steps = self._replaced[:, copy]
                infos[copy]["fairness"] = {**figures_in(infos[copy]), "filtered": float(replaced / steps)}
            self._replaced[:, dones] = 0.0
        return obs, rewards, dones, infos
