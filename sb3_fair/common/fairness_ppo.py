"""Base class of this package's PPO learners: construction, layers, rollout buffers, rollouts, extra critics, saving."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.columns import ColumnDictRolloutBuffer, ColumnRolloutBuffer
from sb3_fair.common.extended import Extended
from sb3_fair.common.extra_critic import Credit, Critic
from sb3_fair.common.interruption import resets_if_left, resets_if_stopped
from sb3_fair.common.same_layers import SameLayers
from sb3_fair.fairness.arguments import recheck
from sb3_fair.fairness.warning import warn
from sb3_fair.wrappers.choices import Choices, chances_of, compares_chances
from sb3_fair.wrappers.observations import steps_of
from sb3_fair.wrappers.starts import check_starts

SelfFairnessPPO = TypeVar("SelfFairnessPPO", bound="FairnessPPO")
ARGUMENTS = """\
:param learning_rate: of Adam; a number or a function of the remaining progress
:param n_steps: steps of every environment per rollout; ``n_steps * n_envs`` must be larger than 1
:param batch_size: steps per minibatch, for extra critics too
:param n_epochs: passes over a rollout, for extra critics too
:param gamma: discount factor
:param gae_lambda: of the generalised advantage estimates
:param clip_range: of the policy; a number or a function of the remaining progress
:param clip_range_vf: of the value function, which depends on the scale of the rewards; None: no clipping
:param normalize_advantage: whether the advantages of a minibatch get mean 0 and standard deviation 1
:param ent_coef: weight of the entropy
:param vf_coef: weight of the value loss
:param max_grad_norm: largest norm of the gradient
:param use_sde: whether to explore with state-dependent noise
:param sde_sample_freq: steps between new noise matrices, -1: one per rollout
:param rollout_buffer_class: a subclass of ``{buffer}``; None: the one that fits the observations
:param rollout_buffer_kwargs: further arguments of the rollout buffer
:param target_kl: no further epochs where the policy moved more than this; None: no limit
:param stats_window_size: episodes that ``rollout/`` figures average over
:param tensorboard_log: where TensorBoard logs go; None: no logging
:param policy_kwargs: further arguments of the policy
:param verbose: 0 nothing, 1 logs and information, 2 debug messages
:param seed: of everything random, network initialisation and environments included
:param device: ``"cpu"``, ``"cuda"``, ``"auto"``
:param _init_setup_model: whether to build the networks now"""


class FairnessPPO(Extended, SameLayers, PPO):
    """PPO that notes more about every step than the reward and changes advantages with it.

    A learner overrides :meth:`_check_arguments`, :meth:`_layered` and :meth:`_train_on` for its environment,
    :meth:`_begin_rollout` and :meth:`_end_rollout` around a rollout, SB3's ``_update_info_buffer`` to note what steps
    tell, and lists the names of its :class:`~sb3_fair.common.extra_critic.ExtraCritic` in :meth:`_extra_critics`.
    """

    built_on = PPO
    described = ARGUMENTS
    buffer_classes = (ColumnRolloutBuffer, ColumnDictRolloutBuffer)
    watched: "WatchedVecEnv"
    _rollouts = 0
    _unequal = False  # whether a disparity was seen

    # ---------------------------------------------------------------- set up

    def _setup_model(self) -> None:
        check_starts(self.action_space, self.observation_space)
        self._check_arguments()
        if self.env is not None:
            self._train_on(self._layered(self.env))
        plain, keyed = self.buffer_classes
        if self.rollout_buffer_class is None:
            self.rollout_buffer_class = keyed if isinstance(self.observation_space, spaces.Dict) else plain
        if not issubclass(self.rollout_buffer_class, plain):
            raise ValueError(
                f"rollout_buffer_class must be a subclass of {plain.__name__}, got {self.rollout_buffer_class!r}"
            )
        super()._setup_model()
        buffer: Any = self.rollout_buffer
        buffer.complete = self._end_rollout

    def _check_arguments(self) -> None:
        """Checks the settings, which users may change after construction.

        :raises ValueError: if one is not allowed
        """
        recheck(self)

    def _layered(self, venv: VecEnv) -> VecEnv:
        """``venv`` with the layers that publish what the learner needs."""
        return venv

    def _train_on(self, venv: VecEnv) -> None:
        """Makes ``venv``, layers included, the environment of the training."""
        self.env = venv

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Trains on ``env`` from now on; see SB3's ``set_env``."""
        super().set_env(self._layered(self._wrap_env(env, self.verbose)), force_reset)
        assert self.env is not None
        self._train_on(self.env)

    def _extra_critics(self) -> list[str]:
        """Names of the attributes that hold an ``ExtraCritic``."""
        return []

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        state_dicts, variables = super()._get_torch_save_params()
        return [
            *state_dicts,
            *(f"{name}{part}" for name in self._extra_critics() for part in ("", ".optimizer")),
        ], variables

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "watched"]

    # ---------------------------------------------------------------- learning

    def learn(
        self: SelfFairnessPPO,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfFairnessPPO:
        """Trains for ``total_timesteps`` steps of all environments together; see SB3's ``learn``.

        :param tb_log_name: of the TensorBoard log; None: the name of the class
        """
        name = tb_log_name or type(self).__name__
        super().learn(total_timesteps, callback, log_interval, name, reset_num_timesteps, progress_bar)
        self._end_training()
        return self

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        resets_if_left(self)
        restarts = reset_num_timesteps or self._last_obs is None
        prepared = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
        self._begin_training(restarts)
        return prepared

    def _begin_training(self, restarts: bool) -> None:
        """Called at the beginning of :meth:`learn`.

        :param restarts: whether the environment was reset
        """

    def _end_training(self) -> None:
        """Called at the end of :meth:`learn`."""

    @resets_if_stopped
    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """A rollout, with what the learner does before and after it; see SB3's ``collect_rollouts``."""
        self._check_arguments()
        watched: Any = WatchedVecEnv(env)
        self.watched = watched
        if not isinstance(self.action_space, spaces.Box) and compares_chances(env):
            watched.chances = self._probabilities
        with self._begin_rollout():
            return super().collect_rollouts(watched, callback, rollout_buffer, n_rollout_steps)

    def _probabilities(self) -> NDArray[np.float64] | None:
        """Of all actions in the policy's last distribution: (n, n_actions), with several parts (n, parts, n_actions).

        None for Box actions.
        """
        if isinstance(self.action_space, spaces.Box):
            return None
        drawn: Any = self.policy.action_dist
        return chances_of(drawn.distribution).astype(np.float64)

    def _rewards(self) -> NDArray[Any]:
        """The last step's, (n_envs,), as they were before VecNormalize."""
        normalizer = self._vec_normalize_env
        if normalizer is None or not normalizer.norm_reward:
            return self.watched.rewards
        return normalizer.get_original_reward().astype(np.float32)

    def _begin_rollout(self) -> AbstractContextManager[Any]:
        """Prepares a rollout, which is collected within what this returns."""
        return nullcontext()

    def _end_rollout(self) -> None:
        """Called when a rollout is complete and its advantages are computed."""

    def _judge(self, critic: Critic, signal: NDArray[Any], gamma: float) -> Credit:
        """What ``critic`` says about a ``signal`` (T, n_envs) of the rollout, from which it learns afterwards."""
        buffer: Any = self.rollout_buffer
        ends: Any = self._last_episode_starts
        credit = critic.judge(buffer, signal, self._last_obs, ends, gamma, self.gae_lambda)
        critic.fit(steps_of(buffer.observations), credit.returns.ravel(), self.n_epochs, self.batch_size)
        return credit

    def _warn_of_zeros(self, name: str, disparity: NDArray[np.float64]) -> None:
        """Warns where the ``disparity`` of that name was 0 in all steps of the first two rollouts.

        Later, a policy may have learned to treat all alike.
        """
        self._unequal = self._unequal or bool(disparity.any())
        self._rollouts += 1
        if self._rollouts == 2 and not self._unequal:
            warn(
                f"{name} was 0 in every step of the first two rollouts, so nothing is learned from it and any limit is "
                "met. If episodes are too short to decide on two groups, carry the history over from one to the next: "
                "FairMDP(env, spec, reset_on_episode=False), or reset_on_episode=False in gym.make",
            )


class WatchedVecEnv:
    """The environment during a rollout: times its steps, keeps their rewards, and may take other actions than PPO's.

    ``instead``: actions that are taken in the place of PPO's; None: PPO's. ``chances``: gives the probabilities of the
    actions, which are handed over with them; None: none are. ``rounds``: whether rewards are rounded to float32, as
    they are in a rollout buffer and in a ``DummyVecEnv``, but not in a ``SubprocVecEnv``. ``rewards``: of the last
    step, (n_envs,) float64, which SB3 does not change in place. ``seconds``: what all steps took. ``stepped``: whether
    there was a step that the learner has not noted yet.
    """

    def __init__(self, venv: VecEnv) -> None:
        self.venv = venv
        self.instead: NDArray[Any] | None = None
        self.chances: Callable[[], Any] | None = None
        self.rounds = False
        self.rewards: NDArray[np.float64]
        self.seconds = 0.0
        self.stepped = False

    def __getattr__(self, name: str) -> Any:
        if name == "venv":  # not there yet: copies and pickles are made without __init__
            raise AttributeError(name)
        return getattr(self.venv, name)

    def step(self, actions: NDArray[Any]) -> Any:
        begin = perf_counter()
        given = actions if self.instead is None else self.instead
        rows = None if self.chances is None else self.chances()
        obs, rewards, dones, infos = self.venv.step(given if rows is None else Choices(given, rows))
        self.seconds += perf_counter() - begin
        self.stepped = True
        if self.rounds:
            rewards = rewards.astype(np.float32)
        self.rewards = np.array(rewards, dtype=np.float64)
        return obs, rewards, dones, infos
