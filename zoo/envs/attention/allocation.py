"""Actions of attention allocation: units to locations."""

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb


def by_location(values: ArrayLike) -> NDArray[Any]:
    """``values`` (..., locations) with the locations first: numpy reduces few long rows faster than many short."""
    rows = np.asarray(values)
    return np.ascontiguousarray(rows.transpose(-1, *range(rows.ndim - 1)))


def _locations_last(columns: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(columns.transpose(*range(1, columns.ndim), 0))


def location_probabilities(logits: ArrayLike) -> NDArray[np.float64]:
    """Softmax over the last axis (..., locations)."""
    columns = by_location(logits)
    weights = np.exp(columns.astype(np.float64) - columns.max(axis=0))
    return _locations_last(weights / weights.sum(axis=0))


def logits_to_allocation(logits: ArrayLike, n_units: int) -> NDArray[np.int64]:
    """Units per location (..., locations) that come nearest to the softmax of ``logits`` (..., locations).

    A number added to all logits makes no difference but for rounding. See :func:`nearest_allocation`.
    """
    return nearest_allocation(location_probabilities(logits), n_units)


def nearest_allocation(probabilities: ArrayLike, n_units: int) -> NDArray[np.int64]:
    """Units per location (..., locations) that come nearest to ``probabilities`` (..., locations), which sum to 1.

    Unit after unit goes to the location with the largest probability left, the first of several, which takes
    ``1 / n_units`` off that probability: whole multiples of it are used up first, the largest remainders get the rest.
    """
    shares = by_location(probabilities) * n_units
    whole = np.floor(shares)
    remainders = shares - whole
    ahead = np.zeros(shares.shape, dtype=np.int8)  # how many locations have larger remainders
    for place, remainder in enumerate(remainders):
        ahead[:place] += (remainder > remainders[:place]).view(np.int8)
        ahead[place + 1 :] += (remainder >= remainders[place + 1 :]).view(np.int8)
    units = whole.astype(np.int64) + (ahead < n_units - whole.sum(axis=0))
    return _locations_last(units)


def one_by_one(worths: NDArray[np.float64], n_units: int) -> NDArray[np.int64]:
    """Units per location (..., locations) if each goes where the worth is largest, which falls by 1.

    :param worths: of a unit at each location (..., locations); of several largest the first counts
    """
    left = by_location(worths)
    units = np.zeros(left.shape, dtype=np.int64)
    places = np.arange(len(left)).reshape(-1, *[1] * (left.ndim - 1))
    for _ in range(n_units):
        chosen = left.argmax(axis=0) == places
        units += chosen
        left = left - chosen
    return _locations_last(units)


def units_to_allocation(locations: ArrayLike, n_locations: int) -> NDArray[np.int64]:
    """Units per location (..., n_locations) from the location of each unit (..., n_units)."""
    return (np.asarray(locations)[..., None] == np.arange(n_locations)).sum(axis=-2)


@cache
def all_allocations(n_units: int, n_locations: int) -> NDArray[np.int64]:
    """Every way to allocate the units, in lexicographic order: (0, ..., 0, n_units) first, (n_units, 0, ..., 0) last.

    :return: (m, n_locations), read only; m is the binomial coefficient of n_units + n_locations - 1 and n_units
    """
    # Of n_units + n_locations - 1 places in a row some are bars, which separate the units of the locations.
    bars = np.array(list(combinations(range(n_units + n_locations - 1), n_locations - 1)), dtype=np.int64)
    ends = [np.full((len(bars), 1), end) for end in (-1, n_units + n_locations - 1)]
    table: NDArray[np.int64] = np.diff(np.hstack([ends[0], bars, ends[1]]), axis=1) - 1
    table.flags.writeable = False
    return table


def index_to_allocation(index: ArrayLike, n_units: int, n_locations: int) -> NDArray[np.int64]:
    """Units per location (..., n_locations) of the numbers ``index`` (...) in :func:`all_allocations`."""
    return all_allocations(n_units, n_locations)[np.asarray(index)]


def allocation_to_index(allocation: ArrayLike, n_units: int) -> NDArray[np.int64]:
    """The numbers (...) of ``allocation`` (..., n_locations) in :func:`all_allocations`.

    :raises ValueError: if an allocation is not made of ``n_units`` units
    """
    units = np.asarray(allocation)
    if units.dtype.kind not in "iu" or (units < 0).any() or (units.sum(axis=-1) != n_units).any():
        raise ValueError(f"allocation must be whole numbers that sum to {n_units}, got {allocation!r}")
    behind = np.arange(units.shape[-1])[::-1]
    left = n_units - units.cumsum(axis=-1)
    smaller = comb(left + units + behind, behind) - comb(left + behind, behind)  # equal so far, then fewer units
    numbers: NDArray[np.int64] = smaller.sum(axis=-1).round().astype(np.int64)
    return numbers
