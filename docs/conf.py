"""How is the documentation built? With ``sphinx-build -W docs docs/_build``: every warning is an error."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import sb3_fair

project = "sb3-fair"
author = "the sb3-fair developers"
copyright = "the sb3-fair developers"
release = version = sb3_fair.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "mathml", "reference"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_math_renderer = "mathml"
html_title = "sb3-fair"

autodoc_default_options = {"members": True, "show-inheritance": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_inherit_docstrings = False


def leave_out_aliases(app, what, name, obj, skip, options):
    """Fields of a NamedTuple have nothing to say but "Alias for field number 0": its docstring describes them."""
    return skip or str(getattr(obj, "__doc__", "")).startswith("Alias for field number") or None


def setup(app):
    app.connect("autodoc-skip-member", leave_out_aliases)
