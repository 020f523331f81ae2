"""The findings of an audit in plain sentences."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sb3_fair.audit.result import Broken, Gap, Group, Moment, NotionValue, Share

if TYPE_CHECKING:
    from sb3_fair.audit.other_policy import OtherRate

TOLD = (("SP", "favourable", ""), ("EO", "deserving", "of those who deserved it ({}), "),
        ("PE", "undeserving", "of those who did not deserve it, "))  # fmt: skip
SMALL = 30
"""Groups with fewer people say little."""
_MOMENTS, _FEW = 3, 5


def percent(value: float) -> str:
    """ "4.1 %"."""
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def number(value: float, digits: int = 3) -> str:
    """With a real minus sign; a dash where it is undefined."""
    if math.isnan(value):
        return "–"
    text = f"{value:,.{digits}f}"
    return (text if text.strip("-0.") else text.lstrip("-")).replace("-", "−")


def amount(value: float) -> str:
    """What is of no fixed size, as rewards: four digits, or all before the point."""
    if math.isnan(value):
        return "–"
    if abs(value) >= 999.95:
        return number(value, 0)
    return np.format_float_positional(value, 4, fractional=False, trim="-").replace("-", "−")


def points(value: float) -> str:
    """A difference in percentage points, without its sign."""
    return f"{100 * abs(value):.1f}"


def few(texts: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(texts) - _FEW} more" if len(texts) > _FEW else ""
    return f"{', '.join(texts[:_FEW])}{more}"


def favourable_text(about: Mapping[str, Any]) -> str:
    """ "hired: yes", or "hired" where nobody got it."""
    return _value_text(about["action"], about["favourable"])


def deserving_text(about: Mapping[str, Any]) -> str:
    """ "qualified: yes", which is why somebody counts as deserving."""
    return _value_text(about["feedback"], about["deserving"])


def _value_text(column: str, values: Sequence[str]) -> str:
    return ": ".join(filter(None, (column, " or ".join(values))))


def sentences(
    about: Mapping[str, Any],
    groups: Sequence[Group],
    notions: Sequence[NotionValue],
    gaps: Sequence[Gap],
    moments: Sequence[Moment],
    broken: Sequence[Broken],
    rates: Sequence["OtherRate"],
    telling: bool,
) -> list[str]:
    """What a reader should know first: which limits are broken, who got the favourable decision less often, when, and
    what another policy would have done.

    :param telling: whether shares among known outcomes say anything
    """
    said = [f"Limit broken: {one}." for one in broken]
    values = {(one.attribute, one.notion): one for one in notions}
    for attribute in dict.fromkeys(group.attribute for group in groups):
        own = [group for group in groups if group.attribute == attribute]
        for name, column, condition in TOLD if telling else TOLD[:1]:
            if (attribute, name) in values:
                said += _told(about, own, values[attribute, name], column, condition, gaps)
    said += _over_time(moments)
    large = {(group.attribute, group.group) for group in groups if group.n >= SMALL}
    known = [rate for rate in rates if rate.among == "everybody" and (rate.attribute, rate.group) in large]
    said += _of_another(about, known)
    return said


def told_of(groups: Sequence[Group], column: str) -> tuple[dict[str, Share], str, str]:
    """Shares of the groups that have enough people to say something, or else of all with a share; the groups with the
    lowest and the highest of them.

    :param groups: at least two of them with a share
    :param column: which share: favourable, deserving or undeserving
    """
    shares: dict[str, Share] = {group.group: getattr(group, column) for group in groups}
    known = {name: share for name, share in shares.items() if share.people > 0}
    large = {name: share for name, share in known.items() if share.people >= SMALL}
    told = large if len(large) > 1 else known
    return told, min(told, key=lambda name: told[name].rate), max(told, key=lambda name: told[name].rate)


def _told(
    about: Mapping[str, Any], groups: Sequence[Group], notion: NotionValue, column: str, condition: str,
    gaps: Sequence[Gap],
) -> list[str]:  # fmt: skip
    if math.isnan(notion.value):
        if notion.bounds is None or math.isnan(notion.bounds[0]):
            return []
        low, high = notion.bounds
        source = "the outcomes of this log alone" if about["propensity"] else "this log"
        return [
            f"{notion.attribute}: {notion.title} cannot be told from {source}; the gap is between {points(high)} and "
            f"{points(low)} percentage points, whatever the unknown outcomes are."
        ]
    told, lowest, highest = told_of(groups, column)
    known = [group for group in groups if getattr(group, column).people > 0]
    got = "got it" if condition else f"got the favourable decision ({favourable_text(about)})"
    large_only = f" of at least {SMALL} people" if len(told) < len(known) else ""
    which = f", {len(told)} groups{large_only}" if len(told) > 2 or large_only else ""
    start = f"{notion.attribute}{which}: {condition.format(deserving_text(about))}"
    if told[lowest].rate == told[highest].rate:
        return [f"{start}every group {got} equally often, in {percent(told[lowest].rate)} of cases."]
    apart = points(told[highest].rate - told[lowest].rate)
    text = (
        f"{start}{lowest} {got} in {percent(told[lowest].rate)} of {told[lowest].people:,.0f} cases, {highest} in "
        f"{percent(told[highest].rate)} of {told[highest].people:,.0f}: {apart} percentage points less"
    )
    asked = notion.attribute, notion.notion, {lowest, highest}
    gap = next((gap for gap in gaps if (gap.attribute, gap.notion, {gap.first, gap.second}) == asked), None)
    if gap is not None:  # where its interval contains 0, one end is more
        least, most = -100 * gap.high, -100 * gap.low
        ends = f"{least:.1f} to {most:.1f}" if least >= 0 else f"{-least:.1f} more to {most:.1f} less"
        text += f" ({100 * about['confidence']:g} % interval {ends})"
    text += "."
    if len(told) == len(known):
        text += f" Decisions blind to {notion.attribute} would show {points(notion.chance)} by chance."
    level = 1 - about["confidence"]
    if gap is not None and gap.p_holm >= level:
        among = "" if gap.p >= level else f"Among {len(gaps)} comparisons, "
        text += f" {among}{'t' if among else 'T'}his difference may be chance."
    return [text]


def _over_time(moments: Sequence[Moment]) -> list[str]:
    said = []
    for attribute, name in dict.fromkeys((moment.attribute, moment.notion) for moment in moments):
        own = [moment for moment in moments if (moment.attribute, moment.notion) == (attribute, name)]
        shown = "; ".join(span(moment) for moment in own[:_MOMENTS])
        more = f"; and {len(own) - _MOMENTS} times more" if len(own) > _MOMENTS else ""
        said.append(f"{attribute}: {name} of the latest decisions was below {own[0].limit:g} {shown}{more}.")
    return said


def _of_another(about: Mapping[str, Any], rates: Sequence["OtherRate"]) -> list[str]:
    said = []
    for attribute in dict.fromkeys(rate.attribute for rate in rates):
        own = sorted((rate for rate in rates if rate.attribute == attribute), key=lambda rate: rate.other)
        if len(own) > 1:
            low, high = own[0], own[-1]
            said.append(
                f"{attribute}: by {about['target']}, {low.group} would have got the favourable decision "
                f"({favourable_text(about)}) in {percent(low.other)} of cases, {high.group} in {percent(high.other)} "
                f"(in the log {percent(low.logged)} and {percent(high.logged)})."
            )
    return said


def span(moment: Moment) -> str:
    """ "between 2026-01-03 and 2026-02-01 (lowest -0.31)"."""
    start, end = moment.start or f"row {moment.first:,}", moment.end or f"row {moment.last:,}"
    when = f"between {start} and {end}" if start != end else f"at {start}"
    return f"{when} (lowest {moment.worst:.2f})"
