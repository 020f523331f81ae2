"""Fairness events: what is needed to recompute the reward of a step with another memory."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from sb3_fair.wrappers.infos import REQUIRED, stack, tells


class FairEvent(NamedTuple):
    """``info["fair_event"]``: with it, the reward of a step is ``base + mask * B * W(U)``.

    U is the status of the stakeholders after the step, W its welfare and B whether it is assessed, all of which follow
    from the memory; ``base`` and ``mask`` do not depend on it. Numbers in an info, arrays (n,) in a record.

    :param granted: whether the action took effect, so that its stakeholder's status has grown
    :param base: what is paid whatever the memory
    :param mask: whether fairness counts in this step
    """

    granted: Any
    base: Any
    mask: Any

    @property
    def array(self) -> NDArray[np.float64]:
        """(..., 3) float64, as memories take it."""
        columns = np.broadcast_arrays(*self)
        array = np.empty((*columns[0].shape, 3))
        array[..., 0], array[..., 1], array[..., 2] = columns
        return array


GRANTED = FairEvent(True, 0.0, True)
"""The event of environments that publish none: every action takes effect and fairness is all that counts."""

EventOf: TypeAlias = Callable[[Any, Any, dict[str, Any]], tuple[float, float, float]]


def told_events(infos: Sequence[dict[str, Any]], otherwise: Any = REQUIRED) -> FairEvent:
    """The events of all copies, arrays (n,), whether environments publish a :class:`FairEvent` or a plain tuple.

    :param otherwise: the event of a copy that publishes none
    :raises KeyError: if a copy publishes none, and nothing is said to count instead
    """
    event = stack(infos, "fair_event", otherwise)
    columns = zip(*event, strict=True) if isinstance(event, np.ndarray) else event  # plain tuples: copy by copy
    return FairEvent(*(np.asarray(column) for column in columns))


def events_of(infos: Sequence[dict[str, Any]]) -> FairEvent:
    """The events of all copies, arrays (n,); :data:`GRANTED` where a copy publishes none."""
    if tells(infos, "fair_event"):
        return told_events(infos, GRANTED)
    return FairEvent(*(np.full(len(infos), value) for value in GRANTED))


def checked_stakeholders(stakeholders: Sequence[int]) -> tuple[int, ...]:
    """``stakeholders[i]`` is whom the i-th action serves, -1 if nobody."""
    numbers = tuple(stakeholders)
    served = {number for number in numbers if number != -1}
    if not served or served != set(range(len(served))):
        raise ValueError(
            f"stakeholders must number those whom the actions serve 0, 1, ... (-1: nobody), got {stakeholders!r}"
        )
    return tuple(int(number) for number in numbers)


def served_by(stakeholders: Sequence[int]) -> NDArray[np.float32]:
    """(n_actions, n): 1 where the action serves the stakeholder."""
    numbers = np.asarray(stakeholders)
    return (numbers[:, None] == np.arange(numbers.max() + 1)).astype(np.float32)


def stakeholders_of(actions: spaces.Space, stakeholders: Sequence[int] | None) -> tuple[tuple[int, ...], int]:
    """Whom each action serves, in the order of the actions, and the number of the first action.

    :param actions: the action space
    :param stakeholders: one per action, -1 if it serves nobody; None: each action serves a stakeholder of its own
    """
    if not isinstance(actions, spaces.Discrete):
        raise ValueError(f"counting whom the actions serve needs Discrete actions, got {actions}")
    numbers = checked_stakeholders(range(int(actions.n)) if stakeholders is None else stakeholders)
    if len(numbers) != actions.n:
        raise ValueError(f"stakeholders must have one entry per action of {actions}, got {stakeholders!r}")
    return numbers, int(actions.start)


def increments(
    served: NDArray[np.float32], actions: ArrayLike, granted: ArrayLike, first_action: int = 0
) -> NDArray[np.float32]:
    """What each stakeholder gains, (..., n), from actions (...) that took effect where ``granted`` (...), if the first
    row of ``served`` is about ``first_action``."""
    rows = np.asarray(actions, dtype=np.intp) - first_action
    if rows.size and not 0 <= rows.min() <= rows.max() < len(served):
        raise ValueError(
            f"actions must be in {first_action}..{first_action + len(served) - 1}, "
            f"got {rows.min() + first_action}..{rows.max() + first_action}"
        )
    gains: NDArray[np.float32] = served[rows]
    return gains * np.asarray(granted, dtype=np.float32)[..., None]
