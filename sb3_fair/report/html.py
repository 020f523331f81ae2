"""The report as one HTML file that needs no network, and the frame of all such pages."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

_SHEET = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
"""Names of the style sheets for maps that Plotly adds, which the policy refuses, unless there are such already."""


def page(figures: Mapping[str, Any]) -> str:
    """The whole report as one HTML document, with its style, its programs and its data inside.

    Its Content-Security-Policy lets nothing run but the programs of this package, and nothing be loaded. Texts of the
    figures are data: they stand in the document as JSON without ``<``, and once as an escaped title.

    :param figures: what :func:`sb3_fair.report.content.content` returns
    """
    from plotly.offline import get_plotlyjs

    style, program = stylesheet(), _asset("report.js")
    plotly = re.sub("\r\n?", "\n", get_plotlyjs())  # as browsers read it, of which the hash is taken
    policy = {
        "default-src": "'none'",
        "script-src": f"{source_hash(plotly)} {source_hash(program)}",
        "style-src": f"{source_hash(style)} {source_hash('')}",  # Plotly fills an empty style sheet rule by rule,
        "style-src-attr": "'unsafe-inline'",  # and sets style attributes
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    parts = {
        "policy": "; ".join(f"{kind} {sources}" for kind, sources in policy.items()),
        "title": figures["title"],
        "style": style,
        "sheets": "".join(f'<style id="{sheet}"></style>' for sheet in _SHEET.findall(plotly)),
        "plotly": plotly,
        "data": json.dumps(figures, allow_nan=False).replace("<", "\\u003c"),
        "program": program,
    }
    return templates("sb3_fair.report").get_template("report.html").render(parts)


def templates(package: str) -> Environment:
    """The templates of a package, which fill ``page.html``, the frame of all pages; they escape texts."""
    folders = [PackageLoader(package, ""), PackageLoader("sb3_fair.report", "")]
    return Environment(
        loader=ChoiceLoader(folders), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip


def stylesheet() -> str:
    """The look of the report, for pages beside it."""
    return _asset("report.css")


def source_hash(text: str) -> str:
    """The hash by which a Content-Security-Policy allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return files("sb3_fair.report").joinpath(name).read_text(encoding="utf-8")
