"""Number of threads of torch and numpy in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch as th
from threadpoolctl import threadpool_limits


def use_threads(number: int) -> None:
    """Lets torch, and the BLAS behind numpy, work with so many threads.

    Threads of BLAS wait for each other: where several processes share the cores they make small products many times
    as slow.

    :param number: 1 or more
    """
    threadpool_limits(number)
    th.set_num_threads(number)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """As :func:`use_threads`, for as long as the context lasts."""
    before = th.get_num_threads()
    with threadpool_limits(number):
        th.set_num_threads(number)
        try:
            yield
        finally:
            th.set_num_threads(before)
