"""Notions over whole episodes, whatever their rewards were made of."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness import SlidingWindow, find_notion
from sb3_fair.fairness.distances import DISTANCES
from sb3_fair.fairness.notions.probabilities import half_roots
from sb3_fair.wrappers.faces import Step, VecFace
from sb3_fair.wrappers.infos import publish, stack
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.vector_reward import PERFORMANCE

DISTANCE = "hmom"
"""Of CSC, and of the IF that is called so; IF is measured with the others as well."""


class VecWholeEpisode(VecFace):
    """Puts figures over all decisions of the episode in the place of ``info["fairness"]``: one yardstick for policies
    whose rewards were measured in different ways. Rewards stay what they are.

    ``"R"`` is the performance so far. IF compares the executed actions; ``"IF"`` is that of :data:`DISTANCE`, and
    ``"IF@heom"`` and so on are those of the other distances.

    :param venv: a fairness MDP of one person per step and copy, whose scalar reward is the performance
    :param notions: what to measure
    """

    published: ClassVar[tuple[str, ...]] = ("fairness_spec", "fairness_names", "reset_on_episode")
    reset_on_episode = True

    def __init__(self, venv: VecEnv, notions: Sequence[str]) -> None:
        super().__init__(venv, notions=notions)
        self.fairness_spec = replace(
            attribute(venv, "fairness_spec"),
            notions=[name for notion in notions for name in _variants(notion)],
            history=SlidingWindow(attribute(venv, "max_steps")),
            distance=list(DISTANCES),
        )
        n_actions = int(venv.action_space.n)  # type: ignore[attr-defined]
        self._roots = half_roots(np.eye(n_actions))
        self._tracker = self.fairness_spec.tracker(self._n_copies, n_actions)
        self.fairness_names = tuple(map(_plain, self._tracker.names))
        self._performance = np.zeros(self._n_copies)

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        self._tracker.reset(which)
        self._performance[which] = 0.0

    def _record(self, step: Step) -> None:
        person = self.fairness_spec.individual(None, None, {"individual": stack(step.infos, "individual")})
        roots = self._roots[step.actions]
        self._tracker.add(person.group, step.actions, features=person.features, roots=roots, feedback=person.feedback)
        self._performance += step.rewards
        figures = {_plain(name): values for name, values in self._tracker.values().items()}
        publish(step.infos, "fairness", {PERFORMANCE: self._performance.copy(), **figures})


def _variants(notion: str) -> list[str]:
    """The notion with the distances that it is measured with, if it needs any."""
    if not find_notion(notion).needs_features:
        return [notion]
    return [f"{notion}@{distance}" for distance in (DISTANCES if notion == "IF" else (DISTANCE,))]


def _plain(name: str) -> str:
    return name.removesuffix(f"@{DISTANCE}")
