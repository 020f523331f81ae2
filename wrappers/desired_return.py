"""Desired return and horizon in the observations of a conditioned policy.

A decision maker commands a return per objective and a horizon at the start of an episode. Both wrappers put what is
left of the command into the observation and reduce it by the rewards, so that ``predict`` needs no memory.
"""

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.arguments import Numbers, Range, Share, checked
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import VecLayer

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


class Pursuit:
    """The arithmetic that both wrappers share: what n copies are still asked for.

    R^ <- min((R^ - r_t) / gamma, max_return) and h^ <- max(h^ - 1, 1) after each step (Reymond et al., 2022, Alg. 1);
    held objectives keep their R^ for the whole episode.

    :param n: number of copies
    :param columns: the entries of the vector reward that the command speaks of, (k,)
    :param max_return: upper bound of the return still to come per commanded objective, (k,)
    :param held: which commanded objectives are not reduced, (k,)
    :param gamma: discount factor of the commanded returns
    """

    def __init__(
        self,
        n: int,
        columns: Sequence[int] | NDArray[np.int64],
        max_return: ArrayLike | None = None,
        held: Sequence[bool] | NDArray[np.bool_] | None = None,
        gamma: float = 1.0,
    ) -> None:
        self.n = n
        self.columns = np.asarray(columns, dtype=np.int64)
        k = len(self.columns)
        if not k:
            raise ValueError("columns and desired_return must be about at least one objective, got none")
        self.max_return = self._row("max_return", np.inf if max_return is None else max_return, k)
        self.held = np.zeros(k, dtype=bool) if held is None else np.asarray(held, dtype=bool)
        if self.held.shape != (k,):
            raise ValueError(f"held must have one entry per commanded objective ({k}), got {held!r}")
        self.gamma = gamma
        self.remaining_return = np.zeros((n, k))
        self.remaining_horizon = np.ones(n)

    @staticmethod
    def _row(name: str, value: ArrayLike, k: int) -> NDArray[np.float64]:
        row = np.asarray(value, dtype=np.float64)
        if row.shape not in ((), (k,)) or np.isnan(row).any():
            raise ValueError(f"{name} must be one number per commanded objective ({k}), got {value!r}")
        return np.broadcast_to(row, (k,))

    def command(self, desired_return: ArrayLike, desired_horizon: ArrayLike) -> None:
        """What the episodes that start from now on are asked for.

        :param desired_return: (k,) for all copies or (n, k), finite
        :param desired_horizon: one number for all copies or (n,), at least 1
        """
        k = len(self.columns)
        returns = np.asarray(desired_return, dtype=np.float64)
        if returns.shape not in ((k,), (self.n, k)) or not np.isfinite(returns).all():
            raise ValueError(
                f"desired_return must be finite, one number per commanded objective ({k},) or per copy "
                f"({self.n}, {k}), got {desired_return!r}"
            )
        horizons = np.asarray(desired_horizon, dtype=np.float64)
        if horizons.shape not in ((), (self.n,)) or not (horizons >= 1).all():
            raise ValueError(
                f"desired_horizon must be at least 1, one number or one per copy ({self.n},), got {desired_horizon!r}"
            )
        self.desired_return = np.broadcast_to(returns, (self.n, k)).copy()
        self.desired_horizon = np.broadcast_to(horizons, (self.n,)).copy()

    def restart(self, which: Any = slice(None)) -> None:
        """New episodes begin in the copies ``which``."""
        self.remaining_return[which] = self.desired_return[which]
        self.remaining_horizon[which] = self.desired_horizon[which]

    def reduce(self, rewards: NDArray[np.float64]) -> None:
        """A step brought the vector rewards (n, all objectives).

        :raises ValueError: if one of them is not finite
        """
        if not np.isfinite(rewards).all():
            raise ValueError(f"the vector reward must be finite, got {rewards.tolist()}")
        left = np.minimum((self.remaining_return - rewards[:, self.columns]) / self.gamma, self.max_return)
        self.remaining_return = np.where(self.held, self.remaining_return, left)
        self.remaining_horizon = np.maximum(self.remaining_horizon - 1, 1)

    def observation(self, observation: Any) -> dict[str, Any]:
        """The batched observation with what is left of the command, float32, beside it."""
        keys = dict(observation) if isinstance(observation, dict) else {OBSERVATION: observation}
        keys[RETURN] = self.remaining_return.astype(np.float32)
        keys[HORIZON] = self.remaining_horizon.astype(np.float32)[:, None]
        return keys


