"""The figures of an audit as text for a terminal, at most 79 columns wide."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from sb3_fair.audit.other_policy import OtherRate
from sb3_fair.audit.result import Audit, NotionValue, Share
from sb3_fair.audit.words import amount, number, percent

WIDTH = 79
_MOST = 12


def text_table(audit: Audit) -> str:
    """A block for each attribute, their intersection, individuals, welfare, and another policy."""
    blocks = []
    confidence = f"{100 * audit.about['confidence']:g} % interval"
    for attribute in dict.fromkeys(group.attribute for group in audit.groups):
        groups = [group for group in audit.groups if group.attribute == attribute]
        feedback = any(group.deserving.people or group.undeserving.people for group in groups)
        rows = [
            [group.group, f"{group.n:,}", percent(group.favourable.rate), _percents(group.favourable)]
            + [percent(share.rate) for share in (group.deserving, group.undeserving) if feedback]
            for group in groups[:_MOST]
        ]
        heads = [attribute, "decisions", "favourable", "(interval)", *(["deserving", "others"] if feedback else [])]
        blocks.append(_aligned(heads, rows) + _more(groups, _MOST, "groups"))
        blocks += _notions("", [one for one in audit.notions if one.attribute == attribute], confidence)
    blocks += _notions("individuals", [one for one in audit.notions if not one.attribute], confidence)
    if audit.welfare:
        rows = [[figure.title, amount(figure.value)] for figure in audit.welfare]
        blocks.append(_aligned(["welfare of the stakeholders", ""], rows))
    for attribute in dict.fromkeys(rate.attribute for rate in audit.other_rates):
        rates = [rate for rate in audit.other_rates if rate.attribute == attribute]
        rows = [
            [rate.group, rate.among, percent(rate.logged), percent(rate.other), _percents(rate)]
            for rate in rates[: 2 * _MOST]
        ]
        heads = [f"another policy, {attribute}", "among", "in the log", "other", "interval"]
        blocks.append(_aligned(heads, rows) + _more(rates, 2 * _MOST, "rows"))
    if (found := audit.off_policy) is not None:
        rows = [[one.title, amount(one.value), f"{amount(one.low)} to {amount(one.high)}"] for one in found.all]
        head = f"effective sample size {found.effective:,.0f} of {found.n:,}"
        blocks.append(
            "\n".join([_aligned(["reward of a decision", "", head], rows), *textwrap.wrap(found.refused, WIDTH)])
        )
    return "\n\n".join(blocks)


def _notions(title: str, notions: Sequence[NotionValue], confidence: str) -> list[str]:
    bounded = any(one.bounds is not None for one in notions)
    rows = [
        [one.notion, number(one.value), "" if math.isnan(one.low) else f"{number(one.low)} to {number(one.high)}",
         number(one.chance), *([_bounds(*one.bounds) if one.bounds else ""] if bounded else [])]
        for one in notions
    ]  # fmt: skip
    return [_aligned([title, "value", confidence, "by chance", *["bounds"] * bounded], rows)] if rows else []


def _bounds(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}" if low != high else ""


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Texts of the data in the first column, which is cut where there is no room, and figures to the right, with a
    minus sign that every terminal has."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    first = max(min(widths[0], WIDTH - sum(widths[1:]) - 2 * len(widths[1:])), 12)
    return "\n".join(
        "  ".join([f"{shown(row[0], first):<{first}}", *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in (heads, *([row[0], *(cell.replace("−", "-") for cell in row[1:])] for row in rows))
    )


def _more(everything: Sequence[Any], shown: int, what: str) -> str:
    return f"\n... and {len(everything) - shown} more {what}" if len(everything) > shown else ""


def _percents(rate: Share | OtherRate) -> str:
    return "" if math.isnan(rate.low) else f"{100 * rate.low:.1f} to {100 * rate.high:.1f}"


def shown(text: str, width: int) -> str:
    """A text of the data on one line: cut, and without control characters."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) <= width else plain[: width - 1] + "…"
