"""Turns: a lock for objects that several threads use, which lets them be copied and pickled."""

from threading import RLock
from typing import Any


class Turns:
    """One thread after the other; a pickle has a lock of its own.

    Example:
        >>> turns = Turns()
        >>> with turns, turns:  # the thread that has it may take it again
        ...     pass
    """

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return Turns, ()
