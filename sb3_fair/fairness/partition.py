"""Which column of the counts does a group label belong to?

Column 0 is nowhere: labels that are not compared ("other"), and slots of a history that are still empty. Integer
codes are looked up in an array; labels of any other kind in a dict. Both ways lead to the same column.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

NOWHERE = 0
_LARGEST_TABLE = 4096  # codes from here on are looked up in the dict

Columns: TypeAlias = NDArray[np.intp]


class Partition:
    """One attribute: its labels, numbered from 1 in the order they were met.

    :param groups: the labels to compare, at least two; None: every label that occurs
    """

    def __init__(self, groups: Iterable[Hashable] | None = None) -> None:
        self.labels: list[Any] = [None]
        self._column: dict[Any, int] = {}
        self._open = groups is None
        self._table: Columns = np.empty(0, dtype=np.intp)
        if groups is not None:
            for label in check_groups(groups):
                self._meet(label)
            codes = [label for label in self._column if isinstance(label, (int, np.integer))]
            self._extend_table(int(max(codes, default=-1)))

    @property
    def size(self) -> int:
        """Number of columns, nowhere included."""
        return len(self.labels)

    def columns(self, labels: Any) -> Columns:
        """Columns (m,) of ``labels`` (m,): an array of non-negative integers, or any hashable labels.

        :raises ValueError: if labels are missing (None or NaN)
        :raises TypeError: if labels are not a sequence of hashable values
        """
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub" and labels.ndim == 1:
            if labels.dtype.kind == "b":
                labels = labels.view(np.int8)
            if len(labels) and np.minimum.reduce(labels) >= 0:
                try:
                    found: Columns = self._table.take(labels)
                    return found
                except IndexError:
                    if labels.max() < _LARGEST_TABLE:
                        self._extend_table(int(labels.max()))
                        found = self._table[labels]
                        return found
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise TypeError(f"group must have one label per individual, got {labels!r}")
        return np.array([self._look_up(label) for label in _listed(labels)], dtype=np.intp)

    def _look_up(self, label: Any) -> int:
        try:
            column = self._column.get(label)
        except TypeError:
            raise TypeError(f"group must be a hashable label, got {label!r}") from None
        if column is not None:
            return column
        if label is None or label != label:
            raise ValueError(f"group must be a label, got {label!r}: every individual is in one of the groups")
        return self._meet(label) if self._open else NOWHERE

    def _meet(self, label: Any) -> int:
        self._column[label] = len(self.labels)
        self.labels.append(label)
        return self._column[label]

    def _extend_table(self, largest: int) -> None:
        new = range(len(self._table), min(largest + 1, _LARGEST_TABLE))
        self._table = np.concatenate([self._table, np.array([self._look_up(code) for code in new], dtype=np.intp)])


class ProductPartition(Partition):
    """Several attributes at once: each combination of labels is a group, its label a tuple."""

    def __init__(self, parts: int, groups: Iterable[Hashable] | None = None) -> None:
        super().__init__(groups)
        self._parts = [Partition() for _ in range(parts)]
        self._product: Columns = np.full((0,) * parts, -1, dtype=np.intp)

    def columns(self, labels: Sequence[Any]) -> Columns:
        """Columns (m,) of the combinations; ``labels`` holds the labels (m,) of each part."""
        index = tuple(part.columns(label) for part, label in zip(self._parts, labels, strict=True))
        shape = tuple(part.size for part in self._parts)
        if shape != self._product.shape:
            grown = np.full(shape, -1, dtype=np.intp)
            grown[tuple(map(slice, self._product.shape))] = self._product
            self._product = grown
        found: Columns = self._product[index]
        if (found < 0).any():
            for cell in set(zip(*index, strict=True)):
                label = tuple(part.labels[column] for part, column in zip(self._parts, cell, strict=True))
                self._product[cell] = self._look_up(label)
            found = self._product[index]
        return found


def check_groups(groups: Iterable[Hashable], name: str = "groups") -> tuple[Hashable, ...]:
    """The labels to compare.

    :raises ValueError: if they are fewer than two or repeat
    """
    if isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
        raise ValueError(f"{name} must hold the labels to compare, got {groups!r}")
    labels = tuple(tuple(label) if isinstance(label, list) else label for label in groups)
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ValueError(f"{name} must hold at least two different labels, got {groups!r}")
    return labels


def _listed(labels: Iterable[Any]) -> list[Any]:
    listed: list[Any] = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    return listed
