"""The two faces of a wrapper: one environment for Gymnasium, n copies for Stable-Baselines3.

What a wrapper does is written once, for n copies, as a :class:`Core`; :class:`Face` and :class:`VecFace` make it a
Gymnasium wrapper and a VecEnv wrapper::

    class Scalarising(Core): ...
    class Scalarise(Scalarising, Face): ...
    class VecScalarise(Scalarising, VecFace): ...
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import Autoreset
from numpy.typing import NDArray
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.arguments import check
from sb3_fair.fairness.validation import out_of_array
from sb3_fair.wrappers.ends import Ends
from sb3_fair.wrappers.infos import publish, taken_over, vector_rewards
from sb3_fair.wrappers.layer import Observations, VecLayer, forget_history, kept

Wrapped: TypeAlias = gym.Env | VecEnv
LAST = "terminal_observation"
EPISODE = "episode"
"""Under which SB3's monitors publish."""


class Step(NamedTuple):
    """One step of n copies.

    :param obs: on which the actions were chosen, copy by copy; of use where the core looks back
    :param actions: (n, ...)
    :param probabilities: (n, ..., n_actions) of the policy, or None
    :param rewards: (n,), or (n, k) where one environment pays a vector
    :param ended: (n,) bool
    """

    obs: Sequence[Any]
    actions: NDArray[Any]
    probabilities: Any
    rewards: NDArray[Any]
    ended: NDArray[np.bool_]
    infos: Sequence[dict[str, Any]]

    def vectors(self) -> NDArray[np.float64]:
        """The vector rewards (n, k): an array reward, which is put there, else ``info["vector_reward"]``."""
        if self.rewards.ndim != 2:
            return vector_rewards(self.infos)
        vectors = self.rewards.astype(np.float64)
        publish(self.infos, "vector_reward", vectors)
        return vectors


class Core:
    """What a wrapper does to n copies of an environment; both faces call the methods below."""

    published: ClassVar[tuple[str, ...]] = ()
    """Attributes of the wrapper that ``VecEnv.get_attr`` finds."""
    _looks_back: ClassVar[bool] = False
    """Whether steps need the observations on which actions were chosen."""
    _takes_probabilities: ClassVar[bool] = False
    """Whether probabilities that travel with actions end here."""
    _adds: ClassVar[bool] = False
    """Whether observations get something added."""
    _n_copies: int = 1
    _unpaid: str | None = None
    """What is paid at the last step of an episode only."""
    _paid: Any = 0.0
    """Sum of the rewards that the wrapper paid in the episode so far, (n,)."""
    observation_space: Any
    action_space: Any

    def __init__(self, env: Wrapped, **arguments: Any) -> None:
        """Of the faces; what the environment is rebuilt with."""

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        """New episodes begin in the copies ``which``."""

    def _record(self, step: Step) -> NDArray[np.float64] | None:
        """Takes note of a step and adds to its infos; returns other rewards (n,), or None."""
        return None

    def _shown(self, observation: Any, which: Any = slice(None)) -> Any:
        """An observation (of all copies, or of the copy ``which``) with what is added to it."""
        return observation

    def _forget(self, which: NDArray[np.intp]) -> None:
        """The histories of the copies ``which`` begin anew, also those that are carried over."""

    def _tell_monitor(self, rewards: NDArray[np.float64], ended: NDArray[np.bool_], infos: Sequence[Any]) -> None:
        """The return of an episode that a Monitor inside published becomes that of other ``rewards`` (n,), which is
        what SB3's evaluations read."""
        self._paid = self._paid + rewards
        for index in np.flatnonzero(ended).tolist() if ended.any() else ():
            told = infos[index].get(EPISODE)
            if isinstance(told, Mapping) and "r" in told:
                infos[index][EPISODE] = {**told, "r": round(float(self._paid[index]), 6)}
            self._paid[index] = 0.0


