"""Group attributes that a scenario publishes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Partition: TypeAlias = str | tuple[str, ...]
Group: TypeAlias = Partition | list[Partition]


def attributes_of(group: Group) -> tuple[str, ...]:
    """The attributes that a choice of groups is made of, each once."""
    partitions = group if isinstance(group, list) else [group]
    return tuple(dict.fromkeys(name for part in partitions for name in ([part] if isinstance(part, str) else part)))


class Groups:
    """The attributes that a choice of groups needs.

    One attribute is published as int codes and named by nobody else; several as a dict attribute -> codes, from which
    the fairness spec picks and combines.

    :param group: the name of an attribute; a tuple of them: their product partition, in which each combination is a
        group; a list of such: several partitions, each with its own figures
    :param attributes: per attribute that individuals have, the names of its codes 0, 1, ...
    :raises ValueError: if an attribute is unknown
    """

    def __init__(self, group: Group, attributes: Mapping[str, Sequence[str]]) -> None:
        self.attributes = attributes_of(group)
        if not self.attributes or not set(self.attributes) <= set(attributes):
            raise ValueError(f"group must be made of the attributes {tuple(attributes)}, got {group!r}")
        self.alone = isinstance(group, str)
        self.source = None if self.alone else group
        """``group`` of the fairness spec."""
        self.names: Any = {name: tuple(attributes[name]) for name in self.attributes}
        """``group_names`` of the fairness spec."""
        if self.alone:
            self.names = self.names[group]

    def codes(self, **attributes: NDArray[Any]) -> NDArray[np.int64]:
        """Codes (..., attributes needed) from those of all attributes (...)."""
        return np.stack([attributes[name] for name in self.attributes], axis=-1).astype(np.int64)

    def record(self, codes: NDArray[np.int64]) -> Any:
        """``info["individual"]["group"]`` of n copies, from their codes (n, attributes needed)."""
        if self.alone:
            return codes[:, 0]
        return {name: codes[:, column] for column, name in enumerate(self.attributes)}

    def massage(self, codes: NDArray[np.int64]) -> dict[str, Any]:
        """``info["massage"]`` of n copies: the codes (n,) as ``group``, or by attribute."""
        return {"group": codes[:, 0]} if self.alone else self.record(codes)
