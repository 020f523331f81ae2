"""FairnessTracker: notions of one sequence of interactions."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from sb3_fair.fairness.arguments import Undefined, checked
from sb3_fair.fairness.interaction import Interaction
from sb3_fair.fairness.tracking.requests import Attribute
from sb3_fair.fairness.tracking.tracker import Tracker
from sb3_fair.fairness.validation import as_array, is_missing, number


@checked
class FairnessTracker:
    """The incremental form of the fairness notions, for one history::

        tracker = FairnessTracker(notions=("SP", "IF"), history=SlidingWindow(500))
        tracker.add(Interaction(features=[0.2, 0.7], group="woman", action=1, probabilities=[0.4, 0.6]))
        tracker.values()                                     # {"SP": nan, "IF": 0.0}

    :param undefined: value instead of NaN where a notion is undefined
    :param attributes: the attributes, if ``group`` is a dict attribute -> label; a tuple is their product partition.
        Empty: those of the first interaction
    :param n_actions: actions are 0, ..., n_actions - 1, so many as there are probabilities; None: any, and as many
        probabilities as come first
    :param settings: ``notions``, ``history``, ``distance``, ``nominal``, ``groups``, ``favourable``, ``k`` and
        ``feedback_missing`` of a :class:`Tracker`
    :raises ValueError: if an argument is not allowed
    """

    def __init__(
        self,
        *,
        undefined: Undefined = math.nan,
        attributes: Sequence[Attribute] = (),
        n_actions: int | None = None,
        **settings: Any,
    ) -> None:
        self._undefined = undefined
        self._n_actions = n_actions
        if isinstance(notions := settings.get("notions"), Iterator):
            settings["notions"] = tuple(notions)  # they may be needed again
        self._settings = {**settings, "n_actions": n_actions}
        self._open = not attributes  # the first interaction may still name the attributes
        self._tracker = Tracker(1, attributes=attributes, **self._settings)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values, in order."""
        return self._tracker.names

    @overload
    def add(self, interaction: Interaction) -> int: ...
    @overload
    def add(self, interaction: Iterable[Interaction]) -> list[int]: ...
    def add(self, interaction: Interaction | Iterable[Interaction]) -> int | list[int]:
        """One step: one interaction, or several that are added one after another.

        :return: the id, or the list of ids, for :meth:`update_feedback`
        :raises ValueError: if a field that a notion needs is missing or wrong
        """
        if isinstance(interaction, Interaction):
            return self.add([interaction])[0]
        ids = [self._add(each) for each in interaction]
        self._tracker.end_step()
        return ids

    def _add(self, interaction: Interaction) -> int:
        self._require_action("action", interaction.action)
        self._require_action("feedback", interaction.feedback)
        group: Any = interaction.group
        if isinstance(group, Mapping):
            if self._open and len(group) > 1:
                self._tracker = Tracker(1, attributes=tuple(group), **self._settings)
            group = {attribute: [label] for attribute, label in group.items()}
        elif group is not None:
            group = [group]
        ids = self._tracker.add(
            group,
            np.array([interaction.action]),
            features=_row(interaction.features),
            probabilities=_row(interaction.probabilities),
            feedback=None if is_missing(interaction.feedback) else np.array([interaction.feedback], dtype=np.float64),
        )
        self._open = False
        return int(ids[0])

    def _require_action(self, name: str, value: Any) -> None:
        if self._n_actions is not None and not is_missing(value) and not 0 <= value < self._n_actions:
            raise ValueError(f"{name} must be one of the {self._n_actions} actions 0, 1, ..., got {value!r}")

    def update_feedback(self, id: int, value: float) -> bool:
        """Late feedback: the right action for interaction ``id``; False if it has left the history."""
        self._require_action("value", number("value", value))
        return self._tracker.update_feedback(0, id, value)

    def values(self) -> dict[str, float]:
        """Each requested notion, ``undefined`` where it is undefined."""
        values = {name: float(value[0]) for name, value in self._tracker.values().items()}
        return {name: self._undefined if math.isnan(value) else value for name, value in values.items()}

    def feedback_counts(self) -> dict[str, dict[Any, dict[str, float]]]:
        """How many outcomes are known, by attribute, group and kind of decision, as :class:`Tracker` tells them."""
        return self._tracker.feedback_counts()

    def reset(self) -> None:
        """Empties the history; ids run on."""
        self._tracker.reset()


def _row(vector: Any) -> Any:
    return None if vector is None else as_array(vector, np.float64)[None]
