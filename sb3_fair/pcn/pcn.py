"""Pareto Conditioned Networks (PCN): one network for every trade-off."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar, overload

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv, is_vecenv_wrapped, unwrap_vec_normalize

from sb3_fair.common.evaluation import warn_of_undefined
from sb3_fair.common.front import Command, EvaluatedPolicy, Front
from sb3_fair.common.monitor import VectorMonitor
from sb3_fair.common.own_generator import OwnGenerator
from sb3_fair.common.pareto import front_of, hypervolume, nondominated, reference_point
from sb3_fair.common.rollout import Act, play, shares
from sb3_fair.common.same_layers import SameLayers
from sb3_fair.fairness.arguments import Count, Share, checked, recheck
from sb3_fair.fairness.warning import warn
from sb3_fair.pcn.actions import Categorical, head_for
from sb3_fair.pcn.buffer import Episode, EpisodeBuffer, episodes_of
from sb3_fair.pcn.coverage import evaluate_in_training, evaluated, evaluation_times
from sb3_fair.pcn.objectives import Objectives, PerObjective, check_alike, check_emit, names_of
from sb3_fair.pcn.policies import PCNPolicy
from sb3_fair.wrappers.desired_return import HORIZON, RETURN, Bound, DesiredReturn, VecDesiredReturn, command_setter
from sb3_fair.wrappers.infos import vector_rewards
from sb3_fair.wrappers.layer import attribute, max_steps_of
from sb3_fair.wrappers.scalarise import with_scalar_reward
from sb3_fair.wrappers.vector_reward import Emit

SelfPCN = TypeVar("SelfPCN", bound="PCN")
SETTLED = {
    *("gamma", "objectives", "held", "max_return", "ref_point", "scaling_factor", "scaling_floor"),
    *("buffer_size", "crowding_threshold", "crowding_penalty", "standardise", "emit"),
}
"""Arguments that are used up when a model is made."""
ENDLESS = 100_000
"""An episode of so many steps is not waited for any longer."""
SMALLEST_RANGE = 1e-3
"""What automatic scaling divides by at least."""
SHARPNESS = 3
"""Standard deviation of the commands in the network's input where ``scaling_factor="buffer"``."""


