"""The page of an audit: one HTML document in the look of the report, without programs and without a network."""

import math
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any

from sb3_fair.audit.result import Audit, Gap, Series
from sb3_fair.audit.words import amount, deserving_text, favourable_text, number, percent, span
from sb3_fair.fairness.descriptions import describe
from sb3_fair.report.html import source_hash, stylesheet, templates

_FLOORS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 2.0)
_MOST = {"most_groups": 60, "most_gaps": 60, "most_moments": 40}


def page(audit: Audit) -> str:
    """The whole page. All texts of the data are escaped; its Content-Security-Policy lets nothing run or load."""
    style = stylesheet() + files("sb3_fair.audit").joinpath("audit.css").read_text(encoding="utf-8")
    environment = templates("sb3_fair.audit")
    environment.tests["nan"] = math.isnan
    environment.filters.update(
        amount=amount, chart=Chart, describe=describe, number=number, of=_of, percent=percent, span=span,
        thousands="{:,.0f}".format,
    )  # fmt: skip
    content = {
        **vars(audit),
        "attributes": dict.fromkeys(group.attribute for group in audit.groups),
        "gaps": sorted(audit.gaps, key=_sort_key),
        "deserved": deserving_text(audit.about),
        "made": {key: _listed(value) for key, value in audit.about.items() if value not in (None, [], ())},
        "policy": f"default-src 'none'; style-src {source_hash(style)}; base-uri 'none'; form-action 'none'",
        "series": [one for one in audit.series if not all(map(math.isnan, one.values))],
        "style": style,
        "title": f"Who got the favourable decision? {favourable_text(audit.about)}",
    }
    return environment.get_template("audit.html").render(content, **_MOST)


def _of(rows: Sequence[Any], attribute: str) -> list[Any]:
    return [row for row in rows if row.attribute == attribute]


def _sort_key(gap: Gap) -> tuple[float, float]:
    return (math.inf if math.isnan(gap.p) else gap.p, gap.difference)


def _listed(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


class Chart:
    """A notion over time: x from the first row or time to the last one, y from 0 down to the ``floor``, in pixels."""

    width, height = 420, 170
    left, right, top, bottom = 44, 410, 10, 146

    def __init__(self, series: Series) -> None:
        drawn = (*series.low, *series.values, *series.lowest, series.limit)
        lowest_drawn = min((value for value in drawn if not math.isnan(value)), default=-0.1)
        self.floor = next((-end for end in _FLOORS if lowest_drawn >= -end), lowest_drawn)
        self.lowest = min((value for value in series.lowest if not math.isnan(value)), default=math.nan)
        self.names = series.times or [f"row {row:,}" for row in series.rows]
        steps = range(len(series.rows)) if series.times else [row - series.rows[0] for row in series.rows]
        self._x = [self.left + (self.right - self.left) * step / max(1, steps[-1]) for step in steps]

    def y(self, value: float) -> float:
        """Where a value stands."""
        return self.top + (self.bottom - self.top) * value / self.floor

    def points(self, indices: Iterable[int], values: Sequence[float]) -> str:
        """The ``points`` of an SVG line through some of the values."""
        return " ".join(f"{self._x[index]:.1f},{self.y(values[index]):.1f}" for index in indices)

    @staticmethod
    def parts(values: Sequence[float]) -> Iterator[list[int]]:
        """Indices of successive values that are defined."""
        for undefined, part in groupby(range(len(values)), key=lambda index: math.isnan(values[index])):
            if not undefined:
                yield list(part)
