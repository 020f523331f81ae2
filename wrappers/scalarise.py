"""Scalarise: weighted sum of the vector reward."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import NormalizeReward
from numpy.typing import NDArray
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.validation import function_of_vectors, on_copies
from sb3_fair.wrappers.faces import Core, Face, Step, VecFace, Wrapped
from sb3_fair.wrappers.infos import NO_VECTOR
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.vector_reward import PERFORMANCE, Rewarding

Utility: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Weights: TypeAlias = Sequence[float] | NDArray[Any] | Utility


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
        object.__setattr__(self, "weights", tuple(map(float, self.weights)))
        object.__setattr__(self, "ideal", tuple(map(float, self.ideal)))

    def __call__(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        if np.shape(vector)[-1] != len(self.ideal):
            raise ValueError(f"ideal must have one number per objective ({np.shape(vector)[-1]}), got {self.ideal!r}")
        distance: NDArray[np.float64] = np.asarray(self.weights) * (np.asarray(self.ideal) - vector)
        return -distance.max(axis=-1)


@checked
class Scalarising(Core):
    """The reward is a scalar of the vector reward."""

    def __init__(
        self, env: Wrapped, weights: Weights | None = None, *, on: Literal["return", "step"] = "return"
    ) -> None:
        super().__init__(env, weights=weights, on=on)
        space = attribute(env, "reward_space")
        if space is None:
            raise ValueError(NO_VECTOR)
        lost = _changes(env)
        if lost is not None:
            raise ValueError(
                f"env must not change rewards between the vector reward and here, as they would be lost: put {lost} "
                f"around {type(self).__name__}"
            )
        dim = int(space.shape[0])
        if weights is None:
            weights = _default(attribute(env, "objective_names"), dim)
        self._utility: Utility | None = partial(on_copies, weights) if callable(weights) else None
        if not callable(weights):
            self._weights = np.array(weights, dtype=np.float64)
            if self._weights.shape != (dim,) or not np.isfinite(self._weights).all():
                raise ValueError(f"weights must be one finite number per objective ({dim}), got {weights!r}")
        else:
            function_of_vectors("weights", weights, dim)
        self._on = on
        self._total = np.zeros((self._n_copies, dim))

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        self._total[which] = 0.0

    def _record(self, step: Step) -> NDArray[np.float64]:
        vectors = step.vectors()
        if self._utility is None:
            return vectors @ self._weights
        if self._on == "step":
            return np.asarray(self._utility(vectors), dtype=np.float64)
        before = self._total
        self._total = before + vectors
        return np.asarray(self._utility(self._total) - self._utility(before), dtype=np.float64)


def _changes(env: Wrapped) -> str | None:
    """The layer of ``env`` that changes scalar rewards after the vector was made of them, None if there is none."""
    changes, layer = None, env
    while isinstance(layer, gym.Wrapper | VecEnvWrapper) and not isinstance(layer, Rewarding):
        if isinstance(layer, gym.RewardWrapper | NormalizeReward) or (
            isinstance(layer, VecNormalize) and layer.norm_reward
        ):
            changes = type(layer).__name__
        layer = layer.env if isinstance(layer, gym.Wrapper) else layer.venv
    scalar = not layer.vector if isinstance(layer, Rewarding) else isinstance(layer, VecEnv)
    return changes if scalar else None


def _default(names: Sequence[str] | None, dim: int) -> Weights:
    if names is None:
        return np.full(dim, 1 / dim)
    if PERFORMANCE not in names:
        raise ValueError(
            f"weights must be given, one per objective, because 'R' is not among the objectives {tuple(names)}"
        )
    return [float(name == PERFORMANCE) for name in names]


class Scalarise(Scalarising, Face):
    """Makes one number of the vector of objectives, so that every SB3 algorithm trains on it.

    The vector is taken from where it is, an array reward (MO-Gymnasium) or ``info["vector_reward"]``, and stays in
    ``info["vector_reward"]``. Batched twin: :class:`VecScalarise`.

    :param weights: one number per objective (reward = weights . vector); or a function (..., k) -> (...) such as
        :class:`Chebyshev` or a welfare function. None: weight 1 for ``"R"`` and 0 for the rest; equal weights for
        objectives without names
    :param on: what a function is applied to. ``"return"``: the vector return so far; the reward is its change, so
        that the rewards of an episode sum to f(vector return) - f(0); ``"step"``: each step's vector
    :raises ValueError: if ``weights`` does not fit the objectives, or is missing where "R" is not an objective; if
        ``env`` changes rewards, as by normalising them, after the vector was made of them

    Example:
        >>> import mo_gymnasium
        >>> env = Scalarise(mo_gymnasium.make("deep-sea-treasure-v0"), weights=(1.0, 0.1))
        >>> _ = env.reset(seed=0)
        >>> round(env.step(1)[1], 3)
        0.6
    """


class VecScalarise(Scalarising, VecFace):
    """:class:`Scalarise` for a VecEnv whose infos carry ``vector_reward``."""


def with_scalar_reward(env: Any) -> Any:
    """``env``, an array reward (MO-Gymnasium's convention) moved to ``info["vector_reward"]``.

    SB3's Monitor and DummyVecEnv take scalar rewards only; the scalar is the sum of the objectives.
    """
    space = attribute(env, "reward_space") if isinstance(env, gym.Env) and not is_wrapped(env, Scalarise) else None
    if space is None or not attribute(env, "vector", True):  # VectorReward may keep a scalar
        return env
    return Scalarise(env, np.ones(space.shape))