@checked
class PCN(SameLayers, OwnGenerator):
    """Pareto Conditioned Networks: one network imitates the best episodes, given a desired vector return and horizon.

    Paper: Reymond, Bargiacchi, Nowé, "Pareto Conditioned Networks", AAMAS 2022.

    ::

        model = PCN("MlpPolicy", env, seed=0).learn(100_000)
        front = model.coverage_set(n_eval_episodes=10)   # evaluated policies
        model.set_command(front[3])                      # choose a trade-off
        env = model.follow(env)                          # the command joins the observation

    Discrete, MultiDiscrete and MultiBinary actions are classified (cross-entropy, summed over the parts). Box actions
    are predicted (mean squared error) and explored with Gaussian noise, ``policy_kwargs={"action_noise": 0.1}``.

    :param policy: ``"MlpPolicy"``, ``"MultiInputPolicy"`` (Dict observations), or a subclass of :class:`PCNPolicy`
    :param env: an environment with a vector reward: a registered ID made with ``objectives=``, anything wrapped in
        ``VectorReward``, a MO-Gymnasium env, or a VecEnv with ``info["vector_reward"]``. SB3's VecEnvs carry no array
        rewards: wrap each of their environments in ``Scalarise``
    :param learning_rate: of Adam; a number or a function of the remaining progress
    :param gamma: discount factor of the returns-to-go that the network is conditioned on
    :param batch_size: steps per gradient step
    :param buffer_size: number of episodes kept
    :param n_fill_episodes: episodes of random actions at the beginning
    :param n_episodes: new episodes per iteration, under one command, shared out over the copies of the environment
    :param n_updates: gradient steps per iteration
    :param n_command_candidates: the best episodes, whose non-dominated ones may become commands
    :param crowding_threshold: episodes with at most this crowding distance are penalised
    :param crowding_penalty: ``"double"``: their distance to the front is doubled (the paper), which leaves those on the
        front as they are; ``"one"``: 1 is subtracted from their priority (the authors' code)
    :param noise: standard deviation of the noise on the conditioned returns in training, in units of the standard
        deviation of the returns in the buffer
    :param scaling_factor: factors on the command in the network's input, one per objective and one for the horizon;
        ``"buffer"``: 3 over the standard deviation that each has in the buffer, renewed as episodes get better;
        ``"auto"``: one over the range of the returns in the filling phase, and over the maximal episode length
    :param objectives: names or indices of the optimised entries of the vector reward; None: all. The others are
        recorded only
    :param max_return: upper bound of the return still to come; one number, one per optimised objective or a dict by
        name; None: the environment's ``max_return``, else no bound
    :param ref_point: reference point of the hypervolume, given as ``max_return`` is; None: the environment's
        ``ref_point``, else the worst returns of the filling phase less 10 % of their range
    :param eval_freq: evaluate whenever this many steps have passed; a float below 1 is a share of ``total_timesteps``;
        0: never
    :param n_eval_episodes: episodes per command in these evaluations
    :param eval_deterministic: True: evaluation takes the most probable action; False: it samples; ``"both"``: each
        command is evaluated both ways, as two policies; None: both in :meth:`coverage_set`, True in training. In long
        episodes the most probable action of a command that seldom acts may be never to act, while sampling makes other
        commands less precise
    :param n_eval_commands: commands per evaluation during training at most, the least crowded ones
    :param eval_optimism: besides the commands of the best episodes, evaluation asks for more: the best command of
        each objective is raised by these multiples of the commands' standard deviation
    :param eval_env: where these evaluations take place; None: on a copy of ``env``
    :param updates_per_step: gradient steps per step collected in the previous iteration, instead of ``n_updates``
    :param standardise: shift and scale the inputs by their mean and standard deviation in the filling phase. The
        sigmoid embedding otherwise loses features that hardly vary
    :param scaling_floor: smallest range that scales commands, given as ``max_return`` is (``"buffer"`` takes a quarter
        of it for a standard deviation): returns may differ so little that their factor saturates the embedding
    :param fill: ``"uniform"``: every action equally likely; ``"mixed"``: action probabilities drawn per episode from a
        flat Dirichlet distribution, of a Box a mean action, which shows the extremes of the trade-off
    :param held: objective name -> discount factor of its return-to-go. The command of such an objective is the mean of
        its return-to-go over the episode and is not reduced by rewards
    :param stats_window_size: episodes that the ``rollout/`` figures average over
    :param tensorboard_log: where TensorBoard logs go; None: no logging
    :param policy_kwargs: further arguments of the policy
    :param verbose: 0 nothing, 1 logs and information, 2 debug messages
    :param seed: of everything random, network initialisation and environments included
    :param device: ``"cpu"``, ``"cuda"``, ``"auto"``
    :param _init_setup_model: whether to build the network now
    :raises ValueError: if an argument is not allowed, there is no head for the actions, or there is no vector reward
    """

    policy: PCNPolicy
    emit: Emit | None = None
    """When the training environment pays for notions, where it says so."""
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": PCNPolicy, "MultiInputPolicy": PCNPolicy}

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str | None,
        learning_rate: float | Schedule = 1e-3,
        gamma: Share = 1.0,
        batch_size: int = 256,
        buffer_size: int = 100,
        n_fill_episodes: int = 50,
        n_episodes: int = 10,
        n_updates: int = 50,
        n_command_candidates: int = 50,
        crowding_threshold: float = 0.2,
        crowding_penalty: Literal["double", "one"] = "double",
        noise: float = 0.0,
        scaling_factor: Literal["buffer", "auto"] | ArrayLike = "buffer",
        objectives: Sequence[str | int] | None = None,
        max_return: Bound | Mapping[str, float] | None = None,
        ref_point: PerObjective | None = None,
        eval_freq: int | float = 0.1,
        n_eval_episodes: int = 10,
        eval_deterministic: bool | Literal["both"] | None = None,
        n_eval_commands: int = 10,
        eval_optimism: Sequence[float] = (),
        eval_env: GymEnv | None = None,
        updates_per_step: float | None = None,
        standardise: bool = False,
        scaling_floor: PerObjective = SMALLEST_RANGE,
        fill: Literal["uniform", "mixed"] = "uniform",
        held: Mapping[str, float] | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        super().__init__(
            policy=policy,
            env=env,
            learning_rate=learning_rate,
            policy_kwargs=policy_kwargs,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            support_multi_env=True,
            seed=seed,
        )
        self.gamma = gamma
        self.batch_size = batch_size
        self.buffer_size = buffer_size
        self.n_fill_episodes = n_fill_episodes
        self.n_episodes = n_episodes
        self.n_updates = n_updates
        self.n_command_candidates = n_command_candidates
        self.crowding_threshold = crowding_threshold
        self.crowding_penalty = crowding_penalty
        self.noise = noise
        self.scaling_factor = scaling_factor
        self.objectives = objectives
        self.max_return: Any = max_return
        self.ref_point: Any = ref_point
        self.eval_freq = eval_freq
        self.n_eval_episodes = n_eval_episodes
        self.eval_deterministic = eval_deterministic
        self.n_eval_commands = n_eval_commands
        self.eval_optimism = tuple(eval_optimism)
        self.eval_env = eval_env
        self.updates_per_step = updates_per_step
        self.standardise = standardise
        self.scaling_floor: Any = scaling_floor
        self.fill = fill
        self.held = held
        self.command: Command | None = None
        self.evaluations: list[tuple[int, Front]] = []
        self.n_eval_timesteps = 0
        self._underway: Command | None = None
        self._evaluate_at: NDArray[np.float64] = np.zeros(0)
        self._check_arguments()
        self._make_generator(seed)
        if _init_setup_model:
            self._setup_model()

    def _check_arguments(self) -> None:
        recheck(self)
        if self.buffer_size < self.n_episodes:
            raise ValueError(f"buffer_size must be at least n_episodes ({self.n_episodes}), got {self.buffer_size}")

    @staticmethod
    def _wrap_env(env: GymEnv, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        """SB3's wrapping, with an array reward moved to ``info["vector_reward"]`` first and a VectorMonitor outside."""
        head_for(env.action_space, 0.0)  # is there one?
        if isinstance(env, VecDesiredReturn):
            env = env.venv
        venv = BaseAlgorithm._wrap_env(with_scalar_reward(env), verbose, monitor_wrapper)
        return venv if is_vecenv_wrapped(venv, VectorMonitor) else VectorMonitor(venv)

    def _setup_model(self) -> None:
        if not issubclass(self.policy_class, PCNPolicy):
            name = f"{self.policy_class.__module__}.{self.policy_class.__name__}"
            raise TypeError(f"policy must be a PCNPolicy, got {name}: a file of that policy's algorithm is not PCN's")
        self._setup_lr_schedule()
        with self._generator_goes_on():
            self.set_random_seed(self.seed)
        if not hasattr(self, "_chosen"):  # a loaded model brings all this
            self._setup_objectives()
        policy = self.policy_class(self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs)  # type: ignore[arg-type]
        self.policy = policy.to(self.device)
        if self.standardise and any(True for _ in self.policy.features_extractor.parameters()):
            raise ValueError("standardise must be False for a features extractor that is trained")

    def _setup_objectives(self) -> None:
        venv = self.env
        if venv is None:
            raise ValueError("env must be given unless the model is loaded")
        if self.n_envs > self.n_episodes:
            warn(
                f"{self.n_envs - self.n_episodes} of {self.n_envs} copies of the environment will be idle, because an "
                f"iteration has n_episodes={self.n_episodes}",
            )
        chosen = self._chosen = Objectives(names_of(venv), self.objectives, self.gamma, self.held)
        bound = chosen.numbers_of(venv, "max_return", self.max_return, missing=np.inf)
        self.max_return = np.full(len(chosen), np.inf) if bound is None else bound
        self.ref_point = chosen.numbers_of(venv, "ref_point", self.ref_point)
        self.scaling_floor = chosen.numbers("scaling_floor", self.scaling_floor, missing=SMALLEST_RANGE)
        factors = self.scaling_factor
        if not (factors in ("auto", "buffer") if isinstance(factors, str) else np.shape(factors) == (len(chosen) + 1,)):
            each = f"one factor per optimised objective {chosen.names} and one for the horizon"
            raise ValueError(f"scaling_factor must be 'buffer', 'auto' or {each}, got {factors!r}")
        self.max_steps = max_steps_of(venv)
        self.emit = attribute(venv, "emit")
        kept = self.crowding_threshold, self.crowding_penalty
        self.buffer = EpisodeBuffer(self.buffer_size, chosen.columns, chosen.discounts, chosen.held, *kept)
        self.env = self._commanded(venv)
        self.observation_space = self.env.observation_space

    @property
    def objective_names(self) -> tuple[str, ...]:
        """Names of all entries of the vector reward."""
        return self._chosen.all_names

    @property
    def optimised(self) -> tuple[str, ...]:
        """Names of the optimised objectives."""
        return self._chosen.names

    # ---------------------------------------------------------------- learning

    def learn(
        self: SelfPCN,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = 1,
        tb_log_name: str = "PCN",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfPCN:
        """Trains until at least ``total_timesteps`` steps were taken in all copies together; see SB3's ``learn``.

        :param log_interval: iterations between two rows of the log; None: none
        :raises ValueError: if the model was loaded from a file without its episodes, ``save(exclude=["buffer"])``
        """
        if not hasattr(self, "buffer"):
            raise ValueError("a model that was saved without its buffer of episodes cannot learn, only act")
        aimed_at = self._total_timesteps
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        if reset_num_timesteps:
            self._underway = None
        if reset_num_timesteps or total_timesteps != aimed_at:  # else an interrupted training goes on to its end
            self._evaluate_at = evaluation_times(self, total_timesteps)
        iteration = 0
        if self.num_timesteps < total_timesteps and not len(self.buffer):
            if not self._fill(callback):
                total_timesteps = 0
            elif self.num_timesteps >= total_timesteps:
                warn(
                    f"nothing was learned: the {self.n_fill_episodes} random episodes at the beginning took "
                    f"{self.num_timesteps} of {total_timesteps} steps; take more steps or fewer n_fill_episodes"
                )
        while self.num_timesteps < total_timesteps:
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            if self._underway is None:  # else training was interrupted while this command was being followed
                self.train()
                self.buffer.rank()
                self._underway = self._choose_command()
            episodes = self._follow_command(self._underway, callback)
            if episodes is None:
                break
            for episode in episodes:
                self.buffer.add(episode)
            iteration += 1
            self._log(self._underway, episodes)
            self._underway = None
            if len(self._evaluate_at) and self.num_timesteps >= self._evaluate_at[0]:
                self._evaluate_at = self._evaluate_at[self._evaluate_at > self.num_timesteps]
                evaluate_in_training(self)
            if log_interval is not None and iteration % log_interval == 0:
                self.dump_logs(iteration)
        callback.on_training_end()
        return self

    def _fill(self, callback: BaseCallback) -> bool:
        """Episodes of random actions, from which scalings and the reference point are taken; whether they all ended."""
        act = self.policy.actions.fill(self.n_envs, self.fill == "mixed", self.rng)
        episodes = self._collect(act, self.n_fill_episodes, callback)
        if episodes is None:
            return False
        for episode in episodes:
            self.buffer.add(episode)
            if len(self.buffer) == self.buffer_size:  # there may not be room for all
                self.buffer.rank()
        returns = np.array([episode.rewards.sum(axis=0) for episode in episodes])[:, self._chosen.columns]
        if self.ref_point is None:
            self.ref_point = reference_point(returns)
        factors: Any = self.scaling_factor
        if isinstance(factors, str):
            longest = self.max_steps or max(len(episode.actions) for episode in episodes)
            factors = np.append(1 / np.maximum(np.ptp(returns, axis=0), self.scaling_floor), 1 / longest)
        self.policy.command_scale.copy_(th.as_tensor(factors))
        if self.standardise:
            with th.no_grad():
                features = self.policy.features(self.policy.shown(self.buffer.seen()))
            spread = features.std(dim=0, correction=0)
            self.policy.feature_mean.copy_(features.mean(dim=0))
            self.policy.feature_scale.copy_(1 / th.where(spread > 1e-6, spread, 1.0))
        return True

    def _scale(self) -> None:
        """Scales commands by what is now in the buffer: all with ``"buffer"``, held ones also with ``"auto"``."""
        if self.scaling_factor == "buffer":
            spread = np.maximum(self.buffer.spread(), np.append(self.scaling_floor, 1) / 4)
            self.policy.command_scale.copy_(self.policy.tensor(SHARPNESS / spread))
        else:
            held = np.flatnonzero(self._chosen.held)
            ranges = np.maximum(4 * self.buffer.labels()[:, held].std(axis=0), SMALLEST_RANGE)
            self.policy.command_scale[held] = self.policy.tensor(1 / ranges).float()

    def train(self) -> None:
        """Gradient steps on the log-likelihood of the stored actions, given what was still to come."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        if isinstance(self.scaling_factor, str) and (self.scaling_factor == "buffer" or self._chosen.held.any()):
            self._scale()
        jitter = (self.noise * self.buffer.points.std(axis=0)).astype(np.float32)
        n_updates = self.n_updates
        if self.updates_per_step is not None:
            n_updates = max(1, round(self.updates_per_step * self._n_collected))
        losses = []
        for _ in range(n_updates):
            batch = self.buffer.sample(self.batch_size, self.rng)
            returns = batch.returns
            if self.noise:
                returns = returns + jitter * self.rng.standard_normal(returns.shape, dtype=np.float32)
            outputs = self.policy(
                self.policy.shown(batch.observations),
                self.policy.tensor(returns),
                self.policy.tensor(batch.horizons)[:, None],
            )
            loss = self.policy.actions.loss(outputs, self.policy.tensor(batch.actions))
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.policy.optimizer.step()
            losses.append(loss.detach())
        self._n_updates += n_updates
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if losses:
            self.logger.record("train/loss", float(th.stack(losses).mean()))
            if isinstance(self.policy.actions, Categorical):
                self.logger.record("train/entropy", self.policy.actions.entropy(outputs.detach()))

    def _choose_command(self) -> Command:
        """The return and length of a good episode, a little more of one objective in a little less time."""
        slots = self.buffer.best(self.n_command_candidates)
        chosen = self.rng.choice(slots)
        desired_return = self.buffer.asks[chosen].copy()
        objective = self.rng.integers(len(desired_return))
        desired_return[objective] += self.rng.uniform(0, self.buffer.asks[slots, objective].std())
        return Command(desired_return, max(self.buffer.lengths[chosen] - 2, 1))

    def _follow_command(self, command: Command, callback: BaseCallback) -> list[Episode] | None:
        """New episodes under one command, actions sampled from the network's distribution."""
        self.policy.set_training_mode(False)
        assert isinstance(self.env, VecDesiredReturn)
        self.env.set_command(command.desired_return, command.desired_horizon)
        return self._collect(lambda shown, _: self.policy.act(shown, self.rng.random), self.n_episodes, callback)

    def _collect(self, act: Act, n_episodes: int, callback: BaseCallback) -> list[Episode] | None:
        """Plays complete episodes; None if a callback stopped it.

        The environments are seeded anew each time, so that a run depends on nothing that is not saved with the model.
        """
        assert self.env is not None
        callback.on_rollout_start()
        self.env.seed(int(self.rng.integers(2**31)))
        started = self.num_timesteps
        steps, running = [], np.zeros(self.n_envs, dtype=np.int64)
        for step in play(self.env, act, shares(n_episodes, self.n_envs)):
            step = step._replace(rewards=vector_rewards(step.infos))
            self.num_timesteps += self.n_envs
            callback.update_locals({"self": self, **step._asdict()})
            if not callback.on_step():
                return None
            self._update_info_buffer(step.infos, step.dones)
            steps.append(step._replace(infos=[], new_obs=None))
            running = np.where(step.dones | ~step.counts, 0, running + 1)
            if running.max() >= ENDLESS:
                raise ValueError(f"env must end its episodes, as by a TimeLimit, got one of {ENDLESS:,} steps")
        callback.on_rollout_end()
        self._n_collected = self.num_timesteps - started
        episodes = episodes_of(steps, ignore=(RETURN, HORIZON))
        self._episode_num += len(episodes)
        return episodes

    # ---------------------------------------------------------------- logging

    def _log(self, command: Command, episodes: list[Episode]) -> None:
        reached = np.mean([episode.rewards.sum(axis=0) for episode in episodes], axis=0)
        for name, value in zip(self.optimised, command.desired_return, strict=True):
            self.logger.record(f"pcn/desired_{name}", float(value))
        for name, value in zip(self.objective_names, reached, strict=True):
            self.logger.record(f"pcn/reached_{name}", float(value))
        points = self.buffer_points()
        self.logger.record("pcn/desired_horizon", float(command.desired_horizon))
        self.logger.record("pcn/length", float(np.mean([len(episode.actions) for episode in episodes])))
        self.logger.record("pcn/hypervolume", hypervolume(points, self.ref_point))
        self.logger.record("pcn/front_size", len(points))

    def dump_logs(self, iteration: int = 0) -> None:
        """Writes a row of the log."""
        self.logger.record("time/iterations", iteration, exclude="tensorboard")
        self.logger.record("rollout/episodes", self._episode_num)
        OffPolicyAlgorithm.dump_logs(self)  # type: ignore[arg-type]  # it reads what every algorithm has

    # ---------------------------------------------------------------- evaluation

    def buffer_points(self) -> NDArray[np.float64]:
        """Non-dominated returns of stored training episodes on the optimised objectives, (m, k).

        For diagnosis only: single lucky episodes, not what a policy reaches. See :meth:`coverage_set` for that.
        """
        points = self.buffer.points
        return points[nondominated(points)]

    @checked
    def coverage_set(
        self,
        n_eval_episodes: int = 10,
        deterministic: bool | Literal["both"] | None = None,
        n_commands: Count | None = None,
        eval_env: GymEnv | None = None,
        seed: int = 0,
    ) -> Front:
        """Evaluates the network under the commands of its best episodes and keeps what is not dominated.

        :param n_eval_episodes: episodes per command
        :param deterministic: True, False or ``"both"``; None: ``eval_deterministic``, else both
        :param n_commands: at most so many non-dominated commands, the least crowded ones; None: all, of which more than
            200 are cut with a warning, and those of the next best episodes if they are fewer than 25
        :param eval_env: where to evaluate; None: on a copy of the training environment, with fairness histories of
            its own. With many copies (``make_vec(id, n_envs=250)``) all commands are evaluated at once. Observations
            are on the scale of the ``VecNormalize`` that the model was trained in
        :param seed: of the evaluation, the same for every command
        :return: evaluated policies, non-dominated by their mean returns, best in the first objective first
        :raises ValueError: if there is nothing to evaluate yet, ``eval_env`` has other objectives or pays for notions
            at other times than the training environment, or that cannot be copied
        """
        policies = evaluated(self, n_eval_episodes, deterministic, n_commands, eval_env, seed)
        warn_of_undefined(policies)
        front = front_of(policies)
        return Front(tuple(replace(policy, name=f"PCN {index}") for index, policy in enumerate(front)))

    # ---------------------------------------------------------------- using what was learned

    def set_command(self, command: EvaluatedPolicy | Command) -> None:
        """Chooses the trade-off that environments made by :meth:`follow` will ask for, and the model's own one until it
        learns.

        :param command: an evaluated policy of :meth:`coverage_set`, or any command
        """
        chosen = command.command if isinstance(command, EvaluatedPolicy) else command
        if not isinstance(chosen, Command):
            raise TypeError(f"command must be a Command, or an EvaluatedPolicy that has one, got {command!r}")
        self.command = chosen
        if isinstance(self.env, VecDesiredReturn):
            self.env.set_command(chosen.desired_return, chosen.desired_horizon)

    @overload
    def follow(self, env: VecEnv) -> VecEnv: ...
    @overload
    def follow(self, env: gym.Env) -> gym.Env: ...
    def follow(self, env: GymEnv) -> GymEnv:
        """``env`` with the chosen command in its observations, for :meth:`predict` and SB3's ``evaluate_policy``.

        :param env: a Gymnasium env or a VecEnv with the vector reward that the model was trained on; returned as it is,
            with the chosen command from its next episodes on, if there is one in its observations
        :raises ValueError: if no command was chosen, or ``env`` has other objectives, pays for notions at other times
            or pursues commands in another way
        """
        if self.command is None:
            raise ValueError("no command was chosen: call model.set_command(policy), e.g. one of model.coverage_set()")
        check_alike("env", env, self.objective_names, self.emit)
        pursuit = attribute(env, "pursuit")
        if pursuit is None:
            return self._commanded(env, self.command)
        for name, own in self.pursuit.items():
            if not np.array_equal(pursuit[name], own):
                raise ValueError(f"env must pursue commands with {name}={own!r}, as the model, got {pursuit[name]!r}")
        command_setter(env)(self.command.desired_return, self.command.desired_horizon)
        return env

    @property
    def pursuit(self) -> dict[str, Any]:
        """Arguments of :class:`~sb3_fair.wrappers.DesiredReturn` that are the same for all commands."""
        chosen = self._chosen
        return {"columns": chosen.columns, "max_return": self.max_return, "held": chosen.held, "gamma": self.gamma}

    def _commanded(self, env: Any, command: Command | None = None) -> Any:
        layer = VecDesiredReturn if isinstance(env, VecEnv) else DesiredReturn
        command = command or Command(np.zeros(len(self._chosen)), 1.0)
        return layer(with_scalar_reward(env), command.desired_return, command.desired_horizon, **self.pursuit)

    # ---------------------------------------------------------------- save and load

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """Trains on ``env`` from now on; it must have the objectives that the model was built for."""
        venv = self._wrap_env(env, self.verbose)
        names = names_of(venv)
        if names != self.objective_names:
            raise ValueError(f"env must have the objectives {self.objective_names}, got {names}")
        if venv.num_envs != self.n_envs:
            raise ValueError(
                f"env must have {self.n_envs} copies, got {venv.num_envs}: use PCN.load(path, env) instead"
            )
        check_emit("env", venv, self.emit)
        commanded = self._commanded(venv)
        check_for_correct_spaces(commanded, self.observation_space, self.action_space)
        if force_reset:
            self._last_obs = None
        self.env, self._vec_normalize_env = commanded, unwrap_vec_normalize(commanded)

    @classmethod
    def load(
        cls: type[SelfPCN], path: Any, env: GymEnv | None = None, *others: Any, force_reset: bool = True, **kwargs: Any
    ) -> SelfPCN:
        """A model from a file, with its episodes, scalings, optimiser and random state; see SB3's ``load``.

        :raises ValueError: if ``kwargs`` have what the stored episodes and scalings were made with
        """
        settled = sorted(SETTLED & kwargs.keys())
        if settled:
            raise ValueError(f"{settled} cannot be changed in a model that has its episodes: make a new one")
        model = super().load(path, None, *others, **kwargs)
        model._check_arguments()
        if env is not None:
            venv = cls._wrap_env(env)
            model.n_envs = venv.num_envs
            model.set_env(venv, force_reset)
        return model

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer"], []

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "eval_env"]
