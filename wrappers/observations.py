"""Arrays of observations, dicts and tuples of them, alike."""

from collections.abc import Callable
from typing import Any


def each(change: Callable[..., Any], *observations: Any) -> Any:
    """``change`` of arrays, or of each array in dicts and tuples of one form."""
    first = observations[0]
    if isinstance(first, dict):
        return {key: each(change, *(parts[key] for parts in observations)) for key in first}
    if isinstance(first, tuple):
        return tuple(each(change, *parts) for parts in zip(*observations, strict=True))
    return change(*observations)


def rows_of(observations: Any, rows: Any) -> Any:
    """Some rows of a batch of observations, or one."""
    return each(lambda array: array[rows], observations)


def steps_of(observations: Any, steps: Any = slice(None)) -> Any:
    """Observations (T, n, ...) of a rollout buffer, or those of some steps, as one batch (T * n, ...)."""
    return each(lambda array: array[steps].reshape(-1, *array.shape[2:]), observations)
