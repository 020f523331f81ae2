"""What is counted of every group, and its shares; without SB3, which reports need not load."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.notions.table import ACCEPTED, CELLS, DESERVING, KNOWN, UNDESERVING

COUNTS = {
    "decisions": np.ones(CELLS, dtype=bool),
    "favourable": ACCEPTED,
    "deserving": DESERVING,
    "deserving, favourable": DESERVING & ACCEPTED,
    "undeserving": UNDESERVING,
    "undeserving, favourable": UNDESERVING & ACCEPTED,
    "outcome known": KNOWN,
    "outcome known, favourable": KNOWN & ACCEPTED,
}
"""What is counted of every group."""
RATES = {
    "favourable": ("favourable", "decisions"),
    "deserving": ("deserving, favourable", "deserving"),
    "undeserving": ("undeserving, favourable", "undeserving"),
    "known": ("outcome known, favourable", "favourable"),
    "known otherwise": ("outcome known, unfavourable", "unfavourable"),
}
"""Shares of a group: how many of how many."""


def rates_of(counts: NDArray[np.int64]) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The numbers behind each of :data:`RATES`, per episode.

    :param counts: of a group, (m, len(COUNTS))
    """
    count = dict(zip(COUNTS, counts.T, strict=True))
    count["unfavourable"] = count["decisions"] - count["favourable"]
    count["outcome known, unfavourable"] = count["outcome known"] - count["outcome known, favourable"]
    return {name: (count[hits], count[among]) for name, (hits, among) in RATES.items()}
