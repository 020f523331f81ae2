"""Monitors: one that leaves light infos light, and one that records the vector return of each finished episode."""

import time

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.wrappers.infos import vector_rewards
from sb3_fair.wrappers.layer import CopiedLayer, VecLayer


class LightMonitor(CopiedLayer, VecMonitor):
    """SB3's VecMonitor, without a file, that hands on the infos as they come.

    SB3's own makes a list of them, which takes longer than adding up rewards where infos are light.
    """

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self.episode_returns += rewards
        self.episode_lengths += 1
        for index in np.flatnonzero(dones).tolist() if dones.any() else ():
            episode = {"r": self.episode_returns[index], "l": self.episode_lengths[index]}
            infos[index]["episode"] = {**episode, "t": round(time.time() - self.t_start, 6)}
            self.episode_count += 1
            self.episode_returns[index] = 0
            self.episode_lengths[index] = 0
        return obs, rewards, dones, infos


class VectorMonitor(VecLayer):
    """Sums ``info["vector_reward"]`` over each episode: ``info["episode"]["v"]`` (k,) float64 at its last step.

    Where no Monitor is below, it also fills in SB3's ``r``, ``l`` and ``t``.

    :param venv: a VecEnv whose infos carry ``vector_reward``
    :raises ValueError: at the first step, if the infos carry no ``vector_reward``
    """

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self._start = time.time()
        self._rewards = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, dtype=np.int64)
        self._vectors: np.ndarray | float = 0.0

    def reset(self) -> VecEnvObs:
        self._rewards[:] = 0.0
        self._lengths[:] = 0
        self._vectors = 0.0
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self._rewards += rewards
        self._lengths += 1
        self._vectors = self._vectors + vector_rewards(infos)
        if dones.any():
            for index in np.flatnonzero(dones):
                episode = {
                    "r": round(float(self._rewards[index]), 6),
                    "l": int(self._lengths[index]),
                    "t": round(time.time() - self._start, 6),
                    **infos[index].get("episode", {}),
                    "v": self._vectors[index].copy(),
                }
                infos[index]["episode"] = episode
            self._rewards[dones] = 0.0
            self._lengths[dones] = 0
            self._vectors[dones] = 0.0
        return obs, rewards, dones, infos
