"""Storage of tuning studies: journal files and databases.

A journal file is for the processes of one machine: each of them holds a lock on a file of its own for as long as it
lives, and names that file in its trials. The operating system gives a lock up when its process ends, however it ends.
A database is for several machines: there, Optuna's heartbeat tells who is alive.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import optuna
from filelock import FileLock, Timeout
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from sb3_fair.zoo.names import InputError

HEARTBEAT, GRACE = 60, 120
"""Seconds between two signs of life of a trial in a database, and how many without one make it count as dead."""
TAKING = timedelta(minutes=1)
"""Longest time between the beginning of a trial and its being claimed by a process."""
BEGINNING = b'{"op_code":'
"""Of every line of a journal."""
ATTEMPTS = 3
"""How often the values of a trial are tried whose process dies, before they are given up: they may be what kills it."""
CLAIM, ATTEMPT, ORIGIN = "process", "attempt", "origin"


@dataclass(frozen=True)
class Place:
    """Where a study is.

    :param folder: of its results
    :param storage: URL of a database, or the path of a journal file; None: one in ``folder``
    """

    study: str
    folder: Path
    storage: str | Path | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.storage, str | Path | None):
            raise InputError(
                f"storage must be the URL of a database, or the path of a journal file, got {self.storage!r}"
            )

    @property
    def journal(self) -> Path | None:
        """The journal file, None if trials are in a database."""
        if self.storage is None:
            return self.folder / "journal.log"
        return None if "://" in str(self.storage) else Path(self.storage)

    def open(self) -> BaseStorage:
        """The storage; a file that is no journal is refused and stays as it is."""
        if self.journal is None:
            return _database(str(self.storage))
        try:
            self.journal.parent.mkdir(parents=True, exist_ok=True)
            _check_journal(self.journal)
            lock = JournalLock(self.journal)
            lock.acquire()
            lock.release()
            return JournalStorage(JournalFileBackend(str(self.journal), lock))
        except OSError as error:
            raise InputError(f"storage must be a file that can be written, got {str(self.journal)!r}") from error

    @property
    def claims(self) -> "Claims":
        """Who is at work on the study."""
        return Claims(None if self.journal is None else self.journal.with_suffix(".processes"))


class JournalLock(JournalFileOpenLock):
    """Who may write to a journal. The operating system releases it when its holder dies, unlike Optuna's own locks.

    A line without an end, as a full disk or a kill leaves it, would merge with the next one and make the journal
    unreadable. It is moved to ``<journal>.torn`` before anything else is written.
    """

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self._lock = FileLock(f"{journal}.writing")

    def acquire(self) -> bool:
        self._lock.acquire()
        try:
            self._set_torn_line_aside()
        except BaseException:
            self._lock.release()
            raise
        return True

    def release(self) -> None:
        self._lock.release()

    def _set_torn_line_aside(self) -> None:
        if not self.journal.is_file() or not self.journal.stat().st_size:
            return
        with self.journal.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() == b"\n":
                return
            file.seek(0)
            whole, end, torn = file.read().rpartition(b"\n")
            with suppress(OSError), Path(f"{self.journal}.torn").open("ab") as aside:  # the disk may still be full
                aside.write(torn + b"\n")
            file.truncate(len(whole) + len(end))


def _check_journal(path: Path) -> None:
    """Refuses a file that is neither new, empty nor a journal."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        line = file.readline()
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    torn = not line.endswith(b"\n") and line.startswith(BEGINNING)  # the disk was full from the first line on
    if not torn and (not isinstance(entry, dict) or "op_code" not in entry):
        raise InputError(f"storage must be a new file or a journal of trials, got {str(path)!r}")


def _database(url: str) -> BaseStorage:
    from sqlalchemy.exc import DatabaseError, SQLAlchemyError

    for patience in (0.5, 1.0, 2.0, 4.0, None):
        try:
            return RDBStorage(
                url, heartbeat_interval=HEARTBEAT, grace_period=GRACE, heartbeat_stale_trial_callback=try_again
            )
        except (SQLAlchemyError, ImportError, ValueError) as error:
            if patience is None or not isinstance(error, DatabaseError):
                raise InputError(f"storage must be a database that can be opened, got: {error}") from error
            sleep(patience)  # another process may be making the tables
    raise AssertionError


class Claims:
    """Who is at work on the trials of a study; without a folder for locks, the storage has a heartbeat."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.name = uuid4().hex

    @contextmanager
    def alive(self) -> Iterator[None]:
        """As long as it lasts, this process counts as alive."""
        if self.folder is None:
            yield
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.glob("*.lock"):  # those that dead processes left
            with suppress(Timeout, OSError), FileLock(path, timeout=0):
                path.unlink()
        try:
            with FileLock(self._lock(self.name)):
                yield
        finally:
            with suppress(OSError):  # another process may just be trying the lock
                self._lock(self.name).unlink()

    def take(self, trial: optuna.Trial) -> None:
        """Says that this process is at work on a trial, after a first sign of life where there is a heartbeat."""
        if self.folder is None:
            trial.storage.record_heartbeat(trial._trial_id)  # type: ignore[attr-defined]
        trial.set_user_attr(CLAIM, self.name)

    def fail_abandoned(self, study: optuna.Study) -> None:
        """Marks trials whose process is dead as failed, and lines up their values to be tried again."""
        if self.folder is None:
            optuna.storages.fail_stale_trials(study)  # those of which there was a sign of life once
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if self._is_abandoned(trial):
                try:
                    study.tell(trial.number, state=TrialState.FAIL)
                except (ValueError, optuna.exceptions.UpdateFinishedTrialError):
                    continue  # another process was first
                try_again(study, trial)

    def _is_abandoned(self, trial: FrozenTrial) -> bool:
        name = trial.user_attrs.get(CLAIM)
        if name is None:
            begun = trial.datetime_start
            return begun is not None and datetime.now(begun.tzinfo) - begun > TAKING
        if self.folder is None:
            return False
        path = self._lock(name)
        if name == self.name or not path.is_file():
            return name != self.name
        try:
            with FileLock(path, timeout=0):
                return True
        except Timeout:
            return False

    def _lock(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.lock"


def try_again(study: optuna.Study, trial: FrozenTrial | optuna.Trial) -> None:
    """Lines up the values of a trial that was interrupted."""
    attempt = trial.user_attrs.get(ATTEMPT, 1)
    if attempt < ATTEMPTS and trial.params:
        about: dict[str, Any] = {ATTEMPT: attempt + 1}
        if ORIGIN in trial.user_attrs:
            about[ORIGIN] = trial.user_attrs[ORIGIN]
        study.enqueue_trial(trial.params, user_attrs=about)
