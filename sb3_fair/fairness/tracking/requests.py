"""Names of values that a tracker is asked for: notions, attributes, histories.

One notion can be asked of several attributes ("SP@gender", "SP@nationality") or several distances ("IF@heom"). With
one attribute, or one distance, the name is the plain notion.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sb3_fair.fairness.histories.history import History, check_history
from sb3_fair.fairness.notions.table import Notion, find_notion
from sb3_fair.fairness.validation import one_of

Attribute: TypeAlias = str | tuple[str, ...]


class Request(NamedTuple):
    """One output: ``notion`` of the attribute or distance ``of``, in ``history``."""

    name: str
    notion: Notion
    of: str
    history: History


def attribute_name(attribute: Attribute) -> str:
    """The name of an attribute; of a product partition "gender+nationality"."""
    return attribute if isinstance(attribute, str) else "+".join(attribute)


def find_requests(
    notions: Iterable[str], attributes: Sequence[str], distances: Sequence[str], history: Any
) -> tuple[Request, ...]:
    """The outputs in the order of ``notions``: "SP" for all attributes or distances, "SP@gender" for one of them; what
    is asked for both ways comes once.
    """
    notions = tuple(notions)
    requests: dict[str, Request] = {}
    for place, wanted in enumerate(notions):
        if wanted in notions[:place]:
            raise ValueError(f"notions must not repeat {wanted!r}, got {notions!r}")
        plain, _, only = str(wanted).partition("@")
        notion = find_notion(plain)
        variants = attributes if notion.needs_groups else distances
        if only:
            one_of("each name in notions", wanted, [f"{plain}@{variant}" for variant in variants if variant] or [plain])
        for variant in [only] if only else variants:
            name = f"{plain}@{variant}" if only or len(variants) > 1 else plain
            requests.setdefault(name, Request(name, notion, variant, _history_of(name, plain, history)))
    if isinstance(history, Mapping):
        known = dict.fromkeys([*requests, *(request.notion.name for request in requests.values())])
        for key in history:
            one_of("each name in history", key, known)
    return tuple(requests.values())


def _history_of(name: str, notion: str, history: Any) -> History:
    if not isinstance(history, Mapping):
        return check_history(history)
    for key in (name, notion):
        if key in history:
            return check_history(history[key])
    raise ValueError(f"history must have an entry for each notion, none for {name!r} in {sorted(history)}")
