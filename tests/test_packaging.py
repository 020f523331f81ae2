"""Is everything in the wheel, and does the wheel alone do its work in an empty folder?"""

import ast
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"sb3_fair": "sb3_fair", "wrappers": "sb3_fair/wrappers", "zoo": "sb3_fair/zoo"}


def files_of_the_checkout():
    for folder, target in FOLDERS.items():
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield (Path(target) / file.relative_to(ROOT / folder)).as_posix()


def test_every_folder_with_code_is_a_named_package():
    tomllib = pytest.importorskip("tomllib")
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {str(Path(file).parent).replace("/", ".") for file in files_of_the_checkout() if file.endswith(".py")}
    assert sorted(named) == sorted(folders)


def imports(node, answered=frozenset()):
    """(package, extras whose absence is answered around it) of every import below a node; "any": of whatever."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name.partition(".")[0], answered) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield child.module.partition(".")[0], answered
        else:
            yield from imports(child, answered | {answer(child)})


def answer(node):
    if isinstance(node, ast.With) and isinstance(call := node.items[0].context_expr, ast.Call):
        return call.args[0].value if getattr(call.func, "id", "") == "extra" else None
    caught = [getattr(handler.type, "id", "") for handler in getattr(node, "handlers", ())]
    typing_only = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    return "any" if typing_only or "ImportError" in caught else None


def test_every_import_is_declared_or_says_which_extra_it_needs():
    project = pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [re.match(r"[\w.-]+", requirement)[0] for requirement in project["dependencies"]]
    extras = {
        re.match(r"[\w.-]+", requirement)[0]: extra
        for extra, requirements in project["optional-dependencies"].items()
        for requirement in requirements
        if extra != "tests"
    }
    of = {package: names[0].lower().replace("_", "-") for package, names in packages_distributions().items()}
    for file in (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")):
        for package, answered in imports(ast.parse(file.read_text(encoding="utf-8"))):
            if package in sys.stdlib_module_names or package == "sb3_fair":
                continue
            distribution = of.get(package, package)
            declared = distribution in named or "any" in answered or extras.get(distribution) in answered
            assert declared, f"{file} imports {package}, of {distribution}"


def test_every_dependency_has_a_reason_in_the_docs():
    project = pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text())["project"]
    reasons = re.findall(r"^\| (.+?) \|", (ROOT / "docs" / "contributing.md").read_text(), re.MULTILINE)
    wanted = {re.match(r"[\w.-]+", requirement)[0] for requirement in project["dependencies"]}
    assert wanted == {name for cell in reasons for name in cell.split(", ")} - {"package"}
    listed = set(re.findall(r"`([\w-]+)`", (ROOT / "docs" / "start.md").read_text()))
    assert project["optional-dependencies"].keys() - {"tests", "docs"} <= listed


def test_the_wheel_holds_every_file_of_the_three_folders(wheel_site):
    held = {file.relative_to(wheel_site).as_posix() for file in (wheel_site / "sb3_fair").rglob("*") if file.is_file()}
    assert {file for file in held if "__pycache__" not in file} == set(files_of_the_checkout())


def run(site, folder, *arguments):
    command = [sys.executable, str(site / "bin" / "sb3-fair"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_wheel_alone_runs_the_demo_in_an_empty_folder(wheel_site, tmp_path):
    shown = run(wheel_site, tmp_path, "demo", "--n-timesteps", "3000", "--no-progress")
    assert shown.returncode == 0, shown.stderr
    assert "patient oracle" in shown.stdout and "hire at random" in shown.stdout
    run_folder = tmp_path / "logs" / "pcn" / "sb3_fair-JobHiring-Small-v0_1"
    assert str(Path("logs") / "pcn" / run_folder.name / "report.html") in shown.stdout
    assert (run_folder / "report.html").stat().st_size > 1e6
    again = run(wheel_site, tmp_path, "evaluate", "--run", str(run_folder), "--policy", "0", "--n-eval-episodes", "2")
    assert again.returncode == 0, again.stderr
    assert "PCN 0" in again.stdout
