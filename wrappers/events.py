"""What must be known of a step to say what it would have paid with another memory of the past?"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.wrappers.infos import stack


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


def told_events(infos: Sequence[dict[str, Any]]) -> FairEvent:
    """The events of all copies, arrays (n,), whether environments publish a :class:`FairEvent` or a plain tuple.

    :raises KeyError: if an environment publishes none
    """
    event = stack(infos, "fair_event")
    columns = zip(*event, strict=True) if isinstance(event, np.ndarray) else event  # plain tuples: copy by copy
    return FairEvent(*(np.asarray(column) for column in columns))


def events_of(infos: Sequence[dict[str, Any]]) -> FairEvent:
    """The events of all copies, arrays (n,); :data:`GRANTED` where the environment publishes none."""
    if infos and "fair_event" in infos[0]:
        return told_events(infos)
    return FairEvent(*(np.full(len(infos), value) for value in GRANTED))


def checked_stakeholders(stakeholders: Sequence[int]) -> tuple[int, ...]:
    """``stakeholders[a]`` is whom action a serves, -1 if nobody.

    :raises ValueError: unless they are integers that number the stakeholders 0, 1, ...
    """
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
    table: NDArray[np.float32] = (numbers[:, None] == np.arange(numbers.max() + 1)).astype(np.float32)
    return table


def increments(served: NDArray[np.float32], actions: ArrayLike, granted: ArrayLike) -> NDArray[np.float32]:
    """What each stakeholder gains, (..., n), from actions (...) that took effect where ``granted`` (...)."""
    gains: NDArray[np.float32] = served[np.asarray(actions, dtype=np.intp)]
    return gains * np.asarray(granted, dtype=np.float32)[..., None]
