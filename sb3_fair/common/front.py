"""Evaluated policies and the front of those that no other dominates."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.common.group_counts import COUNTS
from sb3_fair.common.plain import plain
from sb3_fair.fairness.intervals import Interval, mean_and_interval

Array = NDArray[np.float64]


@dataclass(frozen=True, init=False, eq=False)
class Command:
    """What a decision maker asks of a conditioned policy at the start of an episode.

    :param desired_return: return still to come per optimised objective, (k,) float64
    :param desired_horizon: steps still to come
    """

    desired_return: Array
    desired_horizon: float

    def __init__(self, desired_return: ArrayLike, desired_horizon: float) -> None:
        object.__setattr__(self, "desired_return", np.array(desired_return, dtype=np.float64))
        object.__setattr__(self, "desired_horizon", desired_horizon)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Command) and self._asked == other._asked

    def __hash__(self) -> int:
        return hash(self._asked)

    @property
    def _asked(self) -> tuple[tuple[float, ...], float]:
        return tuple(self.desired_return.tolist()), self.desired_horizon


@dataclass(frozen=True, eq=False, repr=False)
class EvaluatedPolicy:
    """A policy and the episodes it was evaluated on.

    :param name: what to call it in tables, e.g. ``"PCN 3"``, ``"hire all"``
    :param objectives: names of the k objectives, in the order of the columns of ``returns``
    :param returns: (m, k) float64, undiscounted vector return of each evaluation episode
    :param lengths: (m,) steps of each episode
    :param command: what a conditioned policy was asked for, None for other policies
    :param aim: return (k,) of the training episode that the command was taken from, None if it has none
    :param deterministic: whether actions were arg max (True) or sampled (False)
    :param final: fairness figures after each episode's last step, name -> (m,) float64, NaN where undefined
    :param chance: name -> expected absolute value of that figure for a policy blind to the groups
    :param probabilities: what notions that compare action probabilities saw: those of the ``"policy"``, the
        ``"executed"`` actions, or both (``"mixed"``); None if there are no such notions
    :param groups: attribute ("" if it is the only one) -> group -> how many decisions were on such people, in each
        episode, (m, 8) int64, a column for each of :data:`~sb3_fair.common.people.COUNTS`
    """

    name: str
    objectives: tuple[str, ...]
    returns: Array
    lengths: Array
    command: Command | None = None
    aim: Array | None = None
    deterministic: bool = True
    final: Mapping[str, Array] = field(default_factory=dict)
    chance: Mapping[str, float] = field(default_factory=dict)
    probabilities: str | None = None
    groups: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={mean:.4g}" for name, mean in zip(self.objectives, self.mean, strict=True))
        return f"<{self.name}: {means}; {len(self.returns)} episodes>"

    @property
    def mean(self) -> Array:
        """Mean return per objective, (k,)."""
        return self.returns.mean(axis=0)

    @property
    def ci(self) -> Array:
        """95 % confidence interval of the mean per objective, (k, 2), Student t; infinite for a single episode."""
        if len(self.returns) == 1:
            return np.tile([-np.inf, np.inf], (self.returns.shape[1], 1))
        _, low, high = mean_and_interval(self.returns)
        return np.stack([low, high], axis=1)

    @property
    def length(self) -> float:
        """Mean episode length."""
        return float(self.lengths.mean())

    def group_title(self, attribute: str, name: str) -> str:
        """What to call a group among all others, ``<attribute>: <name>`` if there are several attributes."""
        return f"{attribute}: {name}" if len(self.groups) > 1 else name

    def table(self) -> dict[str, Array]:
        """One row per episode, name -> (m,): ``length``, ``return <objective>``, the ``final`` figures and, of every
        group, ``<group>: <count>`` and ``<group>: favourable rate``, with the group's :meth:`group_title`."""
        columns = {"length": self.lengths}
        columns |= {f"return {name}": values for name, values in zip(self.objectives, self.returns.T, strict=True)}
        columns |= self.final
        for attribute, groups in self.groups.items():
            for label, counts in groups.items():
                group = self.group_title(attribute, label)
                columns |= {f"{group}: {name}": count for name, count in zip(COUNTS, counts.T, strict=True)}
                favourable, decisions = counts[:, 1].astype(np.float64), counts[:, 0]
                rates = np.full(len(counts), np.nan)
                columns[f"{group}: favourable rate"] = np.divide(favourable, decisions, out=rates, where=decisions > 0)
        return columns

    def summary(self) -> dict[str, Interval]:
        """Means over episodes of all that :meth:`table` has, and their 95 % confidence intervals (Student t)."""
        return {name: mean_and_interval(values) for name, values in self.table().items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, from which :meth:`from_dict` rebuilds the policy's figures exactly."""
        content: dict[str, Any] = plain(self)
        content["final"] = plain(self.final, finite=True)  # a notion is finite, or NaN where it is undefined
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "EvaluatedPolicy":
        """The policy whose figures :meth:`to_dict` told.

        :raises ValueError: if an entry has another shape than in the description of the class
        """
        command, aim = content["command"], content["aim"]
        policy = cls(
            name=str(content["name"]),
            objectives=tuple(map(str, content["objectives"])),
            returns=np.asarray(content["returns"], dtype=np.float64),
            lengths=np.asarray(content["lengths"], dtype=np.float64),
            command=Command(**command) if command else None,
            aim=None if aim is None else np.asarray(aim, dtype=np.float64),
            deterministic=bool(content["deterministic"]),
            final={key: np.array(values, dtype=np.float64) for key, values in content["final"].items()},
            chance={key: float(value) for key, value in content["chance"].items()},
            probabilities=content.get("probabilities"),
            groups={
                name: {label: np.array(counts, dtype=np.int64) for label, counts in groups.items()}
                for name, groups in content.get("groups", {}).items()
            },
        )
        m, k = len(policy.lengths), len(policy.objectives)
        shapes: list[tuple[str, NDArray[Any], tuple[int, ...]]] = [("returns", policy.returns, (m, k))]
        shapes += [(f"final {name}", values, (m,)) for name, values in policy.final.items()]
        for groups in policy.groups.values():
            shapes += [(f"groups {label}", counts, (m, len(COUNTS))) for label, counts in groups.items()]
        for name, values, shape in [*shapes, ("lengths", policy.lengths, (m,))]:
            if values.shape != shape or not values.size:
                raise ValueError(f"{name} must have the shape {shape}, without zeros, got {values.shape}")
        return policy


@dataclass(frozen=True, eq=False)
class Front(Sequence[EvaluatedPolicy]):
    """Evaluated policies none of which is dominated by another in its mean returns, best first objective first."""

    policies: tuple[EvaluatedPolicy, ...]

    @overload
    def __getitem__(self, index: int) -> EvaluatedPolicy: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[EvaluatedPolicy, ...]: ...
    def __getitem__(self, index: int | slice) -> EvaluatedPolicy | tuple[EvaluatedPolicy, ...]:
        return self.policies[index]

    def __len__(self) -> int:
        return len(self.policies)

    @property
    def objectives(self) -> tuple[str, ...]:
        return self.policies[0].objectives if self.policies else ()

    @property
    def means(self) -> Array:
        """Mean returns, (number of policies, k)."""
        return np.array([policy.mean for policy in self.policies])

    def save(self, path: str | Path) -> None:
        """Writes JSON that :meth:`load` reads back exactly."""
        content = json.dumps([policy.to_dict() for policy in self.policies], indent=1)
        Path(path).write_text(content, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Front":
        return cls.from_list(json.loads(Path(path).read_text(encoding="utf-8")))

    @classmethod
    def from_list(cls, policies: Sequence[Mapping[str, Any]]) -> "Front":
        """From what :meth:`EvaluatedPolicy.to_dict` told of each policy."""
        return cls(tuple(map(EvaluatedPolicy.from_dict, policies)))
