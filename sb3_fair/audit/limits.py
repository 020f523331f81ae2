"""Limits of notions: which values are accepted of which attributes, and which limits are broken."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sb3_fair.audit.result import Broken, NotionValue
from sb3_fair.fairness.notions.table import NOTIONS, find_notion
from sb3_fair.fairness.validation import number


def check_limit(key: str, limit: float) -> float:
    """The limit of a notion, or notion@attribute, as float.

    :raises ValueError: if there is no such notion, or it cannot have that value
    """
    low, high = find_notion(key).bounds
    value = number(f"limit of {key}", limit)
    if not low <= value <= high:
        raise ValueError(f"limit of {key} must be in [{low:g}, {high:g}], got {limit!r}")
    return value


def lowest_values(
    limits: Mapping[str, float], names: Sequence[str], group: Sequence[str]
) -> dict[tuple[str, str], float]:
    """(notion, attribute, or empty for individual notions) -> lowest value that is accepted.

    A limit of a notion is that of all attributes without a limit of their own, but not of their combinations.

    :param limits: notion, or notion@attribute -> limit
    :param names: notions of the audit
    :param group: attributes
    :raises ValueError: if a limit is about something else, or out of range
    """
    found: dict[tuple[str, str], float] = {}
    for key, limit in sorted(limits.items(), key=lambda entry: "@" in str(entry[0])):  # those of one attribute win
        notion, at, attribute = str(key).partition("@")
        find_notion(notion)
        if notion not in names:
            raise ValueError(f"limits must be about notions of the audit, {', '.join(names)}, got {notion!r}")
        grouped = NOTIONS[notion].needs_groups
        allowed = dict.fromkeys((*group, " and ".join(group))) if grouped else {}
        if at and attribute not in allowed:
            raise ValueError(f"limits must be about {', '.join(map(repr, allowed)) or 'no attribute'}, got {key!r}")
        value = check_limit(str(key), limit)
        found |= {(notion, of): value for of in ([attribute] if at else group if grouped else [""])}
    return found


def below(values: Any, limit: float) -> Any:
    """Whether values are below a limit by more than rounding errors; NaN is not."""
    return values < limit - 1e-9


def broken_limits(found: Sequence[NotionValue], lowest: Mapping[tuple[str, str], float]) -> list[Broken]:
    """Notions below their limits, or undefined, which is not fair; so are those that could not be computed."""
    values = {(one.notion, one.attribute): one.value for one in found}
    return [
        Broken(attribute, notion, limit, value)
        for (notion, attribute), limit in lowest.items()
        if math.isnan(value := values.get((notion, attribute), math.nan)) or below(value, limit)
    ]
