"""What to be careful about in an audit."""

import math
from collections.abc import Iterator, Sequence

from sb3_fair.audit.decisions import Decisions
from sb3_fair.audit.log import Log
from sb3_fair.audit.result import Gap, Group, NotionValue
from sb3_fair.audit.values import MOST_LABELS
from sb3_fair.audit.windows import MOST_OVER_TIME
from sb3_fair.audit.words import SMALL, few
from sb3_fair.fairness.notions.table import ACCEPTED, KNOWN, RIGHT, FeedbackMissing, feedback_counts

_IGNORED = "shares among known outcomes are {} % in every group, whoever they are, and say nothing about fairness"


def all_warnings(
    log: Log,
    decided: Decisions,
    groups: Sequence[Group],
    found: Sequence[NotionValue],
    gaps: Sequence[Gap],
    window: int | None,
    missing: FeedbackMissing,
) -> Iterator[str]:
    """One sentence or two for each thing."""
    columns, sample = log.columns, log.sample
    counts = decided.counts
    if counts[ACCEPTED].sum() in (0, counts.sum()):
        who = "Everybody" if counts[ACCEPTED].any() else "Nobody"
        yield f"{who} got the favourable decision: all groups are treated alike in this respect, whatever the others."
    small = [group for group in groups if group.n < SMALL]
    if small:
        shown = few([f"{group.group} ({group.attribute}): {group.n}" for group in small])
        yield (
            f"{len(small)} group{'s' * (len(small) > 1)} of fewer than {SMALL} people say little: {shown}. "
            "Notions are about the two groups that are the furthest apart, often the smallest ones."
        )
    if columns.feedback is not None:
        yield from _feedback(columns.feedback, decided, missing)
    undefined: dict[str, list[str]] = {}
    for one in found:
        if math.isnan(one.value):
            undefined.setdefault(one.attribute, []).append(f"{one.title} ({one.notion})")
    for lacking in dict.fromkeys(map(", ".join, undefined.values())):
        attributes = ", ".join(name for name, notions in undefined.items() if ", ".join(notions) == lacking)
        yield f"Undefined for {attributes}: {lacking}. Fewer than two groups have a rate. Undefined is not fair."
    if sample is not None and not len(sample.rows):
        yield "No decision has all features: there are no individual notions."
    elif sample is not None and sample.eligible > len(sample.rows):
        yield f"Individual notions are estimates from {len(sample.rows):,} of {sample.eligible:,} people."
    if window is not None and window > decided.timed:
        yield f"There are {decided.timed:,} decisions to show over time, fewer than a window of {window:,}."
    elif window is not None:
        if not any(one.attribute for one in found):
            yield "Nothing is followed over time: only notions that compare groups are."
        for attribute in decided.attributes:
            if len(attribute.labels) > MOST_OVER_TIME:
                yield f"Not followed over time, as it has more than {MOST_OVER_TIME} groups: {attribute.name}."
    if len(decided.attributes) > 1 and decided.intersection is None:
        yield f"Combinations of the attributes are not compared: fewer than two of them occur, or over {MOST_LABELS:,}."
    if len(gaps) > 1:
        yield (
            f"{len(gaps)} differences between groups are compared. Some look large by luck, so that p-values are "
            "raised for their number (Holm)."
        )
    if columns.target is not None and columns.propensity is None:
        yield "Without the propensity of the logged decisions, the reward of the other policy cannot be estimated."


def _feedback(column: str, decided: Decisions, missing: FeedbackMissing) -> Iterator[str]:
    made, known = (each.astype(int) for each in feedback_counts(decided.counts))
    for kind in decided.selective:
        so = _IGNORED.format(100 - 100 * kind) if missing == "ignore" else "notions that need it are undefined"
        yield (
            f"Selective feedback: {column!r} is known after {('favourable', 'unfavourable')[kind]} decisions only. "
            f"What it would have been after the others, nobody knows: {so}, and the bounds say what is possible."
        )
    if not decided.selective and (known < made).any():
        unknown = made - known
        values = "known outcomes stand for them" if missing == "reweight" else "values are of the known outcomes alone"
        yield (
            f"{column!r} is unknown for {unknown[0]:,} of {made[0]:,} unfavourable decisions and {unknown[1]:,} of "
            f"{made[1]:,} favourable ones: {values}, which is right only if outcomes are missing at random. The bounds "
            "say what is possible otherwise."
        )
    if known.any() and not decided.counts[KNOWN & ~RIGHT].any():
        yield f"Every known value of {column!r} agrees with the decision. Was it made from the decision?"
