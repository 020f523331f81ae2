"""Rollout buffers that keep further numbers of every step than the reward."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np
import torch as th
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from sb3_fair.wrappers.infos import figures_in, record_of


class ColumnRolloutBuffer(RolloutBuffer):
    """A rollout buffer with further numbers of every step.

    The learner calls :meth:`note` in ``_update_info_buffer``, which SB3 runs before ``add``: values come from the infos
    of the transition itself, so that an episode's last step has its own and not those after the auto-reset.

    ``columns``: name -> (buffer_size, n_envs) float64, NaN where nothing was noted; (buffer_size * n_envs,) in the
    order of all other arrays from the first minibatch on. ``truncations``: row and copy of the last steps of episodes
    that time limits cut off, and the observations after them.
    """

    columns: dict[str, NDArray[np.float64]]
    complete: Callable[[], None] | None = None
    """Called as soon as returns and advantages of a rollout are computed, before callbacks hear of its end."""
    truncations: list[tuple[int, int, Any]]

    def reset(self) -> None:
        """Forgets all steps."""
        super().reset()
        self.columns = {}
        self.truncations = []

    def note(self, **values: ArrayLike) -> None:
        """Keeps (n_envs,) ``values`` of the current step under their names."""
        for name, value in values.items():
            if name not in self.columns:
                self.columns[name] = np.full((self.buffer_size, self.n_envs), np.nan)
            self.columns[name][self.pos] = value

    def note_truncations(self, infos: Sequence[Mapping[str, Any]], dones: NDArray[np.bool_]) -> None:
        """Keeps the last observations of episodes that a time limit ends with the current step."""
        for copy in np.flatnonzero(dones).tolist():
            observation = infos[copy].get("terminal_observation")
            if observation is not None and infos[copy].get("TimeLimit.truncated", False):
                self.truncations.append((self.pos, copy, observation))

    def compute_returns_and_advantage(self, last_values: th.Tensor, dones: NDArray[Any]) -> None:
        """SB3's; then :attr:`complete`."""
        super().compute_returns_and_advantage(last_values, dones)
        if self.complete is not None:
            self.complete()

    def get(self, batch_size: int | None = None) -> Generator[Any, None, None]:
        """Minibatches in random order."""
        if not self.generator_ready:
            self.columns = {name: self.swap_and_flatten(column).ravel() for name, column in self.columns.items()}
        yield from super().get(batch_size)


class ColumnDictRolloutBuffer(ColumnRolloutBuffer, DictRolloutBuffer):
    """The same for dict observations."""


def figure(infos: Sequence[Mapping[str, Any]], name: str) -> NDArray[np.float64]:
    """``info["fairness"][name]`` of all copies (n,), NaN where it is undefined.

    :raises KeyError: if there is no such figure
    """
    record = record_of(infos, "fairness")
    values = [figures_in(info)[name] for info in infos] if record is None else record["fairness"][name]
    return np.asarray(values, dtype=np.float64)
