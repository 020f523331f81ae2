"""Whether an algorithm fits an environment, and a fairness spec its environment; if not, why."""

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness import find_notion
from sb3_fair.fairness.descriptions import DISPARITY
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.fairness.tracking.requests import attribute_name
from sb3_fair.pcn.actions import head_for
from sb3_fair.wrappers.choices import random_actions
from sb3_fair.wrappers.disparity import measured
from sb3_fair.wrappers.group_returns import games_of
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import attribute, max_steps_of
from sb3_fair.zoo.names import InputError, input_errors
from sb3_fair.zoo.registry.algorithms import Algorithm
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.registry.registration import bare, find

LONGEST = 2_000
"""Steps of an episode that is learned from as a whole."""
ENOUGH, MOST = 100, 10_000
"""Steps of random play after which a fairness spec is believed to fit, and after which it is believed not to."""


def _no_decisions(venv: VecEnv) -> str | None:
    space = venv.action_space
    try:
        head_for(space, 0.0)
    except ValueError:
        return f"actions are {space}"
    spec = attribute(venv, "fairness_spec")
    compared = spec is None or callable(spec.favourable) or not isinstance(space, spaces.Box)
    return None if compared else f"actions are {space}, none of them called favourable"


def _several_individuals(venv: VecEnv) -> str | None:
    attributes = attribute(venv, "fairness_spec").attributes
    if attributes:
        return f"groups have attributes: {', '.join(map(attribute_name, attributes))}"
    venv.seed(0)
    venv.reset()
    infos = venv.step(random_actions(venv))[3]
    size = np.size(stack(infos, "individual")["group"]) // venv.num_envs
    return None if size == 1 else f"a step is about {size}"


def _no_disparity(venv: VecEnv) -> str | None:
    try:
        measured(venv).reset()
    except ValueError as error:
        return str(error)
    return None


def _long_episodes(venv: VecEnv) -> str | None:
    steps = max_steps_of(venv)
    if steps is None:
        hint = ": give max_episode_steps to register, or as -E max_episode_steps:500"
        return f"the number of their steps has no limit{hint if attribute(venv, 'world') is None else ''}"
    return None if steps <= LONGEST else f"they have {steps:,}"


def _nobody_to_compare(venv: VecEnv) -> str | None:
    if games_of(venv) is not None:
        return "every agent has an episode of its own"
    return "an episode is about one individual" if attribute(venv, "one_individual") else None


NEEDS: dict[str, tuple[str, Callable[[VecEnv], str | None]]] = {
    "starts": (
        "actions that start at 0, as the networks of Stable-Baselines3 count",
        lambda venv: f"they are {venv.action_space}" if np.any(getattr(venv.action_space, "start", 0)) else None,
    ),
    "discrete": (
        "Discrete actions",
        lambda venv: None if isinstance(venv.action_space, spaces.Discrete) else f"actions are {venv.action_space}",
    ),
    "decisions": ("actions that are discrete or of a bounded Box, some of them favourable", _no_decisions),
    "scheme": (
        "a fairness scheme, whose past can be told otherwise",
        lambda venv: "the reward follows none" if attribute(venv, "scheme", kind=Scheme) is None else None,
    ),
    "individual": ("one individual per step, with one label as its group", _several_individuals),
    "disparity": ("measures of disparity, or the group of whom it decides on next", _no_disparity),
    "episodes": (f"whole episodes of at most {LONGEST:,} steps", _long_episodes),
    "groups": ("episodes in which groups can be compared", _nobody_to_compare),
}
"""What some algorithms ask of an environment, and a function from one copy of it to what it has instead, or None."""


def obstacles(
    algorithm: Algorithm, env_id: str, env_kwargs: Mapping[str, Any], hyperparams: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Why the algorithm makes no sense in this environment; nothing if it does. The environment need not have what is
    among the ``hyperparams``.
    """
    given = {key: value for key, value in env_kwargs.items() if key not in ("objectives", "scalarise", "vector")}
    needs = [NEEDS[name] for name in algorithm.needs if (hyperparams or {}).get(name) is None]
    with closing(make_vec(env_id, monitor=False, **given)) as venv:
        for text, lack_of in needs:
            lack = lack_of(venv)
            if lack is not None:
                yield f"{algorithm.name} needs {text}, but in {bare(env_id)} {lack}"


def check_pair(
    algorithm: Algorithm, env_id: str, env_kwargs: Mapping[str, Any], hyperparams: Mapping[str, Any] | None = None
) -> None:
    """Refuses an algorithm that makes no sense in this environment, and a spec that does not fit its environment."""
    with input_errors():
        if not find(env_id).is_shipped:
            check_env(env_id, env_kwargs)
        reason = next(obstacles(algorithm, env_id, env_kwargs, hyperparams), None)
    if reason is not None:
        raise InputError(reason)


def fitting(objectives: Sequence[str], env_id: str, env_kwargs: Mapping[str, Any]) -> list[str]:
    """Objectives for an environment without settings of its own: for R alone R, else R and the notions of its spec."""
    if len(objectives) < 2:
        return list(objectives)
    given = {key: value for key, value in env_kwargs.items() if key != "objectives"}
    with input_errors(), closing(make_vec(env_id, monitor=False, **given)) as venv:
        return ["R", *attribute(venv, "fairness_spec").notions]


def named_in_full(env_id: str, env_kwargs: Mapping[str, Any]) -> list[str]:
    """The objectives in ``env_kwargs``, with ``"SP@gender"`` and so on for the SP of several attributes."""
    with input_errors(), closing(make_vec(env_id, monitor=False, **env_kwargs)) as venv:
        names = list(attribute(venv, "objective_names"))
        if any(name.startswith(DISPARITY) for name in names):  # steps tell whether it is measured
            venv.reset()
            venv.step(random_actions(venv))
        return names


def check_env(env_id: str, env_kwargs: Mapping[str, Any]) -> None:
    """Plays an environment at random until every episode, group and notion is known to be what its spec says."""
    seen: set[Any] = set()
    with closing(make_vec(env_id, monitor=False, **env_kwargs)) as venv, warnings.catch_warnings():
        spec, notions = attribute(venv, "fairness_spec"), set(attribute(venv, "fairness_names"))
        waiting, told, endless = set(spec.compared_groups or ()), False, max_steps_of(venv) is None
        venv.action_space.seed(0)
        venv.seed(0)
        venv.reset()
        warnings.simplefilter("ignore")  # what is wrong is told in one line
        for step in range(MOST):
            if step >= ENOUGH and not (waiting or notions or endless):
                break
            _, _, dones, infos = venv.step(random_actions(venv))
            person = infos[0].get("individual") or {}
            labels = np.asarray(person.get("group"), dtype=object).ravel().tolist()
            seen.update(label for label in labels if isinstance(label, Hashable))
            waiting -= seen
            told = told or any(value is not None for value in np.asarray(person.get("feedback"), dtype=object).ravel())
            notions -= {name for name, value in infos[0]["fairness"].items() if value is not None}
            endless = endless and not dones[0]
    if endless:
        raise InputError(
            f"max_episode_steps must be given for {bare(env_id)}: no episode was over after {MOST:,} steps"
        )
    if waiting:
        raise InputError(
            f"fairness must have groups that occur, got {min(map(repr, waiting))}, of which nobody was in "
            f"{MOST:,} steps: there were {', '.join(sorted(map(repr, seen)))}"
        )
    for name in sorted(notions):
        known = told or not find_notion(name).needs_feedback
        raise InputError(
            f"fairness must have notions that the environment can have, got {name}, undefined in all of {MOST:,} steps"
            + ("" if known else ": no decision had feedback")
        )