class Face(Core, gym.Wrapper, gym.utils.RecordConstructorArgs):
    """A core as a Gymnasium wrapper."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _name_argument(cls, "env", gym.Env)

    def __init__(self, env: Any, **arguments: Any) -> None:
        if is_wrapped(env, Autoreset):
            raise ValueError(f"env must not restart by itself: put Autoreset around {type(self).__name__}")
        plain = {name: out_of_array(value) for name, value in arguments.items()}  # Gymnasium compares them with ==
        gym.utils.RecordConstructorArgs.__init__(self, **plain)
        gym.Wrapper.__init__(self, env)
        self._ends = Ends()
        self._seen: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._restart(np.zeros(1, dtype=np.intp), seed is not None)
        self._ends.restart(self, seed, self._unpaid)
        self._paid = np.zeros(1)
        obs, info = self.env.reset(seed=seed, options=options)
        self._seen = kept(obs) if self._looks_back else None
        return self._shown(obs, 0), info.copy()  # as environments may keep theirs

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        probabilities = getattr(action, "probabilities", None) if self._takes_probabilities else None
        if probabilities is not None:
            action, probabilities = int(action) if np.ndim(action) == 0 else np.asarray(action), probabilities[None]
        actions = np.array(action)[None]  # a copy, as environments may change theirs
        obs, reward, terminated, truncated, info = self.env.step(action)
        info = info.copy()
        ended = np.array([self._ends.step(terminated or truncated)])
        others = self._record(Step([self._seen], actions, probabilities, np.asarray(reward)[None], ended, [info]))
        if others is not None and others.ndim > 1:
            reward = others[0].copy()
        elif others is not None:
            reward = float(others[0])
            self._tell_monitor(others, ended, [info])
        self._seen = kept(obs) if self._looks_back else None
        return self._shown(obs, 0), reward, terminated, truncated, info

    def forget_history(self) -> None:
        """Empties the fairness histories here and inside, also those that are carried over."""
        self._forget(np.zeros(1, dtype=np.intp))
        forget_history(self.env)


class VecFace(Core, VecLayer):
    """A core as a VecEnv wrapper."""

    methods: ClassVar[tuple[str, ...]] = ("forget_history",)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _name_argument(cls, "venv", VecEnv)

    def __init__(self, venv: Any, **arguments: Any) -> None:
        VecLayer.__init__(self, venv)
        self._n_copies = venv.num_envs
        self._seeded = False
        self._seen: Any = None

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._seeded = True
        return self.venv.seed(seed)

    def reset(self) -> VecEnvObs:
        self._restart(np.arange(self.num_envs), self._seeded)
        self._paid = np.zeros(self.num_envs)
        self._seeded = False
        obs = self.venv.reset()
        self._seen = kept(obs) if self._looks_back else None
        return self._shown(obs)

    def step_async(self, actions: NDArray[Any]) -> None:
        self._probabilities = getattr(actions, "probabilities", None) if self._takes_probabilities else None
        self._actions = np.array(actions)  # a copy, as environments may change theirs
        self.venv.step_async(np.asarray(actions) if self._takes_probabilities else actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        infos = taken_over(infos)
        before = Observations(self._seen, self.num_envs) if self._looks_back else ()
        others = self._record(Step(before, self._actions, self._probabilities, rewards, dones, infos))
        if others is not None:
            rewards = others
            self._tell_monitor(others, dones, infos)
        if dones.any():
            which = np.flatnonzero(dones)
            for index in which.tolist() if self._adds else ():
                infos[index][LAST] = self._shown(infos[index][LAST], index)
            self._restart(which)
        self._seen = kept(obs) if self._looks_back else None
        return self._shown(obs), rewards, dones, infos

    def forget_history(self, copy: int | None = None) -> None:
        """Empties the fairness histories of a copy, None: of all, here and inside, also those that are carried over."""
        self._forget(np.arange(self.num_envs) if copy is None else np.array([copy]))
        forget_history(self.venv, copy)


def _name_argument(face: type[Core], name: str, kind: type) -> None:
    """The first argument of a face that takes its constructor from its core is called ``name``."""
    if "__init__" in vars(face):
        return
    init: Callable[..., None] = face.__init__
    own, first, *others = signature(init).parameters.values()
    shown = signature(init).replace(parameters=[own, first.replace(name=name, annotation=kind), *others])

    def named(*args: Any, **kwargs: Any) -> None:
        given = shown.bind(*args, **kwargs)
        check(name, given.arguments[name], kind)
        init(*given.args, **given.kwargs)

    wraps(init)(named).__signature__ = shown  # type: ignore[attr-defined]
    face.__init__ = named  # type: ignore[method-assign]
