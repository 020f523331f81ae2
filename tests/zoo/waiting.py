"""Waiting for what other processes do."""

import time


def wait_until(condition, seconds=500):
    """Returns as soon as the condition holds.

    :raises TimeoutError: if it does not in time
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)
