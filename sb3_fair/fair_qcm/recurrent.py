"""Recurrent DQN (GRU), the baseline that learns what to remember."""

import io
import pathlib
from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.vec_env import VecEnv  # noqa: F401 (the hint GymEnv names it)

from sb3_fair.fair_qcm.exploration import epsilon_greedy
from sb3_fair.fair_qcm.recurrent_buffer import DictWindowReplayBuffer, WindowReplayBuffer
from sb3_fair.fair_qcm.recurrent_policies import RecurrentDQNPolicy, RecurrentQNetwork, State
from sb3_fair.fair_qcm.value_learner import STEPS_PER_UPDATE, ValueLearner
from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.choices import Choices


@checked
class RecurrentDQN(ValueLearner):
    """DQN whose network has a GRU in place of a memory in the observation.

    The recurrent baseline of Alamdari, Klassen, Creager, McIlraith, "Remembering to Be Fair: Non-Markovian Fairness in
    Sequential Decision Making", trained on stretches of episodes in time order (Hausknecht, Stone, "Deep Recurrent
    Q-Learning for Partially Observable MDPs", 2015). Loss, target network and exploration schedule are SB3's; every
    environment decides separately whether to explore. The hidden state is zero when an episode begins. If a window
    begins inside an episode, it is computed from the steps before, with the current weights and without gradient.

    ``predict`` returns a state that the next call needs; SB3's ``evaluate_policy`` handles it.

    ::

        model = RecurrentDQN("MlpPolicy", env, sequence_length=50, seed=0).learn(100_000)
        actions, state = model.predict(observations, state, episode_start, deterministic=True)

    :param policy: ``"MlpPolicy"``, ``"MultiInputPolicy"`` (Dict observations), or a subclass of
        :class:`RecurrentDQNPolicy`
    :param env: an environment with discrete actions, or a VecEnv of any kind
    :param learning_rate: of Adam; a number or a function of the remaining progress
    :param buffer_size: transitions kept
    :param learning_starts: steps of random actions before learning starts
    :param batch_size: transitions per gradient step: ``batch_size // sequence_length`` windows, or as many whole
        episodes as have ``batch_size`` steps on average, but at least one
    :param tau: of the target network's updates; 1: a copy
    :param gamma: discount factor
    :param train_freq: steps of every environment, or ``(n, "episode")``, between updates; None: 4
    :param gradient_steps: gradient steps per update, -1: one per step; None: 1. With both None there is one gradient
        step per 4 real steps, however many environments
    :param replay_buffer_class: None or a subclass of :class:`WindowReplayBuffer`
    :param replay_buffer_kwargs: further arguments of it
    :param optimize_memory_usage: must be False
    :param n_steps: must be 1
    :param target_update_interval: steps between updates of the target network
    :param exploration_fraction: share of training in which the exploration rate falls
    :param exploration_initial_eps: its first value
    :param exploration_final_eps: its last value
    :param max_grad_norm: gradients are clipped to this norm
    :param stats_window_size: episodes that the ``rollout/`` figures average over
    :param tensorboard_log: where TensorBoard logs go; None: no logging
    :param policy_kwargs: further arguments of the policy: ``net_arch`` (layers before the GRU, 32-16), ``hidden_size``
        (of the GRU, 256), ...
    :param verbose: 0 nothing, 1 logs and information, 2 debug messages
    :param seed: of everything random
    :param device: ``"cpu"``, ``"cuda"``, ``"auto"``
    :param _init_setup_model: whether to build the network now
    :param sequence_length: steps per window; None: whole episodes
    :param burn_in: steps before a window from which its hidden state is worked out at most; None: all from the
        beginning of the episode
    :param reward_scale: factor on the rewards in training
    :param exploration_decay: epsilon is multiplied by it after every episode of any environment, instead of falling
        linearly; None: linear
    :raises ValueError: if an argument is not allowed
    :raises TypeError: if ``replay_buffer_class``, a loaded policy or a loaded buffer cannot deal with windows
    """

    policy: RecurrentDQNPolicy
    q_net: RecurrentQNetwork
    q_net_target: RecurrentQNetwork
    action_space: spaces.Discrete
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": RecurrentDQNPolicy,
        "MultiInputPolicy": RecurrentDQNPolicy,
    }

    def __init__(
        self,
        policy: str | type[RecurrentDQNPolicy],
        env: GymEnv | str | None,
        learning_rate: float | Schedule = 1e-3,
        buffer_size: int = 100_000,
        learning_starts: int = 1000,
        batch_size: int = 256,
        tau: float = 1.0,
        gamma: float = 0.95,
        train_freq: int | tuple[int, str] | None = None,
        gradient_steps: int | None = None,
        replay_buffer_class: type[ReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        n_steps: int = 1,
        target_update_interval: int = 1000,
        exploration_fraction: float = 0.1,
        exploration_initial_eps: float = 1.0,
        exploration_final_eps: float = 0.05,
        max_grad_norm: float = 10,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
        *,
        sequence_length: int | None = None,
        burn_in: int | None = None,
        reward_scale: float = 1.0,
        exploration_decay: float | None = None,
    ) -> None:
        super().__init__(
            policy,
            env,  # type: ignore[arg-type]  # None: to be loaded
            learning_rate,
            buffer_size,
            learning_starts,
            batch_size,
            tau,
            gamma,
            STEPS_PER_UPDATE if train_freq is None else train_freq,
            1 if gradient_steps is None else gradient_steps,
            replay_buffer_class,
            replay_buffer_kwargs,
            optimize_memory_usage,
            n_steps,
            target_update_interval,
            exploration_fraction,
            exploration_initial_eps,
            exploration_final_eps,
            max_grad_norm,
            stats_window_size,
            tensorboard_log,
            policy_kwargs,
            verbose,
            seed,
            device,
            _init_setup_model=False,
        )
        self.sequence_length = sequence_length
        self.burn_in = burn_in
        self.reward_scale = reward_scale
        self.exploration_decay = exploration_decay
        self.updates_follow_steps = train_freq is None and gradient_steps is None
        self._make_generator(seed)
        self._last_state: State | None = None
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        if not issubclass(self.policy_class, RecurrentDQNPolicy):
            raise TypeError(f"policy must be a RecurrentDQNPolicy, got {self.policy_class.__name__}")
        if self.n_steps != 1:
            raise ValueError(f"n_steps must be 1, got {self.n_steps!r}")
        if self.batch_size < (self.sequence_length or 1):
            raise ValueError(
                f"batch_size must be at least sequence_length ({self.sequence_length}), got {self.batch_size}"
            )
        if self.replay_buffer_class is None:
            is_dict = isinstance(self.observation_space, spaces.Dict)
            self.replay_buffer_class = DictWindowReplayBuffer if is_dict else WindowReplayBuffer
        if not issubclass(self.replay_buffer_class, WindowReplayBuffer):
            raise TypeError(
                f"replay_buffer_class must be a WindowReplayBuffer, got {self.replay_buffer_class.__name__}"
            )
        windows = {"sequence_length": self.sequence_length, "burn_in": self.burn_in, "reward_scale": self.reward_scale}
        self.replay_buffer_kwargs = {
            "seed": None if self.seed is None else (self.seed, 1),
            **self.replay_buffer_kwargs,
            **windows,
        }
        super()._setup_model()

    # ---------------------------------------------------------------- acting

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: State | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], State | None]:
        """Actions with their probabilities, and the state to call this with at the next step.

        :param observation: of one environment, or of n
        :param state: what the last call returned; None: episodes begin
        :param episode_start: whether each environment's episode begins, (n,) bool; its state is then forgotten
        :param deterministic: True: greedy; False: random with probability ``exploration_rate``, each environment for
            itself
        :return: ``Choices`` (n,), or () for a single observation; ``(hidden,)``, (n, hidden_size) float32
        """
        greedy, state = self.policy.predict(observation, state, episode_start)
        if deterministic:
            return Choices(greedy, np.eye(int(self.action_space.n))[greedy]), state
        return self._explore(greedy, self.exploration_rate), state

    def _explore(self, greedy: NDArray[Any], exploration_rate: float) -> NDArray[Any]:
        return epsilon_greedy(greedy, exploration_rate, int(self.action_space.n), self.rng)

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        rate = 1.0 if self.num_timesteps < learning_starts else self.exploration_rate
        starts = self._last_episode_starts
        assert starts is not None
        state = None if starts.all() else self._last_state  # which may be of another number of environments
        greedy, self._last_state = self.policy.predict(self._last_obs, state, starts)  # type: ignore[arg-type]
        actions = self._explore(greedy, rate)
        return actions, actions

    # ---------------------------------------------------------------- learning

    def _store_transition(
        self,
        replay_buffer: ReplayBuffer,
        buffer_action: NDArray[Any],
        new_obs: NDArray[Any] | dict[str, NDArray[Any]],
        reward: NDArray[Any],
        dones: NDArray[np.bool_],
        infos: list[dict[str, Any]],
    ) -> None:
        assert isinstance(replay_buffer, WindowReplayBuffer) and self._last_episode_starts is not None
        replay_buffer.begin(self._last_episode_starts)
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        self._last_episode_starts = np.array(dones, dtype=bool)

    def load_replay_buffer(self, path: str | pathlib.Path | io.BufferedIOBase, truncate_last_traj: bool = True) -> None:
        """A saved buffer, from which windows of this model's ``sequence_length`` are drawn."""
        super().load_replay_buffer(path, truncate_last_traj)
        if not isinstance(self.replay_buffer, WindowReplayBuffer):
            raise TypeError(f"path must hold a WindowReplayBuffer, got a {type(self.replay_buffer).__name__}")
        for name in ("sequence_length", "burn_in", "reward_scale"):
            setattr(self.replay_buffer, name, getattr(self, name))
