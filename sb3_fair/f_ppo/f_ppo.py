"""FPPO: PPO with action massaging and advantage regularisation (F-PPO); A-PPO is a setting of it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.columns import figure
from sb3_fair.common.connection import reward_scale
from sb3_fair.common.episode_figures import EpisodeFigures
from sb3_fair.common.extra_critic import ExtraCritic
from sb3_fair.common.fairness_ppo import FairnessPPO
from sb3_fair.f_ppo.buffer import BASELINE_RATE, FairDictRolloutBuffer, FairRolloutBuffer
from sb3_fair.f_ppo.constrained import ascended, lagrangian
from sb3_fair.f_ppo.long_run import LongRunCredit
from sb3_fair.f_ppo.massaging import massage as massaged
from sb3_fair.f_ppo.regulariser import Columns, Scaling, regulariser
from sb3_fair.fairness.arguments import check, checked
from sb3_fair.fairness.disparity.measures import Measures, keys_of
from sb3_fair.wrappers.choices import Choices, compares_chances
from sb3_fair.wrappers.coming import MASSAGE, VecComing, coming, first, told
from sb3_fair.wrappers.disparity import measured
from sb3_fair.wrappers.infos import Record
from sb3_fair.wrappers.layer import attribute

SelfFPPO = TypeVar("SelfFPPO", bound="FPPO")
Threshold: TypeAlias = float | Callable[[int], float]
NOTED = {"changed": "changed_fraction", "candidates": "candidate_fraction", "gain": "d_s_gain"}
"""What is kept of a filtered step -> its name in logs."""
REGULARISER = ("reg_lambda", "delta", "scaling", "minmax_weights", "beta1", "beta2", "omega")
"""Settings that the rollout buffer passes on to ``regularise_advantages``."""
WEIGHTS = ("reg_lambda", "minmax_weights", "beta1", "beta2")
CRITICS: Mapping[str, Mapping[str, Any]] = {"baseline": {"learning_rate": BASELINE_RATE}, "cost_critic": {}}
"""Extra critics -> their arguments."""


@checked
class FPPO(FairnessPPO):
    """PPO whose decisions are fair now while the groups' futures converge, at a small price in reward.

    Paper: "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning" (arXiv 2401.06318).
    *Action massaging* swaps a sampled action for a fairer one when the policy is nearly indifferent between the two.
    *Advantage regularisation* rewards actions that bring the groups closer while decisions are fair, and punishes those
    that drive them apart while decisions are unfair.

    ::

        model = FPPO("MlpPolicy", "sb3_fair/Lending-v0", reg_lambda=45, ent_coef=0.05, seed=0).learn(700_000)
        evaluate_policy(model, env)                      # the policy alone
        model.massage_on_predict = True
        evaluate_policy(model, model.bind(env))          # the policy and the filter, which sees what env publishes

    With ``massage=False, reg_lambda=0`` its numbers are exactly those of SB3's PPO. :meth:`f_ppo_l`, :meth:`f_ppo_s`
    and :meth:`a_ppo` are variants. SB3's arguments have SB3's meaning and defaults.

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"``, ``"MultiInputPolicy"``, or a class
    :param env: an environment with short- and long-term measures, or any fairness MDP with Discrete actions and a group
        label, whose demographic parity is measured then; a registered ID, a Gymnasium env or a VecEnv
    (The arguments of PPO.)
    :param reg_lambda: weight of the regulariser; 0: off
    :param delta: largest short-term disparity that the regulariser calls fair
    :param scaling: ``"none"``, ``"std"`` or ``"minmax"``: what the weights are relative to, see
        :func:`~sb3_fair.f_ppo.regulariser.regularise_advantages`
    :param minmax_weights: of the regulariser's penalty and bonus with ``"minmax"``; None: ``reg_lambda`` for both
    :param massage: whether the filter acts in training
    :param massage_threshold: tau in [0, 1], how far apart two probabilities may be for one action to replace the other;
        a number or a function of the iteration (rollouts so far); None: the environment's
    :param schedule_unit: ``"iteration"``: an iteration is a rollout; ``"timesteps"``: it is ``schedule_steps`` steps of
        all environments together, so that a schedule does not depend on ``n_envs``
    :param schedule_steps: steps of all environments together in an iteration with ``"timesteps"``
    :param massage_on_predict: whether the filter acts in :meth:`predict` too, with the last threshold of training
    :param beta1: A-PPO's weight of short-term disparity above ``omega``
    :param beta2: A-PPO's weight of its growth
    :param omega: largest short-term disparity that A-PPO calls fair
    :param measures: of short- and long-term disparity; None: the environment's
    :param reg_credit: ``"step"``: the paper's regulariser, about one step; ``"return"``, ``"uplift"``: the long-term
        effect on the groups, or on those behind, see :class:`~sb3_fair.f_ppo.long_run.LongRunCredit`; these need an
        environment made with ``detail=True``
    :param reg_gamma: discount factor of the long-run credit
    :param massage_start: share of the training before the filter starts
    :param massage_credit: the action from which PPO learns if the filter replaced one: ``"executed"``: the fairer
        action, as if it had been drawn (the paper); ``"sampled"``: the drawn one, so that the filter counts as part of
        the environment
    :param cost_limit: largest mean short-term disparity of a step, which a Lagrange multiplier holds as in
        :class:`~sb3_fair.f_ppo.constrained.PPOLagrangian`; None: no limit
    :param reward_floor: smallest mean reward of a step, against levelling down: a second multiplier m divides
        all weights of disparities, the limit's multiplier included, by 1 + m; None: no floor
    :param multiplier_lr: how much the dual variables move per rollout and unit beyond a limit
    :param multiplier_damping: how much multipliers respond to the last rollout alone
    :param max_multiplier: largest multiplier
    :raises ValueError: if an argument is not allowed, or nothing tells how unfair the environment is
    """

    buffer_classes = (FairRolloutBuffer, FairDictRolloutBuffer)
    rollout_buffer: FairRolloutBuffer

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str | None,
        learning_rate: float | Schedule = 3e-4,
        n_steps: int = 2048,
        batch_size: int = 64,
        n_epochs: int = 10,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        clip_range: float | Schedule = 0.2,
        clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool = True,
        ent_coef: float = 0.0,
        vf_coef: float = 0.5,
        max_grad_norm: float = 0.5,
        use_sde: bool = False,
        sde_sample_freq: int = -1,
        rollout_buffer_class: type[RolloutBuffer] | None = None,
        rollout_buffer_kwargs: dict[str, Any] | None = None,
        target_kl: float | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
        *,
        reg_lambda: float = 1.0,
        delta: float = 0.05,
        scaling: Scaling = "none",
        minmax_weights: tuple[float, float] | None = None,
        massage: bool = True,
        massage_threshold: Threshold | None = None,
        schedule_unit: Literal["iteration", "timesteps"] = "iteration",
        schedule_steps: int = 2048,
        massage_on_predict: bool = False,
        beta1: float = 0.0,
        beta2: float = 0.0,
        omega: float = 0.05,
        measures: Measures | None = None,
        reg_credit: Literal["step", "return", "uplift"] = "step",
        reg_gamma: float = 0.9995,
        massage_start: float = 0.0,
        massage_credit: Literal["executed", "sampled"] = "executed",
        cost_limit: float | None = None,
        reward_floor: float | None = None,
        multiplier_lr: float = 1.0,
        multiplier_damping: float = 5.0,
        max_multiplier: float = 10.0,
    ) -> None:
        super().__init__(locals())
        self.reg_lambda = reg_lambda
        self.delta = delta
        self.scaling: Scaling = scaling
        self.minmax_weights = minmax_weights
        self.massage = massage
        self.massage_threshold = massage_threshold
        self.schedule_unit = schedule_unit
        self.schedule_steps = schedule_steps
        self.massage_on_predict = massage_on_predict
        self.beta1 = beta1
        self.beta2 = beta2
        self.omega = omega
        self.reg_credit = reg_credit
        self.reg_gamma = reg_gamma
        self.massage_start = massage_start
        self.massage_credit = massage_credit
        self.cost_limit = cost_limit
        self.reward_floor = reward_floor
        self.multiplier_lr = multiplier_lr
        self.multiplier_damping = multiplier_damping
        self.max_multiplier = max_multiplier
        self.duals = {"cost": 0.0, "floor": 0.0}
        self.multipliers = dict(self.duals)
        self.long_run: LongRunCredit | None = None
        self.given_measures = measures
        self.measures: Any = measures
        self.iteration = 0
        self.threshold: float | None = None
        self._coming: Record | None = None
        self._bound: VecComing | None = None
        self._massage_seconds = 0.0
        if _init_setup_model:
            self._setup_model()

    @classmethod
    def f_ppo_l(cls: type[SelfFPPO], policy: Any, env: Any, **settings: Any) -> SelfFPPO:
        """F-PPO-L: the long-term half, regularisation without massaging."""
        return cls(policy, env, massage=False, **settings)

    @classmethod
    def f_ppo_s(cls: type[SelfFPPO], policy: Any, env: Any, **settings: Any) -> SelfFPPO:
        """F-PPO-S: the short-term half, massaging without regularisation."""
        return cls(policy, env, reg_lambda=0.0, **settings)

    @classmethod
    def a_ppo(
        cls: type[SelfFPPO], policy: Any, env: Any, *, beta1: float = 0.25, beta2: float = 0.25, **settings: Any
    ) -> SelfFPPO:
        """A-PPO (Yu et al., "Policy Optimization with Advantage Regularization for Long-Term Fairness in Decision
        Systems", NeurIPS 2022): advantages are lowered where decisions are unfair and where they become more so.

        :param settings: further arguments of the constructor; ``scaling`` is ``"minmax"`` unless given, as the weights
            of the paper are for terms that are stretched to [0, 1] in every minibatch
        """
        settings = {"scaling": "minmax", **settings}
        return cls(policy, env, massage=False, reg_lambda=0.0, beta1=beta1, beta2=beta2, **settings)

    # ---------------------------------------------------------------- set up

    def _setup_model(self) -> None:
        super()._setup_model()
        needed = {"baseline": self.reg_credit == "uplift", "cost_critic": self.cost_limit is not None}
        names = vars(self).get("_critics", [name for name, used in needed.items() if used])
        self._critics: list[str] = []
        for name in names:  # of a loaded model those in its file, whatever its settings are now
            self._critic(name)

    def _critic(self, name: str) -> ExtraCritic:
        """The extra critic of that name, which is built when it is first asked for."""
        if name not in self._critics:
            critic = ExtraCritic(self.observation_space, seed=self.seed, device=self.device, **CRITICS[name])
            setattr(self, name, critic)
            self._critics.append(name)
        found: ExtraCritic = getattr(self, name)
        return found

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.reg_credit != "step" and self.scaling == "minmax":
            raise ValueError(f"scaling must be 'none' or 'std' with reg_credit={self.reg_credit!r}, got 'minmax'")
        if (self.massage or self.massage_on_predict) and not _massageable(self.action_space):
            raise ValueError(
                "massage and massage_on_predict must be False unless actions are Discrete, Box, or MultiDiscrete of "
                f"equal parts, got {self.action_space}"
            )

    def _layered(self, venv: VecEnv) -> VecEnv:
        return measured(venv, self.given_measures)

    def _train_on(self, venv: VecEnv) -> None:
        super()._train_on(venv)
        self.measures = self.given_measures or attribute(venv, "fairness_spec").measures
        if self.threshold is None:
            self.threshold = self._threshold_now()

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_bound"]

    def _extra_critics(self) -> list[str]:
        return self._critics

    @classmethod
    def load(cls: type[SelfFPPO], path: Any, env: GymEnv | None = None, *others: Any, **kwargs: Any) -> SelfFPPO:
        """A model from a file, with settings changed by keywords; see SB3's ``load``."""
        if "measures" in kwargs:
            kwargs["given_measures"] = kwargs["measures"]
        return super().load(path, env, *others, **kwargs)

    # ---------------------------------------------------------------- learning

    def _begin_training(self, restarts: bool) -> None:
        if self.num_timesteps == 0 or not hasattr(self, "figures"):
            self.figures = EpisodeFigures(self._stats_window_size)
        if self.num_timesteps == 0:
            self.iteration = 0
        if restarts:
            assert self.env is not None
            self._coming = first(self.env)

    def _begin_rollout(self) -> AbstractContextManager[Any]:
        self.threshold = self._threshold_now()
        weights = {name: getattr(self, name) for name in REGULARISER}
        if self._relief > 1:
            weights |= {name: np.divide(weights[name], self._relief) for name in WEIGHTS if weights[name] is not None}
        self.rollout_buffer.regulariser = weights
        if self.massage:
            self._before_decisions()
        filters = self.massage and self.threshold > 0
        self._begin_credit()
        self.watched.rounds = self.reward_floor is not None
        self._massage_seconds = 0.0
        self._began = perf_counter()
        return self.policy.register_forward_hook(self._filter) if filters else nullcontext()

    def _before_decisions(self) -> Record:
        """What the filter may know before the coming decisions of the training."""
        if self._coming is None:
            raise ValueError(f"massage must be False for an environment that publishes no info[{MASSAGE!r}], got True")
        return self._coming

    @property
    def _relief(self) -> float:
        """What weights of disparities are divided by, so that rewards rise to their floor."""
        return 1.0 if self.reward_floor is None else 1 + self.multipliers["floor"]

    def _begin_credit(self) -> None:
        """Prepares the credit of the settings, whose critic goes on if they are those that it learned with."""
        settings = self.reg_gamma, self.reg_credit == "uplift"
        if self.reg_credit == "step":
            self.long_run = None
        elif self.long_run is None or (self.long_run.critic.gamma, self.long_run.uplift) != settings:
            self.long_run = LongRunCredit(*settings)
        else:
            self.long_run.begin()
        self.rollout_buffer.long_run = self.long_run
        self.rollout_buffer.baseline = self._critic("baseline") if self.reg_credit == "uplift" else None

    def _threshold_now(self) -> float:
        if self.num_timesteps / max(self._total_timesteps, 1) < self.massage_start:
            return 0.0
        by_timesteps = self.schedule_unit == "timesteps"
        iteration = self.num_timesteps // self.schedule_steps if by_timesteps else self.iteration
        given = self.measures.threshold if self.massage_threshold is None else self.massage_threshold
        threshold = given(iteration) if callable(given) else given
        check("massage_threshold", threshold, float)
        return float(threshold)

    def _filter(self, policy: ActorCriticPolicy, inputs: Any, outputs: tuple[th.Tensor, ...]) -> tuple[th.Tensor, ...]:
        """Puts fairer actions in the place of sampled ones, for PPO with their log-probabilities.

        A callback may ask the policy, too. After a step, or for another number of copies, it gets what was sampled.
        What it asks for before a step is filtered, and the actions that are carried out take its place in the notes.
        """
        if self.watched.stepped or len(outputs[0]) != self.n_envs:
            return outputs
        begin = perf_counter()
        actions, values, log_probs = outputs
        assert self.threshold is not None
        record, drawn = self._before_decisions(), self._executed(actions.cpu().numpy())
        filtered = massaged(self.measures, record, drawn, self._probabilities(), self.threshold)
        self.rollout_buffer.note(**{name: getattr(filtered, name) for name in NOTED})
        if self.watched.chances is not None:
            after = self._after_filter(record, self.threshold)
            self.watched.chances = lambda: after
        if self.massage_credit == "sampled":
            self.watched.instead = filtered.actions
        elif filtered.changed.any():
            fairer = th.as_tensor(self._as_given(filtered.actions)).to(actions)
            flat = fairer if isinstance(self.action_space, spaces.Discrete) else fairer.flatten(1)
            changed = th.as_tensor(filtered.changed, device=actions.device)
            log_probs = th.where(changed, policy.action_dist.log_prob(flat), log_probs)
            actions = th.where(changed.reshape(-1, *[1] * (actions.dim() - 1)), fairer, actions)
        self._massage_seconds += perf_counter() - begin
        return actions, values, log_probs

    def _after_filter(self, record: Mapping[str, Any], threshold: float) -> NDArray[np.float64] | None:
        """How probable each discrete action is once the filter has replaced what it replaces, (n, n_actions).

        None for actions with parts, which the filter replaces together.
        """
        before = self._probabilities()
        if before is None or before.ndim > 2:
            return None
        after = np.zeros_like(before)
        for action, chances in enumerate(before.T):
            drawn = np.full(len(before), action)
            after[np.arange(len(before)), massaged(self.measures, record, drawn, before, threshold).actions] += chances
        return after

    def _executed(self, actions: NDArray[Any]) -> NDArray[Any]:
        """What the environment is given for sampled actions."""
        if not isinstance(self.action_space, spaces.Box):
            return actions
        if self.policy.squash_output:
            return self.policy.unscale_action(actions)
        return np.clip(actions, self.action_space.low, self.action_space.high)

    def _as_given(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The actions of the policy for which the environment is given these."""
        squashed = isinstance(self.action_space, spaces.Box) and self.policy.squash_output
        return self.policy.scale_action(actions) if squashed else actions

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[np.bool_] | None = None) -> None:
        super()._update_info_buffer(infos, dones)
        assert dones is not None and self.env is not None
        told = keys_of(self.measures)
        try:
            self.rollout_buffer.note(
                **{name: figure(infos, key) for name, key in zip(Columns._fields, told, strict=True)}
            )
        except KeyError as error:
            raise ValueError(f"env must publish {told} in info['fairness'], but does not publish {error}") from error
        self.figures.add(infos, dones)
        if self.reward_floor is not None:
            self.rollout_buffer.note(reward=self._rewards())
        if self.cost_limit is not None:
            self.rollout_buffer.note_truncations(infos, dones)
        if self.long_run is not None and self.rollout_buffer.regulariser["reg_lambda"]:
            self.long_run.note(infos, dones)
        if self.massage:
            begin = perf_counter()
            self._coming = coming(self.env, infos, dones)
            self.watched.stepped = False
            self._massage_seconds += perf_counter() - begin

    def _end_rollout(self) -> None:
        seconds = perf_counter() - self._began
        buffer, columns = self.rollout_buffer, self.rollout_buffer.columns
        buffer.reward_scale = reward_scale(self._vec_normalize_env)
        of_rewards = buffer.advantages
        buffer.reshape_advantages()
        if self.cost_limit is not None:
            costs = np.nan_to_num(columns["d_s"])
            multiplier = self._follow("cost", float(costs.mean()) - self.cost_limit) / self._relief
            harm = self._judge(self._critic("cost_critic"), costs, self.gamma).advantages
            buffer.advantages = lagrangian(buffer.advantages, harm, multiplier)
            of_rewards = of_rewards / (1 + multiplier)
        if self.reward_floor is not None:
            self._follow("floor", self.reward_floor - float(columns["reward"].mean()))
        seen = columns["d_s"] + columns.get("gain", 0.0)  # the filter may be what keeps it at 0
        self._warn_of_zeros(self.measures.short_term, seen)
        if self.massage:
            for name, title in NOTED.items():
                self.logger.record(f"massage/{title}", float(columns[name].mean()) if name in columns else 0.0)
            self.logger.record("massage/threshold", self.threshold)
        self.figures.record(self.logger)
        for name in ("d_s", "d_l"):
            self.logger.record(f"fairness/{name}", float(columns[name].mean()))
        credit = self.rollout_buffer.credit
        bonus = regulariser(self.rollout_buffer.disparities(), self.delta) if credit is None else credit
        self.logger.record("train/reg_mean", float(bonus.mean()))
        self.logger.record("train/reg_nonzero_fraction", float((bonus != 0).mean()))
        if self.scaling == "none":  # otherwise weights are relative
            spread = max(float(buffer.advantages.std()), float(np.finfo(np.float32).tiny))
            self.logger.record("train/reg_share", float((buffer.advantages - of_rewards).std()) / spread)
        self.logger.record("time/env", self.watched.seconds)
        self.logger.record("time/massage", self._massage_seconds)
        self.logger.record("time/policy", seconds - self.watched.seconds - self._massage_seconds)

    def _follow(self, limit: str, excess: float) -> float:
        """The multiplier of a limit after a rollout that is ``excess`` beyond it."""
        rates = self.multiplier_lr, self.multiplier_damping, self.max_multiplier
        self.duals[limit], self.multipliers[limit] = ascended(self.duals[limit], excess, *rates)
        self.logger.record(f"{limit}/excess", excess)
        self.logger.record(f"{limit}/multiplier", self.multipliers[limit])
        return self.multipliers[limit]

    def train(self) -> None:
        """Updates the policy with the last rollout."""
        begin = perf_counter()
        super().train()
        self.logger.record("time/update", perf_counter() - begin)
        self.iteration += 1

    # ---------------------------------------------------------------- acting

    def bind(self, env: GymEnv) -> VecEnv:
        """``env``, which from now on tells the filter in :meth:`predict` what it may know before a decision.

        :param env: a Gymnasium env or a VecEnv; observations given to :meth:`predict` come from the one returned
        """
        venv = self._layered(self._wrap_env(env, self.verbose))
        self._bound = venv if isinstance(venv, VecComing) else VecComing(venv)
        return self._bound

    follow = bind

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        *,
        infos: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Actions for observations; with ``massage_on_predict`` the filter's.

        :param infos: with ``massage_on_predict``, of the steps, or resets, that gave the observations; None: those of
            the environment that :meth:`bind` returned
        :raises ValueError: if the filter has nothing to go by
        """
        actions, state = super().predict(observation, state, episode_start, deterministic)
        if not self.massage_on_predict:
            return actions, state
        batch = actions.reshape(-1, *self.action_space.shape)  # type: ignore[misc]
        record = self._known(infos)
        sizes = {len(batch), *(len(value) for value in record.values())}
        if len(sizes) > 1:
            raise ValueError(
                f"observation must have one row per copy of the environment bound, or per info, got {sorted(sizes)}"
            )
        threshold = self.threshold or 0.0
        fairer = massaged(self.measures, record, batch, self._probabilities(), threshold).actions.reshape(actions.shape)
        if self._bound is not None and infos is None:
            self._bound.changed = (fairer != actions).reshape(len(batch), -1).any(axis=1)
        compared = self._bound is not None and compares_chances(self._bound)
        after = self._after_filter(record, threshold) if compared else None
        return fairer if after is None else Choices(fairer, after.reshape(*actions.shape, -1)), state

    def _known(self, infos: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> Record:
        """What the filter may know before the decisions that are asked for."""
        if infos is not None:
            record = told([infos] if isinstance(infos, Mapping) else infos)
            if record is None:
                raise ValueError(f"infos must have {MASSAGE!r}, each of them, got {infos!r}")
            return record
        if self._bound is None:
            raise ValueError(
                "massage_on_predict needs what the environment publishes before a decision: act in the environment "
                "that model.bind(env) returns, or call predict(..., infos=infos)"
            )
        if self._bound.coming is None:
            raise ValueError(
                f"the environment bound must have been reset and publish info[{MASSAGE!r}]: act in the environment "
                "that model.bind(env) returned"
            )
        return self._bound.coming


def _massageable(space: spaces.Space) -> bool:
    """Do actions have probabilities, or the measures a rule of their own, to compare them by?"""
    if isinstance(space, spaces.MultiDiscrete):
        return space.nvec.ndim == 1 and len(set(space.nvec.tolist())) == 1
    return isinstance(space, (spaces.Discrete, spaces.Box))
