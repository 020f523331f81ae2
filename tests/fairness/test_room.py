"""Does the fairness room stand on numpy alone?"""

import ast
from pathlib import Path

import pytest

import sb3_fair.fairness as room

FILES = sorted(Path(room.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_imports(path):
    standard = {
        "bisect",
        "collections",
        "dataclasses",
        "difflib",
        "functools",
        "inspect",
        "math",
        "numbers",
        "sys",
        "types",
    }
    allowed = standard | {"typing", "warnings", "numpy", "scipy", "sb3_fair.fairness"}
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            assert any(name == each or name.startswith(f"{each}.") for each in allowed), f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_asks_its_question_or_states_its_law(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_everything_exported_exists_and_is_documented():
    for name in room.__all__:
        assert getattr(room, name).__doc__, name
