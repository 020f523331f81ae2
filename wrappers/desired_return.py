"""Desired return and horizon in the observations of a conditioned policy.

A decision maker commands a return per objective and a horizon at the start of an episode. Both wrappers put what is
left of the command into the observation and reduce it by the rewards, so that ``predict`` needs no memory.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import unwrap_vec_wrapper

from sb3_fair.fairness.arguments import Numbers, Range, Share, checked
from sb3_fair.wrappers.faces import Core, Face, Step, VecFace, Wrapped

RETURN, HORIZON, OBSERVATION = "desired_return", "desired_horizon", "observation"

_STEPS, _BOUND = Range("[1, inf)"), Range("(-inf, inf]")
Horizon: TypeAlias = Annotated[float, _STEPS]
Bound: TypeAlias = Annotated[float, _BOUND] | Annotated[ArrayLike, _BOUND]


def commanded_space(space: spaces.Space, k: int) -> spaces.Dict:
    """``space`` with the command beside it: a Dict's own keys, or ``"observation"``, and the two of the command.

    :raises ValueError: if a Dict space has one of the command's keys already
    """
    keys = dict(space.spaces) if isinstance(space, spaces.Dict) else {OBSERVATION: space}
    if RETURN in keys or HORIZON in keys:
        raise ValueError(f"env must not have the observation keys {RETURN!r} and {HORIZON!r} already, got {space}")
    keys[RETURN] = spaces.Box(-np.inf, np.inf, (k,), np.float32)
    keys[HORIZON] = spaces.Box(1, np.inf, (1,), np.float32)
    return spaces.Dict(keys)


@checked
class Pursuing(Core):
    """What is left of a command: R^ <- min((R^ - r_t) / gamma, max_return) and h^ <- max(h^ - 1, 1) after each step
    (Reymond et al., 2022, Alg. 1); held objectives keep their R^ for the whole episode."""

    published: ClassVar[tuple[str, ...]] = ("pursuit",)
    _adds = True

    def __init__(
        self,
        env: Wrapped,
        desired_return: Numbers,
        desired_horizon: Horizon | Annotated[ArrayLike, _STEPS],
        *,
        columns: Sequence[int] | NDArray[np.int64] | None = None,
        max_return: Bound | None = None,
        held: Sequence[bool] | NDArray[np.bool_] | None = None,
        gamma: Share = 1.0,
    ) -> None:
        super().__init__(
            env,
            desired_return=desired_return,
            desired_horizon=desired_horizon,
            columns=columns,
            max_return=max_return,
            held=held,
            gamma=gamma,
        )
        chosen = range(np.shape(desired_return)[-1]) if columns is None else columns
        self._columns = np.array(chosen, dtype=np.int64)
        k = len(self._columns)
        if not k:
            raise ValueError("columns and desired_return must be about at least one objective, got none")
        most = np.array(np.inf if max_return is None else max_return, dtype=np.float64)
        if most.shape not in ((), (k,)):
            raise ValueError(f"max_return must be one number per commanded objective ({k}), got {max_return!r}")
        self._max_return = np.broadcast_to(most, (k,))
        self._held = np.zeros(k, dtype=bool) if held is None else np.array(held, dtype=bool)
        if self._held.shape != (k,):
            raise ValueError(f"held must have one entry per commanded objective ({k}), got {held!r}")
        self._gamma = gamma
        self._left = np.zeros((self._n_copies, k))
        self._steps_left = np.ones(self._n_copies)
        self.set_command(desired_return, desired_horizon)
        self.observation_space = commanded_space(env.observation_space, k)

    def set_command(self, desired_return: ArrayLike, desired_horizon: ArrayLike) -> None:
        """Asks for something else in every episode that starts from now on.

        :param desired_return: (k,) for all copies or (n, k), finite
        :param desired_horizon: one number for all copies or (n,), at least 1
        """
        k = len(self._columns)
        returns = np.asarray(desired_return, dtype=np.float64)
        if returns.shape not in ((k,), (self._n_copies, k)) or not np.isfinite(returns).all():
            raise ValueError(
                f"desired_return must be finite, one number per commanded objective ({k},) or per copy "
                f"({self._n_copies}, {k}), got {desired_return!r}"
            )
        horizons = np.asarray(desired_horizon, dtype=np.float64)
        if horizons.shape not in ((), (self._n_copies,)) or not (horizons >= 1).all():
            raise ValueError(
                f"desired_horizon must be at least 1, one number or one per copy ({self._n_copies},), "
                f"got {desired_horizon!r}"
            )
        self._desired_return = np.broadcast_to(returns, (self._n_copies, k)).copy()
        self._desired_horizon = np.broadcast_to(horizons, (self._n_copies,)).copy()

    @property
    def pursuit(self) -> dict[str, Any]:
        """How commands are pursued, whatever they are: ``columns``, ``max_return``, ``held`` and ``gamma``."""
        return {"columns": self._columns, "max_return": self._max_return, "held": self._held, "gamma": self._gamma}

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        self._left[which] = self._desired_return[which]
        self._steps_left[which] = self._desired_horizon[which]

    def _record(self, step: Step) -> None:
        rewards = step.vectors()
        if not np.isfinite(rewards).all():
            raise ValueError(f"the vector reward must be finite, got {rewards.tolist()}")
        left = np.minimum((self._left - rewards[:, self._columns]) / self._gamma, self._max_return)
        self._left = np.where(self._held, self._left, left)
        self._steps_left = np.maximum(self._steps_left - 1, 1)

    def _shown(self, observation: Any, which: Any = slice(None)) -> dict[str, Any]:
        keys = dict(observation) if isinstance(observation, dict) else {OBSERVATION: observation}
        keys[RETURN] = self._left[which].astype(np.float32)
        keys[HORIZON] = self._steps_left[which, None].astype(np.float32)
        return keys


class DesiredReturn(Pursuing, Face):
    """Puts what is left of a command into the observation: keys ``desired_return`` (k,) and ``desired_horizon`` (1,).

    The environment's own observation stays under ``"observation"``, or under its own keys if it is a Dict. Rewards are
    taken from ``info["vector_reward"]``, or from an array reward (MO-Gymnasium). ``PCN.follow(env)`` fills in the
    arguments. Batched twin: :class:`VecDesiredReturn`.

    :param desired_return: return to reach per commanded objective, (k,)
    :param desired_horizon: number of steps to reach it in, at least 1
    :param columns: the entries of the vector reward that the command speaks of; None: the first k
    :param max_return: upper bound of the return still to come, (k,); None: no bound
    :param held: which commanded objectives keep their command for the whole episode; None: none
    :param gamma: discount factor of the commanded returns
    :raises ValueError: if shapes do not agree or a number is not allowed

    Example:
        >>> import mo_gymnasium
        >>> env = DesiredReturn(mo_gymnasium.make("deep-sea-treasure-v0"), desired_return=(0.7, -1), desired_horizon=1)
        >>> obs, _ = env.reset()
        >>> obs["desired_return"]
        array([ 0.7, -1. ], dtype=float32)
        >>> env.step(1)[0]["desired_return"].round(3)
        array([0., 0.], dtype=float32)
    """


class VecDesiredReturn(Pursuing, VecFace):
    """:class:`DesiredReturn` for a VecEnv whose infos carry ``vector_reward``; commands may differ between copies.

    :param desired_return: (k,) for all copies, or (n, k)
    :param desired_horizon: one number for all copies, or (n,)
    """


def command_setter(env: Wrapped) -> Callable[..., Any]:
    """``set_command`` of an environment that has a command in its observations, in whichever layer."""
    if isinstance(env, gym.Env):
        setter: Callable[..., Any] = env.get_wrapper_attr("set_command")
        return setter
    layer = unwrap_vec_wrapper(env, VecDesiredReturn)
    return partial(env.env_method, "set_command") if layer is None else layer.set_command
