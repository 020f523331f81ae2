"""Notions of whole histories, for audits, tests and other people's code.

0 is fair, negative is unfair; individual fairness is below 0 even where everybody is treated alike. The incremental
trackers give the same numbers.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import MaybeNumbers, Numbers, Undefined, checked
from sb3_fair.fairness.distances import DistanceLike, Metric, blocks, feature_array
from sb3_fair.fairness.notions.probabilities import half_roots, rows_of_distributions
from sb3_fair.fairness.notions.table import (
    CELLS,
    NOTIONS,
    FeedbackMissing,
    GapTable,
    GroupNotion,
    PairNotion,
    among,
    cells_of,
    notion_named,
)
from sb3_fair.fairness.tracking.neighbours import in_units
from sb3_fair.fairness.tracking.partition import Partition, check_groups
from sb3_fair.fairness.validation import actions as action_numbers
from sb3_fair.fairness.validation import as_array


def find_group_notion(name: str) -> GroupNotion:
    """The row of a group notion."""
    notion = notion_named(name)
    if not isinstance(notion, GroupNotion):
        known = [each.name for each in NOTIONS.values() if isinstance(each, GroupNotion)]
        raise ValueError(f"{name!r} is not a group notion, as {', '.join(known)} are")
    return notion


def coded(
    actions: ArrayLike, feedback: ArrayLike | None, groups: Any, favourable: Iterable[int], compared: Any = None
) -> tuple[NDArray[np.uint8], NDArray[np.intp], int]:
    """Cells (n,), group columns (n,) with 0 for labels that are not compared, and the number of columns."""
    taken = as_array(actions)
    if taken.ndim != 1 or (taken.size and taken.dtype.kind not in "iub"):
        raise ValueError(f"actions must be a sequence of integers, got {actions!r}")
    known = None if feedback is None else as_array(feedback, np.float64)
    partition = Partition(None if compared is None else check_groups(compared, "compared"))
    columns = partition.columns(groups)
    for name, array in (("feedback", known), ("groups", columns)):
        if array is not None and array.shape != taken.shape:
            raise ValueError(
                f"{name} must have one entry per action ({len(taken)}), as actions, got shape {array.shape}"
            )
    return cells_of(taken, known, action_numbers("favourable", favourable)), columns, max(3, partition.size)


@checked
def group_notion(
    notion: str,
    actions: Numbers,
    feedback: MaybeNumbers | None = None,
    groups: Iterable[Hashable] = (),
    *,
    favourable: Iterable[int] = (1,),
    weights: Numbers | None = None,
    undefined: Undefined = math.nan,
    compared: Iterable[Hashable] | None = None,
    feedback_missing: FeedbackMissing = "undefined",
) -> float:
    """A group notion of a whole history: minus the largest gap between two groups, in [-1, 0].

    :param notion: SP, EO, OAE, PP, PE, EqOdds, CUAE or TE
    :param actions: (n,) int
    :param feedback: (n,) the right actions, NaN where unknown; None: all unknown
    :param groups: (n,) labels of any kind
    :param favourable: the favourable actions
    :param weights: (n,) weight of each decision, None: 1
    :param undefined: the value if fewer than two groups have a rate
    :param compared: the labels to compare, None: all
    :param feedback_missing: what unknown outcomes mean for a notion that needs them. ``"undefined"``: it is undefined
        for a group in which decisions of a kind that it needs, favourable or unfavourable, were made and none of their
        outcomes is known; ``"reweight"``: the same, and a known outcome stands for the unknown ones of its group and
        kind of decision (right where outcomes are missing at random among these); ``"ignore"``: known outcomes only,
        each once, which is biased where they depend on the decision (FAReL)
    :raises ValueError: if the notion is unknown or lengths differ
    """
    row = find_group_notion(notion)
    cells, columns, size = coded(actions, feedback, groups, favourable, compared)
    counts = np.bincount(columns * CELLS + cells, _weights(weights, len(cells)), size * CELLS)
    value = float(GapTable([row], feedback_missing)(counts.reshape(1, size, CELLS)[:, 1:].astype(float))[0, 0])
    return undefined if math.isnan(value) else value


@checked
def individual_fairness(
    features: Numbers,
    probabilities: Numbers,
    *,
    distance: DistanceLike = "hmom",
    nominal: Sequence[int] = (),
    weights: Numbers | None = None,
) -> float:
    """IF (Cimpean et al., FAReL, Eq. 8): -1 + mean over the pairs of d(i, j) - D(M_i || M_j), in [-2, 0].

    D is the Hellinger distance. Not clipped: treating everybody alike is rewarded beyond what a Lipschitz condition
    asks for; always the same action gives mean(d) - 1. 0 for fewer than 3 people, NaN if no pair has a weight.

    :param features: (n, d) in order of time, numbers in [0, 1]
    :param probabilities: (n, n_actions)
    :param distance: a name, a callable or a :class:`Distance`
    :param nominal: columns whose values are names
    :param weights: (n,) a pair has the weight of its older member; None: 1
    """
    return _pairs("IF", features, probabilities, distance, nominal, weights)


@checked
def lipschitz_violation(
    features: Numbers,
    probabilities: Numbers,
    *,
    distance: DistanceLike = "hmom",
    nominal: Sequence[int] = (),
    weights: Numbers | None = None,
) -> float:
    """LIP (Dwork et al. 2012): mean over the pairs of min(0, d(i, j) - D(M_i || M_j)), in [-1, 0].

    0 for fewer than 2 people, NaN if no pair has a weight. Arguments as for :func:`individual_fairness`.
    """
    return _pairs("LIP", features, probabilities, distance, nominal, weights)


def _pairs(
    name: str, features: ArrayLike, probabilities: ArrayLike, distance: Any, nominal: Sequence[int], weights: Any
) -> float:
    notion = NOTIONS[name]
    assert isinstance(notion, PairNotion)
    people = feature_array(features)
    roots = half_roots(rows_of_distributions(probabilities)) if len(people) else np.zeros((0, 1))
    if len(roots) != len(people):
        raise ValueError(f"probabilities must have one row per individual ({len(people)}), got {len(roots)}")
    if len(people) < notion.smallest:
        return 0.0
    weight = _weights(weights, len(people))
    metric = Metric(distance, nominal)
    metric.check(people)
    total = 0.0
    for rows in blocks(np.concatenate([people, roots], axis=1)):
        terms = metric.value(metric.raw(people[rows], people.T[None]), people.shape[1])
        terms -= np.sqrt(np.square(roots.T[None] - roots[rows, :, None]).sum(axis=1))
        if notion.violations_only:
            terms = np.minimum(terms, 0.0)
        later = np.arange(len(people)) > np.arange(len(people))[rows, None]
        total += float(weight[rows] @ (terms * later).sum(axis=1))
    pairs = float(weight @ np.arange(len(people))[::-1])
    return notion.offset + total / pairs if pairs else math.nan


@checked
def consistency(
    features: Numbers,
    actions: Numbers,
    *,
    k: int = 5,
    distance: DistanceLike = "hmom",
    nominal: Sequence[int] = (),
    favourable: Iterable[int] = (1,),
    weights: Numbers | None = None,
    ties: Literal["older", "shared"] = "older",
) -> float:
    """CSC (Cimpean et al., FAReL, Eq. 14): minus the mean of ``|A_i - mean A of i's k nearest|``, in [-1, 0].

    Nearest by raw distance, rounded to 12 decimals. With fewer than k others all are neighbours. 0 for fewer than 2
    people, NaN if nobody has a weight.

    :param features: (n, d) in order of time
    :param actions: (n,) int
    :param k: number of neighbours
    :param weights: (n,) of the terms; None: 1
    :param ties: which of those who are equally near are neighbours: the ``"older"`` first, or all of them, who have the
        places that are left in ``"shared"`` parts; then the order of people does not matter
    """
    people = feature_array(features)
    taken = np.asarray(actions)
    if taken.shape != (len(people),):
        raise ValueError(f"actions must have one entry per individual ({len(people)}), got shape {taken.shape}")
    nearest = min(k, len(people) - 1)
    if nearest < 1:
        return 0.0
    accepted = among(taken, action_numbers("favourable", favourable)).astype(float)
    metric = Metric(distance, nominal)
    metric.check(people)
    means = []
    for rows in blocks(people):
        distances = in_units(metric.raw(people[rows], people.T[None]))
        own = np.arange(len(people))[rows]
        distances[np.arange(len(own)), own] = np.inf
        if ties == "older":
            neighbours = np.argsort(distances, axis=1, kind="stable")[:, :nearest]
            means.append(accepted[neighbours].mean(axis=1))
        else:
            last = np.partition(distances, nearest - 1)[:, nearest - 1, None]
            nearer, level = distances < last, distances == last
            left = nearest - nearer.sum(axis=1)
            means.append((nearer @ accepted + left * (level @ accepted) / level.sum(axis=1)) / nearest)
    weight = _weights(weights, len(people))
    if not weight.any():
        return math.nan
    return -float(np.average(np.abs(accepted - np.concatenate(means)), weights=weight))


def _weights(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,) or (array < 0).any():
        raise ValueError(f"weights must be {n} finite numbers, not negative, got {weights!r}")
    return array
