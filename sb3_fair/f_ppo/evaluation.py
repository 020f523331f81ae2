"""F-PPO's evaluation: utility, short- and long-term disparity of an agent in long episodes."""

from collections.abc import Mapping, Sequence
from copy import copy
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sb3_fair.common.connection import connected
from sb3_fair.common.rollout import Step, episodes, seeded
from sb3_fair.f_ppo.evaluated import FairnessEvaluation
from sb3_fair.f_ppo.legacy_cloud import LegacyCloud, cloud_distance, steps_of
from sb3_fair.fairness import Measures
from sb3_fair.fairness.disparity.measures import reported_by
from sb3_fair.fairness.intervals import mean_and_interval
from sb3_fair.fairness.validation import integer
from sb3_fair.wrappers.disparity import measured
from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import VecLayer, attribute

REWARD = "reward"


def evaluate_fairness(
    agent: Any,
    env_id: str,
    n_episodes: int,
    n_steps: int,
    seed: int = 0,
    deterministic: bool = False,
    massage: bool | None = None,
    *,
    legacy_cloud: bool = False,
    measures: Measures | None = None,
    n_envs: int = 256,
    **env_kwargs: Any,
) -> FairnessEvaluation:
    """Lets an agent play and records the environment's measures after every step.

    An agent with ``follow(vec_env)`` or ``bind(vec_env)`` is connected to the environments; a model that was trained
    with a ``VecNormalize`` sees observations normalised in the same way. The agent's samples follow from ``seed``.
    The agent itself does not change and stays bound to its environments.

    :param agent: anything with SB3's ``predict``
    :param env_id: a scenario of this package, or any other environment that is a fairness MDP
    :param n_episodes: number of episodes
    :param n_steps: steps of each; in scenarios of this package, episodes are as long unless ``env_kwargs`` say
        otherwise
    :param seed: of the first episode; the next ones have the next numbers
    :param deterministic: passed to ``predict``
    :param massage: whether actions are massaged (F-PPO); None: as the agent is set up
    :param legacy_cloud: whether to add the published measures of F-PPO, for comparison only
    :param measures: what to report; None: the environment's own measures, else demographic parity
    :param n_envs: how many episodes are played at once; with sampled actions, figures depend on it
    :param env_kwargs: keyword arguments of the environment
    :raises ValueError: if a number is not positive, massaging is asked of an agent that does not, or a figure that the
        measures report, or what the published measures need, is not told
    """
    for name, value in (("n_episodes", n_episodes), ("n_steps", n_steps), ("n_envs", n_envs)):
        integer(name, value, 1)
    seeds = tuple(range(seed, seed + n_episodes))
    settings = {**env_kwargs, "detail": True} if legacy_cloud else env_kwargs
    agent = _set_up(agent, massage)
    parts: list[_Record] = []
    with seeded(seed, agent):
        for first in range(0, n_episodes, n_envs):
            some = seeds[first : first + n_envs]
            venv = _Published(measured(_make(env_id, len(some), n_steps, settings), measures))
            reported = reported_by(attribute(venv, "fairness_spec").measures if measures is None else measures)
            parts.append(_Record(reported, n_steps, len(some), legacy_cloud))
            each, acts_in = np.ones(len(some), dtype=np.int64), connected(agent, venv)
            for number, step in enumerate(episodes(agent, acts_in, each, some, deterministic, n_steps=n_steps)):
                parts[-1].add(number, step, venv.fairness)
            venv.close()
    return FairnessEvaluation(
        env_id=env_id,
        settings=env_kwargs,
        seeds=seeds,
        deterministic=deterministic,
        massage=massage,
        keys=parts[0].keys,
        figures={name: np.concatenate([part.figures[name] for part in parts], axis=1).T for name in parts[0].keys},
        lengths=np.concatenate([part.lengths for part in parts]),
        legacy=_legacy(parts) if legacy_cloud else None,
    )


def _make(env_id: str, n: int, n_steps: int, settings: Mapping[str, Any]) -> VecEnv:
    """n copies; of a scenario of this package on one World."""
    module, _, name = env_id.rpartition(":")
    if module:
        import_module(module)
    if "env_id" not in gym.spec(name).kwargs:
        return make_vec_env(env_id, n, env_kwargs=dict(settings))
    made = gym.make_vec(name, num_envs=n, **settings)
    assert isinstance(made, GymnasiumVector)
    if attribute(made.venv, "world") is not None:  # whose episodes are to be that long
        made = gym.make_vec(name, num_envs=n, **{"episode_length": n_steps, **settings})
    assert isinstance(made, GymnasiumVector)
    return made.venv


def _set_up(agent: Any, massage: bool | None) -> Any:
    """A copy of the agent: binding it to other environments leaves the agent itself where it was."""
    agent = copy(agent)
    if hasattr(agent, "massage_on_predict"):
        agent.massage_on_predict = agent.massage_on_predict if massage is None else massage
    elif massage:
        raise ValueError(f"massage must be None or False for an agent without massaging, got {massage!r}")
    return agent


class _Published(VecLayer):
    """Keeps what was published in the last step, which an agent's own measures may replace in the infos."""

    fairness: Mapping[str, Any]

    def step_wait(self) -> VecEnvStepReturn:
        step = self.venv.step_wait()
        self.fairness = stack(step[3], "fairness")
        return step


class _Record:
    """What is noted of n episodes played at once.

    :param keys: figure -> key in ``info["fairness"]``, or ``"reward"``
    """

    def __init__(self, keys: Mapping[str, str], n_steps: int, n: int, legacy: bool) -> None:
        self.keys = dict(keys)
        self.figures = {figure: np.full((n_steps, n), np.nan) for figure in self.keys}
        self.lengths = np.zeros(n, dtype=np.int64)
        self.looked_at = steps_of(n_steps) - 1 if legacy else ()
        self.groups: list[NDArray[np.float64]] = []
        self.rates: list[NDArray[np.float64]] = []

    def add(self, number: int, step: Step, fairness: Mapping[str, Any]) -> None:
        """Notes a step of the copies that still play their episode."""
        for name, key in self.keys.items():
            value = step.rewards if key == REWARD else fairness.get(key)
            if value is None:
                raise ValueError(
                    f"measures must report what info['fairness'] has, {sorted(fairness)}, or {REWARD!r}, got {key!r}"
                )
            np.copyto(self.figures[name][number], value, where=step.counts, casting="same_kind")
        self.lengths += step.counts
        if number in self.looked_at and step.counts.all():
            detail = stack(step.infos, "detail") if "detail" in step.infos[0] else {}
            if "groups" not in detail:
                raise ValueError("legacy_cloud must be False without info['detail']['groups'], got True")
            self.groups.append(detail["groups"])
            if "tpr" in detail:
                self.rates.append(detail["tpr"])


def _legacy(parts: Sequence[_Record]) -> LegacyCloud:
    """Of the steps that all episodes have."""
    groups = [np.concatenate(some) for some in zip(*(part.groups for part in parts), strict=False)]
    rates = [np.concatenate(some) for some in zip(*(part.rates for part in parts), strict=False)]
    return LegacyCloud(
        steps=np.asarray(parts[0].looked_at)[: len(groups)] + 1,
        distance=np.array([cloud_distance(vectors) for vectors in groups]),
        gap_of_mean_tpr=np.array([np.ptp(mean_and_interval(each).mean) for each in rates]) if rates else None,
    )
