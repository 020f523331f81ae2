"""Monitor: the fairness of decisions as they are made, and when a notion leaves its limit."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np

from sb3_fair.audit.limits import below, check_limit
from sb3_fair.fairness import FairnessTracker, Interaction
from sb3_fair.fairness.histories.history import DEFAULT_HISTORY


class Turns:
    """A lock for objects that may be pickled: the copy has one of its own."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return Turns, ()


class Monitor:
    """Watches over notions of the latest decisions. Threads may share it.

    ``left`` holds the notions that are outside their limits now; one that becomes undefined (NaN) stays where it was.
    Limits apply from the first full window on (with histories that have no window, from 500 decisions on), because two
    groups of a few people hardly ever have the same rate.

    :param limits: notion -> the lowest value that is allowed
    :param notions: what is measured
    :param told: f(notion, value, limit), called when a notion leaves its limit
    :param select: what is compared of the features of a person, None: all as they are
    :param actions: all there are; empty: any whole numbers
    :param settings: further arguments of :class:`~sb3_fair.fairness.FairnessTracker`
    :raises ValueError: if a limit is of a notion that is not measured, or not in [-1, 0]
    """

    def __init__(
        self,
        limits: Mapping[str, float],
        notions: Sequence[str],
        told: Callable[[str, float, float], Any] | None = None,
        select: Callable[[Any], Any] | None = None,
        actions: Sequence[int] = (),
        **settings: Any,
    ) -> None:
        self.tracker = FairnessTracker(notions=notions, **settings)
        for name, limit in limits.items():
            if name not in self.tracker.names:
                raise ValueError(f"limits must be of {', '.join(self.tracker.names)}, got {name!r}")
            check_limit(name, limit)
        self.limits, self.told, self.select, self.actions = dict(limits), told, select, actions
        self.left: set[str] = set()
        self._recorded = 0
        self._enough = getattr(settings.get("history"), "window", DEFAULT_HISTORY.window)
        self._turns = Turns()

    @property
    def values(self) -> dict[str, float]:
        """Notion -> its value now, NaN while it is undefined."""
        with self._turns:
            return dict(self.tracker.values())

    def record(
        self, action: int, group: Any, *, feedback: int | None = None, features: Any = None, probabilities: Any = None
    ) -> int:
        """One decision.

        :param group: of the person; a dict attribute -> label for several attributes
        :param feedback: the action that would have been right, None while it is unknown
        :param features: of the person, for IF, LIP and CSC. For an agent's monitor all that its environment's fairness
            spec reads, sensitive ones too, before ``low`` and ``high`` of the spec scale them
        :param probabilities: of the actions, for IF and LIP
        :return: the decision's id, for :meth:`feedback`
        :raises ValueError: if there is no such action, or a notion needs what is missing; then nothing is recorded
        """
        if features is not None and self.select is not None:
            features = self.select(features)
        if feedback is not None:
            feedback = self._action("feedback", feedback)
        known: dict[str, Any] = {"features": features, "probabilities": probabilities}
        given = {name: value for name, value in known.items() if value is not None}
        decided = Interaction(group=group, action=self._action("action", action), feedback=feedback, **given)
        with self._changing():
            number_ = self.tracker.add(decided)
            self._recorded += 1
        return int(number_)

    def feedback(self, decision: int, value: int) -> None:
        """The outcome of a decision, when it is known.

        :param decision: its id
        :raises ValueError: if there is no such decision or action; a decision that has left the window does not matter
            any more
        """
        value = self._action("value", value)
        with self._changing():
            if decision not in range(self._recorded):
                raise ValueError(f"decision must be the id of one of the {self._recorded} recorded, got {decision!r}")
            self.tracker.update_feedback(decision, value)

    def _action(self, name: str, value: Any) -> int:
        whole = isinstance(value, int | float | np.number | np.bool_) and float(value).is_integer()
        if not whole or (self.actions and value not in self.actions):
            allowed = f"one of the actions {', '.join(map(str, self.actions))}" if self.actions else "a whole number"
            raise ValueError(f"{name} must be {allowed}, got {value!r}")
        return int(value)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A turn to change the window, and after it, since that may take long, the calls of :attr:`told`."""
        with self._turns:
            yield
            values = self.tracker.values()
            outside = {
                name
                for name, limit in self.limits.items()
                if self._recorded >= self._enough
                and (below(values[name], limit) or (math.isnan(values[name]) and name in self.left))
            }
            news, self.left = sorted(outside - self.left), outside
        if self.told is not None:
            for name in news:
                self.told(name, values[name], self.limits[name])
