"""Monitor: the fairness of decisions as they are made, and when a notion leaves its limit."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sb3_fair.fairness import FairnessTracker, Interaction
from sb3_fair.fairness.validation import number


class Monitor:
    """Watches over notions of the latest decisions.

    ``left`` holds the notions that are outside their limits now; one that becomes undefined (NaN) stays where it was.

    :param limits: notion -> the lowest value that is allowed
    :param notions: what is measured
    :param told: f(notion, value, limit), called when a notion leaves its limit
    :param select: what is compared of the features of a person, None: all as they are
    :param settings: further arguments of :class:`~sb3_fair.fairness.FairnessTracker`
    :raises ValueError: if a limit is of a notion that is not measured, or is no number
    """

    def __init__(
        self,
        limits: Mapping[str, float],
        notions: Sequence[str],
        told: Callable[[str, float, float], Any] | None = None,
        select: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> None:
        self.tracker = FairnessTracker(notions=notions, **settings)
        for name, limit in limits.items():
            if name not in self.tracker.names:
                raise ValueError(f"limits must be of {', '.join(self.tracker.names)}, got {name!r}")
            number(f"the limit of {name}", limit)
        self.limits, self.told, self.select = dict(limits), told, select
        self.left: set[str] = set()
        self._recorded = 0

    @property
    def values(self) -> dict[str, float]:
        """Notion -> its value now, NaN while it is undefined."""
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
        """
        if features is not None and self.select is not None:
            features = self.select(features)
        known: dict[str, Any] = {"features": features, "probabilities": probabilities}
        given = {name: value for name, value in known.items() if value is not None}
        number_ = self.tracker.add(Interaction(group=group, action=int(action), feedback=feedback, **given))
        self._recorded += 1
        self._look()
        return int(number_)

    def feedback(self, decision: int, value: int) -> None:
        """The outcome of a decision, when it is known.

        :param decision: its id
        :raises ValueError: if there is no such decision; one that has left the window does not matter any more
        """
        if not 0 <= decision < self._recorded:
            raise ValueError(f"decision must be the id of one of the {self._recorded} recorded, got {decision!r}")
        self.tracker.update_feedback(decision, value)
        self._look()

    def _look(self) -> None:
        values = self.values
        outside = {
            name
            for name, limit in self.limits.items()
            if values[name] < limit or (math.isnan(values[name]) and name in self.left)
        }
        for name in sorted(outside - self.left):
            if self.told is not None:
                self.told(name, values[name], self.limits[name])
        self.left = outside
