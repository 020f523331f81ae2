"""VectorReward: performance and fairness as a vector of objectives."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness import find_notion
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.descriptions import DISPARITY
from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.fairness.warning import warn
from sb3_fair.wrappers.faces import Core, Face, Step, VecFace, Wrapped
from sb3_fair.wrappers.infos import publish, stack
from sb3_fair.wrappers.layer import attribute

Emit = Literal["level", "difference", "terminal"]
PERFORMANCE = "R"
PATIENCE = 10
"""Episodes after which an objective that was never defined is worth a warning."""
ARRAY_REWARD = "R must be one number per step, got the array reward {}: use Scalarise on the environment first"


@checked
class Rewarding(Core):
    """Performance and fairness as a vector of objectives."""

    published: ClassVar[tuple[str, ...]] = ("objective_names", "reward_space", "reward_dim", "max_return", "emit")

    def __init__(
        self,
        env: Wrapped,
        objectives: Sequence[str],
        *,
        emit: Emit = "level",
        undefined: float = 0.0,
        vector: bool = False,
    ) -> None:
        super().__init__(env, objectives=objectives, emit=emit, undefined=undefined, vector=vector)
        known = attribute(env, "fairness_names", ())
        allowed = (PERFORMANCE, *known)
        names = tuple(dict.fromkeys(full for name in objectives for full in _variants(name, allowed)))
        for name in names:
            if name not in allowed and not name.startswith(DISPARITY):
                hint = did_you_mean(name, allowed) if known else ": make env a fairness MDP with FairMDP first"
                raise ValueError(f"objectives must be among {allowed} or disparities (d_...), got {name!r}{hint}")
        if not names or len(set(objectives)) < len(objectives):
            raise ValueError(f"objectives must name at least one objective, none of them twice, got {objectives!r}")
        self.objective_names = names
        self.reward_dim = len(names)
        self.emit = emit
        self.vector = vector
        self._unpaid = "emit='terminal'" if emit == "terminal" else None
        self._undefined = float(undefined)
        kept = not attribute(env, "reset_on_episode", True)
        carried = attribute(env, "carried_disparities", ())
        self._carried_over = np.array([name in carried or (kept and not name.startswith(DISPARITY)) for name in names])
        self._is_fair = np.array([name != PERFORMANCE for name in names])
        self._needs_fairness = bool(self._is_fair.any())
        self._signs = np.array([-1.0 if name.startswith(DISPARITY) else 1.0 for name in names])
        self._previous = np.zeros((self._n_copies, len(names)))  # always 0 for performance
        self._never = {name for name in names if name != PERFORMANCE}
        self._has_stepped = np.zeros(self._n_copies, dtype=bool)
        self._episodes = 0
        ranges = np.array([self._range(name) for name in names])
        width = ranges[:, 1] - ranges[:, 0]
        if emit == "difference":
            ranges[self._is_fair] = np.stack([-width, width], axis=1)[self._is_fair]
        self.reward_space = spaces.Box(ranges[:, 0], ranges[:, 1], dtype=np.float64)
        most = attribute(env, "max_return", np.inf)
        self.max_return = np.where(self._is_fair, width if emit == "difference" else 0.0, most)
        if vector:
            if isinstance(env, VecEnv):
                raise ValueError(
                    "vector must be False for a VecEnv, whose rewards are scalar: read info['vector_reward']"
                )
            inside: Any = env.unwrapped  # MO-Gymnasium's wrappers look there
            inside.reward_space, inside.reward_dim = self.reward_space, self.reward_dim

    def _range(self, name: str) -> tuple[float, float]:
        if name == PERFORMANCE:
            return -np.inf, np.inf
        low, high = (-np.inf, 0.0) if name.startswith(DISPARITY) else find_notion(name).bounds
        return min(low, self._undefined), max(high, self._undefined)

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        """An empty history counts as exactly fair. A scenario's own disparities always begin anew."""
        if self._never:
            self._episodes += int(self._has_stepped[which].sum())
            self._has_stepped[which] = False
            if self._episodes > PATIENCE + self._n_copies:  # an objective that is never there is no objective
                warn(
                    f"{', '.join(sorted(self._never))} was undefined in every step of {PATIENCE} episodes, and counted "
                    f"as {self._undefined:g}: do the labels in groups occur, and is there feedback where a notion "
                    "needs it?"
                )
                self._never.clear()
        self._previous[which] = np.where(self._carried_over, self._previous[which], 0.0)

    def _forget(self, which: NDArray[np.intp]) -> None:
        self._previous[which] = 0.0

    def _record(self, step: Step) -> NDArray[np.float64] | None:
        fairness = stack(step.infos, "fairness") if self._needs_fairness else {}
        vectors = self._vectors(step.rewards, fairness, step.ended)
        publish(step.infos, "vector_reward", vectors)
        return vectors if self.vector else None

    def _vectors(
        self, performance: NDArray[Any], fairness: Mapping[str, NDArray[np.float64]], done: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """The vectors (n, k) of one step from performance (n,) and the figures after the step."""
        if performance.ndim > 1 and PERFORMANCE in self.objective_names:
            raise ValueError(ARRAY_REWARD.format(performance[0]))
        try:
            columns = [performance if name == PERFORMANCE else fairness[name] for name in self.objective_names]
        except KeyError as error:
            raise ValueError(
                f"objectives must be what env measures, {sorted(fairness)}, got {error}: see FairnessSpec.measures"
            ) from None
        level: NDArray[np.float64] = np.array(columns, dtype=np.float64).T * self._signs
        if np.isnan(np.add.reduce(level, axis=None)):
            missing = np.isnan(level) & self._is_fair
            if self._never:
                self._never &= {
                    name for name, column in zip(self.objective_names, missing.T, strict=True) if column.all()
                }
            level[missing] = self._undefined
        elif self._never:
            self._never.clear()
        if self._never:
            self._has_stepped[:] = True
        if self.emit == "level":
            return level
        if self.emit == "terminal":
            return np.where(done[:, None] | ~self._is_fair, level, 0.0)
        difference = level - self._previous
        self._previous = np.where(self._is_fair, level, 0.0)
        return difference


def _variants(name: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """``name`` itself, or all its variants (``"SP@gender"``, ...) where several are measured."""
    variants = tuple(known for known in allowed if known.startswith(f"{name}@"))
    return (name,) if name in allowed or not variants else variants


class VectorReward(Rewarding, Face):
    """Rewards a fairness MDP with a vector: performance ``"R"`` and fairness notions, in the order of ``objectives``.

    The vector (k,) float64 is ``info["vector_reward"]`` and the reward stays the performance reward, so that every
    SB3 algorithm and wrapper keeps working; :class:`~sb3_fair.wrappers.scalarise.Scalarise` makes another scalar of
    it. With ``vector=True`` the vector itself is the reward, following MO-Gymnasium. Batched twin:
    :class:`VecVectorReward`.

    :param env: a fairness MDP (:class:`~sb3_fair.wrappers.fmdp.FairMDP` inside)
    :param objectives: ``"R"``, notions that env measures, and disparities, the names in ``info["fairness"]`` that begin
        with ``d_``; these enter negated, so that 0 is fair for every fairness objective
    :param emit: ``"level"``: the notion after each step (its sum grows with the length of the episode, so that shorter
        episodes look fairer); ``"difference"``: its change, which sums to the notion at the end of the episode;
        ``"terminal"``: 0, and the notion at the last step, also where a ``TimeLimit`` outside decides which that is
    :param undefined: stands for a notion that is undefined, e.g. as long as only one group was seen
    :raises ValueError: if an objective is unknown or an argument is not allowed
    """


class VecVectorReward(Rewarding, VecFace):
    """:class:`VectorReward` for a VecEnv: the vectors (n, k) are ``stack(infos, "vector_reward")``."""
