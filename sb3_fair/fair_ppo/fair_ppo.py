"""FairPPO: PPO with penalties for unequal returns of the groups of agents in a world."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.connection import reward_scale
from sb3_fair.common.extra_critic import gae
from sb3_fair.common.fairness_ppo import FairnessPPO
from sb3_fair.fair_ppo.buffer import BONUS, PenaltyDictRolloutBuffer, PenaltyRolloutBuffer, normalized
from sb3_fair.fair_ppo.coefficient import Coefficient
from sb3_fair.fair_ppo.labels import GroupFunction, Labels, Meetings, Mode
from sb3_fair.fair_ppo.penalty_critic import PenaltyCritic
from sb3_fair.fair_ppo.policies import GroupedActorCriticPolicy
from sb3_fair.fair_ppo.prospective import advantage_clip, state_cost, value_disparity
from sb3_fair.fair_ppo.retrospective import Retro, Retrospective
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.disparity.populations import Disparity, Population
from sb3_fair.fairness.warning import warn
from sb3_fair.wrappers.labels import Numbers
from sb3_fair.wrappers.observations import steps_of

Prosp: TypeAlias = Literal["state_cost", "advantage_clip"]
COSINE_EVERY = 10
"""Updates between two looks at the gradient of the actor."""
COSINE_STEPS = 4096
"""Transitions that one looks at, about."""


@checked
class FairPPO(FairnessPPO):
    """PPO with a penalty for the disparity of an agent's world: of past rewards and of expected rewards of the groups.

    ::

        venv = HarvestVecEnv(8, seed=0)
        model = FairPPO("GroupedPolicy", venv, alpha=1.0, policy_kwargs={"group_index": 2}, seed=0).learn(3_000_000)

    Paper: La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy Optimization" (arXiv 2502.03953),
    which adds lambda * (alpha * D_retro + beta * D_prosp) to the loss. D_retro is a disparity of past rewards and
    D_prosp one of the critic's values. Neither depends on the actor's parameters, so this term has no gradient for the
    actor. Here every agent maximises its own return minus the *expected* penalty of its world, by the policy gradient::

        E[return] - lambda * (alpha * E[D_retro] + beta * E[D_prosp])

    In a population, one unit of an agent's own reward changes D by at most one unit. At lambda * alpha = 1, the penalty
    cancels any gain of an agent of the better-off group, and a gain of an agent of the other group counts twice. With
    alpha = beta = 0, the numbers are exactly those of SB3's PPO, and a warning says so.

    :class:`~sb3_fair.fair_ppo.labels.Labels` says where group labels come from,
    :mod:`~sb3_fair.fair_ppo.retrospective` and :mod:`~sb3_fair.fair_ppo.prospective` what the penalties are. Penalties
    are discounted like rewards, so their discounted sum over an episode is not exactly minus the disparity;
    ``penalty_gamma=1`` weights all steps equally. The page on fair-PPO lists the logs under ``fair/``.

    :param policy: ``"GroupedPolicy"`` (separate networks for each group), ``"MlpPolicy"``, ``"CnnPolicy"``,
        ``"MultiInputPolicy"``, or a class
    :param env: a VecEnv with one slot per agent, or any environment whose infos have a group; a registered ID, a
        Gymnasium env or a VecEnv
    (The arguments of PPO.)
    :param fairness: who is compared: ``"dp"`` (demographic parity) all members of two groups in a world, ``"csp"``
        (conditional statistical parity) those with the same legitimate factor, ``"cf"`` (counterfactual fairness) an
        agent and its twin in the other world
    :param alpha: weight of the disparity of past rewards
    :param beta: weight of the disparity of values
    :param lam: weight of both: a number; ``"auto"``: last loss / penalty, at most ``lam_max``; ``"dual"``: rises while
        D_norm is above ``lam_target`` and falls while it is below
    :param retro: the penalty for past rewards: ``"telescoped"``: the change of D in a step; ``"terminal"``: D at the
        end; ``"linear"``: the difference of the groups' mean rewards; ``"own_reweight"``: a share of the agent's own
        reward; ``"constant"``: none (the loss as printed in the paper; D is logged)
    :param prosp: the penalty for expected rewards: ``"state_cost"``: a cost of states with unequal values;
        ``"advantage_clip"``: lower advantages if D_norm is above ``threshold`` or grows there
    :param sign: ``"absolute"``, or ``"one_sided"``: only a lead of group 0 counts
    :param aggregate: ``"pairs"``, or ``"group_mean"``: differences inside the groups do not count
    :param tolerance: the disparity of past rewards that has no cost, as a share of what members of the world have so
        far, not negative. Agents learn to stop there only if they see how far their group is ahead, as with
        :class:`~sb3_fair.wrappers.VecStanding`. Logs have the whole disparity
    :param include_cross_lf: with ``"csp"``, whether those with different legitimate factors are compared too
    :param g: of ``"own_reweight"``: from rewards so far (``"running"``) or an average over episodes (``"episode"``)
    :param stream: ``"advantage"``: penalties have their own critic and advantages, and values remain expected returns;
        ``"reward"``: they are part of the reward
    :param penalty_gamma: discount factor of the penalties with ``"advantage"``; None: ``gamma``
    :param threshold: D_norm up to which ``"advantage_clip"`` has no effect
    :param lam_eta: step of ``"dual"``
    :param lam_target: D_norm that ``"dual"`` aims at
    :param lam_max: largest lambda of ``"auto"`` and ``"dual"``
    :param group_fn: of :class:`~sb3_fair.fair_ppo.labels.Labels`
    :param mode: of :class:`~sb3_fair.fair_ppo.labels.Labels`
    :param critic_kwargs: further arguments of the penalty critics (:class:`~sb3_fair.common.extra_critic.ExtraCritic`),
        e.g. ``{"hidden": (64, 64)}``
    :raises ValueError: if an argument is not allowed; in training, if labels are missing
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        **PPO.policy_aliases,
        "GroupedPolicy": GroupedActorCriticPolicy,
    }
    buffer_classes = (PenaltyRolloutBuffer, PenaltyDictRolloutBuffer)
    rollout_buffer: PenaltyRolloutBuffer

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
        fairness: Literal["dp", "csp", "cf"] = "dp",
        alpha: float = 0.0,
        beta: float = 0.0,
        lam: float | Literal["auto", "dual"] = 1.0,
        retro: Retro = "telescoped",
        prosp: Prosp = "state_cost",
        sign: Literal["absolute", "one_sided"] = "absolute",
        aggregate: Literal["pairs", "group_mean"] = "pairs",
        tolerance: float = 0.0,
        include_cross_lf: bool = False,
        g: Literal["running", "episode"] = "running",
        stream: Literal["advantage", "reward"] = "advantage",
        penalty_gamma: float | None = None,
        threshold: float = 0.05,
        lam_eta: float = 0.05,
        lam_target: float = 0.05,
        lam_max: float = 10.0,
        group_fn: GroupFunction | None = None,
        mode: Mode | None = None,
        critic_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(locals())
        self.fairness = fairness
        self.alpha = alpha
        self.beta = beta
        self.lam = lam
        self.retro = retro
        self.prosp = prosp
        self.sign = sign
        self.aggregate = aggregate
        self.tolerance = tolerance
        self.include_cross_lf = include_cross_lf
        self.g = g
        self.stream = stream
        self.penalty_gamma = penalty_gamma
        self.threshold = threshold
        self.lam_eta = lam_eta
        self.lam_target = lam_target
        self.lam_max = lam_max
        self.group_fn = group_fn
        self.mode = mode
        self.critic_kwargs = dict(critic_kwargs or {})
        self.labels: Labels | None = None
        self.penalised_rollouts = 0
        self.penalties: NDArray[np.float64] | None = None
        self._of_past: Any = None
        self._has_critic: bool | None = None
        self._meetings = Meetings()
        self._label_numbers: Numbers = {}
        self._last_loss: float | None = None
        self._populations: list[Population] = []
        if _init_setup_model:
            self._setup_model()
            if not self.acts:
                warn(
                    "alpha and beta are 0: this is plain PPO, no disparity is penalised (it is logged where groups are "
                    "told); alpha=1 is a start",
                )

    # ---------------------------------------------------------------- set up

    def _setup_model(self) -> None:
        super()._setup_model()
        self.penalty_critic: PenaltyCritic | None = None
        if self._has_critic is None:  # a loaded one knows
            pays = (self.alpha > 0 and self.retro != "constant") or (self.beta > 0 and self.prosp == "state_cost")
            self._has_critic = pays and self.stream == "advantage"
        if self._has_critic:
            self._build_critic()

    def _check_arguments(self) -> None:
        """Checks the settings and builds what they say anew; what was learned stays where they did not change."""
        super()._check_arguments()
        if self.beta > 0 and self.prosp == "state_cost" and self.gamma == 1:
            raise ValueError("gamma must be below 1 for prosp='state_cost', whose penalty has the factor 1 - gamma")
        self.disparity = Disparity(self.fairness, self.include_cross_lf, self.sign, self.aggregate)
        of_past = self.retro, self.disparity, self.g, self.tolerance
        if self._of_past != of_past:
            self._of_past, self.retrospective = of_past, Retrospective(*of_past)
        coefficient = Coefficient(self.alpha, self.beta, self.lam, self.lam_eta, self.lam_target, self.lam_max)
        coefficient.go_on(getattr(self, "coefficient", coefficient))
        self.coefficient = coefficient

    def _build_critic(self) -> PenaltyCritic:
        policy = self.policy
        n_groups = len(policy.networks) if isinstance(policy, GroupedActorCriticPolicy) else 1
        settings = {"seed": self.seed, "device": self.device, **self.critic_kwargs}
        self.penalty_critic = PenaltyCritic(self.observation_space, n_groups, self._groups, **settings)
        self._has_critic = True
        return self.penalty_critic

    def _groups(self, obs: Any) -> NDArray[np.int64]:
        assert isinstance(self.policy, GroupedActorCriticPolicy)
        groups: NDArray[np.int64] = self.policy.groups(obs_as_tensor(obs, self.device)).cpu().numpy()
        return groups

    def _extra_critics(self) -> list[str]:
        members = () if self.penalty_critic is None else range(len(self.penalty_critic.members))
        return [f"penalty_critic.members.{index}" for index in members]

    def _excluded_save_params(self) -> list[str]:
        return [
            *super()._excluded_save_params(),
            "labels",
            "penalty_critic",
            "_meetings",
            "_populations",
            "_shown",
            "penalties",
        ]

    # ---------------------------------------------------------------- learning

    @property
    def acts(self) -> bool:
        """Whether anything but PPO's loss is asked for."""
        return self.alpha > 0 or self.beta > 0

    def _end_training(self) -> None:
        if self.acts and self.labels is not None:
            self._meetings.warn(self.labels)

    def _begin_training(self, restarts: bool) -> None:
        if restarts or self.labels is None:
            assert self.env is not None
            self.labels = Labels(self.env, self.group_fn, self.mode, self._label_numbers)
        if restarts:
            self.retrospective.restart()

    def _train_on(self, venv: VecEnv) -> None:
        super()._train_on(venv)
        self.labels = None

    def _begin_rollout(self) -> AbstractContextManager[Any]:
        self._populations = []
        self.penalties = None
        self._shown = self._original_obs()
        self.watched.rounds = self.acts
        return nullcontext()

    def _original_obs(self) -> Any:
        """The last observations as they were before VecNormalize, which ``group_fn`` gets; None: as they are."""
        normalizer = self._vec_normalize_env
        return None if self.group_fn is None or normalizer is None else normalizer.get_original_obs()

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[np.bool_] | None = None) -> None:
        super()._update_info_buffer(infos, dones)
        if self.labels is None or dones is None:
            return
        shown = self._last_obs if self._shown is None else self._shown
        self._shown = self._original_obs()
        try:
            self._populations.append(self.labels.at(infos, shown, dones))
        except ValueError as error:
            self._do_without(error)
            return
        self.rollout_buffer.note(reward=self._rewards(), reward_scale=reward_scale(self._vec_normalize_env), done=dones)
        self.rollout_buffer.note_truncations(infos, dones)

    def _do_without(self, error: ValueError) -> None:
        """Goes on without labels if they were for the logs alone."""
        if self.acts:
            raise error
        self.labels = None

    def _end_rollout(self) -> None:
        """Prices the steps of a full rollout: r -> r + F, or A -> A + A_F."""
        if self.labels is None:
            return
        buffer, streaming, carries = self.rollout_buffer, self.labels.streaming, self.labels.carries
        rewards, scale = buffer.columns["reward"], buffer.columns["reward_scale"]
        dones = buffer.columns["done"] > 0
        try:
            penalties = self.retrospective(rewards, self._populations, dones, streaming, carries)
            past, apart = self.retrospective.past, self.retrospective.apart
            worth = value_disparity(
                buffer.values / scale, self._populations, self.disparity, self.retrospective.scale, streaming, apart
            )
        except ValueError as error:
            self._do_without(error)
            return
        if self.acts:
            self._meetings.note(self._populations, self.labels, self.disparity)
        expected, normalised = worth.means()
        self.coefficient.update(past.normalised, normalised, self._last_loss)
        self.logger.record("fair/D_retro", past.disparity)
        self.logger.record("fair/D_norm", past.normalised)
        self.logger.record("fair/D_prosp", expected)
        self.logger.record("fair/lambda", self.coefficient.value)
        for group, mean in past.returns.items():
            self.logger.record(f"fair/return_{self.labels.name(group)}", mean)
        pays = 0.0 if self.retro == "constant" else self.coefficient.retrospective
        expects = self.coefficient.prospective
        penalties = pays * (-penalties * rewards if self.retrospective.reweights else penalties)
        if expects and self.prosp == "state_cost":
            penalties += expects * state_cost(worth.disparity, self.gamma)
            pays += expects
        if expects and self.prosp == "advantage_clip":
            last = None
            if not (streaming or apart):  # who comes next in a stream is not known, nor others' values at one point
                values = self._last_values().cpu().numpy().reshape(1, -1) / scale[-1]
                last = value_disparity(values, self._populations[-1:], self.disparity, self.retrospective.scale)
                last = last.normalised[0]
            buffer.columns[BONUS] = expects * advantage_clip(worth.normalised, dones, last, self.threshold)
        if pays:
            self._charge(penalties * scale)

    def _charge(self, penalties: NDArray[np.float64]) -> None:
        """Lets penalty rewards (T, n_envs), in units of the rewards in the buffer, into rewards or advantages."""
        buffer = self.rollout_buffer
        if self.stream == "reward":
            ends: Any = self._last_episode_starts
            buffer.rewards += penalties.astype(np.float32)
            RolloutBuffer.compute_returns_and_advantage(buffer, self._last_values(), ends)
            nothing, starts = np.zeros_like(penalties), buffer.episode_starts
            self.penalties = gae(penalties, nothing, nothing[0], ends, starts, self.gamma, self.gae_lambda)
            return
        critic = self.penalty_critic or self._build_critic()
        gamma = self.gamma if self.penalty_gamma is None else self.penalty_gamma
        self.penalties = self._judge(critic, penalties, gamma).advantages
        buffer.advantages += self.penalties.astype(np.float32)

    @th.no_grad()
    def _last_values(self) -> th.Tensor:
        """Of the observations after the rollout, (n_envs, 1)."""
        observations: Any = self._last_obs
        return self.policy.predict_values(obs_as_tensor(observations, self.device))

    def train(self) -> None:
        """Updates the policy with the last rollout."""
        buffer = self.rollout_buffer
        bonus = BONUS in buffer.columns
        if bonus or self.penalties is not None:
            self._record_penalties()
        normalizes = buffer.normalizes = self.normalize_advantage
        self.normalize_advantage = normalizes and not bonus
        try:
            super().train()
        finally:
            self.normalize_advantage = normalizes
        logs = self.logger.name_to_value
        self._last_loss = (
            logs["train/policy_gradient_loss"]
            + self.ent_coef * logs["train/entropy_loss"]
            + self.vf_coef * logs["train/value_loss"]
        )

    def _record_penalties(self) -> None:
        """What of the advantages is due to penalties, and how far they turn the actor's gradient."""
        buffer = self.rollout_buffer
        paid: Any = 0.0 if self.penalties is None else self.penalties
        whole = th.as_tensor(buffer.advantages, device=self.device)
        plain = th.as_tensor(buffer.advantages - paid, device=self.device, dtype=whole.dtype)
        if self.normalize_advantage:
            plain, whole = (plain - plain.mean()) / (whole.std() + 1e-8), normalized(whole.flatten()).view_as(whole)
        if BONUS in buffer.columns:
            whole = whole + th.as_tensor(buffer.columns[BONUS], device=self.device, dtype=whole.dtype)
        due = (whole - plain).var()
        self.logger.record("fair/penalty_share", float(due / (due + plain.var() + 1e-12)))
        if self.penalised_rollouts % COSINE_EVERY == 0:
            self.logger.record("fair/actor_cosine", self._cosine(plain, whole))
        self.penalised_rollouts += 1

    def _cosine(self, plain: th.Tensor, whole: th.Tensor) -> float:
        """Cosine between the actor's gradients of two kinds of advantages (T, n)."""
        buffer = self.rollout_buffer
        n_steps = min(max(COSINE_STEPS // self.n_envs, 1), buffer.buffer_size)
        steps = np.linspace(0, buffer.buffer_size - 1, n_steps).astype(np.int64)
        actions = th.as_tensor(
            buffer.actions[steps].reshape(-1, buffer.action_dim).astype(np.float32), device=self.device
        )
        if isinstance(self.action_space, spaces.Discrete):
            actions = actions.long().flatten()
        self.policy.set_training_mode(False)
        observations = obs_as_tensor(steps_of(buffer.observations, steps), self.device)
        kinds = plain[steps].flatten(), whole[steps].flatten()
        without, within = actor_gradients(self.policy, observations, actions, *kinds)
        return float(th.cosine_similarity(without, within, dim=0))


def actor_gradients(
    policy: ActorCriticPolicy, observations: Any, actions: th.Tensor, *advantages: th.Tensor
) -> list[th.Tensor]:
    """Gradients of mean(A log pi) by all parameters of the actor, flat, one for every kind of ``advantages`` A (n,).

    It is that of PPO's objective as long as the policy is still the one that acted.

    :param observations: a batch of tensors, (n, ...)
    :param actions: (n, ...), as ``evaluate_actions`` wants them
    """
    _, log_prob, _ = policy.evaluate_actions(observations, actions)
    parameters = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    return [
        th.cat([
            gradient.flatten()
            for gradient in th.autograd.grad((kind * log_prob).mean(), parameters, retain_graph=True, allow_unused=True)
            if gradient is not None
        ])
        for kind in advantages
    ]  # fmt: skip
