"""A log of decisions as small integers per row, collected chunk by chunk.

Per row it keeps a code of the action and of each attribute (two bytes), of the feedback (two bytes), and the time,
reward and stakeholder where they are given. Features are kept of a uniform sample of rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
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
    joined_times,
    numbers,
    rows_text,
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


class Log:
    """All rows of a log, which are added chunk by chunk.

    After :meth:`finish` it has, 0 or NaN where a value is missing: ``actions`` (n,) codes; ``groups``, attribute ->
    (n,) codes; ``feedback`` (n,) codes or None; ``labels``, column -> the labels of its codes 1, 2, ...; ``times`` (n,)
    or None; ``numbers``, reward, propensity and target, as far as they are given -> (n,); ``stakeholders`` (n,) codes
    or None; ``sample`` for individual notions, None without features; ``warnings``: what was noticed.

    :param columns: what the columns mean
    :param reservoir: size of the sample
    :param seed: of the sample, which does not depend on the size of the chunks
    :param comma: whether "0,5" is a number
    """

    def __init__(self, columns: Columns, reservoir: int, seed: int, comma: bool) -> None:
        self.columns = columns
        self.n = 0
        self.sample = Sample(columns, reservoir, seed) if columns.features else None
        self._comma = comma
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

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Rows that follow those added before.

        :param chunk: column -> its values (m,)
        :raises ValueError: if a value does not fit the meaning of its column; names the rows
        """
        missing: dict[str, NDArray[np.bool_]] = {}
        for name, labels in self._labels.items():
            codes = labels.codes(chunk[name])
            wide = name == self.columns.stakeholder and name not in self.columns.group
            self._kept[name].append(codes if wide else codes.astype(np.uint16))
            if name != self.columns.feedback:
                missing[name] = codes == 0
        if self.columns.time is not None:
            when = times(self.columns.time, chunk[self.columns.time], self.n, self._comma)
            self._of_rows["time"].append(when)
            missing[self.columns.time] = when != when
        roles = {role: name for role in PER_ROW if (name := getattr(self.columns, role)) is not None}
        for role, name in roles.items():
            found = self._role(role, name, chunk)
            self._of_rows[role].append(found)
            missing[name] = np.isnan(found)
        if self.sample is not None:
            values = [self._feature(name, chunk) for name in self.columns.features]
            missing |= {name: np.isnan(column) for name, column in zip(self.columns.features, values, strict=True)}
            score = None if self.columns.score is None else self._role("score", self.columns.score, chunk)
            if score is not None:
                missing[str(self.columns.score)] = np.isnan(score)
            undecided = missing[self.columns.action][:, None]
            self.sample.add(self.n, np.where(undecided, np.nan, np.column_stack(values)), score)
        for name, absent in missing.items():
            rows = np.flatnonzero(absent)
            if len(rows):
                self._missing[name] += len(rows)
                self._missing_rows[name] += (rows[: _OUTLIERS - len(self._missing_rows[name])] + self.n + 1).tolist()
        self.n += len(chunk[self.columns.action])

    def _feature(self, name: str, chunk: Mapping[str, Any]) -> Array:
        if self.sample is None or name not in self.sample.nominal:
            return numbers(name, chunk[name], self.n, self._comma)
        codes = self.sample.nominal[name].codes(chunk[name]).astype(np.float64)
        return np.where(codes == 0, np.nan, codes)

    def _role(self, role: str, name: str, chunk: Mapping[str, Any]) -> Array:
        found = numbers(name, chunk[name], self.n, self._comma)
        wrong = np.flatnonzero((found < 0) | (found > 1) | ((found == 0) & (role == "propensity")))
        if len(wrong) and role in CHANCES:
            raise ValueError(
                f"{role} must be the probability of {CHANCES[role]}, but {name!r} is {found[wrong[0]]:g} in "
                f"{rows_text(wrong, self.n)}"
            )
        return found

    def finish(self) -> "Log":
        """Itself, with all rows.

        :raises ValueError: if there are none, or some have numbers for times and others dates
        """
        if not self.n:
            raise ValueError("the log must have at least one row, got none")
        columns = self.columns
        self.times = None if columns.time is None else joined_times(columns.time, self._of_rows.pop("time"))
        kept, of_rows = (
            {name: np.concatenate(parts.pop(name)) for name in list(parts)} for parts in (self._kept, self._of_rows)
        )
        self.actions = kept[columns.action]
        self.groups = {name: kept[name] for name in columns.group}
        self.feedback = None if columns.feedback is None else kept[columns.feedback]
        self.stakeholders = None if columns.stakeholder is None else kept[columns.stakeholder]
        self.labels = {name: labels.names for name, labels in self._labels.items()}
        self.numbers = {role: of_rows[role] for role in PER_ROW if role in of_rows}
        self.warnings = [*self._missing_warnings(), *self._label_warnings(kept)]
        if self.sample is not None:
            self.sample.shuffle()
        return self

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
            seen: dict[str, str] = {}
            for label in labels.names:
                if (other := seen.setdefault(label.casefold(), label)) != label:
                    yield f"{name!r} has {other!r} and {label!r}, which are taken for two different values."
            kinds = np.array([False, *map(is_number, labels.names)])
            if kinds.any() and not kinds[1:].all():
                rows = int(np.count_nonzero(kinds[kept[name]]))
                example = labels.names[int(kinds.argmax()) - 1]
                yield f"{name!r} mixes numbers and words: {rows:,} rows have a number, such as {example}."


