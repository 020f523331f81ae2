"""Cells of logged decisions: whether each was favourable, and whether a favourable one would have been right."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.audit.log import Log
from sb3_fair.audit.values import MOST_LABELS, text
from sb3_fair.fairness.notions.table import CELLS, cells_of, feedback_counts
from sb3_fair.fairness.validation import did_you_mean

YES = ("1", "true", "yes", "y", "t")
NO = ("0", "false", "no", "n", "f")
_FEW = 12
# Unfavourable, favourable; each with feedback unknown, undeserving, deserving.
_CELL = cells_of(np.repeat([0, 1], 3), np.tile([np.nan, 0.0, 1.0], 2), (1,)).reshape(2, 3)


@dataclass
class Attribute:
    """One way to divide people into groups: a column, or the combinations of several.

    :param name: of the column; of combinations, the names joined by " and "
    :param labels: of the groups
    :param codes: (n,) group of each decision: 0 is none, k is ``labels[k - 1]``
    """

    name: str
    labels: list[str]
    codes: NDArray[Any]

    def counts(self, cells: NDArray[np.uint8]) -> NDArray[np.float64]:
        """How many decisions of each group are in each cell, (groups, CELLS)."""
        size = (len(self.labels) + 1) * CELLS
        found = np.zeros(size)
        for start in range(0, len(cells), 2**20):  # bincount takes eight bytes per row
            part = slice(start, start + 2**20)
            found += np.bincount(self.codes[part].astype(np.int64) * CELLS + cells[part], minlength=size)
        return found.reshape(-1, CELLS)[1:]


@dataclass
class Decisions:
    """The decisions of a log in order of time.

    :param cells: (n,) see :func:`sb3_fair.fairness.notions.table.cells_of`; any two actions that are both favourable,
        or both not, count as the same
    :param rows: (n,) where they stand in the log
    :param timed: how many of them, the first ones, have a time
    :param favourable: the favourable actions
    :param deserving: the values of the feedback that mean a favourable decision would have been right
    """

    cells: NDArray[np.uint8]
    rows: NDArray[np.int64]
    timed: int
    attributes: list[Attribute]
    intersection: Attribute | None
    favourable: list[str]
    deserving: list[str]

    @property
    def compared(self) -> list[Attribute]:
        """The attributes and their intersection."""
        return [*self.attributes, *([self.intersection] if self.intersection else ())]

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """How many decisions are in each cell, (CELLS,)."""
        return np.bincount(self.cells, minlength=CELLS).astype(float)

    @property
    def selective(self) -> list[int]:
        """The kind of decision, unfavourable (0) or favourable (1), after which no outcome is known, where outcomes are
        known after the other kind alone; else empty."""
        made, known = feedback_counts(self.counts)
        return [kind for kind in (0, 1) if made[kind] and not known[kind] and known[1 - kind]]


def decisions(log: Log, favourable: Any = None, deserving: Any = None) -> Decisions:
    """What was decided, in order of time; rows without an action are left out.

    :param favourable: one or more actions; None: the one that means yes, such as 1, true or yes
    :param deserving: one or more values of the feedback; None: the favourable actions if all values are actions,
        else the one that means yes
    :raises ValueError: if they do not occur, have to be named or are about no feedback, or a group column has fewer
        than two labels
    """
    columns = log.columns
    actions = log.labels[columns.action]
    if not actions:
        raise ValueError(f"action must be known for some rows, but {columns.action!r} is empty")
    good = chosen("favourable", f"{columns.action!r}", favourable, actions)
    accepted = np.array([False, *(name in good for name in actions)])
    for attribute in columns.group:
        if len(log.labels[attribute]) < 2:
            raise ValueError(f"group must have at least two different values to compare, but {attribute!r} has "
                             f"{log.labels[attribute]}")  # fmt: skip
    right: list[str] = []
    outcome, feedback = np.zeros(1, dtype=np.intp), log.feedback
    if columns.feedback is None or feedback is None:
        if deserving is not None:
            raise ValueError(f"deserving must be left out where there is no feedback, got {deserving!r}")
        feedback = np.zeros(log.n, dtype=np.uint16)
    else:
        known = log.labels[columns.feedback]
        if not known:
            raise ValueError(f"feedback must be known for some decisions, but {columns.feedback!r} is empty")
        right = [name for name in known if name in good]
        if deserving is not None or not set(known) <= set(actions):
            right = chosen("deserving", columns.feedback, deserving, known)
        elif _yes_or_no(known) and right != [name for name in known if name.lower() in YES]:
            raise ValueError(
                f"deserving must say which values of {columns.feedback!r} are meant, some of {_listed(known)}: as "
                f"{_listed(good)} is favourable, they can be read in two ways"
            )
        outcome = np.array([0, *(2 if name in right else 1 for name in known)])
    rows = np.flatnonzero(log.actions) if (log.actions == 0).any() else np.arange(log.n)
    timed = len(rows)
    if log.times is not None:
        rows = rows[np.argsort(log.times[rows], kind="stable")]  # what has no time comes last
        timed = int(np.count_nonzero(log.times[rows] == log.times[rows]))
    cells = _CELL[accepted[log.actions[rows]].astype(np.intp), outcome[feedback[rows]]]
    attributes = [Attribute(name, log.labels[name], codes[rows]) for name, codes in log.groups.items()]
    return Decisions(cells, rows, timed, attributes, _intersection(attributes), good, right)


def _intersection(attributes: list[Attribute]) -> Attribute | None:
    """The combinations of all attributes that occur; None where there are too many of them, or fewer than two."""
    if len(attributes) < 2:
        return None
    codes = np.zeros(len(attributes[0].codes), dtype=np.int64)
    everywhere = np.ones(len(codes), dtype=bool)
    for attribute in attributes:
        codes = codes * len(attribute.labels) + attribute.codes - 1
        everywhere &= attribute.codes > 0
    different = np.unique(codes[everywhere])
    if not 2 <= len(different) <= MOST_LABELS:
        return None
    places = np.where(everywhere, np.searchsorted(different, codes) + 1, 0).astype(np.int32)
    shape = [len(attribute.labels) for attribute in attributes]
    parts = [
        [attribute.labels[index] for attribute, index in zip(attributes, cell, strict=True)]
        for cell in np.transpose(np.unravel_index(different, shape))
    ]
    joined = [" · ".join(own) for own in parts]
    times = Counter(joined)
    labels = [
        label if times[label] == 1 else " · ".join(map(repr, own)) for label, own in zip(joined, parts, strict=True)
    ]
    return Attribute(" and ".join(attribute.name for attribute in attributes), labels, places)


def chosen(argument: str, column: str, asked: Any, there: list[str]) -> list[str]:
    """The labels that were asked for, or the one that means yes.

    :param argument: that asks for them, for messages, of the ``column``
    :param asked: one or more values; None: nothing was asked for
    :param there: all labels of the column
    :raises ValueError: if nothing was asked for and none of two labels alone means yes, or one does not occur
    """
    if asked is None:
        found = [name for name in there if name.lower() in YES]
        if not found and len(there) == 1 and there[0].lower() in NO:
            return found
        if len(found) != 1 or len(there) > 2:
            raise ValueError(f"{argument} must say which values of {column} are meant, some of {_listed(there)}")
        return found
    given = [asked] if isinstance(asked, (str, bytes)) or not isinstance(asked, Iterable) else list(asked)
    wanted = [text(value) for value in given]
    lower = {name.lower(): name for name in there} if _yes_or_no(there) else {}
    found = [name if name in there else lower.get(name.lower(), name) for name in wanted]
    for name in found:
        if name not in there:
            raise ValueError(
                f"{argument} must be one or more of the values of {column}, {_listed(there)}, got {name!r}"
                f"{did_you_mean(name, there)}"
            )
    if not found:
        raise ValueError(f"{argument} must name at least one value of {column}, got {asked!r}")
    return found


def _yes_or_no(names: list[str]) -> bool:
    return {name.lower() for name in names} <= {*YES, *NO}


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_FEW])) + (", ..." if len(names) > _FEW else "")
