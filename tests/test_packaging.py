"""Is everything in the wheel, and does the wheel alone do its work in an empty folder?"""

import os
import subprocess
import sys
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
