"""Notions over whole episodes, whatever their rewards were made of."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import SlidingWindow, find_notion
from sb3_fair.fairness.distances import DISTANCES
from sb3_fair.fairness.notions.probabilities import half_roots
from sb3_fair.wrappers.infos import publish, stack
from sb3_fair.wrappers.layer import VecLayer, attribute
from sb3_fair.wrappers.vector_reward import PERFORMANCE

DISTANCE = "hmom"
"""Of CSC, and of the IF that is called so; IF is measured with the others as well."""


class VecWholeEpisode(VecLayer):
    """Puts figures over all decisions of the episode in the place of ``info["fairness"]``: one yardstick for policies
    whose rewards were measured in different ways. Rewards stay what they are.

    ``"R"`` is the performance so far. IF compares the executed actions; ``"IF"`` is that of :data:`DISTANCE`, and
    ``"IF@heom"`` and so on are those of the other distances.

    :param venv: a fairness MDP of one person per step and copy, whose scalar reward is the performance
    :param notions: what to measure
    """

    published = ("fairness_spec", "fairness_names")

    def __init__(self, venv: VecEnv, notions: Sequence[str]) -> None:
        super().__init__(venv)
        self.fairness_spec = replace(
            attribute(venv, "fairness_spec"),
            notions=[name for notion in notions for name in _variants(notion)],
            history=SlidingWindow(attribute(venv, "max_steps")),
            distance=list(DISTANCES),
        )
        self._n_actions = int(venv.action_space.n)  # type: ignore[attr-defined]
        self._roots = half_roots(np.eye(self._n_actions))
        self._tracker = self.fairness_spec.tracker(self.num_envs, self._n_actions)
        self.fairness_names = tuple(map(_plain, self._tracker.names))
        self._performance = np.zeros(self.num_envs)

    def reset(self) -> VecEnvObs:
        self._begin(np.arange(self.num_envs))
        return self.venv.reset()

    def _begin(self, copies: NDArray[np.intp]) -> None:
        self._tracker.reset(copies)
        self._performance[copies] = 0.0

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = np.asarray(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        person = self.fairness_spec.individual(None, None, {"individual": stack(infos, "individual")})
        self._tracker.add(
            person.group,
            self._actions,
            features=person.features,
            roots=self._roots[self._actions],
            feedback=person.feedback,
        )
        self._performance += rewards
        figures = {_plain(name): values for name, values in self._tracker.values().items()}
        publish(infos, "fairness", {PERFORMANCE: self._performance.copy(), **figures})
        if dones.any():
            self._begin(np.flatnonzero(dones))
        return obs, rewards, dones, infos


def _variants(notion: str) -> list[str]:
    """The notion with the distances that it is measured with, if it needs any."""
    if not find_notion(notion).needs_features:
        return [notion]
    return [f"{notion}@{distance}" for distance in (DISTANCES if notion == "IF" else (DISTANCE,))]


def _plain(name: str) -> str:
    return name.removesuffix(f"@{DISTANCE}")
