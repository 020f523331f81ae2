"""Which numbers the values of a space are; SB3's networks count from 0."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


def ends(space: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The lowest and the highest value of each entry of a Box or of a space of whole numbers, both of its shape."""
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, dtype=space.dtype), np.ones(space.shape, dtype=space.dtype)
    size = space.n if isinstance(space, spaces.Discrete) else space.nvec
    return np.asarray(space.start), np.asarray(space.start + size - 1)


def between(low: NDArray[Any], high: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values lie between the ends of a space, rounded as they are: 0.7 in a Box that ends at float32(0.7)."""
    if low.dtype.kind == "f":
        with np.errstate(over="ignore"):  # 1e300 is above any float32
            values = values.astype(low.dtype)
    return np.asarray((low <= values) & (values <= high))


def existing(space: Any) -> tuple[int, NDArray[np.bool_]]:
    """The lowest value of all entries of a space of whole numbers, and which of the values from it on each entry has,
    (*shape, width)."""
    low, high = (np.asarray(end, dtype=np.int64) for end in ends(space))
    values = np.arange(low.min(), high.max() + 1)
    return int(low.min()), (low[..., None] <= values) & (values <= high[..., None])


def check_starts(*used: spaces.Space[Any]) -> None:
    """:raises ValueError: if a Discrete or MultiDiscrete space, perhaps in a Dict, starts at another number than 0"""
    for space in used:
        for part in space.spaces.values() if isinstance(space, spaces.Dict) else (space,):
            if np.any(getattr(part, "start", 0)):
                raise ValueError(f"env must have spaces that start at 0, as SB3's networks count, got {part}")


def check_discrete(space: spaces.Space[Any], needed_by: str) -> None:
    """:raises ValueError: if the actions are not 0, 1, ..., n - 1"""
    if not isinstance(space, spaces.Discrete) or space.start != 0:
        raise ValueError(f"env must have a Discrete action space that starts at 0 for {needed_by}, got {space}")
