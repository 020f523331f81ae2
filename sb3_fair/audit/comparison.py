"""Compares the groups of one attribute: shares, notions with intervals and chance levels, gaps between pairs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, repeat

import numpy as np

from sb3_fair.audit.decisions import Attribute
from sb3_fair.audit.resampling import Array, bounds, effective_part, notion_intervals
from sb3_fair.audit.result import Gap, Group, NotionValue, Share
from sb3_fair.audit.words import TOLD, told_of
from sb3_fair.fairness.notions.chance import expected_sizes
from sb3_fair.fairness.notions.table import KNOWN, NOTIONS, FeedbackMissing, GapTable, GroupNotion
from sb3_fair.fairness.proportions import newcombe, p_value, wilson

RATES = {
    "SP": "got the favourable decision",
    "EO": "of those who deserved it, got it",
    "PE": "of those who did not deserve it, got it",
    "OAE": "were decided on rightly",
    "PP": "of those who got it, deserved it",
    "CUAE": "of those who did not get it, did not deserve it",
    "TE": "of those decided on wrongly, were refused",
}
"""Notions whose rate is compared between pairs of groups, and the rate in words; of CUAE the one that PP lacks."""
MANY = 20
"""With more groups than this, each is compared with the largest one only, and the two that the sentences tell of."""


def counted(names: Sequence[str], counts: Array, missing: FeedbackMissing) -> tuple[Array, Array, Array]:
    """Hits, people and their effective part (groups, names) for the first rates of the notions.

    Where known outcomes stand for unknown ones, the people are those of known outcome: no more are known, and those who
    stand for many make the rate less sure.

    :param counts: (groups, CELLS)
    """
    notions = (NOTIONS[name] for name in names)
    rates = [replace(notion, rates=notion.rates[:1]) for notion in notions if isinstance(notion, GroupNotion)]
    table = GapTable(rates, missing)
    (hits,), (people,) = table.hits_and_people(counts[None])
    part = effective_part(counts, table, hits, people)
    if missing == "reweight":
        _, (known,) = GapTable(rates).hits_and_people(counts[None])
        stands_for = np.divide(people, known, out=np.ones_like(people), where=known > 0)
        hits, people, part = hits / stands_for, known, np.minimum(part * stands_for, 1.0)
    return hits, people, part


def group_rows(attribute: Attribute, counts: Array, missing: FeedbackMissing, confidence: float) -> list[Group]:
    """How each group fared, from counts (groups, CELLS); the largest first."""
    hits, people, part = counted(("SP", "EO", "PE"), counts, missing)
    shares = np.stack([hits, people, *wilson(hits * part, people * part, confidence)], axis=-1).tolist()
    found = [
        Group(attribute.name, label, int(n), *(Share(*share) for share in row))
        for label, n, row in zip(attribute.labels, counts.sum(axis=1), shares, strict=True)
    ]
    return sorted(found, key=lambda group: -group.n)


def notion_rows(
    attribute: Attribute,
    counts: Array,
    notions: Sequence[GroupNotion],
    missing: FeedbackMissing,
    confidence: float,
    n_boot: int,
    n_permutations: int,
    rng: np.random.Generator,
) -> list[NotionValue]:
    """The group notions of an attribute, from counts (groups, CELLS)."""
    table = GapTable(notions, missing)
    values = table(counts[None])[0].tolist()
    intervals = notion_intervals(counts, table, n_boot, rng, confidence).tolist()
    chance = expected_sizes(counts, table, n_permutations, rng).tolist()
    reach = map(tuple, bounds(counts, table).tolist()) if counts[:, ~KNOWN].any() else repeat(None)
    n = int(counts.sum())
    return [
        NotionValue(
            attribute.name, one.name, one.title, value, low, high, level, within if one.needs_feedback else None, n
        )
        for one, value, (low, high), level, within in zip(notions, values, intervals, chance, reach, strict=False)
    ]


def gap_rows(
    attribute: Attribute,
    counts: Array,
    groups: Sequence[Group],
    notions: Sequence[str],
    missing: FeedbackMissing,
    confidence: float,
) -> list[Gap]:
    """Differences between pairs of groups, the lower rate first.

    ``p_holm`` is not yet raised for the number of rows; it is for the number of all pairs where two of many groups are
    compared because they are the furthest apart.

    :param groups: how each of them fared
    """
    names = [name for name in RATES if name in notions or ("EqOdds" in notions and name in ("EO", "PE"))]
    hits, people, part = counted(names, counts, missing)
    hits, people = hits * part, people * part
    found = []
    for column, name in enumerate(names):
        there = np.flatnonzero(people[:, column] > 0)
        had, of = hits[:, column], people[:, column]
        pairs: Iterable[tuple[int, ...]] = combinations(there.tolist(), 2)
        furthest: tuple[int, ...] = ()
        if len(attribute.labels) > MANY and len(there) > 1:
            largest = int(there[counts[there].sum(axis=1).argmax()])
            pairs = [(one, largest) for one in there.tolist() if one != largest]
            told = [told_of(groups, share) for notion, share, _ in TOLD if notion == name]
            named = {attribute.labels.index(label) for _, *ends in told for label in ends}
            if len(named) == 2 and largest not in named:
                furthest = tuple(named)
                pairs.append(furthest)
        for pair in pairs:
            low, high = sorted(pair, key=lambda group: had[group] / of[group])
            gap = newcombe(*(wilson(had[side], of[side], confidence) for side in (low, high)))
            p = p_value((had[low], had[high]), (of[low], of[high]))
            between = RATES[name], attribute.labels[low], attribute.labels[high]
            ends = float(gap.low), float(gap.high)
            raised = min(p * math.comb(len(there), 2), 1.0) if pair == furthest else p
            found.append(Gap(attribute.name, name, *between, float(gap.mean), *ends, p, raised))
    return found
