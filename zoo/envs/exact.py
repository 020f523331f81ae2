"""Expected values of choices among options that are open by chance.

Options (..., m) are open independently of each other; taking a closed one is possible too, unless all are open, and
worth ``otherwise`` (...).
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Preference(NamedTuple):
    """A ranking of options, the best first.

    :param order: (..., m) numbers of the options
    :param better: (..., m) bool, in this order: better than a closed one
    """

    order: NDArray[np.intp]
    better: NDArray[np.bool_]


def preference(values: Array, otherwise: Array) -> Preference:
    """The ranking by value; of equals, the first comes first."""
    order = np.argsort(-values, axis=-1, kind="stable")
    return Preference(order, ranked(values, order) > otherwise[..., None])


def ranked(values: Array, order: NDArray[np.intp]) -> Array:
    """``values`` (..., m), or (m,) for all, in the order (..., m)."""
    return values[order] if values.ndim == 1 else np.take_along_axis(values, order, axis=-1)


def expected_first(values: Array, otherwise: Array, chances: Array) -> Array:
    """Expected value of taking the first option that is open, a closed one if there is none.

    :param chances: (..., m) or (m,), that each is open
    """
    result = otherwise
    for option in reversed(range(values.shape[-1])):
        chance = chances[..., option]
        result = chance * values[..., option] + (1 - chance) * result
    return result


def expected_preferred(values: Array, otherwise: Array, chances: Array, choice: Preference) -> Array:
    """Expected value of taking the most preferred option that is open, or a closed one where that is better.

    :param chances: (m,), that each is open
    """
    order, better = choice
    return _expected(ranked(values, order), otherwise, ranked(chances, order), better)


def expected_best(values: Array, otherwise: Array, chances: Array) -> Array:
    """Expected value of the best choice; see :func:`expected_preferred`."""
    if (chances != chances[0]).any():
        return expected_preferred(values, otherwise, chances, preference(values, otherwise))
    best = -np.sort(-values, axis=-1)  # much faster than a ranking
    return _expected(best, otherwise, chances, best > otherwise[..., None])


def _expected(options: Array, otherwise: Array, chances: Array, better: NDArray[np.bool_]) -> Array:
    """All arguments in the order of preference."""
    worth = np.where(better, options, otherwise[..., None])
    # With all of them open there is no closed one to take.
    forced = chances.prod(axis=-1) * (options[..., 0] - worth[..., 0])
    return expected_first(worth, otherwise, chances) + forced
