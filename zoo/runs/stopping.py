"""Ctrl-C and SIGTERM: training stops where it can be saved, and the last line says how to go on with it."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import active_children
from types import FrameType

HANDLED = (signal.SIGINT, signal.SIGTERM)
NOTED = b"sb3-fair: stopping as soon as what was done can be saved; once more stops at once\n"


class Interrupted(BaseException):
    """Work was stopped by a signal; what was saved can be gone on with. Like KeyboardInterrupt, it is no Exception.

    :param message: what was saved, and how to go on
    """

    def __init__(self, number: int = signal.SIGINT, message: str = "stopped") -> None:
        super().__init__(number, message)
        self.number = int(number)
        self.message = message

    @property
    def exit_code(self) -> int:
        return 128 + self.number


_received: list[int] = []
_passed_on = False
_patient = False


def received() -> int | None:
    """The number of the signal that asked to stop, None if there was none."""
    return _received[0] if _received else None


def passed_on() -> bool:
    """Whether child processes were told of a signal since this was last asked: they would stop later work too."""
    global _passed_on
    told, _passed_on = _passed_on, False
    return told


@contextmanager
def stoppable(message: str = "stopped") -> Iterator[None]:
    """Within it, Ctrl-C and SIGTERM raise :class:`Interrupted`; an ignored signal, as under nohup, stays ignored.

    Only the main thread of a process can handle signals; in others nothing changes.
    """
    outermost = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) != _handle
    before = {number: signal.getsignal(number) for number in HANDLED} if outermost else {}
    ours = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    for number in ours:
        signal.signal(number, _handle)
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as stop:
        asked = stop.number if isinstance(stop, Interrupted) else received() or int(signal.SIGINT)
        raise Interrupted(asked, message) from None
    finally:
        for number in ours:
            signal.signal(number, before[number])
        if outermost:
            _received.clear()


@contextmanager
def patience(patient: bool = True) -> Iterator[None]:
    """Within it, the first signal is passed on to child processes and noted: see :func:`received`; a second one raises
    :class:`Interrupted`.

    :param patient: False: the first one raises again
    """
    global _patient
    before, _patient = _patient, patient
    try:
        yield
    finally:
        _patient = before


def serve(parent: int) -> None:
    """Makes this process a worker: it ends when its parent does, and leaves Ctrl-C to it. What the parent passes on is
    noted, except within ``patience(False)``.
    """
    global _patient
    if signal.getsignal(signal.SIGTERM) == _handle:
        return
    end_with(parent)
    _patient = True
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _handle)


def end_with(parent: int) -> None:
    """Ends this process soon after its parent, however that ends: work and locks would stay behind."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _handle(number: int, frame: FrameType | None) -> None:
    global _passed_on
    _received.append(number)
    if not _patient or len(_received) > 1:
        raise Interrupted(_received[0])
    for child in active_children():
        child.terminate()
        _passed_on = True
    if signal.getsignal(signal.SIGINT) == _handle:  # workers leave the word to their parent
        os.write(2, NOTED)  # print is not made for handlers of signals
