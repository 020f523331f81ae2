"""What a notebook or script registers, in processes that cannot import it."""

import os
from collections.abc import Mapping
from typing import Any

import cloudpickle
import gymnasium as gym

from sb3_fair.fairness.warning import warn
from sb3_fair.zoo.names import why
from sb3_fair.zoo.registry.registration import ROWS, Row, add

_received: set[str] = set()
"""IDs that this process has from another one."""


def to_send() -> dict[str, bytes]:
    """What a notebook or script has registered here and with Gymnasium, by ID, for processes that cannot import it."""
    rows = [row for row in ROWS.values() if row.module is None]
    specs = [spec for spec in gym.registry.values() if _module(spec.entry_point) == "__main__"]
    ours: list[Any] = [*specs, *rows]
    sent = {}
    for one in ours:
        try:
            sent[one.id] = cloudpickle.dumps(one)
        except Exception as error:  # of whatever it holds
            warn(
                f"{one.id} is unknown to other processes, to which it cannot be sent ({why(error)}): register it in a "
                f"module, and use my_module:{one.id}"
            )
    return sent


def _module(entry: Any) -> str | None:
    """The module of a class or function, also of one with arguments by ``partial``."""
    return getattr(getattr(entry, "func", entry), "__module__", None)


def receive(sent: Mapping[str, bytes]) -> None:
    """Registers what another process sends, in place of all that it sent before."""
    for id in _received:  # one that it has no more would hide the ID of a module
        gym.registry.pop(id, None)
        ROWS.pop(id, None)
    _received.clear()
    for id, pickled in sent.items():
        try:
            one = cloudpickle.loads(pickled)
        except Exception as error:  # as where a module is missing, which may not be needed
            warn(f"{id} is unknown to process {os.getpid()}, which cannot read it: {why(error)}")
            continue
        gym.registry.pop(id, None)
        if isinstance(one, Row):
            add(one)
        else:
            gym.registry[id] = one
        _received.add(id)
