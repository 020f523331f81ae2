"""Disparities of returns: demographic, conditional, counterfactual, pairwise, Gini.

R_x is the return of agent x in an episode. U are the agents without a sensitive attribute, S those with it: the labels
0 and 1, or the first and second of ``compared``. Signed values are positive if U is ahead, and 0 if both groups have
the same; ``normalise`` divides them by what both groups have. All functions take returns (..., n), as of (episodes,
agents), and labels that broadcast against them, as (agents,).

Source: La Malfa et al., *Fairness Aware Reinforcement Learning via Proximal Policy Optimization* (arXiv 2502.03953),
section 5 and figure 1, whose disparity is normalised by the sum of all returns. Jain's index of returns:
``Welfare("jain")``.
"""

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import MaybeNumbers, Numbers, checked
from sb3_fair.fairness.tracking.partition import aligned, compared_labels
from sb3_fair.fairness.validation import as_array
from sb3_fair.fairness.warning import warn
from sb3_fair.fairness.welfare import Welfare

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

Norm: TypeAlias = Literal["sum", "abs"]
_TINY = float(np.finfo(np.float64).tiny)


@checked
def demographic_disparity(
    returns: Numbers,
    groups: ArrayLike,
    *,
    per_capita: bool = False,
    normalise: Norm | None = None,
    compared: tuple[Hashable, Hashable] | None = None,
) -> Array:
    """U - S, the gap between what two groups have in each episode: (...), 0 is fair.

    >>> demographic_disparity([8, 4, 5, 6], [0, 1, 0, 1])
    array(3.)

    :param returns: (..., n) of n agents
    :param groups: labels, (n,) or (..., n); agents with other labels than the two are in neither group
    :param per_capita: False: U and S are sums; True: means, NaN where a group has no members
    :param normalise: None; ``"sum"``: divided by U + S, of sums at least 1, of means abs(U + S); ``"abs"``: by
        abs(U) + abs(S), which stays in [-1, 1] also where returns are negative. Where nobody has anything, 0
    :param compared: the labels of U and S; None: 0 and 1, or where other labels occur and they are two, these in order
    :raises ValueError: if shapes do not fit, ``normalise`` is not one of these, or the labels to compare do not occur
    """
    return _gap(*_two_groups(returns, groups, compared), per_capita, normalise)


@checked
def conditional_disparity(
    returns: Numbers,
    groups: ArrayLike,
    factors: ArrayLike,
    *,
    per_capita: bool = True,
    normalise: Norm | None = None,
    compared: tuple[Hashable, Hashable] | None = None,
) -> dict[Any, Array]:
    """The demographic disparity among agents with the same legitimate factor: (...) per value of the factor, 0 is fair.

    Sums compare groups of unequal size unless the attribute is stratified by the factor: hence means by default.

    >>> conditional_disparity([8, 4, 5, 6], [0, 1, 0, 1], ["red", "red", "blue", "blue"])
    {'blue': array(-1.), 'red': array(4.)}

    :param factors: values, (n,) or (..., n); the other arguments are those of :func:`demographic_disparity`
    :raises ValueError: as :func:`demographic_disparity` does
    """
    array, first, second = _two_groups(returns, groups, compared)
    _, values = _aligned(returns, factors, "factors")
    return {
        value: _gap(array, first & (values == value), second & (values == value), per_capita, normalise)
        for value in np.unique(values).tolist()
    }


@checked
def pairwise_disparity(
    returns: Numbers,
    groups: ArrayLike,
    *,
    aggregate: Literal["mean", "sum"] = "mean",
    compared: tuple[Hashable, Hashable] | None = None,
) -> Array:
    """abs(R_x - R_y), over all pairs of x in U and y in S: (...), 0 is fair.

    Unlike the gap between the groups it sees the spread inside them.

    :param aggregate: ``"mean"`` over the pairs, NaN where there is none, or ``"sum"``; the other arguments are those
        of :func:`demographic_disparity`
    :raises ValueError: if shapes do not fit, or ``aggregate`` is neither
    """
    total, n_pairs = _over_pairs(*_two_groups(returns, groups, compared))
    return total if aggregate == "sum" else _ratio(total, n_pairs)


@checked
def value_disparity(
    values: MaybeNumbers,
    groups: ArrayLike,
    *,
    normalise: Norm | None = None,
    compared: tuple[Hashable, Hashable] | None = None,
) -> Array:
    """mean V_U - mean V_S, the gap between the expected returns of two groups: (...), 0 is fair.

    :param values: (..., n), what a critic expects for each agent, NaN where unknown, which gives NaN; the other
        arguments are those of :func:`demographic_disparity`
    """
    return _gap(*_two_groups(values, groups, compared), True, normalise)


