"""The decisions of one history, and the values of its notions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.distances import Metric
from sb3_fair.fairness.histories.history import DiscountedHistory, History
from sb3_fair.fairness.notions.table import (
    NOTIONS,
    FeedbackMissing,
    GapTable,
    GroupNotion,
    PairNotion,
    cells_of,
    feedback_counts,
)
from sb3_fair.fairness.tracking.counts import DiscountedCounts, GroupCounts, Rows
from sb3_fair.fairness.tracking.individuals import Individuals
from sb3_fair.fairness.tracking.partition import Partition
from sb3_fair.fairness.tracking.requests import Request
from sb3_fair.fairness.warning import warn

PATIENCE = 30
"""Decisions of one kind in a group without a single outcome that are worth a warning."""
_KINDS = ("unfavourable", "favourable")


class Track:
    """The counts of each partition and the people, of n copies, and the requested values from them.

    :param requests: those that concern this history
    :param partitions: by name of the attribute
    :param metrics: by label of the distance
    :param group_name: see :class:`~sb3_fair.fairness.tracking.tracker.Tracker`
    """

    def __init__(
        self,
        n: int,
        history: History,
        requests: Sequence[Request],
        partitions: Mapping[str, Partition],
        metrics: Mapping[str, Metric],
        favourable: Sequence[int],
        k: int,
        feedback_missing: FeedbackMissing,
        group_name: Callable[[str, Any], str] | None,
    ) -> None:
        self._history = history
        self._partitions = partitions
        self._favourable = favourable
        self._group_name = group_name
        self.truncates = isinstance(history, DiscountedHistory)
        self._counts: dict[str, GroupCounts] = {}
        self._tables: dict[str, tuple[list[str], GapTable]] = {}
        for attribute, partition in partitions.items():
            mine = [(r.name, r.notion) for r in requests if isinstance(r.notion, GroupNotion) and r.of == attribute]
            if mine:
                kind = DiscountedCounts if self.truncates else GroupCounts
                self._counts[attribute] = kind(n, history, partition)
                table = GapTable([notion for _, notion in mine], feedback_missing)
                self._tables[attribute] = [name for name, _ in mine], table
        self.needs_feedback = any(r.notion.needs_feedback for r in requests)
        self._blind = {
            r.name: r.notion
            for r in requests
            if feedback_missing != "ignore" and isinstance(r.notion, GroupNotion) and r.notion.needs_feedback
        }
        self._patience = min(PATIENCE, history.decisions)
        self._earlier: dict[str, NDArray[np.float64]] = {}  # attribute -> what histories before a reset had unseen
        self._size = history.decisions
        self._actions: NDArray[np.int64] | None = None
        if self.needs_feedback:
            self._actions = np.zeros(n * self._size, dtype=np.int64)
        self._rings = np.arange(n) * self._size  # where the ring of each copy begins
        self._names: list[dict[str, str]] = []
        self.individuals = self._people(n, requests, metrics, k)
        self._warned = False

    def _people(self, n: int, requests: Sequence[Request], metrics: Mapping[str, Metric], k: int) -> Individuals | None:
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
        cells: NDArray[np.uint8],
        columns: Mapping[str, NDArray[np.intp]],
        features: NDArray[np.float64] | None,
        roots: NDArray[np.float64] | None,
        ranks: NDArray[np.int64] | None,
    ) -> None:
        """One decision for each of the copies ``rows``, which have seen ``order`` (m,) decisions since their reset.

        :param ranks: (m,) how many of these decisions are about the same copy and come before; None: none
        """
        at_once = 1 if self.truncates or self.individuals is not None else self._size
        if ranks is not None and ranks.max() >= at_once:  # more decisions of a copy than can be added together
            turns = ranks // at_once
            for some in np.split(np.argsort(turns, kind="stable"), np.cumsum(np.bincount(turns))[:-1]):
                self.add(
                    rows[some],
                    ids[some],
                    order[some],
                    actions[some],
                    cells[some],
                    {attribute: each[some] for attribute, each in columns.items()},
                    None if features is None else features[some],
                    None if roots is None else roots[some],
                    ranks[some] % at_once,
                )
            return
        if self._counts:
            slots = self._rings[rows] + order % self._size
            for attribute, counts in self._counts.items():
                counts.add(rows, slots, cells, columns[attribute])
            if self._actions is not None:
                self._actions[slots] = actions
        if self.individuals is not None and features is not None:
            self.individuals.add(rows, ids, features, roots, (cells & 1).view(np.bool_))

    def kept(self, seen: Any) -> Any:
        """How many of the latest decisions of each copy, (n,), can still be changed, of ``seen`` (n,) since reset."""
        if self._history.truncates and self.individuals is not None:
            return self.individuals.size
        return np.minimum(seen, self._size)

    def update_feedback(self, copy: int, order: int, value: float, seen: NDArray[np.int64]) -> bool:
        """Late feedback on decision number ``order`` of a copy; False if it is not kept."""
        if not seen[copy] - self.kept(seen)[copy] <= order < seen[copy]:
            return False
        if self._actions is not None:
            slot = int(self._rings[copy] + order % self._size)
            newest = int((seen[copy] - 1) % self._size)
            cell = cells_of(self._actions[slot : slot + 1], np.array([value]), self._favourable)
            for counts in self._counts.values():
                counts.move(copy, slot, int(cell[0]), newest)
        return True

    def values(self, results: dict[str, NDArray[np.float64]]) -> None:
        """Enters the requested values (n,) into ``results``."""
        for attribute, (names, table) in self._tables.items():
            results.update(zip(names, table(self._counts[attribute].compared).T, strict=True))
            if table.unseen is not None:
                self._note_unseen(attribute, names, table.unseen)
                table.unseen = None
        if self.individuals is not None:
            for wanted, view in zip(self._names, self.individuals.views, strict=True):
                values = self.individuals.values(view)
                for notion, name in wanted.items():
                    results[name] = values[notion]

    def _note_unseen(self, attribute: str, names: Sequence[str], unseen: NDArray[np.float64]) -> None:
        """Warns once of notions that stay undefined because the outcomes of one kind of decision never come."""
        worst = unseen.max(axis=0)
        earlier = self._earlier.get(attribute, worst[:0])
        worst[: len(earlier)] += earlier * (worst[: len(earlier)] > 0)
        if worst.max() < self._patience:
            return
        undefined: dict[tuple[int, int], list[str]] = {}
        for name in self._blind.keys() & names:
            found = np.argwhere((worst >= self._patience) & self._blind[name].needed_kinds)
            if len(found):
                del self._blind[name]
                undefined.setdefault(tuple(found[0].tolist()), []).append(name)
        for (group, kind), blind in undefined.items():
            label = self._partitions[attribute].labels[group + 1]
            label = label if self._group_name is None else self._group_name(attribute, label)
            what = f"{blind[0]} is" if len(blind) == 1 else f"{', '.join(sorted(blind))} are"
            warn(
                f"{what} undefined: none of {worst[group, kind]:g} {_KINDS[kind]} decisions on group {label!r} has a "
                "known outcome, which is needed; "
                "feedback_missing='ignore' (`--feedback-missing ignore` on the command line) uses the known outcomes "
                "only, which is biased"
            )

    def feedback_counts(self, copy: int) -> dict[str, dict[Any, dict[str, float]]]:
        """Name of the attribute -> label -> how many decisions of a kind, and how many of them with known outcomes."""
        found: dict[str, dict[Any, dict[str, float]]] = {}
        keys = [kind + suffix for suffix in ("", "_known") for kind in _KINDS]
        for attribute, counts in self._counts.items():
            labels = self._partitions[attribute].labels[1:]
            numbers = np.concatenate(feedback_counts(counts.compared[copy, : len(labels)]), axis=1).tolist()
            found[attribute] = {  # a refused call may have left labels without counts
                label: dict(zip(keys, row, strict=True)) for label, row in zip(labels, numbers, strict=False)
            }
        return found

    def truncate(self, seen: NDArray[np.int64]) -> None:
        """Drops the decisions that no longer move individual fairness, see :class:`DiscountedHistory`."""
        before = self.individuals.truncate() if self.individuals is not None else None
        if self.individuals is not None and before is not None:
            every = np.arange(before.max())[::-1]  # the oldest first
            copies, columns = np.nonzero((every >= self.individuals.size[:, None]) & (every < before[:, None]))
            ages = every[columns]
            slots = self._rings[copies] + (seen[copies] - 1 - ages) % self._size
            for counts in self._counts.values():
                if isinstance(counts, DiscountedCounts):
                    counts.drop(copies, slots, ages)
        if not self._warned and (self.kept(seen) >= self._size).any():
            self._warned = True
            warn(
                f"the discounted history has reached max_size={self._size}: from now on it forgets "
                "the oldest interactions; a larger threshold or a smaller factor keeps it shorter",
            )

    def reset(self, copies: NDArray[np.intp], next_id: NDArray[np.int64], seen: int) -> None:
        """Empties the ``copies`` (m,), which have seen at most ``seen`` decisions; their next ids are ``next_id``."""
        for attribute, counts in self._counts.items():
            if self._blind:
                self._carry_over(attribute, counts.compared[copies])
            counts.reset(copies, seen)
        if self.individuals is not None:
            self.individuals.reset(copies, next_id)

    def _carry_over(self, attribute: str, counts: NDArray[np.float64]) -> None:
        """How many decisions of a kind in each group (groups, 2) have gone by since an outcome was known."""
        decided, known = (of_kind.sum(axis=0) for of_kind in feedback_counts(counts))
        earlier = self._earlier.get(attribute, decided[:0])
        decided[: len(earlier)] += earlier
        self._earlier[attribute] = np.where(known > 0, 0.0, decided)
