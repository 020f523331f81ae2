"""Means of the fairness figures at the end of the last episodes, for logs."""

from collections import deque
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.logger import Logger

from sb3_fair.wrappers.infos import figures_in


class EpisodeFigures:
    """Means of the numbers in ``info["fairness"]`` at the end of episodes, logged as ``fairness/<name>``.

    What is undefined (None or NaN) in an episode does not count, nor do arrays.

    :param window: number of most recent episodes
    """

    def __init__(self, window: int = 100) -> None:
        self.window = window
        self.figures: dict[str, deque[float]] = {}

    def add(self, infos: Sequence[dict[str, Any]], dones: NDArray[np.bool_]) -> None:
        """A step of all copies; those whose episode is ``dones`` (n,) tell their figures."""
        for index in np.flatnonzero(dones).tolist():
            for name, value in figures_in(infos[index]).items():
                if isinstance(value, Real) and not np.isnan(float(value)):
                    self.figures.setdefault(name, deque(maxlen=self.window)).append(float(value))

    def means(self) -> dict[str, float]:
        """Name -> mean over the episodes that have the figure."""
        return {name: float(np.mean(values)) for name, values in self.figures.items()}

    def record(self, logger: Logger) -> None:
        """Hands the means to SB3's logger."""
        for name, mean in self.means().items():
            logger.record(f"fairness/{name}", mean)
