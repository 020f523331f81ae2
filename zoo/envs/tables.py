"""Reads the tables that ship with scenarios."""

import csv
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike, NDArray


def table(name: str) -> list[dict[str, str]]:
    """Rows of the table ``"<scenario>/<name>"``; lines that begin with # say where the figures come from."""
    text = files("sb3_fair.zoo.envs").joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def cumulated(shares: ArrayLike) -> NDArray[np.float64]:
    """Sums up to and including each entry along the last axis, exactly 1 at the end."""
    sums: NDArray[np.float64] = np.cumsum(shares, axis=-1)
    return sums / sums[..., -1:]


def ages(bracket: str) -> range:
    """The single years of a bracket such as ``"18-19"``."""
    first, last = map(int, bracket.split("-"))
    return range(first, last + 1)
