"""How unfair would the decisions of an episode look by luck alone, had they been blind to the groups?"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import FairnessSpec, chance_level, find_notion
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import VecLayer

SUFFIX = " by chance"


class VecChance(VecLayer):
    """Puts the chance level of each group notion beside it when an episode ends: ``info["fairness"]["SP by chance"]``.

    The group labels are permuted among the decisions that the notion looks at
    (:func:`~sb3_fair.fairness.chance_level`).

    :param venv: a fairness MDP that decides on one individual per step
    :param n_permutations: how often the labels are permuted
    """

    def __init__(self, venv: VecEnv, n_permutations: int = 50) -> None:
        super().__init__(venv)
        self.spec: FairnessSpec = venv.get_attr("fairness_spec")[0]
        self.n_permutations = n_permutations
        names = venv.get_attr("fairness_names")[0]
        self.names = [name for name in names if find_notion(name.partition("@")[0]).needs_groups]
        self._steps: list[tuple[Any, NDArray[Any], NDArray[Any]]] = []
        self._begun = np.zeros(self.num_envs, dtype=np.int64)

    def reset(self) -> VecEnvObs:
        self._steps = []
        self._begun[:] = 0
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        if self.names:
            people = stack(infos, "individual")
            self._steps.append((people["group"], people["action"], people["feedback"]))
            for copy in np.flatnonzero(dones):
                infos[copy]["fairness"] = {**infos[copy]["fairness"], **self._levels(int(copy))}
            self._begun[dones] = len(self._steps)
        return obs, rewards, dones, infos

    def _levels(self, copy: int) -> dict[str, float]:
        groups, actions, feedback = zip(*self._steps[self._begun[copy] :], strict=True)
        levels = {}
        for name in self.names:
            notion, _, attribute = name.partition("@")
            recent = slice(-self._window(name, notion), None)
            compared = self.spec.groups
            levels[name + SUFFIX] = chance_level(
                notion,
                [action[copy] for action in actions[recent]],
                [_label(group, attribute, copy) for group in groups[recent]],
                feedback=[known[copy] for known in feedback[recent]],
                favourable=self.spec.favourable,
                compared=compared.get(attribute) if isinstance(compared, Mapping) else compared,
                n_permutations=self.n_permutations,
            )
        return levels

    def _window(self, name: str, notion: str) -> int:
        history = self.spec.history
        if isinstance(history, Mapping):
            history = history[name if name in history else notion]
        return int(history.decisions) if history.forgets else len(self._steps)


def _label(group: Any, attribute: str, copy: int) -> Any:
    """The label of one copy; a tuple for a product partition such as "gender+nationality"."""
    if not isinstance(group, Mapping):
        return group[copy]
    labels = tuple(group[part][copy] for part in (attribute.split("+") if attribute else group))
    return labels if len(labels) > 1 else labels[0]
