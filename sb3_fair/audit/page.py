"""The page of an audit: one HTML document in the look of the report, without programs and without a network."""

import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from sb3_fair.audit.drawings import Chart
from sb3_fair.audit.result import Audit, Gap
from sb3_fair.audit.words import favourable_text, number, percent, span
from sb3_fair.fairness.descriptions import describe
from sb3_fair.report.html import source_hash, stylesheet, templates

_MOST = {"most_groups": 60, "most_gaps": 60, "most_moments": 40}


def page(audit: Audit) -> str:
    """The whole page. All texts of the data are escaped; its Content-Security-Policy lets nothing run or load."""
    style = stylesheet() + files("sb3_fair.audit").joinpath("audit.css").read_text(encoding="utf-8")
    environment = templates("sb3_fair.audit")
    environment.tests["nan"] = math.isnan
    environment.filters.update(
        chart=Chart, describe=describe, number=number, of=_of, percent=percent, repr=repr, span=span,
        thousands="{:,.0f}".format,
    )  # fmt: skip
    content = {
        **vars(audit),
        "attributes": dict.fromkeys(group.attribute for group in audit.groups),
        "gaps": sorted(audit.gaps, key=_sort_key),
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
