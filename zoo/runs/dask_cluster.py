"""joblib on a Dask cluster."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from sb3_fair.common.extras import extra
from sb3_fair.common.run_folder import differing, versions
from sb3_fair.zoo.names import InputError, why

with extra("cluster", "cluster dask"):
    from distributed import CancelledError, Client, TimeoutError
    from joblib._dask import DaskDistributedBackend  # looks for distributed when it is imported

PATIENCE = 30
"""Seconds to wait for the scheduler, and for its first worker."""


class DaskBackend(DaskDistributedBackend):
    """joblib's backend, but work is never done by the process that asks for it, and none that fails is waited for."""

    elsewhere = True

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Threads of the cluster, or 2 if it has one: joblib takes 1 for this process."""
        return max(2, super().effective_n_jobs(n_jobs))

    def submit(self, func: Callable[..., Any], callback: Callable[..., Any] | None = None) -> Any:
        """As joblib's, which calls back after successes only, and would wait for ever for work that kills workers."""
        future = super().submit(func, callback)
        future.add_done_callback(lambda done: callback(done) if callback and done.exception() else None)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """The result, or the error of the work or of the cluster."""
        result = out.result() if isinstance(out, Future) else out
        if isinstance(result, CancelledError):
            raise ConnectionError("the scheduler of the Dask cluster was lost") from result
        return super().retrieve_result_callback(result)


@contextmanager
def connected(scheduler: str) -> Iterator[DaskBackend]:
    """The cluster of a scheduler, for as long as the context lasts; then, what has not been done is given up."""
    try:
        client = Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"scheduler must be the address of a Dask scheduler, got {scheduler!r}: {error}") from error
    with client:
        _check(client)
        yield DaskBackend(client=client)


def _check(client: Client) -> None:
    """Whether the workers train what this machine would train."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise InputError(f"cluster must have a worker, got none within {PATIENCE} seconds") from error
    try:
        client.run_on_scheduler(versions)  # which has to read what passes through it
        of_workers = client.run(versions)  # also of those that are busy
    except Exception as error:  # a process without the package cannot read what it is sent
        what = "scheduler and workers must have the packages of this machine, sb3-fair among them"
        raise InputError(f"{what}, got {why(error)}") from error
    here = versions()
    for worker, there in of_workers.items():
        if differ := differing(there, here):
            raise InputError(f"workers must have the packages of this machine, got {differ} on {worker}")
    for worker, threads in client.nthreads().items():
        if threads != 1:
            raise InputError(f"workers must have one thread (--nthreads 1), got {threads} on {worker}")