@checked
class DesiredReturn(gym.Wrapper, gym.utils.RecordConstructorArgs):
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

    def __init__(
        self,
        env: gym.Env,
        desired_return: Numbers,
        desired_horizon: Horizon,
        *,
        columns: Sequence[int] | None = None,
        max_return: Bound | None = None,
        held: Sequence[bool] | None = None,
        gamma: Share = 1.0,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self,
            desired_return=desired_return,
            desired_horizon=desired_horizon,
            columns=columns,
            max_return=max_return,
            held=held,
            gamma=gamma,
        )
        super().__init__(env)
        chosen = range(np.size(desired_return)) if columns is None else columns
        self._pursuit = Pursuit(1, list(chosen), max_return, held, gamma)
        self._pursuit.command(desired_return, desired_horizon)
        self.observation_space = commanded_space(env.observation_space, len(self._pursuit.columns))

    def set_command(self, desired_return: ArrayLike, desired_horizon: float) -> None:
        """Asks for something else from the next episode on."""
        self._pursuit.command(desired_return, desired_horizon)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        self._pursuit.restart()
        return self._single(obs), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        vector: Any = info.get("vector_reward", reward)
        if np.ndim(vector) != 1:
            raise ValueError("env must have a vector reward: wrap it in VectorReward first, or use a MO-Gymnasium env")
        self._pursuit.reduce(np.asarray(vector, dtype=np.float64)[None])
        return self._single(obs), reward, terminated, truncated, info

    def _single(self, observation: Any) -> dict[str, Any]:
        keys = self._pursuit.observation(observation)
        return {**keys, RETURN: keys[RETURN][0], HORIZON: keys[HORIZON][0]}


@checked
class VecDesiredReturn(VecLayer):
    """:class:`DesiredReturn` for a VecEnv whose infos carry ``vector_reward``; commands may differ between copies.

    :param desired_return: (k,) for all copies, or (n, k)
    :param desired_horizon: one number for all copies, or (n,)
    """

    def __init__(
        self,
        venv: VecEnv,
        desired_return: Numbers,
        desired_horizon: Horizon | Annotated[ArrayLike, _STEPS],
        *,
        columns: Sequence[int] | NDArray[np.int64] | None = None,
        max_return: Bound | None = None,
        held: Sequence[bool] | NDArray[np.bool_] | None = None,
        gamma: Share = 1.0,
    ) -> None:
        chosen = range(np.shape(desired_return)[-1]) if columns is None else columns
        self._pursuit = Pursuit(venv.num_envs, list(chosen), max_return, held, gamma)
        self._pursuit.command(desired_return, desired_horizon)
        super().__init__(venv, observation_space=commanded_space(venv.observation_space, len(self._pursuit.columns)))

    def set_command(self, desired_return: ArrayLike, desired_horizon: ArrayLike) -> None:
        """Asks for something else in every episode that starts from now on."""
        self._pursuit.command(desired_return, desired_horizon)

    def reset(self) -> VecEnvObs:
        obs = self.venv.reset()
        self._pursuit.restart()
        return self._pursuit.observation(obs)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self._pursuit.reduce(stack(infos, "vector_reward"))
        if dones.any():
            final = self._pursuit.observation({})
            for index in np.flatnonzero(dones):
                self._finish(infos[index], {key: row[index] for key, row in final.items()})
            self._pursuit.restart(dones)
        return self._pursuit.observation(obs), rewards, dones, infos

    @staticmethod
    def _finish(info: dict[str, Any], command: dict[str, Any]) -> None:
        last = info["terminal_observation"]
        info["terminal_observation"] = {**(last if isinstance(last, dict) else {OBSERVATION: last}), **command}
