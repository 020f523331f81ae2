"""Welfare functions: Rawls, Nash, Gini, utilitarian, Jain and others.

A welfare function makes one number of the status vector u of n stakeholders; **higher is better**. The one exception is
the index ``gini``, which is lower for fairer vectors. Sorted ascending, u is u_(1) <= .. <= u_(n).

===================  ==========================================================================================
name                 value, after ``offset`` was added to every entry
===================  ==========================================================================================
``utilitarian``      sum u_i
``rawls``            min u_i
``nash``             prod u_i, for u_i >= 0 only, as the product of two losses is a gain
``log_nash``         sum ln u_i, ``offset`` 1 unless told
``nash_geometric``   (prod u_i)^(1/n), the "Nash welfare" of reports
``gini``             sum_ij abs(u_i - u_j) / (2 n^2 mean), 0 if the mean is 0; an index, 0 is fair
``neg_gini``         minus ``gini``
``gini_welfare``     mean (1 - gini)
``alpha_fair``       sum u_i^(1 - alpha) / (1 - alpha), for alpha = 1 sum ln u_i
``jain``             (sum u_i)^2 / (n sum u_i^2), 1 if all are 0
``ggf``              sum_k w_k u_(k), the generalised Gini, with w not increasing
``relaxed_parity``   -(max_g - min_g) of the sums of the groups g
===================  ==========================================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import Range, checked
from sb3_fair.fairness.validation import as_array, one_of
from sb3_fair.fairness.warning import warn

Array: TypeAlias = NDArray[np.float64]


@checked
@dataclass(frozen=True)
class Formula:
    """A row of the table :data:`WELFARES`.

    :param name: short name
    :param title: name in words
    :param value: from (status with the offset added (..., n), the :class:`Welfare`) to (...)
    :param offset: the usual one
    :param index: True: lower is fairer, so that it cannot be maximised
    """

    name: str
    title: str
    value: Callable[[Array, "Welfare"], Array]
    offset: float = 0.0
    index: bool = False


@checked
@dataclass(frozen=True)
class Welfare:
    """A welfare function W(u): one number of the status of n stakeholders, higher is better (except ``gini``).

    >>> Welfare("rawls")([[6, 8, 10], [8, 8, 8]])
    array([6., 8.])

    :param name: key of :data:`WELFARES`
    :param offset: added to every entry first; None: the usual one, 0 but for ``log_nash``: 1
    :param alpha: of ``alpha_fair``, not negative: aversion to inequality
    :param weights: (n,) of ``ggf``, not increasing, the first is of the worst off; None: 1, 1/2, 1/4, ..
    :param groups: (n,) of ``relaxed_parity``: the group of each entry; None: every entry is its own group
    :raises ValueError: if an argument is not allowed, or is one that the named function does not have
    """

    name: str
    offset: float | None = None
    alpha: float = 0.5
    weights: tuple[float, ...] | None = None
    groups: tuple[Annotated[int, Range("[0, 1_000_000]")], ...] | None = None

    def __post_init__(self) -> None:
        one_of("name", self.name, WELFARES)
        for field in fields(self):
            owner = _OWNERS.get(field.name, self.name)
            if owner != self.name and getattr(self, field.name) != field.default:
                raise ValueError(f"{field.name} is only for {owner!r}, got {self.name!r}")
        for name, entries in (("weights", self.weights), ("groups", self.groups)):
            if entries is not None and not len(entries):
                raise ValueError(f"{name} must be a sequence of numbers, one per stakeholder, got {entries!r}")
        if self.weights is not None:
            if list(self.weights) != sorted(self.weights, reverse=True):
                raise ValueError(f"weights must not increase (the first is of the worst off), got {self.weights!r}")
            object.__setattr__(self, "weights", tuple(map(float, self.weights)))
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(map(int, self.groups)))

    def __call__(self, status: ArrayLike) -> Array:
        """Welfare (...), float64, of each status vector (..., n).

        :param status: (..., n), how the stakeholders fare; NaN gives NaN or an error
        :raises ValueError: if the formula is undefined for one of the vectors, or ``weights`` or ``groups`` do not fit
        """
        array = as_array(status, np.float64)
        if not array.ndim or not array.shape[-1]:
            raise ValueError(f"status must have at least one stakeholder on its last axis, got shape {array.shape}")
        for argument, given in (("weights", self.weights), ("groups", self.groups)):
            if given is not None and len(given) != array.shape[-1]:
                raise ValueError(f"{argument} must have one entry per stakeholder ({array.shape[-1]}), got {given!r}")
        offset = self.added
        return WELFARES[self.name].value(array + offset if offset else array, self)

    @property
    def added(self) -> float:
        """What is added to every entry first: ``offset``, or the usual one of the formula."""
        return WELFARES[self.name].offset if self.offset is None else self.offset

    @property
    def shift_invariant(self) -> bool:
        """True only if W(u + c) == W(u) for every number c, so that differences between stakeholders are enough."""
        sizes = {self.groups.count(group) for group in self.groups} if self.groups else {1}
        return self.name == "relaxed_parity" and len(sizes) == 1


_OWNERS = {"alpha": "alpha_fair", "weights": "ggf", "groups": "relaxed_parity"}


def _least(u: Array, welfare: Welfare, *, above: bool = False) -> None:
    """Refuses entries that are negative, or, with ``above``, not positive."""
    least = np.minimum.reduce(u, axis=None, initial=np.inf)
    if not (least > 0 if above else least >= 0):
        raise ValueError(
            f"{welfare.name} needs entries {'above' if above else 'of at least'} 0 once the offset "
            f"({welfare.added:g}) is added, got {least:g}"
        )


def _log_nash(u: Array, welfare: Welfare) -> Array:
    _least(u, welfare, above=True)
    return np.add.reduce(np.log(u), axis=-1)


def _nash(u: Array, welfare: Welfare) -> Array:
    _least(u, welfare)
    return np.multiply.reduce(u, axis=-1)


def _nash_geometric(u: Array, welfare: Welfare) -> Array:
    _least(u, welfare)
    with np.errstate(divide="ignore"):  # exp(ln 0) is 0; a product would overflow
        return np.exp(np.log(u).mean(axis=-1))


def _pairs(u: Array) -> Array:
    """Sum of abs(u_i - u_j) over the pairs i < j: k(n - k) of them reach over the k-th gap of the sorted entries."""
    below = np.arange(1, u.shape[-1])
    return np.diff(np.sort(u, axis=-1), axis=-1) @ (below * below[::-1]).astype(float)


def _gini(u: Array, welfare: Welfare) -> Array:
    _least(u, welfare)
    total = u.sum(axis=-1)
    return np.divide(_pairs(u), u.shape[-1] * total, out=np.zeros(total.shape), where=total > 0)[()]


def _gini_welfare(u: Array, welfare: Welfare) -> Array:
    return u.mean(axis=-1) - _pairs(u) / u.shape[-1] ** 2


def _alpha_fair(u: Array, welfare: Welfare) -> Array:
    alpha = welfare.alpha
    if 0 < alpha < 1:
        _least(u, welfare)
    elif alpha >= 1 and (u <= 0).any():
        warn(
            f"alpha_fair with alpha = {alpha:g} is -inf where an entry + offset ({welfare.added:g}) is not positive",
            RuntimeWarning,
        )
        u = np.maximum(u, 0.0)
    with np.errstate(divide="ignore"):
        terms = np.log(u) if alpha == 1 else u ** (1 - alpha) / (1 - alpha)
    return terms.sum(axis=-1)


def _jain(u: Array, welfare: Welfare) -> Array:
    largest = np.abs(u).max(axis=-1, keepdims=True)
    shares = np.divide(u, largest, out=np.ones(u.shape), where=largest != 0)  # squares of the entries may underflow
    return shares.sum(axis=-1) ** 2 / (u.shape[-1] * np.square(shares).sum(axis=-1))


def _ggf(u: Array, welfare: Welfare) -> Array:
    weights = 0.5 ** np.arange(u.shape[-1]) if welfare.weights is None else np.asarray(welfare.weights)
    return np.sort(u, axis=-1) @ weights


@lru_cache
def _membership(groups: tuple[int, ...]) -> Array:
    """(n, number of groups): 1 where an entry is in a group."""
    labels, columns = np.unique(groups, return_inverse=True)
    return np.eye(len(labels))[columns]


def _relaxed_parity(u: Array, welfare: Welfare) -> Array:
    sums = u if welfare.groups is None else u @ _membership(welfare.groups)
    return np.minimum.reduce(sums, axis=-1) - np.maximum.reduce(sums, axis=-1)


WELFARES: dict[str, Formula] = {
    formula.name: formula
    for formula in (
        Formula("utilitarian", "sum", lambda u, _: np.add.reduce(u, axis=-1)),
        Formula("rawls", "the worst off", lambda u, _: np.minimum.reduce(u, axis=-1)),
        Formula("nash", "Nash welfare", _nash),
        Formula("log_nash", "logarithm of the Nash welfare", _log_nash, offset=1.0),
        Formula("nash_geometric", "geometric mean", _nash_geometric),
        Formula("gini", "Gini index", _gini, index=True),
        Formula("neg_gini", "minus the Gini index", lambda u, welfare: -_gini(u, welfare)),
        Formula("gini_welfare", "mean, less what the Gini index takes away", _gini_welfare),
        Formula("alpha_fair", "alpha-fairness", _alpha_fair),
        Formula("jain", "Jain's index", _jain),
        Formula("ggf", "generalised Gini", _ggf),
        Formula("relaxed_parity", "minus the gap between the groups", _relaxed_parity),
    )
}


def find_welfare(welfare: str | Welfare | Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of a name; a callable is handed back.

    :param welfare: key of :data:`WELFARES`, a :class:`Welfare`, or any f(status (..., n)) -> (...)
    :raises ValueError: if it is neither; hints at a near miss
    """
    if callable(welfare):
        return welfare
    one_of("welfare", welfare, WELFARES, otherwise="a callable")
    return Welfare(welfare)
