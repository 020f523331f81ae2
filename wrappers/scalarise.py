"""Scalarise: weighted sum of the vector reward."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import VecLayer
from sb3_fair.wrappers.vector_reward import PERFORMANCE

Utility: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Weights: TypeAlias = Sequence[float] | NDArray[np.float64] | Utility


@checked
@dataclass(frozen=True)
class Chebyshev:
    """Minus the largest weighted distance of a vector to an ideal point: (..., k) -> (...); 0 is best.

    :param weights: one non-negative number per objective
    :param ideal: best value of each objective
    """

    weights: Sequence[float]
    ideal: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.ideal) or min(self.weights, default=-1) < 0:
            raise ValueError(
                f"weights must be as many non-negative numbers as ideal has ({len(self.ideal)}), got {self.weights!r}"
            )

    def __call__(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        if np.shape(vector)[-1] != len(self.ideal):
            raise ValueError(f"ideal must have one number per objective ({np.shape(vector)[-1]}), got {self.ideal!r}")
        distance: NDArray[np.float64] = np.asarray(self.weights) * (np.asarray(self.ideal) - vector)
        return -distance.max(axis=-1)


class Scalarisation:
    """The arithmetic that both wrappers share, for n copies of an environment.

    :raises ValueError: if the weights do not fit the objectives, or a default is asked for that does not exist
    """

    def __init__(
        self, n: int, weights: Weights | None, names: Sequence[str] | None, dim: int, on: Literal["return", "step"]
    ) -> None:
        if weights is None:
            weights = self._default(names, dim)
        self.utility: Utility | None = weights if callable(weights) else None
        if not callable(weights):
            self.weights = np.asarray(weights, dtype=np.float64)
            if self.weights.shape != (dim,) or not np.isfinite(self.weights).all():
                raise ValueError(f"weights must be one finite number per objective ({dim}), got {weights!r}")
        elif np.shape(weights(np.zeros((2, dim)))) != (2,):
            raise ValueError(f"weights as a function must map arrays (n, {dim}) to (n,), got {weights!r}")
        self.on = on
        self.total = np.zeros((n, dim))

    @staticmethod
    def _default(names: Sequence[str] | None, dim: int) -> Weights:
        if names is None:
            return np.full(dim, 1 / dim)
        if PERFORMANCE not in names:
            raise ValueError(
                f"weights must be given, one per objective, because 'R' is not among the objectives {tuple(names)}"
            )
        return [float(name == PERFORMANCE) for name in names]

    def restart(self, which: Any) -> None:
        """New episodes begin in the copies ``which``."""
        self.total[which] = 0.0

    def scalars(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rewards (n,) for the vectors (n, k) of one step."""
        if self.utility is None:
            return vectors @ self.weights
        if self.on == "step":
            return np.asarray(self.utility(vectors), dtype=np.float64)
        before = self.total
        self.total = before + vectors
        return np.asarray(self.utility(self.total) - self.utility(before), dtype=np.float64)


@checked
class Scalarise(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Makes one number of the vector of objectives, so that every SB3 algorithm trains on it.

    The vector is taken from where it is, an array reward (MO-Gymnasium) or ``info["vector_reward"]``, and stays in
    ``info["vector_reward"]``. Batched twin: :class:`VecScalarise`.

    :param weights: one number per objective (reward = weights . vector); or a function (..., k) -> (...) such as
        :class:`Chebyshev` or a welfare function. None: weight 1 for ``"R"`` and 0 for the rest; equal weights for
        objectives without names
    :param on: what a function is applied to. ``"return"``: the vector return so far; the reward is its change, so
        that the rewards of an episode sum to f(vector return) - f(0); ``"step"``: each step's vector
    :raises ValueError: if ``weights`` does not fit the objectives, or is missing where "R" is not an objective

    Example:
        >>> import mo_gymnasium
        >>> env = Scalarise(mo_gymnasium.make("deep-sea-treasure-v0"), weights=(1.0, 0.1))
        >>> _ = env.reset(seed=0)
        >>> round(env.step(1)[1], 3)
        0.6
    """

    def __init__(
        self, env: gym.Env, weights: Weights | None = None, *, on: Literal["return", "step"] = "return"
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, weights=weights, on=on)
        super().__init__(env)
        if not env.has_wrapper_attr("reward_space"):
            raise ValueError("env must have a vector reward: wrap it in VectorReward first, or use a MO-Gymnasium env")
        names = env.get_wrapper_attr("objective_names") if env.has_wrapper_attr("objective_names") else None
        self._scalars = Scalarisation(1, weights, names, int(env.get_wrapper_attr("reward_space").shape[0]), on)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._scalars.restart(0)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if "vector_reward" not in info:
            info["vector_reward"] = np.array(reward, dtype=np.float64)
        scalar = self._scalars.scalars(stack([info], "vector_reward"))
        return obs, float(scalar[0]), terminated, truncated, info


@checked
class VecScalarise(VecLayer):
    """:class:`Scalarise` for a VecEnv whose infos carry ``vector_reward``."""

    def __init__(
        self, venv: VecEnv, weights: Weights | None = None, *, on: Literal["return", "step"] = "return"
    ) -> None:
        super().__init__(venv)
        if not venv.has_attr("reward_dim"):
            raise ValueError("venv must have a vector reward: wrap it in VecVectorReward first")
        names = venv.get_attr("objective_names")[0] if venv.has_attr("objective_names") else None
        self._scalars = Scalarisation(venv.num_envs, weights, names, int(venv.get_attr("reward_dim")[0]), on)

    def reset(self) -> VecEnvObs:
        self._scalars.restart(slice(None))
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        obs, _, dones, infos = self.venv.step_wait()
        rewards = self._scalars.scalars(stack(infos, "vector_reward"))
        self._scalars.restart(dones)
        return obs, rewards, dones, infos
