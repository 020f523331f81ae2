"""Encoders of counts for networks: raw, log, relative, binary."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Counts: TypeAlias = NDArray[Any]
Encoding: TypeAlias = Literal["raw", "log", "relative", "binary"]
Encoder: TypeAlias = Callable[[Counts, int], NDArray[np.float32]]


def raw(counts: Counts, maximum: int) -> NDArray[np.float32]:
    """Shares of the largest count."""
    return np.asarray(counts / maximum, dtype=np.float32)


def log(counts: Counts, maximum: int) -> NDArray[np.float32]:
    """Logarithms, ln(1 + c)."""
    return np.log1p(counts, dtype=np.float32)


def relative(counts: Counts, maximum: int) -> NDArray[np.float32]:
    """How far above the smallest count each one is, and the mean as a share of the largest possible; n + 1 numbers."""
    mean = counts.mean(axis=-1, keepdims=True) / maximum
    return np.concatenate((counts - counts.min(axis=-1, keepdims=True), mean), axis=-1, dtype=np.float32)


def binary(counts: Counts, maximum: int) -> NDArray[np.float32]:
    """Binary digits of every count, the least significant first."""
    digits = counts.astype(np.int64)[..., None] >> np.arange(int(maximum).bit_length()) & 1
    return digits.reshape(*counts.shape[:-1], -1).astype(np.float32)


ENCODERS: dict[str, Encoder] = {"raw": raw, "log": log, "relative": relative, "binary": binary}
