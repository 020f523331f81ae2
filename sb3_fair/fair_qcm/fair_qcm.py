"""FairQCM: DQN with counterfactual memories."""

from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from stable_baselines3.dqn.policies import DQNPolicy, MultiInputPolicy

from sb3_fair.fair_qcm.buffer import CounterfactualBoxReplayBuffer, CounterfactualReplayBuffer, Storage
from sb3_fair.fair_qcm.environment import TimedEnds, check_raw, check_time, memory_of, remembering
from sb3_fair.fair_qcm.extractor import MemoryExtractor
from sb3_fair.fair_qcm.value_learner import ValueLearner
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.memories import Memory, MemoryLike
from sb3_fair.wrappers.memory import MEMORY

SelfFairQCM = TypeVar("SelfFairQCM", bound="FairQCM")


@checked
class FairQCM(ValueLearner):
    """Deep Q-learning with counterfactual memories: each step is also learned with other memories of the past.

    A memory of the past makes non-Markovian fairness Markov but multiplies the states. For any memory, its next value
    and the reward follow from what happened, so one step gives transitions for all of them. Paper: Alamdari,
    Klassen, Creager, McIlraith, "Remembering to Be Fair: Non-Markovian Fairness in Sequential Decision Making", 2024.

    ::

        model = FairQCM("MultiInputPolicy", "sb3_fair/Doughnut-v0", seed=0).learn(100_000)
        evaluate_policy(model, model.get_env())          # the environment with the memory in its observations
        evaluate_policy(model, model.follow(other_env))  # any other one

    With ``n_counterfactual=0`` it is DQN with that memory. With ``per_env_exploration=False`` too, its numbers are
    exactly those of SB3's DQN. SB3's arguments have SB3's meaning; defaults differ.

    :param policy: ``"MultiInputPolicy"`` (``"MlpPolicy"`` means the same), or a subclass of ``DQNPolicy``
    :param env: an environment whose steps tell a ``fair_event``: a registered ID, or any with Discrete actions in
        ``FairnessScheme``. A memory is added to its observations if it has none
    (The arguments of DQN.)
    :param memory: name of the memory to add (``"full"``, ``"difference"``, ``"full+clock"``, ...: see
        ``MemoryAugmentation``) or an object of your own; None: the environment's, or its ``default_memory``, or
        ``"full"``
    :param scheme: the fairness scheme behind the reward; None: the environment's
    :param n_counterfactual: k; a share k/(k + 1) of every batch has a counterfactual memory. 0: plain DQN
    :param window: how far counterfactual memories are from the real one; None: as the memory says
    :param storage: ``"virtual"``: real transitions are stored and relabelled when drawn; ``"rows"``: every step stores
        its counterfactual rows beside it (the paper), which ``buffer_size`` counts too
    :param shaping: ``"potential"``: trains on reward + gamma Phi(m') - Phi(m) with Phi = W(U(m)) / (1 - gamma), which
        does not change the optimal policy; episodes are logged unshaped
    :param per_env_exploration: every environment decides separately whether to explore, and actions carry their
        probabilities; False: one decision for all, as in SB3
    :raises ValueError: if an argument is not allowed; if counterfactual memories are asked for where the reward is no
        function of the memory, or where nothing shows the time although the end or the reward depends on it
    """

    buffer_classes = (CounterfactualBoxReplayBuffer, CounterfactualReplayBuffer)
    buffer_settings = ("memory", "scheme", "n_counterfactual", "window", "storage", "shaping", "reward_scale", "gamma")
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MultiInputPolicy": MultiInputPolicy}
    _ends: TimedEnds | None = None

    def __init__(
        self,
        policy: str | type[DQNPolicy],
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
        memory: MemoryLike | None = None,
        scheme: Scheme | None = None,
        n_counterfactual: int = 4,
        window: int | None = None,
        storage: Storage = "virtual",
        shaping: Literal["potential"] | None = None,
        reward_scale: float = 1.0,
        exploration_decay: float | None = None,
        per_env_exploration: bool = True,
    ) -> None:
        venv = None if env is None else remembering(self._wrap_env(maybe_make_env(env, verbose), verbose), memory)
        alias = "MultiInputPolicy" if policy in ("MlpPolicy", "CnnPolicy") else policy
        super().__init__(locals(), env=venv, policy=alias)
        self.memory: Memory | None = None if venv is None else memory_of(venv)
        self.scheme: Scheme | None = scheme if scheme or venv is None else attribute(venv, "scheme", kind=Scheme)
        self.n_counterfactual = n_counterfactual
        self.window = window
        self.storage = storage
        self.shaping = shaping
        self.per_env_exploration = per_env_exploration
        twice = sorted(self.replay_buffer_kwargs.keys() & set(self.buffer_settings))
        if twice:
            raise ValueError(f"replay_buffer_kwargs must leave out what FairQCM fills in itself, got {twice}")
        if _init_setup_model:
            self._setup_model()

    # ---------------------------------------------------------------- set up

    def _setup_model(self) -> None:
        if (self.n_counterfactual or self.shaping) and self.scheme is None:
            raise ValueError("scheme must be given, or the environment wrapped in FairnessScheme, got None")
        if self.env is not None:
            self._ends = self._checked(self.env)
        if "features_extractor_class" not in self.policy_kwargs:
            given = self.policy_kwargs.get("features_extractor_kwargs") or {}
            extractor = {
                "features_extractor_class": MemoryExtractor,
                "features_extractor_kwargs": {**given, "memory": self.memory},
            }
            self.policy_kwargs = {**self.policy_kwargs, **extractor}
        super()._setup_model()

    def _checked(self, venv: VecEnv) -> TimedEnds | None:
        """Checks an environment; returns what looks at the ends of its episodes in training."""
        check_raw(unwrap_vec_normalize(venv))
        if (self.n_counterfactual or self.shaping) and self.memory is not None and self.scheme is not None:
            return check_time(venv, self.memory, self.scheme)
        return None

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Trains on ``env`` from now on. If the model's memory has to be added to it, new episodes begin, even with
        ``force_reset=False``."""
        given = self._wrap_env(env, self.verbose)
        venv = remembering(given, self.memory)
        ends = self._checked(venv)
        super().set_env(venv, force_reset or venv is not given)
        self._ends = ends

    def follow(self, env: GymEnv) -> VecEnv:
        """``env`` with the model's memory in its observations, for :meth:`predict` and SB3's ``evaluate_policy``.

        :param env: a Gymnasium env or a VecEnv; returned as a VecEnv, unchanged if it has the memory
        """
        return remembering(self._wrap_env(env, self.verbose), self.memory)

    @classmethod
    def load(cls: type[SelfFairQCM], path: Any, env: GymEnv | None = None, *others: Any, **kwargs: Any) -> SelfFairQCM:
        """A model from a file, ``env`` with the model's memory; see SB3's ``load`` and :meth:`set_env`. Transitions are
        in ``save_replay_buffer`` and ``load_replay_buffer``.

        :raises ValueError: if the file is of another algorithm
        """
        data = load_from_zip_file(path, custom_objects=kwargs.get("custom_objects"))[0] or {}
        if "memory" not in data:
            raise ValueError(f"path must be a file of a {cls.__name__}, got {path!r}, of another algorithm")
        given = venv = None if env is None else cls._wrap_env(env)
        if given is not None:
            venv = remembering(given, data["memory"])
        model = super().load(path, venv, *others, **kwargs)
        if venv is not given:
            model._last_obs = None
        return model

    # ---------------------------------------------------------------- acting

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Actions for observations with the memory; exploring, unless ``deterministic``, with probability epsilon each.

        :raises ValueError: if the observation has no memory
        """
        expected = self.observation_space
        if isinstance(expected, spaces.Dict):
            fits = isinstance(observation, dict) and MEMORY in observation
        else:
            fits = np.shape(observation)[-1:] == expected.shape  # type: ignore[arg-type]
        if not fits:
            raise ValueError(
                f"observation must hold the memory {getattr(self.memory, 'name', None)!r}, as in {expected}: "
                "use model.follow(env), which adds it"
            )
        if deterministic or not self.per_env_exploration:
            return super().predict(observation, state, episode_start, deterministic)
        greedy, state = self.policy.predict(observation, state, episode_start, deterministic=True)
        return self._explored(greedy, self.exploration_rate), state

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        if not self.per_env_exploration or self.num_timesteps >= learning_starts:
            return super()._sample_action(learning_starts, action_noise, n_envs)
        actions = self._explored(np.zeros(n_envs, dtype=np.int64), 1.0)
        return actions, actions

    # ---------------------------------------------------------------- learning

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[np.bool_] | None = None) -> None:
        super()._update_info_buffer(infos, dones)
        if self._ends is not None and self.env is not None and dones is not None:
            self._ends.look(self.env, infos, dones)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Gradient steps on batches of real and counterfactual transitions."""
        super().train(gradient_steps, batch_size)
        buffer: Any = self.replay_buffer
        self.logger.record("train/cf_share", buffer.cf_share)
