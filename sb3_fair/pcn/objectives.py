"""Objectives that PCN optimises, settings per objective, and what an environment tells of both."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.evaluation import invented_names, objective_names
from sb3_fair.wrappers.choices import random_actions
from sb3_fair.wrappers.infos import vector_rewards
from sb3_fair.wrappers.layer import attribute

Array: TypeAlias = NDArray[np.float64]
PerObjective: TypeAlias = float | Sequence[float] | Array | Mapping[str, float]


class Objectives:
    """The k optimised ones among the K objectives of an environment.

    ``columns`` (k,) int64 are their entries of the vector reward, ``discounts`` (k,) float64 the discount factors of
    their returns-to-go, ``held`` (k,) bool tells which keep their command for the whole episode.

    :param all_names: of the entries of the vector reward, (K,)
    :param chosen: names or indices; None: all
    :param gamma: discount factor of those that are not held
    :param held: name -> discount factor of the objectives that keep their command
    :raises ValueError: if an objective does not exist or is named twice
    """

    def __init__(
        self,
        all_names: tuple[str, ...],
        chosen: Sequence[str | int] | None,
        gamma: float,
        held: Mapping[str, float] | None,
    ) -> None:
        indices = range(len(all_names))
        places: dict[Any, int] = dict(zip((*indices, *all_names), (*indices, *indices), strict=True))
        chosen = all_names if chosen is None else tuple(chosen)
        for objective in chosen:
            if objective not in places:
                raise ValueError(f"objectives must be among {all_names} or their indices, got {objective!r}")
        columns = [places[objective] for objective in chosen]
        if not columns or len(set(columns)) < len(columns):
            raise ValueError(f"objectives must be at least one objective, none of them twice, got {chosen!r}")
        self.all_names, self.columns = all_names, np.array(columns, dtype=np.int64)
        held = held or {}
        self._check_known("held", held)
        self.discounts = np.array([held.get(name, gamma) for name in self.names], dtype=np.float64)
        self.held = np.array([name in held for name in self.names])

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the optimised objectives."""
        return tuple(self.all_names[column] for column in self.columns)

    def _check_known(self, argument: str, named: Mapping[str, Any]) -> None:
        unknown = sorted(set(named) - set(self.names))
        if unknown:
            raise ValueError(f"{argument} must be about the optimised objectives {self.names}, got {unknown}")

    def numbers(self, argument: str, value: PerObjective, missing: float = np.nan) -> Array:
        """One number per optimised objective, (k,), from one for all, a sequence, or a dict by name.

        :param missing: stands for what a dict leaves out
        :raises ValueError: if names or shape do not fit, or a number is NaN; names the ``argument``
        """
        numbers: Any = value
        if isinstance(value, Mapping):
            self._check_known(argument, value)
            numbers = [value.get(name, missing) for name in self.names]
        numbers = np.asarray(numbers, dtype=np.float64)
        if numbers.shape not in ((), (len(self),)) or np.isnan(numbers).any():
            raise ValueError(f"{argument} must be one number per optimised objective {self.names}, got {value!r}")
        return np.broadcast_to(numbers, (len(self),)).copy()

    def numbers_of(
        self, venv: VecEnv, argument: str, value: PerObjective | None, missing: float = np.nan
    ) -> Array | None:
        """The same from the argument, else from the environment's attribute of that name, else None."""
        if value is None:
            found = attribute(venv, argument)
            if found is None:
                return None
            value = np.broadcast_to(np.asarray(found, dtype=np.float64), (len(self.all_names),))[self.columns]
        return self.numbers(argument, value, missing)


def names_of(venv: VecEnv) -> tuple[str, ...]:
    """Names of all objectives; their number is as announced, else that of one step."""
    if venv.has_attr("objective_names"):
        return tuple(venv.get_attr("objective_names")[0])
    if venv.has_attr("reward_space"):
        return objective_names(venv, venv.get_attr("reward_space")[0].shape[0])
    venv.reset()
    return objective_names(venv, vector_rewards(venv.step(random_actions(venv))[3]).shape[1])


def check_alike(argument: str, env: Any, names: tuple[str, ...], emit: str | None) -> None:
    """Does ``env`` pay as the training environment did? What either does not tell is not compared.

    :param names: of all objectives in training; an environment may have others after them
    :param emit: when notions were paid for
    :raises ValueError: if it has other objectives, or pays for notions at other times; names the ``argument``
    """
    found = attribute(env, "objective_names")
    told = found is not None and names != invented_names(len(names))
    if told and tuple(found[: len(names)]) != names:
        raise ValueError(f"{argument} must have the objectives {names} in this order, as in training, got {found}")
    check_emit(argument, env, emit)


def check_emit(name: str, env: Any, expected: str | None) -> None:
    """:raises ValueError: if both are known and the environment pays for notions at other times than ``expected``"""
    emit = attribute(env, "emit")
    if None not in (emit, expected) and emit != expected:
        raise ValueError(f"{name} must have emit={expected!r}, as in training, got {emit!r}")
