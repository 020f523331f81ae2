"""Group labels to columns of counts.

Column 0 is nowhere: labels that are not compared ("other"), and slots of a history that are still empty. Only labels
that have occurred, or are to be compared, have a column. Integers near 0 are looked up in an array, labels of any other
kind in a dict. Both ways lead to the same column.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.validation import is_missing, out_of_array

NOWHERE = 0
_UNKNOWN = -1
_NEAR = 2**15  # integers further from 0 are looked up in the dict
_INTEGERS = "?bhilqBHI"  # codes of the dtypes that fit into int64

Columns: TypeAlias = NDArray[np.intp]


class Partition:
    """One attribute: its labels, those of ``groups`` or all that occur, numbered from 1 in the order they were met."""

    def __init__(self, groups: Iterable[Hashable] | None = None) -> None:
        self.labels: list[Any] = [None]
        self._column: dict[Any, int] = {}
        self._open = groups is None
        self._empty_table()
        if groups is not None:
            for label in check_groups(groups):
                self._meet(label)

    def _empty_table(self) -> None:
        self._table: Columns = np.full(2, _UNKNOWN, dtype=np.intp)  # its first and last entry stay unknown
        self._lowest = np.array([-1])  # integer of the first entry

    @property
    def size(self) -> int:
        """Number of columns, nowhere included."""
        return len(self.labels)

    def columns(self, labels: Any) -> Columns:
        """Columns (m,) of ``labels`` (m,): an array of integers, or any hashable labels."""
        if type(labels) is np.ndarray and labels.dtype.char in _INTEGERS and labels.ndim == 1:
            return self._of_integers(labels)
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise TypeError(f"group must have one label per individual, got {labels!r}")
        return np.array([self._look_up(label) for label in out_of_array(labels)], dtype=np.intp)

    def _of_integers(self, integers: NDArray[Any]) -> Columns:
        found: Columns = self._table.take(integers - self._lowest, mode="clip")
        if not len(found) or found[found.argmin()] > _UNKNOWN:
            return found
        return self._enter(integers.astype(np.int64))

    def _enter(self, integers: NDArray[np.int64]) -> Columns:
        """Columns (m,) of integers (m,), which the table knows from now on if they are near 0."""
        different, places = np.unique(integers, return_inverse=True)
        columns = np.array([self._look_up(label) for label in self._labels_of(different)], dtype=np.intp)
        near = np.abs(different, dtype=np.float64) < _NEAR
        lowest = int(self._lowest[0])
        low = min(int(different[near].min(initial=0)) - 1, lowest)
        high = max(int(different[near].max(initial=0)) + 1, lowest + len(self._table) - 1)
        grown = np.full(high - low + 1, _UNKNOWN, dtype=np.intp)
        grown[lowest - low :][: len(self._table)] = self._table
        grown[different[near] - low] = columns[near]
        self._table, self._lowest = grown, np.array([low])
        return columns[places]

    def _labels_of(self, integers: NDArray[np.int64]) -> list[Any]:
        return integers.tolist()

    def _look_up(self, label: Any) -> int:
        label = out_of_array(label)  # tensors are hashed by identity
        try:
            column = self._column.get(label)
        except TypeError:
            raise TypeError(f"group must be a hashable label, got {label!r}") from None
        if column is not None:
            return column
        if is_missing(label):
            raise ValueError(f"group must be a label, got {label!r}: every individual is in one of the groups")
        return self._meet(label) if self._open else NOWHERE

    def _meet(self, label: Any) -> int:
        self._column[label] = len(self.labels)
        self.labels.append(label)
        return self._column[label]


class ProductPartition(Partition):
    """Several attributes at once: each combination of labels that occurs is a group, its label a tuple."""

    def __init__(self, parts: int, groups: Iterable[Hashable] | None = None) -> None:
        super().__init__(groups)
        self._parts = [Partition() for _ in range(parts)]
        self._shape = (1,) * parts

    def columns(self, labels: Sequence[Any]) -> Columns:
        """Columns (m,) of the combinations; ``labels`` holds the labels (m,) of each part."""
        index = [part.columns(label) for part, label in zip(self._parts, labels, strict=True)]
        shape = tuple(part.size for part in self._parts)
        if shape != self._shape:  # the same combination has another number now
            self._shape = shape
            self._empty_table()
        return self._of_integers(np.ravel_multi_index(index, shape))

    def _labels_of(self, integers: NDArray[np.int64]) -> list[Any]:
        cells = zip(*(each.tolist() for each in np.unravel_index(integers, self._shape)), strict=True)
        return [tuple(part.labels[column] for part, column in zip(self._parts, cell, strict=True)) for cell in cells]


def check_groups(groups: Iterable[Hashable], name: str = "groups") -> tuple[Hashable, ...]:
    """The labels to compare, at least two different ones."""
    if isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
        raise ValueError(f"{name} must hold the labels to compare, got {groups!r}")
    labels = tuple(tuple(label) if isinstance(label, list) else label for label in map(out_of_array, groups))
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ValueError(f"{name} must hold at least two different labels, got {groups!r}")
    return labels


def aligned(array: NDArray[Any], labels: ArrayLike, name: str, of: str) -> NDArray[Any]:
    """``labels`` of agents, (n,) or (..., n), as one label per entry of ``array`` (..., n), which is ``of`` what."""
    given = np.asarray(labels)
    if given.shape not in (array.shape, array.shape[-1:]):
        allowed = f"one label per agent, (agents,) or the shape of {of} {array.shape}"
        raise ValueError(f"{name} must have {allowed}, got shape {given.shape}")
    return np.broadcast_to(given, array.shape)


def compared_labels(labels: NDArray[Any], compared: Sequence[Hashable] | None) -> Sequence[Any]:
    """The labels to compare in logged data.

    :param labels: of any shape
    :param compared: None: 0 and 1 where these occur, or nobody is there; else the two labels that occur, the smaller
        one first
    """
    found = np.unique(labels).tolist()
    if compared is not None:
        if not len(compared) or not set(compared) <= set(found):
            raise ValueError(f"compared must hold labels that occur, some of {found}, got {compared!r}")
        return compared
    if {0, 1} <= set(found) or set(found) <= {0, 1}:
        return 0, 1
    if len(found) != 2:
        raise ValueError(f"groups must have two labels, or 0 and 1 among others, without compared=..., got {found}")
    return found
