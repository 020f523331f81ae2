"""Where does independent work take place: in processes of this machine, or on a cluster?"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend

from sb3_fair.common.threads import use_threads
from sb3_fair.zoo.names import InputError, choose

Result = TypeVar("Result")
CLUSTERS = ("dask",)
_alone = Lock()


def in_parallel(
    work: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], n_jobs: int = -1
) -> Iterator[Result]:
    """What the work returns for each of the arguments, as soon as it is there; each has one thread.

    :param work: a function that can be pickled
    :param n_jobs: processes; -1: one per core; within :func:`on_cluster` all that the cluster has
    :raises InputError: if ``n_jobs`` is 0
    """
    if n_jobs == 0:
        raise InputError("jobs must be a number of processes, or -1 for one per core, got 0")
    at_once = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="all")
    yield from at_once(delayed(_work_alone)(work, *given) for given in arguments)


def _work_alone(work: Callable[..., Result], *given: Any) -> Result:
    with _alone:  # threads of a worker share the random states of numpy and torch
        use_threads(1)
        return work(*given)


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
    from sb3_fair.zoo.dask_cluster import connected

    with connected(scheduler) as backend, parallel_config(backend=backend):
        yield


def elsewhere() -> bool:
    """Whether :func:`in_parallel` works on machines that need not see the files of this one."""
    return getattr(get_active_backend()[0], "elsewhere", False)
