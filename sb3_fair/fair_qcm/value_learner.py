"""ValueLearner: the base class of FairQCM and recurrent DQN."""

from math import gcd
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback, RolloutReturn
from stable_baselines3.dqn.dqn import DQN

from sb3_fair.common.episode_figures import EpisodeFigures
from sb3_fair.common.interruption import resets_if_stopped
from sb3_fair.common.own_generator import OwnGenerator
from sb3_fair.fair_qcm.exploration import exploration_generator
from sb3_fair.wrappers.starts import check_starts

SelfValueLearner = TypeVar("SelfValueLearner", bound="ValueLearner")
STEPS_PER_UPDATE = 4
"""Real steps, of all environments together, per gradient step by default."""


class ValueLearner(OwnGenerator, DQN):
    """DQN with exploration that may fall from episode to episode, as many updates per real step however many
    environments there are, and fairness figures in the logs.

    Subclasses set the attributes before ``_setup_model``:

    ``exploration_decay``: epsilon is multiplied by it after every episode of any environment; None: SB3's schedule.
    ``updates_follow_steps``: one gradient step per 4 real steps, instead of ``train_freq`` and ``gradient_steps``.
    """

    exploration_decay: float | None = None
    updates_follow_steps: bool = False
    figures: EpisodeFigures
    _just_ended: int = 0

    def _setup_model(self) -> None:
        check_starts(self.action_space, self.observation_space)
        if self.exploration_decay is not None and not 0 < self.exploration_decay <= 1:
            raise ValueError(f"exploration_decay must be in (0, 1] or None, got {self.exploration_decay!r}")
        if self.updates_follow_steps:
            common = gcd(self.n_envs, STEPS_PER_UPDATE)
            self.train_freq, self.gradient_steps = STEPS_PER_UPDATE // common, self.n_envs // common
        with self._generator_goes_on():
            super()._setup_model()

    def _generator_of(self, seed: int | None) -> np.random.Generator:
        return exploration_generator(seed)

    @classmethod
    def load(cls: type[SelfValueLearner], *args: Any, **kwargs: Any) -> SelfValueLearner:
        """A model from a file; see SB3's ``load``."""
        if kwargs.keys() & {"train_freq", "gradient_steps"}:
            kwargs["updates_follow_steps"] = False
        return super().load(*args, **kwargs)

    def learn(
        self: SelfValueLearner,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfValueLearner:
        """Trains for ``total_timesteps`` steps of all environments together; see SB3's ``learn``.

        :param tb_log_name: of the TensorBoard log; None: the name of the class
        """
        name = tb_log_name or type(self).__name__
        return super().learn(total_timesteps, callback, log_interval, name, reset_num_timesteps, progress_bar)

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if reset_num_timesteps or not hasattr(self, "figures"):
            self.figures = EpisodeFigures(self._stats_window_size)
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)

    @resets_if_stopped
    def collect_rollouts(self, *args: Any, **kwargs: Any) -> RolloutReturn:
        """SB3's."""
        return super().collect_rollouts(*args, **kwargs)

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[np.bool_] | None = None) -> None:
        super()._update_info_buffer(infos, dones)
        if dones is not None:
            self.figures.add(infos, dones)
            self._just_ended = int(dones.sum())

    def _on_step(self) -> None:
        super()._on_step()
        if self.exploration_decay is not None:
            finished = self._episode_num + self._just_ended  # SB3 counts them after this step's hooks
            decayed = self.exploration_initial_eps * self.exploration_decay**finished
            self.exploration_rate = max(self.exploration_final_eps, decayed)
            self.logger.record("rollout/exploration_rate", self.exploration_rate)

    def dump_logs(self) -> None:
        """Writes a row of the log."""
        self.figures.record(self.logger)
        super().dump_logs()
