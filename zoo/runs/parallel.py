"""Runs work side by side: processes or a cluster."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from signal import SIGTERM
from threading import Lock
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend

from sb3_fair.common.threads import threads, use_threads
from sb3_fair.zoo.names import InputError, WorkError, choose
from sb3_fair.zoo.registry.sending import receive, to_send
from sb3_fair.zoo.runs.stopping import Interrupted, passed_on, patience, received, serve, stoppable

Result = TypeVar("Result")
CLUSTERS = ("dask",)
STOPPED = "stopped; what is done is kept, and the same command goes on"
_alone = Lock()


def in_parallel(
    work: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], n_jobs: int = -1
) -> Iterator[Result]:
    """What the work returns for each of the arguments, as soon as it is there; each has one thread.

    :param work: a function that can be pickled
    :param n_jobs: processes; -1: one per core; within :func:`on_cluster` all that the cluster has
    :raises InputError: if ``n_jobs`` is 0
    :raises Interrupted: after Ctrl-C or SIGTERM, as soon as trainings in other processes are saved
    :raises WorkError: if a process dies
    """
    if n_jobs == 0:
        raise InputError("jobs must be a number of processes, or -1 for one per core, got 0")
    if passed_on():
        get_reusable_executor().shutdown(kill_workers=True)
    at_once = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="all")
    parent = None if elsewhere() else os.getpid()
    sent = to_send() if effective_n_jobs(n_jobs) > 1 else {}
    stopped = False
    with stoppable(STOPPED), patience(parent is not None and effective_n_jobs(n_jobs) > 1):
        try:
            for result in at_once(delayed(_work_alone)(parent, sent, work, *given) for given in arguments):
                if isinstance(result, Interrupted):
                    stopped = True
                else:
                    yield result
        except TerminatedWorkerError as error:
            if not received():  # else it died of the signal
                raise WorkError(
                    "a process died, perhaps for lack of memory; what is done is kept, and the same command goes on: "
                    "try fewer --jobs"
                ) from error
        if stopped or received():
            get_reusable_executor().shutdown(wait=False, kill_workers=True)  # its workers know of the signal
            raise Interrupted(received() or SIGTERM)


def _work_alone(
    parent: int | None, sent: dict[str, bytes], work: Callable[..., Result], *given: Any
) -> Result | Interrupted:
    """The result, or in a worker whose parent passed on a signal the interruption. Without a parent, it is on
    another machine.
    """
    if parent in (None, os.getpid()):
        with _alone, threads(1):  # threads of a worker share the random states of numpy and torch
            if parent is None:
                receive(sent)
            return work(*given)
    serve(parent)
    use_threads(1)
    receive(sent)
    try:
        with patience(False):
            return Interrupted() if received() else work(*given)
    except Interrupted as stop:
        return stop


@contextmanager
def on_cluster(kind: str | None, scheduler: str | None = None) -> Iterator[None]:
    """Within it, :func:`in_parallel` works on a cluster.

    :param kind: ``"dask"``; None: on this machine
    :param scheduler: address of the cluster's scheduler
    :raises InputError: if there is no such cluster, a package is missing, or its workers are not as they have to be
    """
    if kind is None:
        if scheduler is not None:
            raise InputError(f"scheduler must be left out without a cluster, got {scheduler!r}")
        yield
        return
    choose("cluster", kind, CLUSTERS)
    if scheduler is None:
        raise InputError("scheduler must be given with a cluster, as in tcp://host:8786")
    from sb3_fair.zoo.runs.dask_cluster import connected

    with connected(scheduler) as backend, parallel_config(backend=backend):
        yield


def elsewhere() -> bool:
    """Whether :func:`in_parallel` works on machines that need not see the files of this one."""
    return getattr(get_active_backend()[0], "elsewhere", False)
