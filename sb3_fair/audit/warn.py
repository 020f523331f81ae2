"""What to be careful about in an audit."""

import math
from collections.abc import Sequence

import numpy as np

from sb3_fair.audit.decisions import Decisions
from sb3_fair.audit.log import Log
from sb3_fair.audit.resampling import Array
from sb3_fair.audit.result import Gap, Group, NotionValue
from sb3_fair.audit.values import MOST_LABELS
from sb3_fair.audit.windows import MOST_OVER_TIME
from sb3_fair.audit.words import SMALL
from sb3_fair.fairness.notions.table import ACCEPTED, CELLS, KNOWN, RIGHT, FeedbackMissing, feedback_counts

_FEW = 5


def all_warnings(
    log: Log,
    decided: Decisions,
    groups: Sequence[Group],
    found: Sequence[NotionValue],
    gaps: Sequence[Gap],
    window: int | None,
    missing: FeedbackMissing,
) -> list[str]:
    """One sentence or two for each thing."""
    counts = np.bincount(decided.cells, minlength=CELLS).astype(float)
    return [
        *_decisions(decided, counts),
        *_small_groups(groups),
        *(_feedback(log, decided, counts, missing) if log.columns.feedback is not None else ()),
        *_undefined(found),
        *_sampled(log),
        *_no_windows(decided, window),
        *_no_combinations(decided),
        *_many(gaps),
        *_no_propensity(log),
    ]


def _decisions(decided: Decisions, counts: Array) -> list[str]:
    favourable = counts[ACCEPTED].sum()
    if 0 < favourable < counts.sum():
        return []
    who = "Nobody" if favourable == 0 else "Everybody"
    return [f"{who} got the favourable decision: all groups are treated alike in this respect, whatever the others."]


def _small_groups(groups: Sequence[Group]) -> list[str]:
    small = [group for group in groups if group.n < SMALL]
    if not small:
        return []
    shown = ", ".join(f"{group.group} ({group.attribute}): {group.n}" for group in small[:_FEW])
    more = f" and {len(small) - _FEW} more" if len(small) > _FEW else ""
    return [
        f"{len(small)} group{'s' * (len(small) > 1)} of fewer than {SMALL} people say little: {shown}{more}. Notions "
        "are about the two groups that are the furthest apart, often the smallest ones."
    ]


def _feedback(log: Log, decided: Decisions, counts: Array, missing: FeedbackMissing) -> list[str]:
    column = log.columns.feedback
    made, known = (each.astype(int) for each in feedback_counts(counts))
    said = []
    for kind, other, words in ((0, 1, "favourable"), (1, 0, "unfavourable")):
        if made[kind] and not known[kind] and known[other]:
            said.append(
                f"Selective feedback: {column!r} is known after {words} decisions only. What it would have been after "
                "the others, nobody knows: notions that need it are undefined, and the bounds say what is possible."
            )
    if not said and (known < made).any():
        unknown = made - known
        values = "known outcomes stand for them" if missing == "reweight" else "values are of the known outcomes alone"
        said.append(
            f"{column!r} is unknown for {unknown[0]:,} of {made[0]:,} unfavourable decisions and {unknown[1]:,} of "
            f"{made[1]:,} favourable ones: {values}, which is right only if outcomes are missing at random. The bounds "
            "say what is possible otherwise."
        )
    wrong = counts[KNOWN & ~RIGHT].sum()
    if known.sum() > 0 and wrong == 0:
        said.append(f"Every known value of {column!r} agrees with the decision. Was it made from the decision?")
    return said


def _undefined(found: Sequence[NotionValue]) -> list[str]:
    undefined: dict[str, list[str]] = {}
    for one in found:
        if math.isnan(one.value):
            undefined.setdefault(one.attribute, []).append(one.notion)
    return [
        f"Undefined for {attribute}: {', '.join(names)}. Fewer than two groups have a rate. Undefined is not fair."
        for attribute, names in undefined.items()
    ]


def _sampled(log: Log) -> list[str]:
    sample = log.sample
    if sample is None:
        return []
    if not len(sample.rows):
        return ["No row has all features: there are no individual notions."]
    if sample.eligible > len(sample.rows):
        return [f"Individual notions are estimates from {len(sample.rows):,} of {sample.eligible:,} people."]
    return []


def _no_windows(decided: Decisions, window: int | None) -> list[str]:
    if window is None:
        return []
    if window <= decided.timed:
        many = [attribute.name for attribute in decided.attributes if len(attribute.labels) > MOST_OVER_TIME]
        return [f"Not followed over time, as it has more than {MOST_OVER_TIME} groups: {name}." for name in many]
    return [f"There are {decided.timed:,} decisions to show over time, fewer than a window of {window:,}."]


def _no_propensity(log: Log) -> list[str]:
    if log.columns.target is None or log.columns.propensity is not None:
        return []
    return ["Without the propensity of the logged decisions, the reward of the other policy cannot be estimated."]


def _no_combinations(decided: Decisions) -> list[str]:
    if len(decided.attributes) < 2 or decided.intersection is not None:
        return []
    return [f"Combinations of the attributes are not compared: there are more than {MOST_LABELS:,} of them."]


def _many(gaps: Sequence[Gap]) -> list[str]:
    if len(gaps) < 2:
        return []
    return [
        f"{len(gaps)} differences between groups are compared. Some look large by luck, so that p-values are raised "
        "for their number (Holm)."
    ]
