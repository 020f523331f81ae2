"""Tabular FairQCM: Q-learning with counterfactual memories."""

from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, unwrap_vec_normalize

from sb3_fair.common.episode_figures import EpisodeFigures
from sb3_fair.common.interruption import resets_if_left, resets_if_stopped
from sb3_fair.common.own_generator import OwnGenerator
from sb3_fair.fair_qcm.environment import TimedEnds, check_time, events_of_all, memory_of, relabelled, remembering
from sb3_fair.fair_qcm.states import MemoryCode, StateNumbers
from sb3_fair.fair_qcm.table import UNSEEN, QTable
from sb3_fair.fair_qcm.windows import Window, WindowLike
from sb3_fair.fairness.arguments import checked, recheck
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.choices import Choices
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.memories import Memory, MemoryLike
from sb3_fair.wrappers.observations import each
from sb3_fair.wrappers.recompute import Recompute
from sb3_fair.wrappers.scalarise import VecScalarise
from sb3_fair.wrappers.scheme import VecFairnessScheme
from sb3_fair.wrappers.starts import check_discrete

SelfTabularFairQCM = TypeVar("SelfTabularFairQCM", bound="TabularFairQCM")
Array = NDArray[Any]

TIE = 1e-5
"""Actions whose Q-values differ by less are equally good."""


