"""Tracker: notions of n environments at every step.

:class:`Tracker` is the one incremental arithmetic, on arrays with the copies as first axis. The copies share the
settings and nothing else: each restarts when it likes.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.distances import DistanceLike, Metric
from sb3_fair.fairness.histories.history import DEFAULT_HISTORY
from sb3_fair.fairness.notions.probabilities import half_roots, rows_of_distributions
from sb3_fair.fairness.notions.table import FeedbackMissing, cells_of
from sb3_fair.fairness.tracking.partition import Partition, ProductPartition
from sb3_fair.fairness.tracking.requests import Attribute, attribute_name, find_requests
from sb3_fair.fairness.tracking.track import Track
from sb3_fair.fairness.validation import actions as action_numbers
from sb3_fair.fairness.validation import as_array, number


@checked
class Tracker:
    """The fairness of n independent copies, updated decision by decision.

    :param n: number of copies
    :param attributes: names of the attributes, if there are several; a tuple of names is their product partition
    :param n_actions: length of the probabilities; None: that of the first ones
    :param group_name: f(attribute, label) -> what warnings call a group; None: its label. The other arguments are those
        of :class:`FairnessSpec`
    :raises ValueError: if a notion, history, distance or number is not allowed
    """

    def __init__(
        self,
        n: int,
        *,
        notions: Iterable[str] = ("SP",),
        history: Any = DEFAULT_HISTORY,
        distance: DistanceLike | Sequence[DistanceLike] = "hmom",
        nominal: Sequence[int] = (),
        groups: Any = None,
        attributes: Sequence[Attribute] = (),
        favourable: Iterable[int] = (1,),
        k: int = 5,
        n_actions: int | None = None,
        feedback_missing: FeedbackMissing = "undefined",
        group_name: Callable[[str, Any], str] | None = None,
    ) -> None:
        self.n = int(n)
        self._favourable = action_numbers("favourable", favourable)
        self._n_actions = n_actions
        self._attributes = {attribute_name(attribute): attribute for attribute in attributes} or {"": ""}
        metrics = metrics_of(distance, nominal)
        self._requests = find_requests(notions, list(self._attributes), list(metrics), history)
        self.names = tuple(request.name for request in self._requests)
        partitions = self._partition(groups)
        compared = dict.fromkeys(r.of for r in self._requests if r.notion.needs_groups)
        self._partitions = {name: partitions[name] for name in compared}
        self._tracks = [
            Track(
                n,
                each,
                [r for r in self._requests if r.history == each],
                self._partitions,
                metrics,
                self._favourable,
                k,
                feedback_missing,
                group_name,
            )
            for each in dict.fromkeys(request.history for request in self._requests)
        ]
        people = [track.individuals for track in self._tracks if track.individuals is not None]
        self._metrics = list({id(view.metric): view.metric for each in people for view in each.views}.values())
        self.needs_groups = bool(self._partitions)
        self.needs_feedback = any(request.notion.needs_feedback for request in self._requests)
        self.needs_features = bool(people)
        self.needs_probabilities = any(each.needs_roots for each in people)
        self._n_features: int | None = None
        self._next = np.zeros(self.n, dtype=np.int64)
        self._first = np.zeros(self.n, dtype=np.int64)

    def _partition(self, groups: Any) -> dict[str, Partition]:
        """One partition per attribute, with the labels it compares."""
        if isinstance(groups, Mapping):
            unknown = [name for name in groups if name not in self._attributes]
            if unknown:
                raise ValueError(
                    f"groups has {unknown[0]!r}, which is not among the attributes {list(self._attributes)}"
                )
        elif groups is not None and len(self._attributes) > 1:
            raise ValueError(
                f"groups must be a dict attribute -> labels with several attributes {list(self._attributes)}, "
                f"got {groups!r}"
            )
        partitions: dict[str, Partition] = {}
        for name, attribute in self._attributes.items():
            compared = groups.get(name) if isinstance(groups, Mapping) else groups
            single = isinstance(attribute, str)
            partitions[name] = Partition(compared) if single else ProductPartition(len(attribute), compared)
        return partitions

    def add(
        self,
        group: Any = None,
        action: ArrayLike = (),
        *,
        features: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        roots: NDArray[np.float64] | None = None,
        feedback: ArrayLike | None = None,
        which: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """One decision in each copy, or in those of ``which``; of several individuals in a step: :meth:`add_several`.

        :param group: (m,) labels; arrays of non-negative integers are fastest; a dict attribute -> (m,) labels with
            several attributes
        :param action: (m,) int, executed
        :param features: (m, d), for IF, LIP, CSC
        :param probabilities: (m, n_actions), for IF, LIP
        :param roots: their :func:`half_roots`, in place of probabilities that need no check
        :param feedback: (m,) the right actions, NaN or None where unknown
        :param which: (m,) different copies; None: all
        :return: ids (m,), running numbers within each copy that a reset does not restart
        :raises ValueError: if something is missing, or has the wrong length or value; nothing has been added then
        """
        rows: Any = slice(None)
        if which is not None:
            rows = np.asarray(which, dtype=np.intp)
            if len(set(rows.tolist())) < len(rows):
                raise ValueError(f"which must not repeat a copy, got {rows.tolist()}")
        return self._add(rows, None, group, action, features, probabilities, roots, feedback)

    def add_several(
        self,
        which: ArrayLike,
        group: Any = None,
        action: ArrayLike = (),
        *,
        features: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        roots: NDArray[np.float64] | None = None,
        feedback: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """Several decisions in a copy, in their order, as one :meth:`add` after the other would count them.

        :param which: (m,) the copy of each decision. The other arguments, the ids and the errors are those of
            :meth:`add`
        """
        rows = np.arange(self.n)[np.asarray(which, dtype=np.intp)]
        ranks = np.zeros(len(rows), dtype=np.int64)  # how many decisions of the same copy come before it
        by_copy = np.argsort(rows, kind="stable")
        starts = np.concatenate([[0], np.flatnonzero(np.diff(rows[by_copy])) + 1, [len(rows)]])
        ranks[by_copy] = np.arange(len(rows)) - np.repeat(starts[:-1], np.diff(starts))
        return self._add(rows, ranks, group, action, features, probabilities, roots, feedback)

    def _add(
        self,
        rows: Any,
        ranks: NDArray[np.int64] | None,
        group: Any,
        action: ArrayLike,
        features: ArrayLike | None,
        probabilities: ArrayLike | None,
        roots: NDArray[np.float64] | None,
        feedback: ArrayLike | None,
    ) -> NDArray[np.int64]:
        """Decisions on the copies ``rows``; ``ranks`` (m,) of them are about the same copy and come before each."""
        ids: NDArray[np.int64] = self._next[rows] + (0 if ranks is None else ranks)
        m = len(ids)
        if not m:
            return ids
        actions = as_array(action)
        if actions.shape != (m,) or actions.dtype.kind not in "iub":
            raise ValueError(f"action must hold one integer per copy ({m}), got {action!r}")
        known = None
        if self.needs_feedback and feedback is not None:
            known = as_array(feedback, np.float64)
            if known.shape != (m,):
                raise ValueError(f"feedback must have one number per copy ({m}), got {feedback!r}")
        cells = cells_of(actions, known, self._favourable)
        columns = self._columns(group, m)
        people = self._people(features, m) if self.needs_features else None
        if roots is None and self.needs_probabilities:
            roots = self._roots(probabilities, m)
        order = ids - self._first[rows]
        for track in self._tracks:
            track.add(rows, ids, order, actions, cells, columns, people, roots, ranks)
        self._next[rows] = ids + 1  # of several decisions in a copy, the last one stays
        return ids

    @property
    def seen(self) -> NDArray[np.int64]:
        """How many decisions each copy has had, also before its resets, (n,): the id of the next one."""
        return self._next.copy()

    @property
    def kept(self) -> NDArray[np.int64]:
        """How many of its latest decisions each copy keeps, (n,); of several histories, the most."""
        seen = self._next - self._first
        return np.max([track.kept(seen) for track in self._tracks], axis=0)

    def _columns(self, group: Any, m: int) -> dict[str, NDArray[np.intp]]:
        """The column of each decision in each partition."""
        columns = {}
        for name, partition in self._partitions.items():
            attribute = self._attributes[name]
            if isinstance(attribute, str):
                found = partition.columns(self._labels(group, attribute))
            else:
                found = partition.columns([self._labels(group, part) for part in attribute])
            if len(found) != m:
                raise ValueError(f"group must have one label per individual ({m}), got {len(found)}")
            columns[name] = found
        return columns

    def _labels(self, group: Any, attribute: str) -> Any:
        if isinstance(group, Mapping):
            if attribute in group:
                return group[attribute]
            if not attribute and len(group) == 1:
                return next(iter(group.values()))
            raise ValueError(f"group has no attribute {attribute!r}, only {sorted(map(str, group))}")
        if group is None:
            raise ValueError(f"group is needed by {self._needing('needs_groups')}, got None")
        if len(self._attributes) > 1 or not isinstance(next(iter(self._attributes.values())), str):
            named = chain(*([each] if isinstance(each, str) else each for each in self._attributes.values()))
            raise ValueError(f"group must be a dict with the attributes {list(dict.fromkeys(named))}, got {group!r}")
        return group

    def _people(self, features: Any, m: int) -> NDArray[np.float64]:
        if features is None:
            raise ValueError(f"features are needed by {self._needing('needs_features')}, got None")
        people = as_array(features, np.float64)
        wanted = people.shape[-1:] if self._n_features is None else (self._n_features,)
        if people.shape == (m, 0):
            raise ValueError("features must have at least one column that is not sensitive, got none")
        if people.shape != (m, *wanted) or not people.size:
            raise ValueError(f"features must have shape {(m, *wanted) if wanted else (m, 'd')}, got {people.shape}")
        if not math.isfinite(np.add.reduce(people, axis=None)):
            raise ValueError(f"features must be finite, got {people.tolist()}")
        for metric in self._metrics:
            metric.check(people)
        self._n_features = people.shape[1]
        return people

    def _roots(self, probabilities: Any, m: int) -> NDArray[np.float64]:
        if probabilities is None:
            raise ValueError(f"probabilities are needed by {self._needing('needs_probabilities')}, got None")
        rows = rows_of_distributions(probabilities, self._n_actions)
        if len(rows) != m:
            raise ValueError(f"probabilities must have one row per individual ({m}), got {len(rows)}")
        self._n_actions = rows.shape[1]
        return half_roots(rows)

    def _needing(self, need: str) -> str:
        """The notions that need something, for error messages."""
        names = [request.name for request in self._requests if getattr(request.notion, need)]
        return ", ".join(names) or "the truncation of DiscountedHistory (threshold >= 0)"

    def update_feedback(self, copy: int, id: int, value: float) -> bool:
        """Late feedback: the right action for individual ``id`` of a copy.

        :return: False if the individual is no longer (or not yet) in the history; then nothing has changed
        :raises ValueError: if ``value`` is no action
        """
        value = number("value", value)
        seen = self._next - self._first
        order = int(id - self._first[copy])
        held = [track.update_feedback(copy, order, value, seen) for track in self._tracks]
        return any(held)

    def values(self) -> dict[str, NDArray[np.float64]]:
        """Each requested notion: (n,) float64, NaN where undefined. Ends the step."""
        self.end_step()
        results: dict[str, Any] = dict.fromkeys(self.names)
        for track in self._tracks:
            track.values(results)
        return results

    def feedback_counts(self, copy: int = 0) -> dict[str, dict[Any, dict[str, float]]]:
        """How many outcomes are known in the history of a copy: name of the attribute ("" for a single one) -> label ->
        ``unfavourable``, ``unfavourable_known``, ``favourable``, ``favourable_known``; sums of weights.

        Empty where no notion needs feedback.
        """
        tracks = [track for track in self._tracks if track.needs_feedback]
        return {name: found for track in tracks for name, found in track.feedback_counts(copy).items()}

    def end_step(self) -> None:
        """All individuals of a step have been added: a :class:`DiscountedHistory` now drops what is too old."""
        for track in self._tracks:
            if track.truncates:
                track.truncate(self._next - self._first)

    def reset(self, which: ArrayLike | None = None) -> None:
        """Empties the histories of the copies ``which`` (indices), None: of all. Ids run on."""
        copies = np.arange(self.n) if which is None else np.asarray(which, dtype=np.intp)
        if not len(copies):
            return
        seen = int((self._next - self._first)[copies].max())
        self._first[copies] = self._next[copies]
        for track in self._tracks:
            track.reset(copies, self._next[copies], seen)


def metrics_of(distance: Any, nominal: Sequence[int]) -> dict[str, Metric]:
    """The distances by label."""
    distances = list(distance) if isinstance(distance, (list, tuple)) else [distance]
    metrics = {metric.label: metric for metric in (Metric(each, nominal) for each in distances)}
    if not distances or len(metrics) < len(distances):
        raise ValueError(f"distance must be one distance or a list of different ones, got {distance!r}")
    return metrics
