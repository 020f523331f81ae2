"""PPOLagrangian: PPO with a Lagrange multiplier on the mean cost of a step."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch as th
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import explained_variance
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.columns import ColumnRolloutBuffer, figure
from sb3_fair.common.extra_critic import ExtraCritic
from sb3_fair.common.fairness_ppo import FairnessPPO
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.notions.table import NOTIONS
from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.wrappers.disparity import measured
from sb3_fair.wrappers.infos import figures_in
from sb3_fair.wrappers.layer import attribute

Cost: TypeAlias = str | Callable[[list[dict[str, Any]]], ArrayLike]


@checked
class PPOLagrangian(FairnessPPO):
    """PPO-Lagrangian: PPO with a multiplier on the mean cost of a step, the baseline that the F-PPO paper calls CPO.

    ::

        model = PPOLagrangian("MlpPolicy", "sb3_fair/AttentionAllocation-v0", cost_limit=0.05, seed=0).learn(500_000)
        model.cost_mean, model.constraint_met  # of the last rollout

    Constrained policy optimisation (Achiam et al., ICML 2017) asks for the largest return at an expected cost of at
    most a limit. Here PPO takes the steps and dual ascent finds the multiplier (Ray, Achiam, Amodei, "Benchmarking Safe
    Exploration in Deep Reinforcement Learning", 2019). After every rollout, with x the mean cost of a step less the
    limit::

        dual       <- dual + multiplier_lr * x
        multiplier  = dual + multiplier_damping * x         # both kept within [0, max_multiplier]

    Dual ascent alone swings around the limit; the second term damps it (Stooke, Achiam, Abbeel, "Responsive Safety in
    Reinforcement Learning by PID Lagrangian Methods", ICML 2020). The policy follows
    (A - multiplier * A_cost) / (1 + multiplier), A_cost with mean 0 and from a value network of its own. With
    ``max_multiplier=0`` its numbers are exactly those of SB3's PPO.

    The limit holds for the mean of the collected rollouts, not for each of them, and not if no policy meets it:
    ``constraint_met`` and ``cost/met`` in the logs tell. SB3's arguments have SB3's meaning and defaults.

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"``, ``"MultiInputPolicy"``, or a class
    :param env: an environment whose steps have a cost; a registered ID, a Gymnasium env or a VecEnv
    (The arguments of PPO.)
    :param cost: the cost of a step: the name of a figure in ``info["fairness"]`` (0 if it is undefined; of notions,
        which are negative, the size), or f(infos) -> finite numbers (n_envs,); None: the short-term disparity that the
        environment measures, or that of demographic parity if it measures none
    :param cost_limit: largest mean cost of a step
    :param multiplier_lr: how much the dual variable moves per rollout and unit of cost above the limit
    :param multiplier_damping: how much the multiplier responds to the last rollout alone; 0: plain dual ascent
    :param max_multiplier: largest multiplier; reached if the limit cannot be met
    :raises ValueError: if an argument is not allowed; if ``cost`` is None and the environment has no measures and
        cannot be given any
    """

    rollout_buffer: ColumnRolloutBuffer

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
        cost: Cost | None = None,
        cost_limit: float = 0.05,
        multiplier_lr: float = 1.0,
        multiplier_damping: float = 5.0,
        max_multiplier: float = 10.0,
    ) -> None:
        super().__init__(locals())
        self.cost = cost
        self.cost_limit = cost_limit
        self.multiplier_lr = multiplier_lr
        self.multiplier_damping = multiplier_damping
        self.max_multiplier = max_multiplier
        self.dual = 0.0
        self.multiplier = 0.0
        self.cost_mean: float | None = None
        self._measured = ""
        if _init_setup_model:
            self._setup_model()

    # ---------------------------------------------------------------- set up

    def _setup_model(self) -> None:
        super()._setup_model()
        self.cost_critic = ExtraCritic(self.observation_space, seed=self.seed, device=self.device)

    def _layered(self, venv: VecEnv) -> VecEnv:
        return measured(venv) if self.cost is None else venv

    def _train_on(self, venv: VecEnv) -> None:
        super()._train_on(venv)
        if self.cost is None:
            self._measured = attribute(venv, "fairness_spec").measures.short_term

    def _extra_critics(self) -> list[str]:
        return ["cost_critic"]

    # ---------------------------------------------------------------- learning

    @property
    def cost_source(self) -> Cost:
        """``cost``, or the name of the short-term disparity that the environment measures."""
        return self._measured if self.cost is None else self.cost

    @property
    def constraint_met(self) -> bool | None:
        """Whether the mean cost of a step in the last rollout was within the limit; None before the first."""
        return None if self.cost_mean is None else self.cost_mean <= self.cost_limit

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[np.bool_] | None = None) -> None:
        super()._update_info_buffer(infos, dones)
        if dones is not None:
            self.rollout_buffer.note(cost=self._costs(infos))
            self.rollout_buffer.note_truncations(infos, dones)

    def _costs(self, infos: list[dict[str, Any]]) -> NDArray[np.float64]:
        if not callable(self.cost_source):
            try:
                sign = -1.0 if self.cost_source.partition("@")[0] in NOTIONS else 1.0
                return np.nan_to_num(sign * figure(infos, self.cost_source))
            except KeyError:
                known, name = sorted(figures_in(infos[0])), self.cost_source
                raise ValueError(
                    f'cost must be a figure in info["fairness"], which has {known}, got {name!r}'
                    f"{did_you_mean(name, known)}"
                ) from None
        costs = np.asarray(self.cost_source(infos), dtype=np.float64)
        if costs.shape != (self.n_envs,) or not np.isfinite(costs).all():
            raise ValueError(f"cost must return {self.n_envs} finite numbers, one per copy, got {costs!r}")
        return costs

    def _end_rollout(self) -> None:
        """The multiplier moves, the cost changes the advantages, and the critic of the costs learns."""
        buffer, costs = self.rollout_buffer, self.rollout_buffer.columns["cost"]
        if not callable(self.cost_source):
            self._warn_of_zeros(self.cost_source, costs)
        self.cost_mean = float(costs.mean())
        excess = self.cost_mean - self.cost_limit
        rates = self.multiplier_lr, self.multiplier_damping, self.max_multiplier
        self.dual, self.multiplier = ascended(self.dual, excess, *rates)
        credit = self._judge(self.cost_critic, costs, self.gamma)
        buffer.advantages = lagrangian(buffer.advantages, credit.advantages, self.multiplier)
        self.logger.record("cost/mean", self.cost_mean)
        self.logger.record("cost/limit", self.cost_limit)
        self.logger.record("cost/multiplier", self.multiplier)
        self.logger.record("cost/met", float(bool(self.constraint_met)))
        self.logger.record("cost/explained_variance", explained_variance(credit.values.ravel(), credit.returns.ravel()))


ConstrainedPPO = CPOAgent = PPOLagrangian
"""Former names."""


def ascended(dual: float, excess: float, lr: float, damping: float, largest: float) -> tuple[float, float]:
    """The dual variable after a rollout that was ``excess`` above its limit, and the multiplier."""
    dual = min(max(dual + lr * excess, 0.0), largest)
    return dual, min(max(dual + damping * excess, 0.0), largest)


def lagrangian(
    advantages: NDArray[np.float32], cost_advantages: NDArray[np.float64], multiplier: float
) -> NDArray[np.float32]:
    """(A - multiplier * A_cost) / (1 + multiplier); ``advantages`` A at multiplier 0.

    A_cost has mean 0 and the standard deviation of A, where both vary, so that multiplier 1 weighs both alike.
    """
    centred = cost_advantages - cost_advantages.mean()
    if centred.std() > 0 and advantages.std() > 0:
        centred *= advantages.std() / centred.std()
    return ((advantages - multiplier * centred) / (1 + multiplier)).astype(np.float32)
