"""The figures of an audit as text for a terminal, at most 79 columns wide."""

import math
import textwrap
from collections.abc import Sequence

from sb3_fair.audit.result import Audit, Group, NotionValue
from sb3_fair.audit.words import percent

WIDTH = 79
_LABEL = 22
_MOST = 12


def text_table(audit: Audit) -> str:
    """A block for each attribute, their intersection, individuals and welfare."""
    blocks = []
    for attribute in dict.fromkeys(group.attribute for group in audit.groups):
        groups = [group for group in audit.groups if group.attribute == attribute]
        notions = [one for one in audit.notions if one.attribute == attribute]
        blocks.append("\n".join([*_groups(attribute, groups), *_notions(notions, audit.about["confidence"])]))
    individual = [one for one in audit.notions if not one.attribute]
    if individual:
        blocks.append("\n".join(["individuals", *_notions(individual, audit.about["confidence"])]))
    if audit.welfare:
        lines = [f"{shown(figure.title, 60):<60} {_number(figure.value, '12.4g'):>12}" for figure in audit.welfare]
        blocks.append("\n".join(["welfare of the stakeholders", *lines]))
    blocks += _other(audit)
    return "\n\n".join(blocks)


def _other(audit: Audit) -> list[str]:
    if not audit.other_rates:
        return []
    lines = [f"{'another policy':<34} {'among':<10} {'in the log':>10} {'other':>7} {'interval':>14}"]
    for rate in audit.other_rates[: 2 * _MOST]:
        group = shown(f"{rate.attribute}: {rate.group}", 34)
        ends = "" if math.isnan(rate.low) else f"{100 * rate.low:.1f} to {100 * rate.high:.1f}"
        lines.append(f"{group:<34} {rate.among:<10} {percent(rate.logged):>10} {percent(rate.other):>7} {ends:>14}")
    found = audit.off_policy
    if found is not None:
        lines += ["", f"reward of a decision; effective sample size {found.effective:,.0f} of {found.n:,}"]
        for one in (found.logged, *found.estimates):
            lines.append(f"{one.title:<34} {_number(one.value, '10.4f'):>10}   {one.low:.4f} to {one.high:.4f}")
        lines += textwrap.wrap(found.refused, WIDTH)
    return ["\n".join(lines)]


def _groups(attribute: str, groups: Sequence[Group]) -> list[str]:
    feedback = any(group.deserving.people or group.undeserving.people for group in groups)
    head = f"{shown(attribute, _LABEL):<{_LABEL}} {'decisions':>10} {'favourable':>11} {'(interval)':>14}"
    lines = [head + (f" {'deserving':>10}{'others':>8}" if feedback else "")]
    for group in groups[:_MOST]:
        share = group.favourable
        ends = "" if math.isnan(share.rate) else f"{100 * share.low:.1f} to {100 * share.high:.1f}"
        line = f"{shown(group.group, _LABEL):<{_LABEL}} {group.n:>10,} {percent(share.rate):>11} {ends:>14}"
        more = f" {percent(group.deserving.rate):>10}{percent(group.undeserving.rate):>8}"
        lines.append(line + (more if feedback else ""))
    if len(groups) > _MOST:
        lines.append(f"... and {len(groups) - _MOST} more groups")
    return lines


def _notions(notions: Sequence[NotionValue], confidence: float) -> list[str]:
    if not notions:
        return []
    bounded = any(one.bounds is not None for one in notions)
    head = f"{'':<{_LABEL}} {'value':>8} {f'{100 * confidence:g} % interval':>18} {'by chance':>10}"
    lines = ["", head + (f" {'bounds':>16}" if bounded else "")]
    for one in notions:
        ends = "" if math.isnan(one.low) else f"{_number(one.low)} to {_number(one.high)}"
        line = f"{one.notion:<{_LABEL}} {_number(one.value):>8} {ends:>18} {_number(one.chance):>10}"
        if one.bounds is not None:
            line += f" {' to '.join(map(_number, one.bounds)):>16}"
        lines.append(line)
    return lines


def _number(value: float, form: str = ".3f") -> str:
    return "–" if math.isnan(value) else format(value, form).strip()


def shown(text: str, width: int) -> str:
    """A text of the data on one line: cut, and without control characters."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) <= width else plain[: width - 1] + "…"