class Sample:
    """Features of a uniform sample of the decisions that have all of them: those with the smallest of random numbers.

    ``rows`` (m,) where they stand in the log; ``low`` (d,) lowest value of all such decisions, ``high`` the highest;
    ``eligible``: how many there were to choose from.
    """

    def __init__(self, columns: Columns, size: int, seed: int) -> None:
        self.nominal = {name: Labels(name, most=None) for name in columns.nominal}
        self.rows = np.empty(0, dtype=np.int64)
        width = len(columns.features)
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)
        self.eligible = 0
        self._size = size
        self._rng = np.random.default_rng(seed)
        self._has_scores = columns.score is not None
        self._keys, self._values = np.empty(0), np.empty((0, width + 1))

    @property
    def features(self) -> Array:
        """(m, d); codes of nominal features."""
        return self._values[:, :-1]

    @property
    def scores(self) -> Array | None:
        """(m,) probability of the favourable decision, or None."""
        return self._values[:, -1] if self._has_scores else None

    def add(self, start: int, features: Array, scores: Array | None) -> None:
        """Rows of the log from ``start`` on; those without a feature or a score are not chosen."""
        values = np.column_stack([features, np.zeros(len(features)) if scores is None else scores])
        whole = np.flatnonzero(~np.isnan(values).any(axis=1))
        keys = self._rng.random(len(whole))
        self.eligible += len(whole)
        if len(whole):
            self.low = np.minimum(self.low, features[whole].min(axis=0))
            self.high = np.maximum(self.high, features[whole].max(axis=0))
        new = keys < (self._keys.max(initial=0.0) if len(self._keys) == self._size else 1.0)
        self._keys = np.concatenate([self._keys, keys[new]])
        self.rows = np.concatenate([self.rows, start + whole[new]])
        self._values = np.concatenate([self._values, values[whole[new]]])
        if len(self._keys) > self._size:
            self._choose(np.argpartition(self._keys, self._size)[: self._size])

    def shuffle(self) -> None:
        """In random order: that of the log may depend on the decision."""
        self._choose(np.argsort(self._keys))

    def _choose(self, places: NDArray[np.intp]) -> None:
        self._keys, self.rows, self._values = self._keys[places], self.rows[places], self._values[places]
