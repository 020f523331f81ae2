"""Formulas of the documentation as MathML, written when it is built: browsers show them without a network."""

from docutils import nodes
from latex2mathml import converter
from sphinx.application import Sphinx


def convert(formula: str, display: str = "inline") -> str:
    mathml = converter.convert(formula.replace(r"\arg", r"\operatorname{arg}"), display=display)
    if "\\" in mathml.replace(r"\\", ""):
        raise ValueError(f"formulas must use commands that MathML has, got {formula!r}")
    return mathml


def inline(writer, node) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(writer, node) -> None:
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
