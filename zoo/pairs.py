"""Which algorithms make sense in which environments, and why not in the others?"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.wrappers.disparity import measured
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo.algorithms import Algorithm
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.names import PREFIX, InputError, input_errors

LONGEST = 2_000
"""Steps of an episode that is learned from as a whole."""


@dataclass(frozen=True)
class Need:
    """What some algorithms ask of an environment.

    :param text: completes "<algorithm> needs ..."
    :param lack: from one copy of the environment to what it has instead, None if the need is met
    """

    text: str
    lack: Callable[[VecEnv], str | None]


def _not_discrete(venv: VecEnv) -> str | None:
    return None if isinstance(venv.action_space, spaces.Discrete) else f"actions are {venv.action_space}"


def _no_scheme(venv: VecEnv) -> str | None:
    return None if attribute(venv, "scheme") is not None else "the reward follows none"


def _several_individuals(venv: VecEnv) -> str | None:
    venv.seed(0)
    venv.reset()
    infos = venv.step(np.array([venv.action_space.sample()]))[3]
    size = np.size(stack(infos, "individual")["group"])
    return None if size == 1 else f"a step is about {size}"


def _no_disparity(venv: VecEnv) -> str | None:
    try:
        measured(venv).reset()
    except ValueError as error:
        return str(error)
    return None


def _long_episodes(venv: VecEnv) -> str | None:
    steps = attribute(venv, "max_steps")
    if steps is None:
        return "the number of their steps has no limit"
    return None if steps <= LONGEST else f"they have {steps:,}"


def _nobody_to_compare(venv: VecEnv) -> str | None:
    return "an episode is about one individual" if attribute(venv, "one_individual") else None


NEEDS = {
    "discrete": Need("Discrete actions", _not_discrete),
    "scheme": Need("a fairness scheme, whose past can be told otherwise", _no_scheme),
    "individual": Need("one individual per step, with a group", _several_individuals),
    "disparity": Need("measures of disparity, or the group of whom it decides on next", _no_disparity),
    "episodes": Need(f"whole episodes of at most {LONGEST:,} steps", _long_episodes),
    "groups": Need("episodes in which groups can be compared", _nobody_to_compare),
}


def obstacles(
    algorithm: Algorithm, env_id: str, env_kwargs: Mapping[str, Any], hyperparams: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Why the algorithm makes no sense in this environment; nothing if it does.

    :param env_kwargs: keyword arguments of the ID; the objectives do not matter
    :param hyperparams: what the algorithm is given itself, which the environment need not have
    """
    given = {key: value for key, value in env_kwargs.items() if key not in ("objectives", "scalarise", "vector")}
    needs = [name for name in algorithm.needs if (hyperparams or {}).get(name) is None]
    if not needs:
        return
    venv = make_vec(env_id, monitor=False, **given)
    for name in needs:
        lack = NEEDS[name].lack(venv)
        if lack is not None:
            yield f"{algorithm.name} needs {NEEDS[name].text}, but in {env_id.removeprefix(PREFIX)} {lack}"
    venv.close()


def check_pair(
    algorithm: Algorithm, env_id: str, env_kwargs: Mapping[str, Any], hyperparams: Mapping[str, Any] | None = None
) -> None:
    """Does the algorithm make sense in this environment?

    :raises InputError: if it does not; tells the first reason
    """
    with input_errors():
        reason = next(obstacles(algorithm, env_id, env_kwargs, hyperparams), None)
    if reason is not None:
        raise InputError(reason)
