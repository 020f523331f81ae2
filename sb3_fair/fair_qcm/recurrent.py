"""Recurrent DQN (GRU), the baseline that learns what to remember."""

from typing import Any, ClassVar

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.vec_env import VecEnv  # noqa: F401 (the hint GymEnv names it)

from sb3_fair.fair_qcm.recurrent_buffer import SETTINGS, DictWindowReplayBuffer, WindowReplayBuffer
from sb3_fair.fair_qcm.recurrent_policies import RecurrentDQNPolicy, RecurrentQNetwork, State
from sb3_fair.fair_qcm.value_learner import ValueLearner
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
    (The arguments of DQN.)
    :param sequence_length: steps per window, of which a batch has ``batch_size // sequence_length``; None: whole
        episodes, as many as have ``batch_size`` steps on average, but at least one
    :param burn_in: steps before a window from which its hidden state is worked out at most; None: all from the
        beginning of the episode
    :raises ValueError: if an argument is not allowed
    :raises TypeError: if ``replay_buffer_class``, a loaded policy or a loaded buffer cannot deal with windows
    """

    policy: RecurrentDQNPolicy
    q_net: RecurrentQNetwork
    q_net_target: RecurrentQNetwork
    buffer_classes = (WindowReplayBuffer, DictWindowReplayBuffer)
    buffer_settings = SETTINGS
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
        super().__init__(locals())
        self.sequence_length = sequence_length
        self.burn_in = burn_in
        self._last_state: State | None = None
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        if not issubclass(self.policy_class, RecurrentDQNPolicy):
            raise TypeError(f"policy must be a RecurrentDQNPolicy, got {self.policy_class.__name__}")
        if self.batch_size < (self.sequence_length or 1):
            raise ValueError(
                f"batch_size must be at least sequence_length ({self.sequence_length}), got {self.batch_size}"
            )
        seed = None if self.seed is None else (self.seed, 1)
        self.replay_buffer_kwargs = {"seed": seed, **self.replay_buffer_kwargs}
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
        :param deterministic: False: random with probability ``exploration_rate``
        :return: ``Choices`` (n,), or () for a single observation; ``(hidden,)``, (n, hidden_size) float32
        """
        greedy, state = self.policy.predict(observation, state, episode_start)
        if deterministic:
            return Choices(greedy, np.eye(int(self.action_space.n))[greedy]), state
        return self._explored(greedy, self.exploration_rate), state

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        rate = 1.0 if self.num_timesteps < learning_starts else self.exploration_rate
        starts = self._last_episode_starts
        assert starts is not None
        state = None if starts.all() else self._last_state  # which may be of another number of environments
        greedy, self._last_state = self.policy.predict(self._last_obs, state, starts)  # type: ignore[arg-type]
        actions = self._explored(greedy, rate)
        return actions, actions

    # ---------------------------------------------------------------- learning

    def _store_transition(
        self,
        replay_buffer: Any,
        buffer_action: Any,
        new_obs: Any,
        reward: Any,
        dones: NDArray[np.bool_],
        infos: list[dict[str, Any]],
    ) -> None:
        replay_buffer.begin(self._last_episode_starts)
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        self._last_episode_starts = np.array(dones, dtype=bool)