@checked
def counterfactual_disparity(
    factual: Numbers,
    counterfactual: Numbers,
    groups: ArrayLike | None = None,
    *,
    per_capita: bool = False,
    normalise: Norm | None = None,
) -> Array:
    """Returns of the same agents without the sensitive attribute minus those with it: (...), 0 is fair.

    >>> counterfactual_disparity([8, 4, 5, 6], [5, 4, 2, 7])
    array(5.)

    :param factual: (..., n) returns in the world as it is
    :param counterfactual: (..., n) returns of the same agents in the twin world
    :param groups: factual labels, (n,) or (..., n): 0, or the smaller one of two other labels, is without the attribute
        in the factual world and with it in the twin, all others the other way round. None: nobody has it in the factual
        world, everybody in the twin
    :param per_capita: of sums (False) or of means (True)
    :param normalise: as in :func:`demographic_disparity`
    :raises ValueError: if shapes do not fit, or ``normalise`` is unknown
    """
    array, other = _twins(factual, counterfactual)
    if groups is not None:
        _, labels = _aligned(array, groups)
        without = labels == compared_labels(labels, None)[0]
        array, other = np.where(without, array, other), np.where(without, other, array)
    everybody = np.ones(array.shape, dtype=bool)
    first, second = _total(array, everybody, per_capita), _total(other, everybody, per_capita)
    return _difference(first, second, per_capita, normalise)


@checked
def twin_disparity(factual: Numbers, counterfactual: Numbers) -> Array:
    """mean abs(R_x - R_x'), the mean difference of an agent's returns between twin worlds: (...), 0 is fair.

    :param factual: (..., n)
    :param counterfactual: (..., n) of the same agents
    :raises ValueError: if shapes do not fit
    """
    array, other = _twins(factual, counterfactual)
    return np.abs(array - other).mean(axis=-1)


@checked
def gini(returns: Numbers) -> Array:
    """Gini index of the returns (..., n) of all agents: (...), 0 if all have the same; NaN where one is negative."""
    return _of_nonnegative(np.asarray(returns, dtype=np.float64), Welfare("gini"))


@checked
def nash_welfare(returns: Numbers, *, normalise: bool = False) -> Array:
    """(prod R)^(1/n) of the returns (..., n) of all agents: (...), higher is better; NaN where one is negative.

    :param normalise: divided by the mean: 1 if all have the same, NaN if nobody has anything
    """
    array = np.asarray(returns, dtype=np.float64)
    welfare = _of_nonnegative(array, Welfare("nash_geometric"))
    return _ratio(welfare, array.mean(axis=-1)) if normalise else welfare


class Average(NamedTuple):
    """Mean over episodes of a signed value and of its size.

    :param mean: of the values: gaps of opposite signs cancel
    :param mean_error: its standard error, NaN of fewer than two episodes
    :param absolute: mean of the absolute values
    :param absolute_error: its standard error
    :param n: number of episodes that have a value
    """

    mean: float
    mean_error: float
    absolute: float
    absolute_error: float
    n: int


@checked
def average(values: MaybeNumbers) -> Average:
    """Mean of the values (episodes,), signed and absolute, with standard errors; NaN is no value."""
    array = as_array(values, np.float64).ravel()
    known = array[~np.isnan(array)]
    return Average(*_mean_and_error(known), *_mean_and_error(np.abs(known)), n=len(known))


def _mean_and_error(values: Array) -> tuple[float, float]:
    if not len(values):
        return float("nan"), float("nan")
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


FORMS: dict[str, dict[str, Any]] = {
    "": {"per_capita": False},
    "_norm": {"per_capita": False, "normalise": "sum"},
    "_pc": {"per_capita": True},
    "_pc_norm": {"per_capita": True, "normalise": "sum"},
}
"""What is added to the name of a gap -> its form."""


def return_figures(
    returns: NDArray[Any], groups: NDArray[Any], factors: NDArray[Any] | None = None, *, twins: bool = False
) -> dict[str, NDArray[Any]]:
    """Gaps, Gini, Jain and Nash of episodes; name -> (episodes,). NaN where one is undefined.

    Of more than two groups, each gap is that of the two groups of an episode which are furthest apart by it.

    :param returns: of every agent, (episodes, agents)
    :param groups: 0 without and 1 with the sensitive attribute, further numbers for further groups, negative where
        an agent is in none, (episodes, agents)
    :param factors: legitimate factor, (episodes, agents); None: no conditional disparities
    :param twins: whether the second half of the agents are the twins of the first half
    """
    found = _widest_gaps(returns, groups, factors)
    found |= {
        "gini": gini(returns),
        "jain": Welfare("jain")(returns),
        "nash": nash_welfare(returns),
        "nash_norm": nash_welfare(returns, normalise=True),
    }
    if twins:
        half = returns.shape[1] // 2
        factual, counterfactual, labels = returns[:, :half], returns[:, half:], groups[:, :half]
        for form, way in FORMS.items():
            found[f"cf{form}"] = counterfactual_disparity(factual, counterfactual, labels, **way)
        found["twins"] = twin_disparity(factual, counterfactual)
    return found


