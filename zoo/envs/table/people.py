"""Reads the people of a table: features, groups, outcomes, who is for training and who for evaluation."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.audit.chunks import Chunks, chunks_of_file, chunks_of_table
from sb3_fair.audit.decisions import chosen
from sb3_fair.audit.values import UNKNOWN, Array, Labels, numbers, rows_text
from sb3_fair.fairness.warning import warn
from sb3_fair.zoo.names import InputError, input_errors

MOST_NAMES = 100
"""Different values that a nominal feature may have."""
IMPUTED = "unknown"


class Columns(NamedTuple):
    """What is read of a table, see :class:`~sb3_fair.zoo.envs.table.settings.TableConfig`."""

    groups: tuple[str, ...]
    outcome: str
    good: Any
    features: tuple[str, ...]
    nominal: tuple[str, ...]
    person: str | None
    score: str | None
    missing: str

    @property
    def used(self) -> list[str]:
        names = (self.outcome, *self.groups, *self.features, self.person, self.score)
        return list(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True)
class People:
    """The rows of a table (m,).

    :param features: (m, k) numbers scaled to [0, 1] by their range in the table, and codes 0, 1, ... of names
    :param low: (k,) lowest value of each feature, ``high`` the highest
    :param names: feature -> the names of its codes, of nominal features
    :param groups: attribute -> (m,) codes 0, 1, ...
    :param labels: attribute -> the names of its groups
    :param good: (m,) whether the outcome is good, which is called ``good_outcome``
    :param person: (m,) number of the person
    :param score: (m,) or None
    :param left_out: a sentence on the rows of the table that are not among these, empty if all are
    """

    columns: Columns
    features: Array
    low: Array
    high: Array
    names: dict[str, list[str]]
    groups: dict[str, NDArray[np.int64]]
    labels: dict[str, list[str]]
    good: NDArray[np.bool_]
    good_outcome: str
    person: NDArray[np.int64]
    score: Array | None
    left_out: str

    def part(self, split: str, test_share: float, seed: int) -> NDArray[np.intp]:
        """The rows of a part of the people; every person is in one part.

        :param split: ``"train"``, ``"test"`` or ``"all"``
        :raises InputError: if nobody of one of the groups is in it
        """
        if split == "all":
            return np.arange(len(self.good))
        count = int(self.person.max()) + 1
        tested = np.zeros(count, dtype=bool)
        tested[np.random.default_rng(seed).permutation(count)[: round(test_share * count)]] = True
        rows = np.flatnonzero(tested[self.person] == (split == "test"))
        for attribute, labels in self.labels.items():
            there = np.bincount(self.groups[attribute][rows], minlength=len(labels))
            if not there.all():
                label = labels[there.argmin()]
                rare = np.count_nonzero(self.groups[attribute] == there.argmin())
                raise InputError(
                    f"every group must have people for training and for evaluation, but the {split} part has none with "
                    f"{attribute} {label!r}, of {rare} in all: leave small groups out, or choose another test_share"
                )
        return rows


def people_of(table: Any, columns: Columns, sha256: str | None = None) -> People:
    """The people of a table; those of a file are remembered.

    :param table: path of a file, or what :func:`~sb3_fair.audit.chunks.chunks_of_table` takes
    :param sha256: checksum that the file must have, None: any
    :raises InputError: if a column is missing, a value does not fit it, there are fewer than two groups or outcomes, or
        the file is another one
    :raises OSError: if there is no such file
    """
    with input_errors():
        if not isinstance(table, str | Path):
            return _people(chunks_of_table(table, columns.used), columns)
        path = Path(table)
        if not path.is_file():
            raise FileNotFoundError(f"table must be a file, but there is none at {str(table)!r}")
        stamp = path.stat()
        people, found = _of_file(path.absolute(), (stamp.st_mtime_ns, stamp.st_size), columns)
        if sha256 not in (None, found):
            raise InputError(
                f"table must be as it was when the run was made, but {str(table)!r} has changed since: its SHA-256 "
                f"is {found[:12]}..., not {str(sha256)[:12]}..."
            )
        return people


def checksum(path: str | Path) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=4)
def _of_file(path: Path, stamp: tuple[int, int], columns: Columns) -> tuple[People, str]:
    return _people(chunks_of_file(path, columns.used), columns), checksum(path)


def _people(chunks: Chunks, columns: Columns) -> People:
    codes, values = _read(chunks, columns)
    missing = {name: codes[name][1] == 0 for name in codes} | {name: np.isnan(values[name]) for name in values}
    size = len(missing[columns.outcome])
    if not size:
        raise InputError("table must have at least one row, got none")
    for text in (*chunks.warnings, *_handled(columns, missing)):
        warn(text)
    for name in codes if columns.missing == "impute" else ():
        labels, found = codes[name]
        if name in columns.nominal and missing[name].any():
            labels = labels if IMPUTED in labels else [*labels, IMPUTED]
            codes[name] = (labels, np.where(missing[name], labels.index(IMPUTED) + 1, found))
    for name, found in values.items() if columns.missing == "impute" else ():
        values[name] = np.where(missing[name], np.median(found[~missing[name]]), found)
    kept = ~np.any([*missing.values()], axis=0) if columns.missing == "drop" else np.ones(size, dtype=bool)
    if not kept.any():
        raise InputError("table must have a row without missing values, got none")
    named = {name: _that_occur(labels, found[kept]) for name, (labels, found) in codes.items()}
    labels, outcome = named[columns.outcome]
    if len(labels) != 2:
        raise InputError(f"outcome must have two different values, but {columns.outcome!r} has {len(labels)}: "
                         f"{', '.join(map(repr, labels[:5]))}{', ...' * (len(labels) > 5)}")  # fmt: skip
    good = [labels.index(name) for name in chosen("good", repr(columns.outcome), columns.good, labels)]
    for name in columns.groups:
        if len(named[name][0]) < 2:
            raise InputError(f"group must have at least two different values to compare, but {name!r} has "
                             f"{named[name][0]}")  # fmt: skip
    amounts = [(named[name][1] if name in columns.nominal else values[name][kept]) for name in columns.features]
    features = np.column_stack(amounts).astype(np.float64)
    numeric = np.array([name not in columns.nominal for name in columns.features])
    low, high = features.min(axis=0), features.max(axis=0)
    with np.errstate(over="ignore"):
        spans = high - low
    for at in np.flatnonzero(np.isinf(spans))[:1]:
        name = columns.features[at]
        raise InputError(f"{name!r} must hold numbers with a range that can be computed, got {low[at]} to {high[at]}")
    scaled = (features - low) / np.where(high > low, spans, 1.0)
    return People(
        columns=columns,
        features=np.where(numeric, scaled, features).astype(np.float32).astype(np.float64),  # as observations show them
        low=low,
        high=high,
        names={name: named[name][0] for name in columns.nominal},
        groups={name: named[name][1] for name in columns.groups},
        labels={name: named[name][0] for name in columns.groups},
        good=np.isin(outcome, good),
        good_outcome=labels[good[0]],
        person=np.arange(len(outcome)) if columns.person is None else named[columns.person][1],
        score=None if columns.score is None else values[columns.score][kept],
        left_out=_left_out(kept, missing),
    )


def _that_occur(labels: list[str], codes: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """The labels that are left, and codes 0, 1, ... of them, from codes 1, 2, ... of all."""
    left, renumbered = np.unique(codes, return_inverse=True)
    return [labels[code - 1] for code in left.tolist()], renumbered.astype(np.int64)


def _read(chunks: Chunks, columns: Columns) -> tuple[dict[str, tuple[list[str], NDArray[Any]]], dict[str, Array]]:
    """Labels and codes (m,) of columns of names, 0 where missing, and values (m,) of columns of numbers, NaN there."""
    labels = {name: Labels(name, comma=chunks.comma) for name in columns.groups}
    labels[columns.outcome] = Labels(columns.outcome, UNKNOWN, comma=chunks.comma)
    if columns.person is not None:
        labels.setdefault(columns.person, Labels(columns.person, most=None))
    for name in columns.nominal:
        labels.setdefault(name, Labels(name, most=MOST_NAMES, comma=chunks.comma))
    wanted = dict.fromkeys((*columns.features, columns.score))
    codes: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, np.int32)] for name in labels}
    amounts = {name: [np.empty(0)] for name in wanted if name is not None and name not in columns.nominal}
    size = 0
    for chunk in chunks.chunks:
        for name in codes:
            codes[name].append(labels[name].codes(chunk[name]))
        for name in amounts:
            try:
                amounts[name].append(numbers(name, chunk[name], size, chunks.comma))
            except ValueError as error:
                hint = "; if its values are names, list it in nominal" if name in columns.features else ""
                raise InputError(f"{error}{hint}") from error
        size += len(chunk[columns.outcome])
    return (
        {name: (labels[name].names, np.concatenate(found)) for name, found in codes.items()},
        {name: np.concatenate(found) for name, found in amounts.items()},
    )


def _left_out(kept: NDArray[np.bool_], missing: dict[str, NDArray[np.bool_]]) -> str:
    """A sentence on the rows that are not ``kept``, empty if all are."""
    if kept.all():
        return ""
    lacking = ", ".join(repr(name) for name, rows in missing.items() if rows.any())
    return (
        f"Left out: {np.count_nonzero(~kept):,} of {len(kept):,} rows, where a value is missing ({lacking}). "
        "All figures are about people like those who remain."
    )


def _handled(columns: Columns, missing: dict[str, NDArray[np.bool_]]) -> Iterator[str]:
    """What becomes of missing values, in words.

    :raises InputError: if they are to be refused, or cannot be imputed
    """
    lacking = {name: np.flatnonzero(rows) for name, rows in missing.items() if rows.any()}
    may_fill: Sequence[str] = (*columns.features, columns.score or "") if columns.missing == "impute" else ()
    for name, rows in lacking.items():
        told = f"{name!r} is missing in {rows_text(rows)}"
        if columns.missing == "refuse":
            raise InputError(f"{told}: fill it in, or choose missing: impute (for features) or drop")
        if columns.missing == "impute" and (name not in may_fill or name in columns.groups):
            raise InputError(f"{told}, where it cannot be imputed: fill it in, or choose missing: drop")
        if columns.missing == "impute" and len(rows) == len(missing[name]):
            raise InputError(f"{name!r} must have values, but it is empty")
        became = "dropped" if columns.missing == "drop" else "filled in"
        yield f"{told}: {became}"
