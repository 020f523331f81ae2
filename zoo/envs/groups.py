"""Which partitions of the individuals does a scenario compare?"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Partition: TypeAlias = str | tuple[str, ...]
Group: TypeAlias = Partition | list[Partition]


class Groups:
    """Int codes of the individuals for every partition that is compared.

    :param group: the name of an attribute; a tuple of them: their product partition, in which each combination of
        labels is a group; a list of such: several partitions, each with its own figures
    :param attributes: names of the labels, in the order of their codes, per attribute that the individuals have
    :raises ValueError: if an attribute is unknown
    """

    def __init__(self, group: Group, attributes: Mapping[str, Sequence[str]]) -> None:
        self.several = isinstance(group, list)
        wanted = group if isinstance(group, list) else [group]
        self.partitions = [(part,) if isinstance(part, str) else tuple(part) for part in wanted]
        names = {name for part in self.partitions for name in part}
        if not names or not all(self.partitions) or not names <= set(attributes):
            raise ValueError(f"group must be made of the attributes {tuple(attributes)}, got {group!r}")
        self.labels = attributes

    @property
    def names(self) -> Any:
        """Names of the groups in the order of their codes; a dict partition -> names if there are several."""
        names = [self._product([list(self.labels[name]) for name in part]) for part in self.partitions]
        return dict(zip(map("+".join, self.partitions), names, strict=True)) if self.several else names[0]

    @staticmethod
    def _product(columns: list[list[str]]) -> tuple[str, ...]:
        names = [""]
        for column in columns:
            names = [f"{name}+{label}" if name else label for name in names for label in column]
        return tuple(names)

    def codes(self, attributes: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """Codes (..., partitions) from the codes (...) of the single attributes."""
        columns = []
        for part in self.partitions:
            code = np.zeros_like(attributes[part[0]], dtype=np.int64)
            for name in part:
                code = code * len(self.labels[name]) + attributes[name]
            columns.append(code)
        return np.stack(columns, axis=-1)

    def record(self, codes: NDArray[np.int64]) -> Any:
        """``info["individual"]["group"]`` from the codes (n, partitions): (n,), or a dict partition -> (n,)."""
        if not self.several:
            return codes[:, 0]
        return {"+".join(part): codes[:, column] for column, part in enumerate(self.partitions)}
