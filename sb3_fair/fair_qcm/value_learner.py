"""ValueLearner: the base class of FairQCM and recurrent DQN, and how Q-learners explore."""

from collections.abc import Mapping
from math import gcd
from typing import Any, ClassVar, TypeVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback, RolloutReturn
from stable_baselines3.dqn.dqn import DQN

from sb3_fair.common.episode_figures import EpisodeFigures
from sb3_fair.common.extended import Extended
from sb3_fair.common.interruption import resets_if_left, resets_if_stopped
from sb3_fair.common.own_generator import OwnGenerator
from sb3_fair.fairness.arguments import recheck
from sb3_fair.wrappers.choices import Choices
from sb3_fair.wrappers.starts import check_starts

SelfValueLearner = TypeVar("SelfValueLearner", bound="ValueLearner")
STEPS_PER_UPDATE = 4
"""Real steps, of all environments together, per gradient step by default."""
ARGUMENTS = """\
:param learning_rate: of Adam; a number or a function of the remaining progress
:param buffer_size: transitions kept
:param learning_starts: random steps before learning
:param batch_size: transitions per gradient step
:param tau: share of the network that the target network takes over at an update
:param gamma: discount factor
:param train_freq: steps of every environment, or ``(n, "episode")``, between updates; None: 4
:param gradient_steps: gradient steps per update, -1: one per step; None: 1. With both None there is one gradient
    step per 4 real steps, however many environments
:param replay_buffer_class: a subclass of ``{buffer}``; None: the one that fits the observations
:param replay_buffer_kwargs: further arguments of the replay buffer
:param optimize_memory_usage: must be False
:param n_steps: must be 1
:param target_update_interval: real steps between updates of the target network
:param exploration_fraction: share of the training over which epsilon falls linearly
:param exploration_initial_eps: epsilon at the beginning
:param exploration_final_eps: epsilon at the end
:param max_grad_norm: largest norm of the gradient
:param stats_window_size: episodes that ``rollout/`` and ``fairness/`` figures average over
:param tensorboard_log: where TensorBoard logs go; None: no logging
:param policy_kwargs: further arguments of the policy
:param verbose: 0 nothing, 1 logs and information, 2 debug messages
:param seed: of everything random, network initialisation and environments included
:param device: ``"cpu"``, ``"cuda"``, ``"auto"``
:param _init_setup_model: whether to build the network now
:param reward_scale: factor on the rewards in training
:param exploration_decay: epsilon is multiplied by it after every episode of any environment, instead of falling
    linearly; None: linear"""


class ValueLearner(Extended, OwnGenerator, DQN):
    """DQN with exploration that may fall from episode to episode, as many updates per real step however many
    environments there are, and fairness figures in the logs."""

    action_space: spaces.Discrete
    built_on = DQN
    described = ARGUMENTS
    buffer_settings: ClassVar[tuple[str, ...]]
    """Attributes of the learner that its replay buffer has too."""
    figures: EpisodeFigures
    _rng_stream = (2,)
    _just_ended: int = 0

    def __init__(self, given: Mapping[str, Any], **instead: Any) -> None:
        train_freq, gradient_steps = given["train_freq"], given["gradient_steps"]
        instead["train_freq"] = STEPS_PER_UPDATE if train_freq is None else train_freq
        instead["gradient_steps"] = 1 if gradient_steps is None else gradient_steps
        super().__init__(given, **instead)
        self.updates_follow_steps = train_freq is None and gradient_steps is None
        self.reward_scale: float = given["reward_scale"]
        self.exploration_decay: float | None = given["exploration_decay"]
        self._make_generator(self.seed)

    def _setup_model(self) -> None:
        check_starts(self.action_space, self.observation_space)
        recheck(self)
        if self.n_steps != 1:
            raise ValueError(f"n_steps must be 1, got {self.n_steps!r}")
        if self.optimize_memory_usage:
            raise ValueError("optimize_memory_usage must be False, got True")
        plain, keyed = self.buffer_classes
        if self.replay_buffer_class is None:
            self.replay_buffer_class = keyed if isinstance(self.observation_space, spaces.Dict) else plain
        if not issubclass(self.replay_buffer_class, plain):
            raise TypeError(f"replay_buffer_class must be a {plain.__name__}, got {self.replay_buffer_class.__name__}")
        told = {name: getattr(self, name) for name in self.buffer_settings}
        self.replay_buffer_kwargs = {**self.replay_buffer_kwargs, **told}
        if self.updates_follow_steps:
            common = gcd(self.n_envs, STEPS_PER_UPDATE)
            self.train_freq, self.gradient_steps = STEPS_PER_UPDATE // common, self.n_envs // common
        with self._generator_goes_on():
            super()._setup_model()

    @classmethod
    def load(cls: type[SelfValueLearner], *args: Any, **kwargs: Any) -> SelfValueLearner:
        """A model from a file; see SB3's ``load``."""
        if kwargs.keys() & {"train_freq", "gradient_steps"}:
            kwargs["updates_follow_steps"] = False
        return super().load(*args, **kwargs)

    def load_replay_buffer(self, path: Any, truncate_last_traj: bool = True) -> None:
        """A saved buffer, which goes on with this model's settings.

        :raises TypeError: if it is of another class
        :raises ValueError: if its transitions were stored for other settings
        """
        own: Any = self.replay_buffer
        super().load_replay_buffer(path, truncate_last_traj)
        loaded: Any = self.replay_buffer
        if type(loaded) is not type(own):
            raise TypeError(f"path must hold a {type(own).__name__}, got a {type(loaded).__name__}")
        own.pass_on(loaded)

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
        resets_if_left(self)
        name = type(self).__name__ if tb_log_name == "DQN" else tb_log_name  # which DQN.learn has by default
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, name, progress_bar)

    def _explored(self, greedy: Any, epsilon: float) -> Choices:
        """Greedy actions (n,) or (), each replaced with probability ``epsilon`` by one drawn uniformly from all.

        Every environment decides separately whether to explore; in SB3's DQN one decision counts for all. The actions
        carry their probabilities, so that fairness notions know them.
        """
        greedy, n_actions = np.asarray(greedy), int(self.action_space.n)
        explores = self.rng.random(greedy.shape) < epsilon
        actions = np.where(explores, self.rng.integers(n_actions, size=greedy.shape), greedy)
        return Choices(actions, np.eye(n_actions)[greedy] * (1 - epsilon) + epsilon / n_actions)

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
