"""Monitors: one that leaves light infos light, and one that records the vector return of each finished episode."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.monitor import ResultsWriter
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.common.rollout import vector_rewards
from sb3_fair.wrappers.layer import VecLayer, attribute


class EpisodeFile:
    """A CSV file with one row per episode, that SB3's ``load_results`` reads.

    :param filename: SB3 appends ``monitor.csv``
    :param names: of the objectives; None: numbered
    """

    def __init__(self, filename: str | Path, names: tuple[str, ...] | None) -> None:
        self.filename = str(filename)
        self.names = names
        self.start = time.time()
        self.writer: ResultsWriter | None = None

    def write(self, episode: dict[str, Any]) -> None:
        vector = episode["v"].tolist()
        names = self.names or tuple(f"R{index}" for index in range(len(vector)))
        if self.writer is None:
            self.writer = ResultsWriter(self.filename, header={"t_start": self.start}, extra_keys=names)
        row = {key: episode[key] for key in ("r", "l", "t")}
        self.writer.write_row({**row, **dict(zip(names, vector, strict=True))})

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Copies of an environment must not write into its file."""
        return None


class LightMonitor(VecMonitor):
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

    Where no Monitor is below, it also fills in SB3's ``r``, ``l`` and ``t``. With ``filename`` every episode becomes
    a row of a CSV file that ``stable_baselines3.common.monitor.load_results`` reads, one column per objective.

    :param venv: a VecEnv whose infos carry ``vector_reward``
    :param filename: where to write the CSV file (SB3 appends ``monitor.csv``); None: no file
    :raises ValueError: at the first step, if the infos carry no ``vector_reward``
    """

    def __init__(self, venv: VecEnv, filename: str | Path | None = None) -> None:
        super().__init__(venv)
        names = attribute(venv, "objective_names")
        self._file = None if filename is None else EpisodeFile(filename, None if names is None else tuple(names))
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
                if self._file is not None:
                    self._file.write(episode)
            self._rewards[dones] = 0.0
            self._lengths[dones] = 0
            self._vectors[dones] = 0.0
        return obs, rewards, dones, infos

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self.venv.close()
