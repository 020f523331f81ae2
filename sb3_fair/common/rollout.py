"""Plays complete episodes on the copies of a VecEnv, without favouring short ones.

Every copy has a fixed number of episodes to finish, as in SB3's ``evaluate_policy``: taking whichever episodes end
first would prefer short ones. A copy that is done goes on until all are; what it does then does not count.
"""

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.env_util import unwrap_wrapper
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from sb3_fair.common.connection import own_scale
from sb3_fair.wrappers.layer import forget_history, seed_copies


class Step(NamedTuple):
    """One step of n copies.

    :param observations: what the actions were chosen on
    :param rewards: (n,), as SB3 gets them
    :param counts: whether the step belongs to one of the episodes that were asked for, (n,) bool
    :param new_obs: what followed
    """

    observations: Any
    actions: NDArray[Any]
    rewards: NDArray[Any]
    dones: NDArray[np.bool_]
    infos: list[dict[str, Any]]
    counts: NDArray[np.bool_]
    new_obs: Any = None


Act = Callable[[Any, NDArray[np.bool_]], NDArray[Any]]


def shares(n_episodes: int, n_envs: int) -> NDArray[np.int64]:
    """How many of ``n_episodes`` each copy plays, (n_envs,): as equal as possible."""
    return (n_episodes + np.arange(n_envs)[::-1]) // n_envs


def episodes(
    model: Any, venv: VecEnv, quotas: NDArray[np.int64], seeds: Sequence[int], deterministic: bool = True, **limit: Any
) -> Iterator[Step]:
    """The steps of ``quotas[i]`` episodes that ``model.predict`` plays on copy i.

    Copies are seeded with ``seeds`` and begin with empty fairness histories. A ``VecNormalize`` has the model's scale.
    Models that take action masks, such as sb3-contrib's ``MaskablePPO``, get those of an environment that has them.

    :param limit: ``n_steps`` of :func:`play`
    """
    state: Any = None
    masked = "action_masks" in signature(model.predict).parameters and venv.has_attr("action_masks")

    def act(observations: Any, begins: NDArray[np.bool_]) -> NDArray[Any]:
        nonlocal state
        masks = {"action_masks": np.stack(venv.env_method("action_masks"))} if masked else {}
        actions, state = model.predict(
            observations, state=state, episode_start=begins, deterministic=deterministic, **masks
        )
        return np.asanyarray(actions)

    forget_history(venv)
    seed_copies(venv, seeds)
    with own_scale(model, venv):
        yield from play(venv, act, quotas, **limit)


def play(venv: VecEnv, act: Act, quotas: NDArray[np.int64], n_steps: int | None = None) -> Iterator[Step]:
    """Resets ``venv`` and steps it until copy i has finished ``quotas[i]`` episodes.

    :param act: from observations and whether each copy's episode has just begun (n,) to actions (n,)
    :param n_steps: at most so many steps; None: any number
    """
    steps = count() if n_steps is None else range(n_steps)
    left = quotas.copy()
    observations = venv.reset()
    begins = np.ones(venv.num_envs, dtype=bool)
    for _ in steps:
        if not (left > 0).any():
            break
        actions = act(observations, begins)
        following, rewards, dones, infos = venv.step(actions)
        yield Step(observations, actions, rewards, dones, infos, left > 0, following)
        left -= dones
        observations, begins = following, dones


def twin(venv: VecEnv) -> VecEnv:
    """A deep copy of a VecEnv with all its wrappers, that writes no monitor files and learns no normalisation.

    :raises TypeError: if the environments cannot be copied, as those in other processes
    """
    if isinstance(venv, SubprocVecEnv):  # a copy would close this one's pipes when it is thrown away
        raise TypeError("environments in other processes cannot be copied")
    if not isinstance(venv, VecEnvWrapper):
        monitors: list[Any] = [unwrap_wrapper(env, Monitor) for env in getattr(venv, "envs", ())]
        return copy.deepcopy(venv, {id(monitor.results_writer): None for monitor in monitors if monitor})
    inside = twin(venv.venv)
    # a VecEnvWrapper looks into `venv` for attributes it does not have, so copy.deepcopy(wrapper) recurses for ever
    kept: dict[int, Any] = {id(venv.venv): inside, id(venv.class_attributes): venv.class_attributes}
    kept |= {id(value): None for value in vars(venv).values() if isinstance(value, ResultsWriter)}
    outside: VecEnv = object.__new__(type(venv))
    vars(outside).update(copy.deepcopy(vars(venv), kept))
    if isinstance(outside, VecNormalize):
        outside.training = False
    return outside


@contextmanager
def seeded(seed: int, model: Any = None) -> Iterator[None]:
    """What models sample from starts at ``seed`` and is put back afterwards: SB3's use the global generators and the
    action space, ours their own ``rng``."""
    states = random_states()
    space, rng = getattr(model, "action_space", None), getattr(model, "rng", None)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    th.manual_seed(seed)
    if space is not None:
        model.action_space = copy.deepcopy(space)
        model.action_space.seed(seed)
    if rng is not None:
        model.rng = np.random.default_rng((seed, 2))
    try:
        yield
    finally:
        set_random_states(states)
        if space is not None:
            model.action_space = space
        if rng is not None:
            model.rng = rng


def random_states() -> dict[str, Any]:
    """The states of the random generators of Python, numpy and torch that the whole process shares."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002
        "torch": th.get_rng_state(),
        "cuda": th.cuda.get_rng_state_all() if th.cuda.is_available() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Puts back what :func:`random_states` told."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])  # noqa: NPY002
    th.set_rng_state(states["torch"])
    if states["cuda"]:
        th.cuda.set_rng_state_all(states["cuda"])
