"""To which group, legitimate factor, world and twin does each slot of a VecEnv belong?"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.fairness.populations import Population
from sb3_fair.fairness.validation import one_of
from sb3_fair.wrappers.labels import KINDS, Found, checked, layer_with, of_arrays, of_infos, same

Mode: TypeAlias = Literal["population", "streaming"]
GroupFunction: TypeAlias = Callable[[Any, Sequence[Mapping[str, Any]]], ArrayLike | Mapping[str, ArrayLike]]
MISSING = (
    "group labels must be told in one of three ways: arrays slot_group (and slot_lf, slot_world, slot_pair) of the "
    "VecEnv, info['individual']['group'] of every slot in every step, or group_fn(obs, infos); got none of them"
)


class Labels:
    """The labels of the transitions of a VecEnv; made by :func:`find_labels`. Keeps the VecEnv: leave it out of saves.

    ::

        labels = find_labels(venv)
        labels.begin()                                  # whenever the VecEnv was reset
        populations = []
        for _ in range(n_steps):                        # in _update_info_buffer
            populations.append(labels.at(infos, last_obs, dones))
        penalty = retrospective(rewards, populations, dones, streaming=labels.streaming)
    """

    def __init__(self, venv: VecEnv, group_fn: GroupFunction | None, mode: Mode | None) -> None:
        self.n_slots, self.group_fn, self.mode = venv.num_envs, group_fn, mode
        self._source = layer_with(venv, "slot_group")
        self._found: Found = {}
        self._population: Population | None = None
        self._has_changed = False
        self.begin()

    @property
    def streaming(self) -> bool:
        """Whether each slot is a stream of individuals, whose label may change from step to step."""
        return self.mode == "streaming" or (self.mode is None and self._has_changed and not self._worlds_told)

    @property
    def of_arrays(self) -> bool:
        """Whether the VecEnv tells labels by arrays."""
        return self._coming is not None

    @property
    def _worlds_told(self) -> bool:
        return self._found.get("world") is not None

    def begin(self) -> None:
        """The VecEnv was reset: its arrays are read anew."""
        self._last_known = np.full(self.n_slots, -1)  # in the running episode
        self._coming = of_arrays(self._source)

    def at(self, infos: Sequence[Mapping[str, Any]], obs: Any, dones: NDArray[Any]) -> Population:
        """Labels of the transition just finished, the same object as long as they stay the same.

        :param infos: of that transition
        :param obs: (S, ...) the observations that its actions answered
        :param dones: (S,) whether it ended an episode
        :raises ValueError: if labels are found in none of the three ways, or are not one whole number per slot
        """
        if self._coming is None:
            found = checked(of_infos(infos) or self._of_function(obs, infos), self.n_slots)
        else:  # what the VecEnv shows now is of the next transition
            found, self._coming = self._coming, of_arrays(self._source)
        if self._population is None or not same(found, self._found):
            self._found, self._population = found, Population(**found)
        if not self._has_changed:
            self._watch(self._population.group, np.asarray(dones, dtype=bool))
        return self._population

    def _watch(self, group: NDArray[Any], dones: NDArray[np.bool_]) -> None:
        """Does a slot have two known labels in one episode?"""
        known = np.where(group >= 0, group, self._last_known)
        self._has_changed = bool(((known != self._last_known) & (self._last_known >= 0)).any())
        self._last_known = np.where(dones, -1, known)

    def _of_function(self, obs: Any, infos: Sequence[Mapping[str, Any]]) -> Found:
        if self.group_fn is None:
            raise ValueError(MISSING)
        found = self.group_fn(obs, infos)
        if not isinstance(found, Mapping):
            return {"group": found}
        if "group" not in found or not set(found) <= set(KINDS):
            raise ValueError(f"group_fn must return labels, or a dict of {KINDS} with 'group', got {sorted(found)}")
        return found


def find_labels(venv: VecEnv, group_fn: GroupFunction | None = None, mode: Mode | None = None) -> Labels:
    """Labels from the first of three ways that there is.

    1. arrays ``slot_group``, ``slot_lf``, ``slot_world``, ``slot_pair`` (S,) of the VecEnv, wrappers looked through;
    2. ``info["individual"]["group"]``, and ``"lf"``, ``"world"``, ``"pair"`` there, of every slot in every step;
    3. ``group_fn(obs, infos)``: group (S,), or a dict of ``group``, ``lf``, ``world``, ``pair``; ``infos`` are those of
       a transition, ``obs`` the observations before it, as they are before a VecNormalize.

    :param mode: ``"population"``: slots of a world are compared with each other; ``"streaming"``: each slot is a stream
        of individuals, and each step's reward is that of a member of some group. None: population if the worlds are
        told; else streaming as soon as a label changes inside an episode, and until then all slots are one population.
    :raises ValueError: if ``mode`` is unknown
    :raises TypeError: if ``group_fn`` is no function
    """
    if mode is not None:
        one_of("mode", mode, get_args(Mode), otherwise="None")
    if group_fn is not None and not callable(group_fn):
        raise TypeError(f"group_fn must be a function of (obs, infos) or None, got {group_fn!r}")
    labels = Labels(venv, group_fn, mode)
    if group_fn is not None and labels.of_arrays:
        warnings.warn("group_fn is not used: the VecEnv has slot_group", UserWarning, stacklevel=2)
    return labels
