"""VecPeople: who was decided on in an episode, as group counts and chance levels when it ends."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.common.group_counts import COUNTS
from sb3_fair.fairness import FairnessSpec, find_notion
from sb3_fair.fairness.notions.chance import chance_levels
from sb3_fair.fairness.notions.table import CELLS, cells_of
from sb3_fair.fairness.notions.whole import coded
from sb3_fair.fairness.tracking.partition import Partition
from sb3_fair.fairness.tracking.requests import attribute_name
from sb3_fair.wrappers.fmdp import LATE, late_in
from sb3_fair.wrappers.infos import Record, people_in, tells
from sb3_fair.wrappers.layer import VecLayer

CHANCE = "chance"
"""Key in the info of an episode's last step: notion -> chance level."""
GROUPS = "groups"
"""Key in the info of an episode's last step: attribute -> name of a group -> counts, (len(COUNTS),) int64."""
_MASKS = np.array(list(COUNTS.values())).T.astype(np.int64)


class VecPeople(VecLayer):
    """Tells at the end of an episode whom it decided on.

    ``info["groups"]`` has the :data:`COUNTS` of every group in the episode, and ``info["chance"]`` the chance level of
    each group notion: the labels are permuted among the decisions that the notion looks at
    (:func:`~sb3_fair.fairness.chance_level`). It is NaN where the environment has ``reset_on_episode=False``, or where
    a :class:`~sb3_fair.fairness.DiscountedHistory` has a factor below 1 or a threshold of 0 or more. Late feedback
    counts if it came before the episode ended.

    :param venv: a fairness MDP; without group notions, nothing is told
    :param n_permutations: how often the labels are permuted
    :param notions: which of the measured group notions have a chance level; None: all
    """

    def __init__(self, venv: VecEnv, n_permutations: int = 50, notions: Sequence[str] | None = None) -> None:
        super().__init__(venv)
        self.spec: FairnessSpec = venv.get_attr("fairness_spec")[0]
        self.n_permutations = n_permutations
        names = [name for name in venv.get_attr("fairness_names")[0] if notions is None or name in notions]
        self.names = [name for name in names if find_notion(name).needs_groups]
        self._carried_over = not venv.get_attr("reset_on_episode")[0]
        attributes = self.spec.attributes
        self._only = attribute_name(attributes[0]) if len(attributes) == 1 else ""  # names may leave it out
        self._steps: list[Record] = []
        self._begun = np.zeros(self.num_envs, dtype=np.int64)
        self._late: list[dict[int, float]] = [{} for _ in range(self.num_envs)]

    def reset(self) -> VecEnvObs:
        self._steps = []
        self._begun[:] = 0
        self._late = [{} for _ in range(self.num_envs)]
        return self.venv.reset()

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = np.asarray(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        if self.names:
            people = people_in(infos)
            if people is not None:
                self._steps.append(self._noted(people))
            self._note_late(infos)
            for copy in np.flatnonzero(dones).tolist():
                infos[copy].update(self._told(copy))
                self._late[copy] = {}
            self._begun[dones] = len(self._steps)
            self._forget()
        return obs, rewards, dones, infos

    def _noted(self, people: Record) -> Record:
        """What is needed of a step, (n, people) each; labels under ``"group"`` and the name of their attribute."""
        noted = {
            "action": self.spec.decided(np.asarray(people.get("action", self._actions))),
            "present": people.get("present", True),
            "feedback": people.get("feedback", np.nan),
            "id": people.get("id", -1),
        }
        groups = people["group"]
        noted |= {f"group{key}": groups[key] for key in groups} if isinstance(groups, Mapping) else {"group": groups}
        everybody = _rows(noted["action"]).shape
        return {key: np.broadcast_to(_rows(values), everybody) for key, values in noted.items()}

    def _note_late(self, infos: Sequence[dict[str, Any]]) -> None:
        if tells(infos, LATE):
            for late, info in zip(self._late, infos, strict=True):
                late.update(late_in(info))

    def _forget(self) -> None:
        """Drops the steps of episodes that are over in all copies."""
        over = int(self._begun.min())
        if over:
            del self._steps[:over]
            self._begun -= over

    def _told(self, copy: int) -> dict[str, Any]:
        """The groups and chance levels of an episode that is over."""
        people = self._steps[self._begun[copy] :]
        actions, feedback = _column(people, "action", copy), self._feedback(people, copy)
        actions = actions.astype(np.int64)  # SB3 gives those of MultiBinary spaces as floats
        favourable = (1,) if callable(self.spec.favourable) else tuple(self.spec.favourable)
        cells = cells_of(actions, feedback, favourable)
        groups, levels = {}, dict.fromkeys(self.names, math.nan)
        for attribute in dict.fromkeys(name.partition("@")[2] or self._only for name in self.names):
            parts = [_column(people, f"group{part}", copy).tolist() for part in self.spec.parts_of(attribute)]
            labels = list(zip(*parts, strict=True)) if len(parts) > 1 else parts[0]
            compared = self.spec.compared(attribute)
            partition = Partition(compared)
            codes = partition.columns(labels) * CELLS + cells
            counts = np.bincount(codes, minlength=partition.size * CELLS).reshape(-1, CELLS) @ _MASKS
            called = [self.spec.group_name(attribute, label) for label in partition.labels[1:]]
            if len(set(called)) < len(called):
                raise ValueError(f"group must have labels that are written differently, got {partition.labels[1:]}")
            groups["" if attribute == self._only else attribute] = dict(zip(called, counts[1:], strict=True))
            alike: dict[int | None, list[str]] = {}  # first decision that is looked at -> notions
            for name in self.names:
                recent = self._recent(name)
                if (name.partition("@")[2] or self._only) == attribute and recent is not None:
                    alike.setdefault(recent.start, []).append(name)
            for start, names in alike.items():
                coding = coded(actions[start:], feedback[start:], labels[start:], favourable, compared)
                notions = [name.partition("@")[0] for name in names]
                found = chance_levels(notions, *coding, self.n_permutations, 0, self.spec.feedback_missing)
                levels.update(zip(names, found, strict=True))
        return {GROUPS: groups, CHANCE: levels}

    def _feedback(self, people: list[Record], copy: int) -> NDArray[Any]:
        """What is known of everybody by now."""
        feedback = _column(people, "feedback", copy)
        if self._late[copy]:
            ids = _column(people, "id", copy)
            late = np.isin(ids, list(self._late[copy]))
            feedback = feedback.astype(np.float64)
            feedback[late] = [self._late[copy][int(number)] for number in ids[late]]
        return feedback

    def _recent(self, name: str) -> slice | None:
        """The decisions of the episode that a notion looks at; None where it also looks at earlier episodes, weights
        decisions, or drops a number of them that is not known here."""
        history = self.spec.history
        if isinstance(history, Mapping):
            history = history[name if name in history else name.partition("@")[0]]
        if self._carried_over or history.truncates or history.factor < 1:
            return None
        return slice(-history.decisions if history.forgets else None, None)


def _column(people: list[Record], key: str, copy: int) -> NDArray[Any]:
    """What was noted of everybody who was there in an episode of one copy."""
    if not people:
        return np.full(0, np.nan)
    there = np.concatenate([step["present"][copy] for step in people])
    return np.concatenate([step[key][copy] for step in people])[there]


def _rows(values: Any) -> NDArray[Any]:
    """A row for each copy, of one value if everybody in it has the same."""
    values = np.asarray(values)
    return values.reshape(len(values), -1) if values.ndim else values
