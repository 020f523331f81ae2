"""Which labels does a VecEnv tell of its slots, and where?"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from sb3_fair.fairness.spec import individual_in
from sb3_fair.wrappers.infos import record_of

Found: TypeAlias = Mapping[str, Any]
KINDS = ("group", "lf", "world", "pair")


def layer_with(venv: VecEnv, name: str) -> VecEnv:
    """The outermost layer that has an attribute, else the innermost."""
    while isinstance(venv, VecEnvWrapper) and name not in vars(venv) and not hasattr(type(venv), name):
        venv = venv.venv
    return venv


def of_arrays(venv: VecEnv) -> Found | None:
    """The arrays ``slot_group``, ``slot_lf``, ... of a layer as :func:`checked` gives them, None without groups.

    :raises ValueError: if one is not one whole number per slot
    """
    found = {kind: getattr(venv, f"slot_{kind}", None) for kind in KINDS}
    return None if found["group"] is None else checked(found, venv.num_envs)


def of_infos(infos: Sequence[Mapping[str, Any]]) -> Found | None:
    """What all infos have under ``"individual"``, None if one has no group."""
    record = record_of(infos)
    if record is not None:
        individual = record.get("individual", {})
        return individual if "group" in individual else None
    individuals = [individual_in(info) for info in infos]
    if not all("group" in individual for individual in individuals):
        return None
    found = {kind: [individual.get(kind) for individual in individuals] for kind in KINDS}
    return {kind: labels for kind, labels in found.items() if kind == "group" or None not in labels}


def checked(found: Found, slots: int) -> Found:
    """Copies of the labels as arrays (slots,), None where a kind of label is not told; unknown ones are -1.

    :raises ValueError: if one is not one whole number per slot
    """
    return {kind: None if found.get(kind) is None else _known(kind, found[kind], slots) for kind in KINDS}


def _known(kind: str, labels: Any, slots: int) -> NDArray[Any]:
    if isinstance(labels, list):
        labels = [-1 if label is None else label for label in labels]
    try:
        array = np.array(labels)
    except ValueError:  # of different shapes
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or array.shape != (slots,):
        raise ValueError(
            f"{kind} must be one whole number for each of the {slots} slots, got {labels!r}: number the groups"
        )
    return np.where(np.isnan(array), -1, array) if array.dtype.kind == "f" else array


def same(first: Found, second: Found) -> bool:
    """Are these labels (of :func:`checked`) the same?"""
    pairs = [(first[kind], second[kind]) for kind in KINDS]
    return all(
        np.array_equal(one, other) if one is not None and other is not None else one is other for one, other in pairs
    )