def _widest_gaps(returns: NDArray[Any], groups: NDArray[Any], factors: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """Of each gap the widest one between two groups of an episode, or that to nobody where only one group is there."""
    pairs = list(combinations(np.unique(groups[groups >= 0]).tolist(), 2)) or [(0, 1)]
    among = {"dp": np.ones(groups.shape, dtype=bool)}
    if factors is not None:
        among |= {f"csp_G{factor}": factors == factor for factor in np.unique(factors).tolist()}
    found = {}
    for name, counted in among.items():
        members = [[counted & (groups == label) for label in pair] for pair in pairs]
        there = np.array([one.any(axis=-1) & other.any(axis=-1) for one, other in members])
        gaps = {name + form: [_gap(returns, *two, **way) for two in members] for form, way in FORMS.items()}
        if name == "dp":
            totals, sizes = zip(*(_over_pairs(returns, *two) for two in members), strict=True)
            gaps |= {"pairs": list(map(_ratio, totals, sizes)), "pairs_sum": list(totals)}
        for gap, values in gaps.items():
            width = np.where(there | ~there.any(axis=0), np.nan_to_num(np.abs(values), nan=-1.0), -2.0)
            found[gap] = np.take_along_axis(np.array(values), width.argmax(axis=0)[None], axis=0)[0]
    return found


def _aligned(returns: ArrayLike, labels: ArrayLike, name: str = "groups") -> tuple[Array, NDArray[Any]]:
    """Returns as floats, and one label per return."""
    array = as_array(returns, np.float64)
    return array, aligned(array, labels, name, "returns")


def _twins(factual: ArrayLike, counterfactual: ArrayLike) -> tuple[Array, Array]:
    array, other = np.asarray(factual, dtype=np.float64), np.asarray(counterfactual, dtype=np.float64)
    if array.shape != other.shape:
        raise ValueError(f"counterfactual must have the shape of factual {array.shape}, got shape {other.shape}")
    return array, other


def _two_groups(returns: ArrayLike, groups: ArrayLike, compared: Sequence[Hashable] | None) -> tuple[Array, Mask, Mask]:
    """Returns as floats, and who is in either of the two groups compared."""
    array, labels = _aligned(returns, groups)
    first, second = compared_labels(labels, compared)
    return array, labels == first, labels == second


def _over_pairs(returns: Array, first: Mask, second: Mask) -> tuple[Array, Array]:
    """Sum of abs(R_x - R_y) over the pairs of x in the first and y in the second group, and how many there are."""
    order = np.argsort(returns, axis=-1)
    steps = np.diff(np.take_along_axis(returns, order, axis=-1), axis=-1)
    members = [np.take_along_axis(mask, order, axis=-1) for mask in (first, second)]
    below = [np.cumsum(mask, axis=-1)[..., :-1] for mask in members]
    sizes = [mask.sum(axis=-1) for mask in members]
    across = below[0] * (sizes[1][..., None] - below[1]) + below[1] * (sizes[0][..., None] - below[0])
    # So many pairs reach over each step between sorted returns.
    return (steps * across).sum(axis=-1), sizes[0] * sizes[1]


def _gap(returns: Array, first: Mask, second: Mask, per_capita: bool, normalise: Norm | None = None) -> Array:
    return _difference(_total(returns, first, per_capita), _total(returns, second, per_capita), per_capita, normalise)


def _total(returns: Array, members: Mask, per_capita: bool) -> Array:
    total: Array = np.where(members, returns, 0.0).sum(axis=-1)
    return _ratio(total, members.sum(axis=-1)) if per_capita else total


def _difference(first: Array, second: Array, per_capita: bool, normalise: Norm | None) -> Array:
    """first - second in one of the normal forms."""
    gap: Array = np.asarray(first - second)
    if normalise is None:
        return gap
    if normalise == "abs":
        return gap / np.maximum(np.abs(first) + np.abs(second), _TINY)
    if not per_capita:
        return gap / np.maximum(first + second, 1.0)
    return np.where(gap == 0, 0.0, _ratio(gap, np.abs(first + second)))


def _ratio(numerator: Array, denominator: NDArray[Any]) -> Array:
    """NaN for 0/0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.true_divide(numerator, denominator))


def _of_nonnegative(returns: Array, welfare: Welfare) -> Array:
    if not returns.size:
        raise ValueError(f"returns must be of at least one agent, got shape {returns.shape}")
    defined = np.asarray(returns.min(axis=-1) >= 0)
    if not defined.all():
        warn(f"{welfare.name} is NaN where a return is negative", RuntimeWarning)
    return np.where(defined, welfare(np.where(defined[..., None], returns, 1.0)), np.nan)
