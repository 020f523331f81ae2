"""Compares the groups of one attribute: shares, notions with intervals and chance levels, gaps between pairs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from sb3_fair.audit.decisions import Attribute
from sb3_fair.audit.resampling import Array, bounds, chance_levels, notion_intervals
from sb3_fair.audit.result import Gap, Group, NotionValue, Share
from sb3_fair.fairness.notions.table import KNOWN, NOTIONS, FeedbackMissing, GapTable, GroupNotion
from sb3_fair.fairness.proportions import holm, newcombe, p_value, wilson

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
"""With more groups than this, each is compared with the largest one only."""


def one_rate(name: str) -> GroupNotion:
    """The notion, with the first of its rates only."""
    notion = NOTIONS[name]
    assert isinstance(notion, GroupNotion)
    return replace(notion, rates=notion.rates[:1])


def counted(names: Sequence[str], counts: Array, missing: FeedbackMissing) -> tuple[Array, Array]:
    """Hits and people (groups, names) of the first rates of the notions, from counts (groups, CELLS).

    Where known outcomes stand for unknown ones, the people are those of known outcome: no more are known.
    """
    rates = [one_rate(name) for name in names]
    hits, people = GapTable(rates, missing).hits_and_people(counts[None])
    if missing == "reweight":
        _, known = GapTable(rates).hits_and_people(counts[None])
        hits, people = np.divide(hits * known, people, out=np.zeros_like(hits), where=people > 0), known
    return hits[0], people[0]


def shares(hits: Array, people: Array, confidence: float) -> list[Share]:
    """Wilson's intervals of shares, all (n,)."""
    return [Share(*map(float, each)) for each in zip(hits, people, *wilson(hits, people, confidence), strict=True)]


def group_rows(attribute: Attribute, counts: Array, missing: FeedbackMissing, confidence: float) -> list[Group]:
    """How each group fared, from counts (groups, CELLS); the largest first."""
    hits, people = counted(("SP", "EO", "PE"), counts, missing)
    columns = [shares(hits[:, rate], people[:, rate], confidence) for rate in range(3)]
    found = [
        Group(attribute.name, label, int(counts[index].sum()), *(column[index] for column in columns))
        for index, label in enumerate(attribute.labels)
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
    values = table(counts[None])[0]
    intervals = notion_intervals(counts, table, n_boot, rng, confidence)
    chance = chance_levels(counts, table, n_permutations, rng)
    reach = bounds(counts, table) if counts[:, ~KNOWN].any() else None
    return [
        NotionValue(
            attribute.name,
            notion.name,
            notion.title,
            float(values[index]),
            float(intervals[index, 0]),
            float(intervals[index, 1]),
            float(chance[index]),
            None if reach is None or not notion.needs_feedback else (float(reach[index, 0]), float(reach[index, 1])),
            int(counts.sum()),
        )
        for index, notion in enumerate(notions)
    ]


def gap_rows(
    attribute: Attribute, counts: Array, notions: Sequence[str], missing: FeedbackMissing, confidence: float
) -> list[Gap]:
    """Differences between pairs of groups, the lower rate first; p-values are not yet raised."""
    names = [name for name in RATES if name in notions or ("EqOdds" in notions and name in ("EO", "PE"))]
    hits, people = counted(names, counts, missing)
    found: list[Gap] = []
    for column, name in enumerate(names):
        there = np.flatnonzero(people[:, column] > 0)
        largest = int(there[counts[there].sum(axis=1).argmax()]) if len(there) else 0
        few = len(attribute.labels) <= MANY
        pairs = combinations(there, 2) if few else ((one, largest) for one in there if one != largest)
        for pair in pairs:
            index = np.array(pair)
            rates = hits[index, column] / people[index, column]
            low, high = pair if rates[0] <= rates[1] else pair[::-1]
            gap = newcombe(*(wilson(hits[side, column], people[side, column], confidence) for side in (low, high)))
            found.append(
                Gap(
                    attribute.name,
                    name,
                    RATES[name],
                    attribute.labels[low],
                    attribute.labels[high],
                    float(gap.mean),
                    float(gap.low),
                    float(gap.high),
                    p_value(
                        (hits[low, column], hits[high, column]),
                        (people[low, column], people[high, column]),
                    ),
                    np.nan,
                )
            )
    return found


def with_holm(gaps: list[Gap]) -> list[Gap]:
    """The gaps with p-values raised for their number."""
    raised = holm([gap.p for gap in gaps])
    return [replace(gap, p_holm=float(p)) for gap, p in zip(gaps, raised, strict=True)]
