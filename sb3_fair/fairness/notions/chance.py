"""Chance level of a group notion: its size if group labels are permuted."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import MaybeNumbers, Numbers, checked
from sb3_fair.fairness.notions.table import CELLS, FeedbackMissing, GapTable
from sb3_fair.fairness.notions.whole import coded, find_group_notion

Array = NDArray[np.float64]
_ENTRIES = 2_000_000
"""Counts drawn at once."""


@checked
def chance_level(
    notion: str,
    actions: Numbers,
    groups: Iterable[Hashable],
    *,
    feedback: MaybeNumbers | None = None,
    favourable: Iterable[int] = (1,),
    compared: Iterable[Hashable] | None = None,
    n_permutations: int = 200,
    seed: int = 0,
    feedback_missing: FeedbackMissing = "undefined",
) -> float:
    """Expected absolute value of a group notion if the labels are permuted among the decisions, in [0, 1].

    A value only says something about a policy if it is clearly larger. With 50 people per group, the rates of a policy
    that ignores the groups differ by about 0.08.

    :param notion: name of a group notion
    :param actions: (n,) logged actions, int
    :param groups: (n,) labels of any kind
    :param feedback: (n,) the right actions, NaN where unknown; None: all unknown
    :param favourable: the favourable actions
    :param compared: the labels to compare, None: all
    :param n_permutations: how often the labels are permuted
    :param seed: of the permutations
    :param feedback_missing: what unknown outcomes mean, see :func:`group_notion`
    :return: mean over the permutations in which the notion is defined; NaN if there is none
    :raises ValueError: if the notion is not a group notion, or a number is out of range
    """
    coding = coded(actions, feedback, groups, favourable, compared)
    return chance_levels([notion], *coding, n_permutations, seed, feedback_missing)[0]


def chance_levels(
    notions: Sequence[str],
    cells: NDArray[np.uint8],
    columns: NDArray[np.intp],
    size: int,
    n_permutations: int,
    seed: int,
    feedback_missing: FeedbackMissing,
) -> list[float]:
    """The :func:`chance_level` of several notions of the same decisions, from the same permutations.

    :param cells: (n,), with ``columns`` (n,) and ``size`` as :func:`coded` gives them
    """
    table = GapTable([find_group_notion(notion) for notion in notions], feedback_missing)
    if not len(cells):
        return [math.nan] * len(notions)
    counts = np.bincount(columns * CELLS + cells, minlength=size * CELLS).reshape(size, CELLS)
    counts[1:] = counts[1:][np.lexsort(counts[1:].T)]  # the order in which groups were met says nothing
    spaced = np.pad(counts, ((0, 0), (0, CELLS)))  # zeros are part of the seed
    rng = np.random.default_rng([seed, *spaced.flat])  # with the same draws, similar tables would err alike
    levels: list[float] = expected_sizes(counts, lambda drawn: table(drawn[:, 1:]), n_permutations, rng).tolist()
    return levels


def expected_sizes(
    counts: NDArray[np.generic], values: Callable[[Array], Array], n_permutations: int, rng: np.random.Generator
) -> Array:
    """Expected size (notions,) of each notion if the labels are permuted among the decisions; NaN if never defined.

    Permuting the labels is drawing a table with the same margins, which takes no longer for more decisions.

    :param counts: (groups, cells)
    :param values: of the notions, (m, notions), from drawn counts (n, groups, cells)
    """
    from scipy.stats import random_table  # takes a second to import

    people, cells = counts.sum(axis=1).astype(np.int64), counts.sum(axis=0).astype(np.int64)
    used = cells > 0
    if min(np.count_nonzero(people), np.count_nonzero(used)) < 2:  # there is one such table, which SciPy does not find
        return np.abs(values(counts[None].astype(float)))[0]
    tables = random_table(people, cells[used])
    batch = max(1, _ENTRIES // counts.size)
    sizes = []
    for start in range(0, n_permutations, batch):
        drawn = np.zeros((min(batch, n_permutations - start), *counts.shape))
        drawn[..., used] = tables.rvs(len(drawn), random_state=rng)
        sizes.append(np.abs(values(drawn)))
    size = np.concatenate(sizes).T.copy()  # in rows: the same to the last bit, whichever notions are asked for together
    defined = ~np.isnan(size)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(defined, size, 0.0).sum(axis=1) / defined.sum(axis=1)
    return mean
