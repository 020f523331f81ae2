"""VectorReward: performance and fairness as a vector of objectives."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import find_notion
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.fairness.warning import warn
from sb3_fair.wrappers.ends import Ends
from sb3_fair.wrappers.infos import publish, stack
from sb3_fair.wrappers.layer import VecLayer, attribute, attribute_of, forget_history

Emit = Literal["level", "difference", "terminal"]
PERFORMANCE = "R"
PATIENCE = 10
"""Episodes after which an objective that was never defined is worth a warning."""
DISPARITY = "d_"  # short- and long-term disparities (d_s, d_l, ...) are 0 if fair and grow with unfairness


class RewardVector:
    """The arithmetic that both wrappers share, for n copies of an environment.

    :raises ValueError: if an objective is unknown or named twice, or ``emit`` or ``undefined`` is not allowed
    """

    def __init__(
        self,
        n: int,
        objectives: Sequence[str],
        known: Sequence[str],
        *,
        emit: Emit,
        undefined: float,
        forget: bool,
        max_performance: float,
    ) -> None:
        allowed = (PERFORMANCE, *known)
        self.names = tuple(full for name in objectives for full in _variants(name, allowed))
        for name in self.names:
            if name not in allowed and not name.startswith(DISPARITY):
                hint = did_you_mean(name, allowed) if known else ": make env a fairness MDP with FairMDP first"
                raise ValueError(f"objectives must be among {allowed}, got {name!r}{hint}")
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"objectives must name at least one objective, none of them twice, got {self.names!r}")
        self.emit = emit
        self.undefined = float(undefined)
        self._carried_over = np.array([not forget and not name.startswith(DISPARITY) for name in self.names])
        self.is_fair = np.array([name != PERFORMANCE for name in self.names])
        self.needs_fairness = bool(self.is_fair.any())
        self.signs = np.array([-1.0 if name.startswith(DISPARITY) else 1.0 for name in self.names])
        self.previous = np.zeros((n, len(self.names)))  # always 0 for performance
        self._never = {name for name in self.names if name != PERFORMANCE}
        self._has_stepped = np.zeros(n, dtype=bool)
        self._episodes = 0
        ranges = np.array([self._range(name) for name in self.names])
        width = ranges[:, 1] - ranges[:, 0]
        if emit == "difference":
            ranges[self.is_fair] = np.stack([-width, width], axis=1)[self.is_fair]
        self.space = spaces.Box(ranges[:, 0], ranges[:, 1], dtype=np.float64)
        self.max_return = np.where(self.is_fair, width if emit == "difference" else 0.0, max_performance)

    def _range(self, name: str) -> tuple[float, float]:
        if name == PERFORMANCE:
            return -np.inf, np.inf
        low, high = (-np.inf, 0.0) if name.startswith(DISPARITY) else find_notion(name.split("@")[0]).bounds
        return min(low, self.undefined), max(high, self.undefined)

    def restart(self, which: Any) -> None:
        """New episodes begin in the copies ``which``: an empty history counts as exactly fair. Disparities always begin
        anew."""
        if self._never:
            self._episodes += int(self._has_stepped[which].sum())
            self._has_stepped[which] = False
            if self._episodes > PATIENCE + len(self.previous):
                self._warn()
        self.previous[which] = np.where(self._carried_over, self.previous[which], 0.0)

    def begin_anew(self, which: Any = slice(None)) -> None:
        """The histories of the copies ``which`` are empty, also those that were carried over."""
        self.previous[which] = 0.0

    def rewards(
        self, performance: NDArray[Any], fairness: Mapping[str, NDArray[np.float64]], done: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """The vectors (n, k) of one step from performance (n,) and the figures after the step."""
        try:
            columns = [performance if name == PERFORMANCE else fairness[name] for name in self.names]
        except KeyError as error:
            raise ValueError(
                f"objectives must be what env measures, {sorted(fairness)}, got {error}: see FairnessSpec.measures"
            ) from None
        level: NDArray[np.float64] = np.array(columns, dtype=np.float64).T * self.signs
        if np.isnan(np.add.reduce(level, axis=None)):
            missing = np.isnan(level) & self.is_fair
            if self._never:
                self._never &= {name for name, column in zip(self.names, missing.T, strict=True) if column.all()}
            level[missing] = self.undefined
        elif self._never:
            self._never.clear()
        if self._never:
            self._has_stepped[:] = True
        if self.emit == "level":
            return level
        if self.emit == "terminal":
            return np.where(done[:, None] | ~self.is_fair, level, 0.0)
        difference = level - self.previous
        self.previous = np.where(self.is_fair, level, 0.0)
        return difference

    def _warn(self) -> None:
        """Once: an objective that is never there is no objective."""
        warn(
            f"{', '.join(sorted(self._never))} was undefined in every step of {PATIENCE} episodes, and counted as "
            f"{self.undefined:g}: do the labels in groups occur, and is there feedback where a notion needs it?",
        )
        self._never.clear()


def _variants(name: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """``name`` itself, or all its variants (``"SP@gender"``, ...) where several are measured."""
    variants = tuple(known for known in allowed if known.startswith(f"{name}@"))
    return (name,) if name in allowed or not variants else variants


@checked
class VectorReward(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Rewards a fairness MDP with a vector: performance ``"R"`` and fairness notions, in the order of ``objectives``.

    The vector (k,) float64 is ``info["vector_reward"]`` and the reward stays the performance reward, so that every
    SB3 algorithm and wrapper keeps working; :class:`~sb3_fair.wrappers.scalarise.Scalarise` makes another scalar of
    it. With ``vector=True`` the vector itself is the reward, following MO-Gymnasium. Batched twin:
    :class:`VecVectorReward`.

    :param env: a fairness MDP (:class:`~sb3_fair.wrappers.fmdp.FairMDP` inside)
    :param objectives: ``"R"`` and names in ``info["fairness"]``; disparities ``d_s``, ``d_l`` enter negated, so that 0
        is fair for every fairness objective
    :param emit: ``"level"``: the notion after each step (its sum grows with the length of the episode, so that shorter
        episodes look fairer); ``"difference"``: its change, which sums to the notion at the end of the episode;
        ``"terminal"``: 0, and the notion at the last step, also where a ``TimeLimit`` outside decides which that is
    :param undefined: stands for a notion that is undefined, e.g. as long as only one group was seen
    :raises ValueError: if an objective is unknown or an argument is not allowed
    """

    def __init__(
        self,
        env: gym.Env,
        objectives: Sequence[str],
        *,
        emit: Emit = "level",
        undefined: float = 0.0,
        vector: bool = False,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, objectives=objectives, emit=emit, undefined=undefined, vector=vector
        )
        super().__init__(env)
        self._rewards = RewardVector(
            1,
            objectives,
            attribute_of(env, "fairness_names", ()),
            emit=emit,
            undefined=undefined,
            forget=attribute_of(env, "reset_on_episode", True),
            max_performance=attribute_of(env, "max_return", np.inf),
        )
        self._ends = Ends("emit='terminal'" if emit == "terminal" else None)
        self.vector = vector
        self.emit = emit
        self.objective_names = self._rewards.names
        self.reward_space = self._rewards.space
        self.reward_dim = len(self.objective_names)
        self.max_return = self._rewards.max_return
        if vector:  # MO-Gymnasium's wrappers look there
            self.unwrapped.reward_space = self.reward_space  # type: ignore[attr-defined]
            self.unwrapped.reward_dim = self.reward_dim  # type: ignore[attr-defined]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._rewards.restart(0)
        self._ends.restart(self, seed)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        fairness = stack([info], "fairness") if self._rewards.needs_fairness else {}
        vectors = self._rewards.rewards(
            np.array([reward]), fairness, np.array([self._ends.step(terminated or truncated)])
        )
        publish([info], "vector_reward", vectors)
        return obs, vectors[0].copy() if self.vector else reward, terminated, truncated, info

    def forget_history(self) -> None:
        """Empties the history, also one that is carried over."""
        self._rewards.begin_anew()
        if self.env.has_wrapper_attr("forget_history"):
            self.env.get_wrapper_attr("forget_history")()


