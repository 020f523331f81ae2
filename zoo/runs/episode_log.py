"""EpisodeCallback: logs vector returns and fairness of the last episodes."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from sb3_fair.common.episode_figures import EpisodeFigures
from sb3_fair.common.evaluation import objective_names
from sb3_fair.common.interruption import mark_of_reset
from sb3_fair.fairness.validation import integer
from sb3_fair.wrappers.infos import vector_rewards


class EpisodeMemory:
    """What the last episodes (as many as ``window``) brought, objective by objective, and how fair they ended."""

    def __init__(self, window: int) -> None:
        self.returns: deque[NDArray[np.float64]] = deque(maxlen=window)
        self.figures = EpisodeFigures(window)
        self._sums: Any = 0.0
        self._mark: Any = None

    def add(self, infos: Sequence[dict[str, Any]], dones: NDArray[np.bool_], mark: Any) -> None:
        """A step of all copies; the episodes of those that are ``dones`` (n,) are over.

        :param mark: :func:`~sb3_fair.common.interruption.mark_of_reset` of the environment
        """
        if mark is not self._mark:
            self._sums, self._mark = 0.0, mark
        if "vector_reward" in infos[0]:
            self._sums = self._sums + vector_rewards(list(infos))
            for copy in np.flatnonzero(dones).tolist():
                # A VectorMonitor knows of resets in the middle of an episode.
                self.returns.append(infos[copy].get("episode", {}).get("v", self._sums[copy].copy()))
            self._sums[dones] = 0.0
        self.figures.add(infos, dones)

    def reset(self) -> None:
        """Forgets all episodes."""
        self.returns.clear()
        self.figures.figures.clear()
        self._sums = 0.0


class EpisodeCallback(BaseCallback):
    """Logs the mean vector return and the mean final fairness figures of the last episodes, for any algorithm.

    ``returns/<objective>`` where infos carry ``vector_reward``, ``fairness/<notion>`` where they carry ``fairness``:
    as columns of SB3's CSV log, curves in TensorBoard, and whatever else the model's logger writes to. ::

        model = PPO("MlpPolicy", make_vec("sb3_fair/JobHiring-v0", objectives=("R", "SP"), scalarise=(1, 1)))
        model.learn(100_000, callback=EpisodeCallback())

    :param window: number of most recent episodes that count
    :param verbose: 0 nothing, 1 information
    :raises ValueError: if ``window`` is not a positive integer
    """

    def __init__(self, window: int = 100, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.memory = EpisodeMemory(integer("window", window, low=1))

    def _on_training_start(self) -> None:
        if self.locals.get("reset_num_timesteps", True):
            self.memory.reset()

    def _on_step(self) -> bool:
        infos, dones = self.locals["infos"], np.asarray(self.locals["dones"])
        self.memory.add(infos, dones, mark_of_reset(self.training_env))
        if dones.any():
            self._record()
        return True

    def _record(self) -> None:
        if self.memory.returns:
            means = np.mean(self.memory.returns, axis=0)
            for name, mean in zip(objective_names(self.training_env, len(means)), means, strict=True):
                self.logger.record(f"returns/{name}", float(mean))
        self.memory.figures.record(self.logger)
