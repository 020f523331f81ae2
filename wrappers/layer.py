"""Layers of an environment: attributes, seeds, histories through all wrappers."""

import operator
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from inspect import getmembers
from multiprocessing.reduction import ForkingPickler
from numbers import Real
from typing import Any, ClassVar

import cloudpickle
import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import FairnessSpec
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.observations import each, rows_of


class CopiedLayer:
    """Makes a VecEnvWrapper able to be copied and pickled, with the environment inside: SB3's own keep the members of
    their class in ``class_attributes``, which cannot be pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "class_attributes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, class_attributes=dict(getmembers(type(self))))


class VecLayer(CopiedLayer, VecEnvWrapper):
    """A VecEnvWrapper whose attributes and methods are found from outside, as ``get_wrapper_attr`` finds a wrapper's.

    SB3's wrappers pass ``get_attr`` and ``env_method`` to the innermost VecEnv, so that what a wrapper adds to all
    copies stays unseen, and refuse names that two wrappers have. Here the outermost of our layers answers.
    """

    published: ClassVar[tuple[str, ...]] = ()
    """Attributes that ``get_attr`` finds, the same for all copies."""
    methods: ClassVar[tuple[str, ...]] = ()
    """Methods that ``env_method`` calls for each copy, whose number is their first argument."""

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        return self.venv.step_wait()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        if attr_name in self.published:
            return [getattr(self, attr_name) for _ in self._get_indices(indices)]
        if attr_name in self.methods:
            return [partial(getattr(self, attr_name), copy) for copy in self._get_indices(indices)]
        return super().get_attr(attr_name, indices)

    def has_attr(self, attr_name: str) -> bool:
        return attr_name in self.published or attr_name in self.methods or super().has_attr(attr_name)

    def env_method(self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **named: Any) -> list[Any]:
        if method_name in self.methods:
            method = getattr(self, method_name)
            return [method(copy, *method_args, **named) for copy in self._get_indices(indices)]
        return super().env_method(method_name, *method_args, indices=indices, **named)

    def getattr_depth_check(self, name: str, already_found: bool) -> str | None:
        if not already_found and name in self._get_all_attributes():
            return None
        return super().getattr_depth_check(name, already_found)


def forget_history(venv: gym.Env | VecEnv, copy: int | None = None) -> None:
    """Empties the fairness histories below, of one copy or of all (None), also those that are carried over."""
    if isinstance(venv, gym.Env):
        attribute(venv, "forget_history", lambda: None)()
        return
    while isinstance(venv, VecEnvWrapper):
        if hasattr(type(venv), "forget_history"):
            venv.forget_history(*([] if copy is None else [copy]))
            return
        venv = venv.venv
    if venv.has_attr("forget_history"):
        venv.env_method("forget_history", indices=copy)


def _with_functions(told: Any) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
    """Pickles what holds functions of a user for another process: by name if possible, else by value.

    A spawned process does not find the functions of the user's script by name, since its main script is another one.
    """
    try:
        return pickle.loads, (pickle.dumps(told),)
    except Exception:
        return cloudpickle.loads, (cloudpickle.dumps(told),)


ForkingPickler.register(FairnessSpec, _with_functions)
ForkingPickler.register(Scheme, _with_functions)


def attribute(venv: gym.Env | VecEnv, name: str, default: Any = None, kind: Any = object) -> Any:
    """What the outermost layer of an environment that knows ``name`` has under it; of the first copy of many.

    :param kind: type; what is of another one counts as not there, as people have uses of their own for common names
    """
    try:
        if isinstance(venv, gym.Env):
            found = venv.get_wrapper_attr(name) if venv.has_wrapper_attr(name) else default
        else:
            found = venv.get_attr(name)[0] if venv.has_attr(name) else default
    except (EOFError, ConnectionError) as error:
        raise ValueError(
            f"{name!r} of environments in other processes must be picklable, made of functions and classes of a module "
            "that can be imported"
        ) from error
    return found if isinstance(found, kind) else default


def shows_time(env: gym.Env | VecEnv) -> bool:
    """Whether observations show the time, as the environment says by ``clock = True``; a pygame clock says nothing."""
    return bool(attribute(env, "clock", False, kind=(bool, np.bool_)))


def different(venv: VecEnv, name: str) -> list[Any]:
    """What the copies have under ``name`` now; once if they share it."""
    found = venv.get_attr(name)
    return found[:1] if all(each is found[0] for each in found) else found


def seed_copies(venv: VecEnv, seeds: Sequence[int | None]) -> None:
    """Seeds copy i with ``seeds[i]`` at the next reset, where ``VecEnv.seed`` can only count upwards, as it does for
    copies beyond ``seeds``."""
    numbers = [None if seed is None else operator.index(seed) for seed in seeds]
    venv.seed(numbers[0])
    venv.unwrapped._seeds[: len(seeds)] = numbers


def max_steps_of(env: gym.Env | VecEnv) -> int | None:
    """The number of steps after which an episode ends at the latest, None if neither ``env`` nor a wrapper in it says.

    ``max_steps`` of the environment, if that is a finite number, a ``TimeLimit`` wherever it stands, or the spec.
    """
    told = [attribute(env, name, np.inf, kind=Real) for name in ("max_steps", "_max_episode_steps")]
    limits = [int(limit) for limit in told if np.isfinite(limit)]
    return min(limits) if limits else getattr(attribute(env, "spec"), "max_episode_steps", None)


def kept(obs: Any) -> Any:
    """A copy of the arrays in an observation, which an environment or a wrapper outside may change in place."""
    return each(lambda part: part.copy() if isinstance(part, np.ndarray) else part, obs)


class Observations(Sequence[Any]):
    """The observations of a VecEnv copy by copy."""

    def __init__(self, obs: VecEnvObs, n: int) -> None:
        self.obs, self.n = obs, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Any:
        return rows_of(self.obs, index)