@checked
class VecVectorReward(VecLayer):
    """:class:`VectorReward` for a VecEnv: the vectors (n, k) are ``stack(infos, "vector_reward")``."""

    published = ("objective_names", "reward_space", "reward_dim", "max_return", "emit")
    methods = ("forget_history",)

    def __init__(
        self, venv: VecEnv, objectives: Sequence[str], *, emit: Emit = "level", undefined: float = 0.0
    ) -> None:
        super().__init__(venv)
        self._rewards = RewardVector(
            venv.num_envs,
            objectives,
            attribute(venv, "fairness_names", ()),
            emit=emit,
            undefined=undefined,
            forget=attribute(venv, "reset_on_episode", True),
            max_performance=attribute(venv, "max_return", np.inf),
        )
        self.emit = emit
        self.objective_names = self._rewards.names
        self.reward_space = self._rewards.space
        self.reward_dim = len(self.objective_names)
        self.max_return = self._rewards.max_return

    def reset(self) -> VecEnvObs:
        self._rewards.restart(slice(None))
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        fairness = stack(infos, "fairness") if self._rewards.needs_fairness else {}
        publish(infos, "vector_reward", self._rewards.rewards(rewards, fairness, dones))
        self._rewards.restart(dones)
        return obs, rewards, dones, infos

    def forget_history(self, copy: int | None = None) -> None:
        """Empties the history of a copy, None: of all, also those that are carried over."""
        self._rewards.begin_anew(slice(None) if copy is None else copy)
        forget_history(self.venv, copy)
