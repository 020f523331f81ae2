"""A log of decisions as small integers per row, collected chunk by chunk.

Per row it keeps a code of the action and of each attribute (two bytes), of the feedback (two bytes), and the time,
reward and stakeholder where they are given. Features are kept of a uniform sample of rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.audit.columns import Columns
from sb3_fair.audit.values import (
    MOST_LABELS,
    UNKNOWN,
    Array,
    Labels,
    is_number,
    numbers,
    rows_text,
    same_but_for_case,
    times,
)

CHANCES = {
    "score": "the favourable decision, in [0, 1]",
    "propensity": "the decision that was made, in (0, 1]",
    "target": "the favourable decision by another policy, in [0, 1]",
}
PER_ROW = ("reward", "propensity", "target")
"""Roles of columns of numbers that are kept for every row."""
_OUTLIERS = 3
_SMALL = np.uint16


@dataclass
class Sample:
    """Features of a uniform sample of the rows that have all of them.

    :param rows: (m,) where they stand in the log
    :param features: (m, d); codes of nominal features
    :param scores: (m,) probability of the favourable decision, or None
    :param low: (d,) lowest value in the whole log, ``high`` the highest
    :param eligible: how many rows there were to choose from
    """

    rows: NDArray[np.int64]
    features: Array
    scores: Array | None
    low: Array
    high: Array
    eligible: int


@dataclass
class Log:
    """All rows of a log.

    :param n: rows
    :param actions: (n,) code of the action, 0 where it is missing
    :param groups: attribute -> (n,) code of the group, 0 where it is missing
    :param feedback: (n,) code of the feedback, 0 where it is unknown; None: no such column
    :param labels: column -> the labels of its codes 1, 2, ...
    :param times: (n,) or None
    :param numbers: reward, propensity and target, as far as they are given -> (n,); NaN where unknown
    :param stakeholders: (n,) codes or None
    :param warnings: what was noticed while reading
    """

    columns: Columns
    n: int
    actions: NDArray[np.uint16]
    groups: dict[str, NDArray[np.uint16]]
    feedback: NDArray[np.uint16] | None
    labels: dict[str, list[str]]
    times: NDArray[Any] | None
    numbers: dict[str, Array]
    stakeholders: NDArray[np.int32] | None
    sample: Sample | None
    warnings: list[str] = field(default_factory=list)


class LogBuilder:
    """Makes a :class:`Log` of chunks of rows.

    :param columns: what the columns mean
    :param reservoir: size of the sample for individual notions
    :param seed: of the sample, which does not depend on the size of the chunks
    :param comma: whether "0,5" is a number
    """

    def __init__(self, columns: Columns, reservoir: int = 1000, seed: int = 0, comma: bool = False) -> None:
        self.columns = columns
        self._comma = comma
        self._n = 0
        self._labels = {name: Labels(name, comma=comma) for name in columns.group}
        self._labels[columns.action] = Labels(columns.action, UNKNOWN, comma=comma)
        if columns.feedback is not None:
            self._labels[columns.feedback] = Labels(columns.feedback, UNKNOWN, comma=comma)
        if columns.stakeholder is not None and columns.stakeholder not in self._labels:
            self._labels[columns.stakeholder] = Labels(columns.stakeholder, most=None)
        self._kept: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._of_rows: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._missing: dict[str, int] = defaultdict(int)
        self._missing_rows: dict[str, list[int]] = defaultdict(list)
        self._sampler = _Sampler(columns, reservoir, seed) if columns.features else None

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Rows that follow those added before.

        :param chunk: column -> its values (m,)
        :raises ValueError: if a value does not fit the meaning of its column; names the rows
        """
        missing: dict[str, NDArray[np.bool_]] = {}
        for name, labels in self._labels.items():
            codes = labels.codes(chunk[name])
            wide = name == self.columns.stakeholder and name not in self.columns.group
            self._kept[name].append(codes if wide else codes.astype(_SMALL))
            if name != self.columns.feedback:
                missing[name] = codes == 0
        if self.columns.time is not None:
            when = times(self.columns.time, chunk[self.columns.time], self._n)
            self._of_rows["time"].append(when)
            missing[self.columns.time] = when != when
        roles = {role: name for role in PER_ROW if (name := getattr(self.columns, role)) is not None}
        for role, name in roles.items():
            found = self._chances(role, name, chunk) if role in CHANCES else self._numbers(name, chunk)
            self._of_rows[role].append(found)
            missing[name] = np.isnan(found)
        if self._sampler is not None:
            values = [self._feature(name, chunk) for name in self.columns.features]
            missing |= {name: np.isnan(column) for name, column in zip(self.columns.features, values, strict=True)}
            score = None if self.columns.score is None else self._chances("score", self.columns.score, chunk)
            if score is not None:
                missing[str(self.columns.score)] = np.isnan(score)
            self._sampler.add(self._n, np.column_stack(values), score)
        for name, absent in missing.items():
            rows = np.flatnonzero(absent)
            if len(rows):
                self._missing[name] += len(rows)
                self._missing_rows[name] += (rows[: _OUTLIERS - len(self._missing_rows[name])] + self._n + 1).tolist()
        self._n += len(chunk[self.columns.action])

    def _numbers(self, name: str, chunk: Mapping[str, Any]) -> Array:
        return numbers(name, chunk[name], self._n, self._comma)

    def _feature(self, name: str, chunk: Mapping[str, Any]) -> Array:
        if self._sampler is None or name not in self._sampler.nominal:
            return self._numbers(name, chunk)
        codes = self._sampler.nominal[name].codes(chunk[name]).astype(np.float64)
        return np.where(codes == 0, np.nan, codes)

    def _chances(self, role: str, name: str, chunk: Mapping[str, Any]) -> Array:
        found = self._numbers(name, chunk)
        wrong = np.flatnonzero((found < 0) | (found > 1) | ((found == 0) & (role == "propensity")))
        if len(wrong):
            raise ValueError(
                f"{role} must be the probability of {CHANCES[role]}, but {name!r} is {found[wrong[0]]:g} in "
                f"{rows_text(wrong, self._n)}"
            )
        return found

    def finish(self) -> Log:
        """The log of all rows.

        :raises ValueError: if there are none
        """
        if not self._n:
            raise ValueError("the log must have at least one row, got none")
        kept, of_rows = (
            {name: np.concatenate(parts.pop(name)) for name in list(parts)} for parts in (self._kept, self._of_rows)
        )
        columns = self.columns
        return Log(
            columns=columns,
            n=self._n,
            actions=kept[columns.action],
            groups={name: kept[name] for name in columns.group},
            feedback=None if columns.feedback is None else kept[columns.feedback],
            labels={name: labels.names for name, labels in self._labels.items()},
            times=of_rows.get("time"),
            numbers={role: of_rows[role] for role in PER_ROW if role in of_rows},
            stakeholders=None if columns.stakeholder is None else kept[columns.stakeholder],
            sample=None if self._sampler is None else self._sampler.sample(),
            warnings=[*self._missing_warnings(), *self._label_warnings(kept)],
        )

    def _missing_warnings(self) -> list[str]:
        columns = self.columns
        consequences = (
            ((columns.action,), "not counted as decisions"),
            (columns.group, "in none of its groups"),
            ((columns.time,), "left out of the course over time"),
            ((*columns.features, columns.score), "left out of individual notions"),
            ((columns.reward, columns.stakeholder), "left out of welfare and returns"),
            ((columns.propensity, columns.target), "left out of what another policy would do"),
        )
        said = []
        for name, count in self._missing.items():
            first = self._missing_rows[name]
            where = ", ".join(map(str, first)) + (", ..." if count > len(first) else "")
            rows, verb = ("row", "is") if count == 1 else ("rows", "are")
            out = " and ".join(consequence for names, consequence in consequences if name in names)
            said.append(f"{count:,} {rows} without {name!r} {verb} {out} ({rows} {where}).")
        return said

    def _label_warnings(self, kept: Mapping[str, NDArray[Any]]) -> Iterator[str]:
        for name, labels in self._labels.items():
            if len(labels.names) > MOST_LABELS:
                continue
            for one, two in same_but_for_case(labels.names):
                yield f"{name!r} has {one!r} and {two!r}, which are taken for two different values."
            kinds = np.array([False, *map(is_number, labels.names)])
            if kinds.any() and not kinds[1:].all():
                rows = int(np.count_nonzero(kinds[kept[name]]))
                example = labels.names[int(kinds.argmax()) - 1]
                yield f"{name!r} mixes numbers and words: {rows:,} rows have a number, such as {example}."


