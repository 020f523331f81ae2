"""How do the figures become one file that opens anywhere, without a network?"""

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def page(figures: Mapping[str, Any]) -> str:
    """The whole report as one HTML document, with its style, its programs and its data inside.

    :param figures: what :func:`sb3_fair.report.content.content` returns
    """
    from plotly.offline import get_plotlyjs

    parts = {
        "title": html.escape(str(figures["title"])),
        "style": _asset("report.css"),
        "plotly": get_plotlyjs(),
        "data": json.dumps(figures, allow_nan=False).replace("<", "\\u003c"),
        "program": _asset("report.js"),
    }
    document = _asset("report.html")
    for name, part in parts.items():
        head, marker, tail = document.partition(f"{{{{ {name} }}}}")
        if not marker:
            raise ValueError(f"report.html has no place for {name!r}")
        document = head + part + tail
    return document


def _asset(name: str) -> str:
    return files("sb3_fair.report").joinpath(name).read_text(encoding="utf-8")
