"""Labels of the slots of a VecEnv: group, legitimate factor, world and counterfactual twin."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness.disparity.populations import Disparity, Population
from sb3_fair.fairness.validation import one_of
from sb3_fair.fairness.warning import warn
from sb3_fair.wrappers.labels import KINDS, Found, Numbers, checked, layer_with, numbered, of_arrays, of_infos, same
from sb3_fair.wrappers.layer import attribute

Mode: TypeAlias = Literal["population", "streaming"]
GroupFunction: TypeAlias = Callable[[Any, list[dict[str, Any]]], ArrayLike | Mapping[str, ArrayLike]]
LONG = 1000
"""Steps of all slots after which it is said that nobody was compared."""
MISSING = (
    "group labels must be told in one of three ways: arrays slot_group (and slot_lf, slot_world, slot_pair) of the "
    "VecEnv, info['individual']['group'] of every slot in every step, or group_fn(obs, infos); got none of them"
)


class Labels:
    """Group labels of the transitions of a VecEnv: whole numbers, or other hashable values, which are numbered.

    The object refers to the VecEnv, so do not save it.

    Labels are found in one of three ways, in this order:

    1. ``group_fn(obs, infos)``, if it is given: group (S,), or a dict of ``group``, ``lf``, ``world``, ``pair``, which
       replace the labels of the environment; ``infos`` are those of a transition, ``obs`` the observations before it,
       not normalised by a VecNormalize;
    2. arrays ``slot_group``, ``slot_lf``, ``slot_world``, ``slot_pair`` (S,) of the VecEnv, also inside wrappers;
    3. ``info["individual"]["group"]``, and ``"lf"``, ``"world"``, ``"pair"`` there, of every slot in every step.

    If the environment has a fairness spec with ``groups``, only these are compared. Labels that are not numbers are
    numbered in the order of ``groups``, otherwise in the order in which they appear.

    :param mode: ``"population"``: slots of a world are compared with each other; ``"streaming"``: each slot is a stream
        of individuals, and each step's reward is that of a member of some group. None: population if there are
        ``world`` labels; otherwise streaming as soon as a label changes inside an episode, or in a single slot from one
        episode of one decision to the next, and until then all slots are one population.
    :param numbers: of labels met before; None: of none
    :raises ValueError: if ``mode`` is unknown
    :raises TypeError: if ``group_fn`` is no function
    """

    def __init__(
        self,
        venv: VecEnv,
        group_fn: GroupFunction | None = None,
        mode: Mode | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        if mode is not None:
            one_of("mode", mode, get_args(Mode), otherwise="None")
        if group_fn is not None and not callable(group_fn):
            raise TypeError(f"group_fn must be a function of (obs, infos) or None, got {group_fn!r}")
        self.n_slots, self.group_fn, self.mode = venv.num_envs, group_fn, mode
        self.numbers: Numbers = {} if numbers is None else numbers
        self._source = layer_with(venv, "slot_group")
        self._goes_on = not attribute(venv, "reset_on_episode", True)
        self._compared = None if group_fn is not None else attribute(venv, "compared_groups")
        if self._compared is not None:
            self._compared = numbered("group", self._compared, len(self._compared), self.numbers)
        self._found: Found = {}
        self._population: Population | None = None
        self._changes_inside = self._changes_between = False
        self._single = True
        self.begin()

    @property
    def streaming(self) -> bool:
        """Whether each slot is a stream of individuals, whose label may change from step to step."""
        changes = self._changes_inside or (self._changes_between and self._single and self.n_slots == 1)
        return self.mode == "streaming" or (self.mode is None and changes and self._found.get("world") is None)

    @property
    def carries(self) -> bool:
        """Whether what a stream's groups got is carried over to the next episode: the environment carries its history
        over, or no episode was of two groups, such as those of one decision."""
        return self.streaming and (self._goes_on or not self._changes_inside)

    def name(self, number: int) -> Any:
        """The label of a group as the environment tells it."""
        return {own: label for label, own in self.numbers.get("group", {}).items()}.get(number, number)

    def begin(self) -> None:
        """The VecEnv was reset: its arrays are read anew."""
        self._last_known = np.full(self.n_slots, -1)
        self._last_inside = np.full(self.n_slots, -1)  # in the running episode
        self._coming = of_arrays(self._source, self.numbers)

    def at(self, infos: list[dict[str, Any]], obs: Any, dones: NDArray[Any]) -> Population:
        """Labels of the transition just finished, the same object as long as they stay the same.

        :param infos: of that transition
        :param obs: (S, ...) the observations that its actions answered
        :param dones: (S,) whether it ended an episode
        :raises ValueError: if labels are found in none of the three ways, or are not one per slot
        """
        if self._coming is None:
            told = of_infos(infos)
        else:  # what the VecEnv shows now is of the next transition
            told, self._coming = self._coming, of_arrays(self._source, self.numbers)
        if told is None and self.group_fn is None:
            raise ValueError(MISSING)
        if self.group_fn is not None:
            told = {**(told or {}), **self._of_function(obs, infos)}
        found = checked(told or {}, self.n_slots, self.numbers)
        if self._population is None or not same(found, self._found):
            group = found["group"]
            if self._compared is not None:
                group = np.where(np.isin(group, self._compared), group, -1)
            self._found, self._population = found, Population(**{**found, "group": group})
        if not self._changes_inside:
            self._watch(self._population.group, np.asarray(dones, dtype=bool))
        return self._population

    def _watch(self, group: NDArray[Any], dones: NDArray[np.bool_]) -> None:
        """Does a slot have two known labels, in one episode or in two?"""
        known = group >= 0
        self._changes_inside = bool((known & (self._last_inside >= 0) & (group != self._last_inside)).any())
        self._changes_between |= bool((known & (self._last_known >= 0) & (group != self._last_known)).any())
        self._single &= bool(dones.all())
        self._last_known = np.where(known, group, self._last_known)
        self._last_inside = np.where(dones, -1, np.where(known, group, self._last_inside))

    def _of_function(self, obs: Any, infos: list[dict[str, Any]]) -> Found:
        assert self.group_fn is not None
        found = self.group_fn(obs, infos)
        if not isinstance(found, Mapping):
            return {"group": found}
        if "group" not in found or not set(found) <= set(KINDS):
            raise ValueError(f"group_fn must return labels, or a dict of {KINDS} with 'group', got {sorted(found)}")
        return found


class Meetings:
    """Whether members of two groups were compared in the training so far; warns once if they were not for long."""

    def __init__(self) -> None:
        self.compared = self._warned = False
        self._steps = 0
        self._met: list[set[int]] = []

    def note(self, populations: Sequence[Population], labels: Labels, disparity: Disparity) -> None:
        """Looks at the labels of the steps of another rollout."""
        if self.compared:
            return
        groups = np.stack([population.group for population in populations], axis=1)  # (S, T)
        self._met = self._met or [set() for _ in groups]
        for met, row in zip(self._met, groups, strict=True):
            met.update(np.unique(row[row >= 0]).tolist())
        self._steps += groups.size
        if labels.carries:
            self.compared = any(len(met) > 1 for met in self._met)
        else:  # a stream that does not carry over has met two labels in an episode
            self.compared = labels.streaming or any(map(disparity.compares, set(populations)))
        if self._steps >= LONG:
            self.warn(labels)

    def warn(self, labels: Labels) -> None:
        """Says that nobody was compared, if that is so and was not said."""
        if self.compared or self._warned or not self._steps:
            return
        self._warned = True
        told = sorted({str(labels.name(group)) for met in self._met for group in met})
        how = "one slot met two of them" if labels.streaming else "two of them were in a world at once"
        warn(
            f"group must have two labels that are compared, got {told} in {self._steps} steps, and never {how}: "
            "nothing was penalised. mode='streaming' compares individuals whom a slot meets one after the other, "
            "'population' slots with each other",
        )
