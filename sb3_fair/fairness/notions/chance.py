"""Chance level of a group notion: its size if group labels are permuted."""

import math
from collections.abc import Hashable, Iterable

import numpy as np

from sb3_fair.fairness.arguments import MaybeNumbers, Numbers, checked
from sb3_fair.fairness.notions.table import CELLS, FeedbackMissing, GapTable
from sb3_fair.fairness.notions.whole import coded, find_group_notion


@checked
def chance_level(
    notion: str,
    actions: Numbers,
    groups: Iterable[Hashable],
    *,
    feedback: MaybeNumbers | None = None,
    window: int | None = None,
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
    :param window: look at successive windows of this many decisions (a shorter rest is left out); None: at all at once
    :param favourable: the favourable actions
    :param compared: the labels to compare, None: all
    :param n_permutations: how often the labels are permuted
    :param seed: of the permutations
    :param feedback_missing: what unknown outcomes mean, see :func:`group_notion`
    :return: mean over permutations and windows in which the notion is defined; NaN if there is none
    :raises ValueError: if the notion is not a group notion, or a number is out of range
    """
    table = GapTable([find_group_notion(notion)], feedback_missing)
    cells, columns, size = coded(actions, feedback, groups, favourable, compared)
    length = len(cells) if window is None else min(window, len(cells))
    if not length:
        return math.nan
    windows = len(cells) // length
    used = windows * length
    offsets = np.repeat(np.arange(windows), length) * (size * CELLS) + cells[:used]
    rng = np.random.default_rng(seed)
    values = np.empty((n_permutations, windows))
    for permutation in values:
        codes = offsets + rng.permutation(columns)[:used] * CELLS
        counts = np.bincount(codes, minlength=windows * size * CELLS).reshape(windows, size, CELLS)
        permutation[:] = table(counts[:, 1:].astype(float))[:, 0]
    defined = values[~np.isnan(values)]
    return float(np.abs(defined).mean()) if defined.size else math.nan
