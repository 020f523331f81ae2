"""The result of an audit: figures as plain records, and what can be made of them."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sb3_fair.common.plain import plain
from sb3_fair.common.whole_file import write_whole

if TYPE_CHECKING:
    from sb3_fair.audit.off_policy import OffPolicy
    from sb3_fair.audit.other_policy import OtherRate
    from sb3_fair.audit.windows import RollingNotions


@dataclass(frozen=True)
class Share:
    """A share of people with its Wilson interval; NaN where it is undefined."""

    hits: float
    people: float
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """How one group fared.

    :param attribute: a column, or several joined by " and "
    :param n: decisions about it
    :param favourable: share who got the favourable decision
    :param deserving: the same among those who deserved it, ``undeserving`` among those who did not
    """

    attribute: str
    group: str
    n: int
    favourable: Share
    deserving: Share
    undeserving: Share


@dataclass(frozen=True)
class NotionValue:
    """A notion: 0 is fair (of all but individual fairness), negative is unfair, NaN is undefined.

    :param attribute: whose groups are compared; empty for individual notions
    :param low: of the confidence interval, ``high`` its other end
    :param chance: its size by chance, for groups
    :param bounds: lowest and highest value whatever the unknown outcomes are; None where none is unknown
    :param people: on how many people an individual notion is estimated; decisions counted for a group notion
    """

    attribute: str
    notion: str
    title: str
    value: float
    low: float
    high: float
    chance: float
    bounds: tuple[float, float] | None
    people: int


@dataclass(frozen=True)
class Gap:
    """The difference of a notion's rate between two groups: ``first`` minus ``second``, with Newcombe's interval.

    :param rate: what the rate is, in words
    :param p: of "the rates are equal"; ``p_holm`` raised for the number of comparisons
    """

    attribute: str
    notion: str
    rate: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


@dataclass(frozen=True)
class Moment:
    """While a notion of the latest decisions was below its limit, at most with breaks shorter than a window.

    :param first: row of the log, from 1, of the last decision of the first such window; ``last`` of the last one
    :param start: its time, or None; ``end`` that of the last one
    :param worst: the lowest value meanwhile
    """

    attribute: str
    notion: str
    limit: float
    first: int
    last: int
    start: str | None
    end: str | None
    worst: float


@dataclass(frozen=True)
class Series:
    """A notion of the latest decisions, at some of the rows.

    :param rows: (m,) rows in order of time, from 1
    :param times: (m,) or None
    :param values: (m,) with confidence intervals from ``low`` to ``high``
    :param lowest: (m,) the lowest value since the row before
    """

    attribute: str
    notion: str
    limit: float
    rows: list[int]
    times: list[str] | None
    values: list[float]
    low: list[float]
    high: list[float]
    lowest: list[float]


@dataclass(frozen=True)
class Figure:
    """A welfare of the stakeholders, or the score of a scheme."""

    name: str
    title: str
    value: float


@dataclass(frozen=True)
class Broken:
    """A notion whose value is below its limit, or undefined."""

    attribute: str
    notion: str
    limit: float
    value: float

    def __str__(self) -> str:
        of = f" of {self.attribute}" if self.attribute else ""
        value = "undefined" if math.isnan(self.value) else f"{self.value:.4f}"
        return f"{self.notion}{of} is {value}, its limit is {self.limit:g}"


@dataclass(frozen=True, repr=False)
class Audit:
    """What :func:`sb3_fair.audit.audit` found.

    :param about: what was audited and how: rows, columns, settings
    :param groups: of each attribute and their intersection
    :param notions: of each attribute, the intersection, and of individuals
    :param gaps: between pairs of groups
    :param series: notions over time, at some of the rows
    :param moments: when a notion was below its limit
    :param welfare: of the stakeholders
    :param broken: notions of the whole log beyond their limits
    :param sentences: the findings in words
    :param warnings: what to be careful about
    :param other_rates: how often another policy gives the groups the favourable decision
    :param off_policy: what the other policy would have earned; None without rewards and propensities
    :param windows: notions over time, at every row; None without a window
    """

    about: dict[str, Any]
    groups: list[Group]
    notions: list[NotionValue]
    gaps: list[Gap]
    series: list[Series]
    moments: list[Moment]
    welfare: list[Figure]
    broken: list[Broken]
    sentences: list[str]
    warnings: list[str]
    other_rates: "list[OtherRate]"
    off_policy: "OffPolicy | None"
    windows: "RollingNotions | None" = None

    def __repr__(self) -> str:
        values = ", ".join(
            f"{one.notion}@{one.attribute}={one.value:.3g}" if one.attribute else f"{one.notion}={one.value:.3g}"
            for one in self.notions
        )
        return f"<Audit of {self.about['decisions']} decisions: {values}>"

    def value(self, notion: str, attribute: str = "") -> float:
        """Value of a notion.

        :param attribute: of a group notion; empty: the only one that has it
        :raises KeyError: if there is none, or several
        """
        found = [one.value for one in self.notions if one.notion == notion and attribute in ("", one.attribute)]
        if len(found) != 1:
            raise KeyError(f"{notion} of {attribute!r} is there {len(found)} times")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """Everything but ``windows`` as dicts, lists, texts, numbers; None for what is undefined."""
        told = {name: value for name, value in vars(self).items() if name != "windows"}
        return {"format": 1, **plain(told, finite=True)}

    def to_json(self, path: str | Path | None = None) -> str:
        """:meth:`to_dict` as JSON text, also written to ``path`` if it is given."""
        return _written(json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n", path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page, one HTML document that needs no network, also written to ``path`` if it is given."""
        from sb3_fair.audit.page import page

        return _written(page(self), path)

    def table(self) -> str:
        """The figures as text, at most 79 columns wide."""
        from sb3_fair.audit.text_table import text_table

        return text_table(self)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_whole(Path(path), text, errors="xmlcharrefreplace")
    return text
