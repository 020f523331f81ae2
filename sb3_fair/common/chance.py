"""Chance levels of the group notions of played episodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness import FairnessSpec, chance_level, find_notion
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import VecLayer

SUFFIX = " by chance"
NEEDED = ("group", "action", "feedback", "present")


class VecChance(VecLayer):
    """Puts the chance level of each group notion beside it when an episode ends: ``info["fairness"]["SP by chance"]``.

    The group labels are permuted among the decisions that the notion looks at
    (:func:`~sb3_fair.fairness.chance_level`).

    :param venv: a fairness MDP
    :param n_permutations: how often the labels are permuted
    :param notions: which of the measured group notions; None: all
    """

    def __init__(self, venv: VecEnv, n_permutations: int = 50, notions: Sequence[str] | None = None) -> None:
        super().__init__(venv)
        self.spec: FairnessSpec = venv.get_attr("fairness_spec")[0]
        self.n_permutations = n_permutations
        names = [name for name in venv.get_attr("fairness_names")[0] if notions is None or name in notions]
        self.names = [name for name in names if find_notion(name.partition("@")[0]).needs_groups]
        self._steps: list[dict[str, Any]] = []
        self._begun = np.zeros(self.num_envs, dtype=np.int64)

    def reset(self) -> VecEnvObs:
        self._steps = []
        self._begun[:] = 0
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        if self.names:
            people = stack(infos, "individual")
            self._steps.append({key: people[key] for key in NEEDED if key in people})
            for copy in np.flatnonzero(dones):
                infos[copy]["fairness"] = {**infos[copy]["fairness"], **self._levels(int(copy))}
            self._begun[dones] = len(self._steps)
            self._forget()
        return obs, rewards, dones, infos

    def _forget(self) -> None:
        """Drops the steps of episodes that are over in all copies."""
        over = int(self._begun.min())
        if over:
            del self._steps[:over]
            self._begun -= over

    def _levels(self, copy: int) -> dict[str, float]:
        people = self._steps[self._begun[copy] :]
        windows = {name: self._window(name) for name in self.names}
        longest = max(len(people) if window is None else window for window in windows.values())
        if np.ndim(people[0]["action"]) == 1:  # every step decides on one
            people = people[-longest:]
        actions, feedback = self.spec.decided(_column(people, "action", copy)), _column(people, "feedback", copy)
        labels: dict[str, list[Any]] = {}
        levels = {}
        for name, window in windows.items():
            notion, _, attribute = name.partition("@")
            if attribute not in labels:
                labels[attribute] = _labels(people, attribute, copy)
            recent = slice(None if window is None else -window, None)
            compared = self.spec.groups
            levels[name + SUFFIX] = chance_level(
                notion,
                actions=actions[recent],
                groups=labels[attribute][recent],
                feedback=feedback[recent],
                favourable=(1,) if callable(self.spec.favourable) else self.spec.favourable,
                compared=compared.get(attribute) if isinstance(compared, Mapping) else compared,
                n_permutations=self.n_permutations,
                feedback_missing=self.spec.feedback_missing,
            )
        return levels

    def _window(self, name: str) -> int | None:
        """The number of latest decisions that a notion looks at; None: all of the episode."""
        history = self.spec.history
        if isinstance(history, Mapping):
            history = history[name if name in history else name.partition("@")[0]]
        return int(history.decisions) if history.forgets else None


def _column(people: list[dict[str, Any]], key: str, copy: int) -> NDArray[Any]:
    """What was noted of everybody decided on in an episode of one copy; NaN where nothing was."""
    if key not in people[0]:
        return np.full(len(_column(people, "action", copy)), np.nan)
    return _present([step[key] for step in people], people, copy)


def _present(columns: list[Any], people: list[dict[str, Any]], copy: int) -> NDArray[Any]:
    """The entries of those who were there, one step after the other."""
    if np.ndim(columns[0]) == 1:
        return np.array([column[copy] for column in columns])
    entries: NDArray[Any] = np.concatenate([column[copy] for column in columns])
    if "present" not in people[0]:
        return entries
    return entries[np.concatenate([step["present"][copy] for step in people])]


def _labels(people: list[dict[str, Any]], attribute: str, copy: int) -> list[Any]:
    """The label of everybody; a tuple for a product partition such as "gender+nationality"."""
    groups = [step["group"] for step in people]
    if not isinstance(groups[0], Mapping):
        labels: list[Any] = _present(groups, people, copy).tolist()
        return labels
    parts = [
        _present([group[part] for group in groups], people, copy).tolist()
        for part in (attribute.split("+") if attribute else groups[0])
    ]
    return list(zip(*parts, strict=True)) if len(parts) > 1 else parts[0]
