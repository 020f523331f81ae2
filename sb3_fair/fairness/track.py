"""What is kept of the decisions in one history?"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.counts import DiscountedCounts, GroupCounts, Rows
from sb3_fair.fairness.distances import Metric
from sb3_fair.fairness.history import DiscountedHistory, History
from sb3_fair.fairness.individuals import Individuals
from sb3_fair.fairness.notions import NOTIONS, GapTable, GroupNotion, PairNotion
from sb3_fair.fairness.partition import Partition
from sb3_fair.fairness.requests import Request


class Track:
    """The counts of each partition and the people, of n copies, and the requested values from them.

    :param requests: those that concern this history
    :param partitions: by name of the attribute
    :param metrics: by label of the distance
    :param k: neighbours of CSC
    """

    def __init__(
        self,
        n: int,
        history: History,
        requests: Sequence[Request],
        partitions: Mapping[str, Partition],
        metrics: Mapping[str, Metric],
        k: int,
    ) -> None:
        self._history = history
        self.truncates = isinstance(history, DiscountedHistory)
        self._counts: dict[str, GroupCounts] = {}
        self._tables: dict[str, tuple[list[str], GapTable]] = {}
        for attribute, partition in partitions.items():
            mine = [(r.name, r.notion) for r in requests if isinstance(r.notion, GroupNotion) and r.of == attribute]
            if mine:
                kind = DiscountedCounts if self.truncates else GroupCounts
                self._counts[attribute] = kind(n, history, partition)
                self._tables[attribute] = [name for name, _ in mine], GapTable([notion for _, notion in mine])
        self._actions: NDArray[np.int64] | None = None
        if any(r.notion.needs_feedback for r in requests):
            self._actions = np.zeros((n, history.decisions), dtype=np.int64)
        self._copies = np.arange(n)
        self._names: list[dict[str, str]] = []
        self.individuals = self._people(n, requests, metrics, k)
        self._warned = False

    def _people(
        self, n: int, requests: Sequence[Request], metrics: Mapping[str, Metric], k: int
    ) -> Individuals | None:
        views: list[tuple[Metric, list[PairNotion], int | None]] = []
        for label, metric in metrics.items():
            mine = {r.notion: r.name for r in requests if r.notion.needs_features and r.of == label}
            pairs = [notion for notion in mine if isinstance(notion, PairNotion)]
            decisive = NOTIONS["IF"]  # of the first distance, whether requested or not
            if self._history.truncates and not views and isinstance(decisive, PairNotion) and decisive not in pairs:
                pairs.append(decisive)
            if mine or pairs:
                views.append((metric, pairs, k if NOTIONS["CSC"] in mine else None))
                self._names.append({notion.name: name for notion, name in mine.items()})
        return Individuals(n, self._history, views) if views else None

    def add(
        self,
        rows: Rows,
        ids: NDArray[np.int64],
        order: NDArray[np.int64],
        actions: NDArray[np.int64],
        cells: NDArray[np.int8],
        columns: Mapping[str, NDArray[np.intp]],
        features: NDArray[np.float64] | None,
        roots: NDArray[np.float64] | None,
    ) -> None:
        """One decision for each of the copies ``rows``; everything has been checked.

        :param order: (m,) how many decisions the copy has seen before since its reset
        """
        for attribute, counts in self._counts.items():
            counts.add(rows, order, cells, columns[attribute])
        if self._actions is not None:
            self._actions[self._copies[rows], order % self._history.decisions] = actions
        if self.individuals is not None and features is not None:
            self.individuals.add(rows, ids, features, roots, cells >= 4)

    def action(self, copy: int, order: int) -> int | None:
        """The action of a decision that is still kept; None if no notion here needs feedback."""
        return None if self._actions is None else int(self._actions[copy, order % self._history.decisions])

    def kept(self, seen: Any) -> Any:
        """How many of the latest decisions of each copy can still be changed, (n,)."""
        if self._history.truncates and self.individuals is not None:
            return self.individuals.size
        return np.minimum(seen, self._history.decisions)

    def move(self, copy: int, age: int, order: int, cell: int) -> None:
        """Late feedback puts a kept decision into another cell."""
        for counts in self._counts.values():
            counts.move(copy, age, order, cell)

    def values(self) -> dict[str, NDArray[np.float64]]:
        """The requested values (n,)."""
        results: dict[str, NDArray[np.float64]] = {}
        for attribute, (names, table) in self._tables.items():
            gaps = table(self._counts[attribute].compared)
            results.update((name, gaps[:, column]) for column, name in enumerate(names))
        if self.individuals is not None:
            for names_, view in zip(self._names, self.individuals.views, strict=True):
                values = self.individuals.values(view)
                results.update((name, values[notion]) for notion, name in names_.items())
        return results

    def truncate(self, seen: NDArray[np.int64]) -> None:
        """Drops the decisions that no longer move individual fairness, see :class:`DiscountedHistory`.

        :param seen: (n,) decisions since reset
        """
        before = self.individuals.truncate() if self.individuals is not None else None
        if self.individuals is not None and before is not None:
            for counts in self._counts.values():
                counts.drop(seen, before, self.individuals.size)
        if not self._warned and (self.kept(seen) >= self._history.decisions).any():
            self._warned = True
            warnings.warn(
                f"the discounted history has reached max_size={self._history.decisions}: from now on it forgets "
                "the oldest interactions; a larger threshold or a smaller factor keeps it shorter",
                stacklevel=2,
            )

    def reset(self, copies: NDArray[np.intp], next_id: NDArray[np.int64], seen: int) -> None:
        """Empties the ``copies`` (m,), which have seen at most ``seen`` decisions; their next ids are ``next_id``."""
        for counts in self._counts.values():
            counts.reset(copies, seen)
        if self.individuals is not None:
            self.individuals.reset(copies, next_id)
