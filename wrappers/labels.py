"""Group labels of the slots of a VecEnv."""

from collections.abc import Hashable, Mapping, Sequence
from numbers import Number, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from sb3_fair.fairness.spec import individual_in
from sb3_fair.fairness.validation import out_of_array
from sb3_fair.wrappers.infos import record_of

Found: TypeAlias = Mapping[str, Any]
Numbers: TypeAlias = dict[str, dict[Hashable, int]]
"""Kind of label -> label -> its number, in the order in which labels came; empty where labels are numbers."""
KINDS = ("group", "lf", "world", "pair")


def layer_with(venv: VecEnv, name: str) -> VecEnv:
    """The outermost layer that has an attribute, else the innermost."""
    while isinstance(venv, VecEnvWrapper) and name not in vars(venv) and not hasattr(type(venv), name):
        venv = venv.venv
    return venv


def slots(venv: VecEnv, name: str) -> Any:
    """The array (slots,) of a layer that tells, say, ``slot_group`` of its slots; None if no layer does."""
    return getattr(layer_with(venv, name), name, None)


def of_arrays(venv: VecEnv, numbers: Numbers) -> Found | None:
    """The arrays ``slot_group``, ``slot_lf``, ... of a layer as :func:`checked` gives them, None without groups."""
    found = {kind: getattr(venv, f"slot_{kind}", None) for kind in KINDS}
    return None if found["group"] is None else checked(found, venv.num_envs, numbers)


def of_infos(infos: Sequence[Mapping[str, Any]]) -> Found | None:
    """What all infos have under ``"individual"``, None if one has no group.

    :raises ValueError: if one has a negative number as its group, which in ``slot_group`` is an agent who is not
        compared
    """
    record = record_of(infos, "individual")
    if record is not None:
        individual = record.get("individual", {})
        if "group" not in individual:
            return None
        _require_no_negative(individual["group"])
        return individual
    individuals = [{"group": None} if info.get("individual", {}) is None else individual_in(info) for info in infos]
    if not all("group" in individual for individual in individuals):
        return None
    _require_no_negative([each["group"] for each in individuals])
    found = {kind: [individual.get(kind) for individual in individuals] for kind in KINDS}
    return {kind: labels for kind, labels in found.items() if kind == "group" or None not in labels}


def _require_no_negative(groups: Any) -> None:
    if isinstance(groups, np.ndarray) and groups.dtype.kind in "biuf":
        negative = groups[groups < 0].tolist()
    else:
        negative = [label for label in map(out_of_array, groups) if isinstance(label, Real) and label < 0]
    if negative:
        raise ValueError(
            "info['individual']['group'] must be a whole number from 0 on, another hashable value (such as a string), "
            f"or None for nobody, got {negative[0]!r}"
        )


def checked(found: Found, slots: int, numbers: Numbers) -> Found:
    """Copies of the labels as arrays of numbers (slots,), None where a kind of label is not told; unknown ones are -1.

    :param numbers: of labels that are no numbers themselves; new ones are added
    """
    return {kind: None if found.get(kind) is None else numbered(kind, found[kind], slots, numbers) for kind in KINDS}


def numbered(kind: str, labels: Any, slots: int, numbers: Numbers) -> NDArray[Any]:
    """Labels of one kind as numbers (slots,), as in :func:`checked`."""
    try:
        array = _numbers_of(kind, labels, numbers)
    except TypeError:
        array = np.empty(0)
    if array.shape != (slots,):
        raise ValueError(
            f"{kind} must be one label for each of the {slots} slots, either whole numbers or other hashable values "
            f"(such as strings), got {labels!r}"
        )
    return array


def _numbers_of(kind: str, labels: Any, numbers: Numbers) -> NDArray[Any]:
    """The labels if they are numbers, else their numbers."""
    array = np.fromiter(labels, dtype=object) if isinstance(labels, (list, tuple)) else np.array(labels)
    if array.dtype.kind not in "biuf":
        plain = [out_of_array(label) for label in array]
        known = {label for label in plain if label is not None}
        if not all(isinstance(label, Number) for label in known):
            if kind == "pair" or numbers.get(kind) == {} or any(isinstance(label, Number) for label in known):
                raise TypeError(f"{kind} is a number")
            table = numbers.setdefault(kind, {})
            return np.array([-1 if label is None else table.setdefault(label, len(table)) for label in plain])
        array = np.array([-1 if label is None else label for label in plain])
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, array)
    if (array >= 0).any() and numbers.setdefault(kind, {}):
        raise TypeError(f"{kind} is no number")
    return array


def same(first: Found, second: Found) -> bool:
    """Are these labels (of :func:`checked`) the same?"""
    return all(np.array_equal(first[kind], second[kind]) for kind in KINDS)
