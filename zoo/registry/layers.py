"""Layers of a plan: monitor, normalisation, wrappers by name."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from sb3_fair.common.monitor import LightMonitor
from sb3_fair.wrappers.choices import VecChoices
from sb3_fair.zoo.names import InputError, choose, why
from sb3_fair.zoo.registry.build import make_single, make_vec
from sb3_fair.zoo.runs.plan import Plan

WRAPPERS = (
    "gymnasium.wrappers",
    "sb3_fair.wrappers",
    "stable_baselines3.common.atari_wrappers",
    "stable_baselines3.common.vec_env",
)
"""Modules whose wrappers anybody's settings may name, except for these, which write files:"""
WRITERS = ("Monitor", "RecordVideo", "VecMonitor", "VecVideoRecorder")
TRANSPARENT = (gym.RewardWrapper, gym.wrappers.NormalizeReward, gym.wrappers.TimeLimit)
"""Wrappers that hand on observations and actions as they are."""
SCALES = (VecNormalize, gym.wrappers.NormalizeObservation)
"""Wrappers that learn a scale in training, which would be lost: evaluations build their wrappers anew."""
KINDS = {"env_wrapper": gym.Wrapper, "vec_env_wrapper": VecEnvWrapper}


def copies(plan: Plan, n_envs: int, *, seed: int | None = None, monitor: bool = True, **settings: Any) -> VecEnv:
    """``n_envs`` copies of the plan's environment in the wrappers of the plan; ``settings`` in place of those of
    the plan.
    """
    settings = {**plan.env_kwargs, **settings}
    if plan.env_wrapper is None:
        venv = make_vec(plan.env, n_envs=n_envs, monitor=False, **settings)
    else:  # Gymnasium's wrappers take single environments
        venv = DummyVecEnv([lambda: single(plan, **settings) for _ in range(n_envs)])
    venv = vectorised(plan, venv)
    if monitor:
        venv = LightMonitor(venv)
    if seed is not None:
        venv.seed(seed)
    return venv


def single(plan: Plan, **settings: Any) -> gym.Env:
    """One environment in the plan's ``env_wrapper``; ``settings``: keyword arguments of the ID, and of
    ``gym.make``.
    """
    return _wrapped(plan, "env_wrapper", make_single(plan.env, **settings))


def vectorised(plan: Plan, venv: VecEnv) -> VecEnv:
    """``venv`` in the plan's ``vec_env_wrapper``."""
    return _wrapped(plan, "vec_env_wrapper", venv)


def check_wrappers(plan: Plan) -> None:
    """Refuses wrappers whose import could run code that is not of the packages in :data:`WRAPPERS`."""
    for key, name in _names(plan):
        module, _, wrapper = name.rpartition(".")
        if module not in WRAPPERS or wrapper in WRITERS:
            raise InputError(
                f"{key} must name a wrapper of {', '.join(WRAPPERS)} that writes no files, unless --own-code (or "
                f"--trust, for a run) lets it run any code, got {name!r}"
            )


def transparent(plan: Plan) -> Plan:
    """The plan with those of its wrappers alone that hand on observations and actions as they are."""

    def kept(key: str) -> Any:
        wrappers = _named(key, getattr(plan, key))
        return [{name: given} for name, given in wrappers if issubclass(_found(key, name), TRANSPARENT)] or None

    return replace(plan, env_wrapper=kept("env_wrapper"), vec_env_wrapper=kept("vec_env_wrapper"))


def check_transparent(plan: Plan) -> None:
    """Refuses wrappers without which a policy would see other observations, or its actions would mean another thing."""
    for key, name in _names(plan):
        if not issubclass(_found(key, name), TRANSPARENT):
            raise InputError(
                "run must be of a policy that sees observations as the environment has them, and whose actions it "
                f"takes as they are, but {key} has {name}"
            )


def _names(plan: Plan) -> Iterator[tuple[str, str]]:
    """(``env_wrapper`` or ``vec_env_wrapper``, dotted name) of each wrapper."""
    for key in KINDS:
        yield from ((key, name) for name, _ in _named(key, getattr(plan, key)))


def _wrapped(plan: Plan, key: str, env: Any) -> Any:
    for name, arguments in _named(key, getattr(plan, key)):
        wrapper = _found(key, name)
        try:
            env = wrapper(env, **arguments)
        except Exception as error:  # somebody else's wrapper may raise anything
            raise InputError(
                f"{key} must name wrappers that can be made, but {name} with {arguments} fails: {why(error)}"
            ) from error
    return env


def _named(key: str, setting: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Wrappers by dotted name, innermost first: a name, ``{name: arguments}``, or a list of these."""
    for entry in [] if setting is None else setting if isinstance(setting, list | tuple) else [setting]:
        for name, arguments in (entry if isinstance(entry, Mapping) else {entry: {}}).items():
            if not isinstance(arguments, Mapping | None):
                raise InputError(f"{key} must have arguments by name, got {arguments!r} for {name}")
            yield str(name), dict(arguments or {})


def _found(key: str, name: str) -> Any:
    module, _, attribute = name.rpartition(".")  # as in check_wrappers
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{key} must be the dotted name of a class that can be imported, got {name!r}") from error
    if not (isinstance(found, type) and issubclass(found, KINDS[key])):
        raise InputError(f"{key} must name a {KINDS[key].__name__}, got {name!r}")
    if issubclass(found, SCALES):
        raise InputError(
            f"{key} must name no wrapper that learns a scale: give normalize, which keeps it, got {name!r}"
        )
    return found


def normalising(plan: Plan, venv: VecEnv) -> VecEnv:
    """``venv`` with observations and rewards on one scale, if the plan says so; the scale is learned in training."""
    if plan.normalize is None:
        return venv
    if plan.algorithm.vector:
        raise InputError(f"normalize must be left out for {plan.algo}, which has scales of its own (standardise)")
    allowed = [name for name in signature(VecNormalize.__init__).parameters if name not in ("self", "venv", "training")]
    for name in plan.normalize:
        choose("argument of normalize", name, allowed)
    own: dict[str, Any] = {"gamma": plan.hyperparams.get("gamma", plan.algorithm.settings.get("gamma", 0.99))}
    if isinstance(venv.observation_space, spaces.Dict):
        parts = venv.observation_space.items()
        own["norm_obs_keys"] = [key for key, part in parts if isinstance(part, spaces.Box)]
    return VecNormalize(venv, **{**own, **plan.normalize})


def with_chances(plan: Plan, venv: VecEnv) -> VecEnv:
    """``venv``, told the probabilities of discrete actions by the algorithm itself or by a VecChoices."""
    has_none = isinstance(venv.action_space, spaces.Box) or plan.algorithm.tells_chances
    return venv if has_none else VecChoices(venv)