@checked
class TabularFairQCM(OwnGenerator):
    """Tabular Q-learning with counterfactual memories: each step is also learned with other memories of the past.

    After every step the entry of the real memory is updated, and so are those of other memories, which were drawn
    before: Q += learning_rate (r + gamma max Q' - Q), for all copies of the environment at once, with targets from the
    table before the step; see :meth:`QTable.learn` for entries that are met more than once. Paper: see
    :class:`FairQCM`.

    ::

        env = sb3_fair.make_vec("sb3_fair/Doughnut-Small-v0", n_envs=64)
        model = TabularFairQCM(env, seed=0).learn(100_000)
        evaluate_policy(model, model.get_env())          # the environment with the memory in its observations

    :param env: an environment with Discrete actions and few different states whose steps tell a ``fair_event``: a
        registered ID, or any in ``FairnessScheme``; many copies (``make_vec``) learn fastest. A memory is added to the
        observations if they have none
    :param memory: see :class:`FairQCM`; its numbers must be whole and have finite bounds
    :param scheme: the fairness scheme behind the reward; None: the environment's
    :param n_counterfactual: counterfactual memories drawn per step and copy, of which those that do not exist, repeat
        each other or are the real one are dropped; ``"all"`` memories of the window; 0: plain Q-learning
    :param window: which memories are drawn: see :class:`Window`. None: w = 2 for counts and 5 for differences
    :param learning_rate: alpha; a number or a function of the remaining progress
    :param gamma: discount factor
    :param initial_value: Q-value of untried actions; None: the environment's ``max_return``, the largest possible
        return of an episode, else 0. With so high a value every action is tried everywhere
    :param initial_epsilon: probability to explore at the first visit of a state with its memory
    :param final_epsilon: smallest probability to explore
    :param epsilon_decay: factor on epsilon at every visit of the state with its memory
    :param epsilon_on: ``"visit"``: every visit counts; ``"explore"``: only those at which it explored
    :param stats_window_size: episodes that ``rollout/`` and ``fairness/`` figures average over
    :param tensorboard_log: where TensorBoard logs go; None: no logging
    :param verbose: 0 nothing, 1 logs and information, 2 debug messages
    :param seed: of everything random, environments included
    :raises ValueError: if an argument is not allowed; if counterfactual memories are asked for where the reward is no
        function of the memory, or where nothing shows the time although the end or the reward depends on it
    """

    _rng_stream = (2,)
    _ends: TimedEnds | None = None

    def __init__(
        self,
        env: GymEnv | str | None,
        *,
        memory: MemoryLike | None = None,
        scheme: Scheme | None = None,
        n_counterfactual: int | Literal["all"] = 32,
        window: WindowLike = None,
        learning_rate: float | Schedule = 0.1,
        gamma: float = 0.99,
        initial_value: float | None = None,
        initial_epsilon: float = 1.0,
        final_epsilon: float = 0.2,
        epsilon_decay: float = 0.95,
        epsilon_on: Literal["visit", "explore"] = "visit",
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        seed: int | None = None,
        _init_setup_model: bool = True,
    ) -> None:
        venv = None if env is None else remembering(self._wrap_env(maybe_make_env(env, verbose), verbose), memory)
        if venv is None and _init_setup_model:
            raise ValueError("env must be given unless the model is loaded")
        super().__init__(
            policy=BasePolicy,
            env=venv,
            learning_rate=learning_rate,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device="cpu",
            support_multi_env=True,
            seed=seed,
        )
        self.memory: Memory | None = None if venv is None else memory_of(venv)
        self.scheme: Scheme | None = scheme if scheme or venv is None else attribute(venv, "scheme", kind=Scheme)
        self.n_counterfactual = n_counterfactual
        self.window = window
        self.gamma = gamma
        self.initial_value = initial_value
        self.initial_epsilon = initial_epsilon
        self.final_epsilon = final_epsilon
        self.epsilon_decay = epsilon_decay
        self.epsilon_on = epsilon_on
        self._make_generator(seed)
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        assert self.env is not None and self.memory is not None
        check_discrete(self.action_space, "a table")
        self._ends = self._checked(self.env)
        if not callable(self.learning_rate) and not 0 < self.learning_rate <= 1:  # 0 in models loaded to act only
            raise ValueError(f"learning_rate must be in (0, 1], got {self.learning_rate!r}")
        self._set_up_learning()
        self.set_random_seed(self.seed)
        self.memory_code = MemoryCode(self.memory)
        self.states = StateNumbers(self.observation_space, self.memory.dim)
        if self.initial_value is None:
            most = np.ravel(attribute(self.env, "max_return", 0.0))  # one per objective where there are several
            self.initial_value = float(most[0]) if len(most) == 1 and np.isfinite(most[0]) else 0.0
        self.table = QTable(int(self.action_space.n), self.initial_value)  # type: ignore[attr-defined]

    def _set_up_learning(self) -> None:
        """What the arguments say, which ``load`` may change."""
        assert self.memory is not None
        recheck(self)
        self.recompute: Recompute | None = None
        if self.n_counterfactual:
            if self.scheme is None:
                raise ValueError("scheme must be given, or the environment wrapped in FairnessScheme, got None")
            self.recompute = Recompute(self.memory, self.scheme)
        self.counterfactuals = Window(self.memory, self.n_counterfactual, self.window)
        self._setup_lr_schedule()

    def _checked(self, venv: VecEnv) -> TimedEnds | None:
        """Checks an environment; returns what looks at the ends of its episodes in training."""
        if unwrap_vec_normalize(venv) is not None:
            raise ValueError("env must not be normalised: a table needs discrete states and the scheme's own rewards")
        if self.n_counterfactual and self.memory is not None and self.scheme is not None:
            return check_time(venv, self.memory, self.scheme)
        return None

    # ---------------------------------------------------------------- learning

    def learn(
        self: SelfTabularFairQCM,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1000,
        tb_log_name: str = "TabularFairQCM",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfTabularFairQCM:
        """Trains until at least ``total_timesteps`` steps were taken in all copies together; see SB3's ``learn``.

        :param log_interval: episodes between two rows of the log
        """
        if self.env is None:
            raise ValueError("env must be given before learning: call set_env")
        resets_if_left(self)
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        if reset_num_timesteps or not hasattr(self, "figures"):
            self.figures = EpisodeFigures(self._stats_window_size)
        callback.on_training_start(locals(), globals())
        states, _ = self.states.split(self._last_obs)
        self._last_states = self.states(states)
        while self.num_timesteps < total_timesteps:
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            logged = self._episode_num // log_interval if log_interval else 0
            callback.on_rollout_start()
            if not self._step(callback):
                break
            callback.on_rollout_end()
            if log_interval and self._episode_num // log_interval > logged:
                self.dump_logs()
        callback.on_training_end()
        return self

    @resets_if_stopped
    def _step(self, callback: BaseCallback) -> bool:
        """One step of all copies and what it teaches; whether to go on."""
        assert self.env is not None and self.memory is not None
        _, now = self.states.split(self._last_obs)
        copies = np.arange(self.n_envs)
        actions = self._explore(self._places(self._last_states, now, add=True))
        memories = now
        if self.n_counterfactual:  # before the outcome is seen
            others, drawn = self.counterfactuals(now, self.rng)
            copies, memories = np.concatenate((copies, others)), np.concatenate((now, drawn))

        new_obs, rewards, dones, infos = self.env.step(actions)
        if _unrounded(self.env):
            rewards = rewards.astype(np.float32)  # as DummyVecEnv rounds them
        self.num_timesteps += self.n_envs
        callback.update_locals(locals())
        if not callback.on_step():
            return False

        if self._ends is not None:
            self._ends.look(self.env, infos, dones)
        ended = np.flatnonzero(dones).tolist()
        shown, next_memories = self.states.split(new_obs)
        following_states = new_states = self.states(shown)
        goes_on = np.ones(self.n_envs)
        if ended:
            following_states, next_memories = new_states.copy(), next_memories.copy()
            terminal = [infos[index]["terminal_observation"] for index in ended]
            last, next_memories[ended] = self.states.split(each(lambda *rows: np.stack(rows), *terminal))
            following_states[ended] = self.states(last)
            goes_on[ended] = [infos[index].get("TimeLimit.truncated", False) for index in ended]
            self._update_info_buffer([infos[index] for index in ended], dones[ended])
            self.figures.add(infos, dones)
            self._episode_num += len(ended)

        taken = np.asarray(actions)[copies]
        if self.recompute is None:
            following, paid = next_memories, np.asarray(rewards, dtype=np.float64)
        else:
            events, real = events_of_all(infos).array[copies], slice(self.n_envs)
            following, paid = relabelled(self.recompute, memories, taken, events, real, next_memories, rewards)
            paid[real] = rewards
        best = self.table.best(self._places(following_states[copies], following))
        self.table.learn(
            self._places(self._last_states[copies], memories, add=True),
            taken,
            paid + self.gamma * goes_on[copies] * best,
            self.lr_schedule(self._current_progress_remaining),
        )
        self._n_updates += len(copies)
        self._last_obs, self._last_states = new_obs, new_states  # type: ignore[assignment]
        return True

    def _explore(self, places: Array) -> Choices:
        """Epsilon-greedy actions (n,), epsilon as the visits of each place say, which go up."""
        visits, n_actions = self.table.visits, self.table.n_actions
        epsilon = np.maximum(self.final_epsilon, self.initial_epsilon * self.epsilon_decay ** visits[places])
        explores = self.rng.random(len(places)) < epsilon
        np.add.at(visits, places if self.epsilon_on == "visit" else places[explores], 1)
        best = self._best_actions(self.table.values[:, places].T)
        drawn = self.rng.integers(n_actions, size=len(places))
        probabilities = best / best.sum(axis=1, keepdims=True) * (1 - epsilon)[:, None] + epsilon[:, None] / n_actions
        return Choices(np.where(explores, drawn, self._any_of(best)), probabilities)

    def _best_actions(self, values: Array) -> NDArray[np.bool_]:
        return values >= values.max(axis=-1, keepdims=True) - TIE

    def _any_of(self, best: NDArray[np.bool_]) -> Array:
        """One of the best actions (n, n_actions) each."""
        return (best * (1 - self.rng.random(best.shape))).argmax(axis=1)

    def _places(self, states: Array, memories: Array, add: bool = False) -> NDArray[np.intp]:
        """Where the table keeps states (k,) with memories (k, dim)."""
        codes = states * self.memory_code.n_codes + self.memory_code(memories)
        return self.table.add(codes) if add else self.table.find(codes)

    def dump_logs(self) -> None:
        """Writes a row of the log."""
        self.figures.record(self.logger)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/states", len(self.states))
        OffPolicyAlgorithm.dump_logs(self)  # type: ignore[arg-type]  # it reads what every algorithm has

    # ---------------------------------------------------------------- using what was learned

    def q_values(self, observation: Any) -> NDArray[np.float64]:
        """Q-values (n, n_actions) of observations of n copies, or (n_actions,) of one; see ``initial_value``.

        :raises ValueError: if the observation has no memory
        """
        states, memories = self.states.split(observation)
        numbers = self.states(states, add=False)
        known = (numbers >= 0) & self.memory_code.holds(memories)
        places = np.where(known, self._places(numbers, memories), UNSEEN)
        values = self.table.values[:, places].T
        single = np.ndim(observation["memory"] if isinstance(observation, dict) else observation) == 1
        return values[0] if single else values

    def predict(
        self,
        observation: Any,
        state: tuple[Array, ...] | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
    ) -> tuple[Array, tuple[Array, ...] | None]:
        """Greedy actions (n,) for observations with the memory; it never explores.

        :param deterministic: the first of equally good actions, instead of any
        :return: actions, and ``state`` as it is
        """
        values = self.q_values(observation)
        best = self._best_actions(np.atleast_2d(values))
        actions = best.argmax(axis=1) if deterministic else self._any_of(best)
        return (actions if values.ndim == 2 else actions[0]), state

    def follow(self, env: GymEnv) -> VecEnv:
        """``env`` with the model's memory in its observations, for :meth:`predict` and SB3's ``evaluate_policy``.

        :param env: a Gymnasium env or a VecEnv; returned as a VecEnv, unchanged if it has the memory
        """
        return remembering(self._wrap_env(env, self.verbose), self.memory)

    # ---------------------------------------------------------------- environment, save, load

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Trains on ``env`` from now on, of any number of copies. If the model's memory has to be added to it, new
        episodes begin, even with ``force_reset=False``."""
        given = self._wrap_env(env, self.verbose)
        venv = remembering(given, self.memory)
        ends = self._checked(venv)
        check_for_correct_spaces(venv, self.observation_space, self.action_space)
        if venv.num_envs != self.n_envs or force_reset or venv is not given:
            self._last_obs = None
        self.env, self.n_envs, self._ends = venv, venv.num_envs, ends

    @classmethod
    def load(
        cls: type[SelfTabularFairQCM],
        path: Any,
        env: GymEnv | None = None,
        device: Any = None,
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs: Any,
    ) -> SelfTabularFairQCM:
        """A model from a file, with its table and random state; see SB3's ``load``. ``device`` is without effect.

        :raises ValueError: if ``kwargs`` have what the table was made with, or the file is of another algorithm
        """
        if "initial_value" in kwargs:
            raise ValueError("initial_value cannot be changed in a model that has its table: make a new one")
        data, _, _ = load_from_zip_file(path, custom_objects=custom_objects, print_system_info=print_system_info)
        if not isinstance((data or {}).get("table"), QTable):
            raise ValueError(f"path must be a file of a {cls.__name__}, got {path!r}, of another algorithm")
        model = cls(None, _init_setup_model=False)
        model.__dict__.update({**(data or {}), **kwargs})
        if env is not None:
            model.set_env(env, force_reset)
        model._set_up_learning()
        if model._rng_seed != model.seed:
            model.set_random_seed(model.seed)
        return model

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return [], []

    def set_parameters(self, load_path_or_dict: Any, exact_match: bool = True, device: Any = "auto") -> None:
        """Not for a table, which has no parameters.

        :raises ValueError: always
        """
        raise ValueError("a table has no parameters to set: call set_table_arrays(other.table_arrays())")

    def table_arrays(self) -> dict[str, Array]:
        """All that was learned, as arrays: see :meth:`set_table_arrays`."""
        return {**self.states.arrays(), **self.table.arrays()}

    def set_table_arrays(self, arrays: dict[str, Array]) -> None:
        """Takes over what :meth:`table_arrays` told of a model with the same settings."""
        self.states.set_arrays(arrays)
        self.table.set_arrays(arrays)


def _unrounded(venv: VecEnv) -> bool:
    """Whether rewards come from the environments as they are, and not from a layer outside them."""
    while isinstance(venv, VecEnvWrapper):
        if isinstance(venv, VecFairnessScheme | VecScalarise):
            return False
        venv = venv.venv
    return True