class _Sampler:
    """Keeps the rows with the smallest of random numbers: a uniform sample."""

    def __init__(self, columns: Columns, size: int, seed: int) -> None:
        self.nominal = {name: Labels(name, most=None) for name in columns.nominal}
        self._size = size
        self._rng = np.random.default_rng(seed)
        width = len(columns.features)
        self._has_scores = columns.score is not None
        self._low, self._high = np.full(width, np.inf), np.full(width, -np.inf)
        self._keys, self._rows = np.empty(0), np.empty(0, dtype=np.int64)
        self._values = np.empty((0, width + 1))
        self._eligible = 0

    def add(self, start: int, features: Array, scores: Array | None) -> None:
        keys = self._rng.random(len(features))
        values = np.column_stack([features, np.zeros(len(features)) if scores is None else scores])
        whole = ~np.isnan(values).any(axis=1)
        self._eligible += int(np.count_nonzero(whole))
        if whole.any():
            self._low = np.minimum(self._low, features[whole].min(axis=0))
            self._high = np.maximum(self._high, features[whole].max(axis=0))
        new = np.flatnonzero(whole & (keys < self._keys.max(initial=0.0) if len(self._keys) == self._size else whole))
        self._keys = np.concatenate([self._keys, keys[new]])
        self._rows = np.concatenate([self._rows, start + new])
        self._values = np.concatenate([self._values, values[new]])
        if len(self._keys) > self._size:
            best = np.argpartition(self._keys, self._size)[: self._size]
            self._keys, self._rows, self._values = self._keys[best], self._rows[best], self._values[best]

    def sample(self) -> Sample:
        order = np.argsort(self._rows)
        values = self._values[order]
        scores = values[:, -1] if self._has_scores else None
        return Sample(self._rows[order], values[:, :-1], scores, self._low, self._high, self._eligible)
