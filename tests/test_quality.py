"""Is the code clean, typed, and does every room import only from rooms to its left?"""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import sb3_fair.fairness
import sb3_fair.wrappers
import sb3_fair.zoo

ROOT = Path(__file__).parent.parent
ROOMS = {
    "sb3_fair.fairness": 0,
    "sb3_fair.wrappers": 1,
    "sb3_fair.common": 2,
    "sb3_fair.f_ppo": 2,
    "sb3_fair.fair_ppo": 2,
    "sb3_fair.fair_qcm": 2,
    "sb3_fair.pcn": 2,
    "sb3_fair.report": 2,
    "sb3_fair.audit": 3,
    "sb3_fair.zoo": 4,
}
FACADE = {"sb3_fair", "sb3_fair.__main__", "sb3_fair._lazy", "sb3_fair._moved", "sb3_fair.vector"}


def sources():
    for folder, package in (("sb3_fair", "sb3_fair"), ("wrappers", "sb3_fair.wrappers"), ("zoo", "sb3_fair.zoo")):
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *parts)).removesuffix(".__init__"), file


def imported(file):
    """Full names of what a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(name):
    return next((prefix for prefix in ROOMS if name == prefix or name.startswith(prefix + ".")), None)


def test_a_module_imports_only_from_its_room_and_rooms_to_its_left():
    for name, file in sources():
        if name in FACADE:
            continue
        own = room(name)
        assert own is not None, f"{name} is in no known room"
        for other in filter(None, map(room, imported(file))):
            assert other == own or ROOMS[other] < ROOMS[own] or ROOMS[other] == ROOMS[own] == 2, (name, other)


def test_fairness_stands_on_numpy_and_scipy_alone():
    allowed = set(sys.stdlib_module_names) | {"numpy", "scipy", "sb3_fair"}
    for name, file in sources():
        if room(name) == "sb3_fair.fairness":
            assert {target.partition(".")[0] for target in imported(file)} <= allowed, name


def test_every_module_and_public_name_is_documented():
    for name, file in sources():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert not tree.body or ast.get_docstring(tree), name
    for package in (sb3_fair, sb3_fair.fairness, sb3_fair.wrappers):
        for public in package.__all__:
            assert getattr(package, public).__doc__, public


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sb3_fair, sys; print(sorted({'torch', 'matplotlib', 'plotly', 'wandb', 'optuna'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_no_file_has_more_than_600_lines():
    for folder in ("sb3_fair", "wrappers", "zoo", "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            assert len(file.read_text(encoding="utf-8").splitlines()) <= 600, file


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=["lint", "format"])
def test_ruff_has_nothing_to_say(command):
    ran = subprocess.run([sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


USER = """
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

import sb3_fair
from sb3_fair import PCN, FairPPO, PNC, evaluate  # type: ignore[attr-defined]
from sb3_fair.fairness import FairnessTracker, Interaction
from sb3_fair.report import plot_box_grid
from sb3_fair.wrappers import FairMDP, VecScalarise
from sb3_fair.zoo import EpisodCallback  # type: ignore[attr-defined]
from sb3_fair.zoo.envs.harvest import HarvestVecEnvv  # type: ignore[attr-defined]

def groups(obs: Any, infos: list[dict[str, Any]]) -> list[int]:
    return [info["group"] for info in infos]

def use(model: PCN, venv: VecEnv, tracker: FairnessTracker) -> None:
    observations: Any = model.follow(venv).reset()
    FairPPO("MlpPolicy", venv, group_fn=groups).learn(1).labels
    VecScalarise(venv, np.ones(2, np.float32))
    number: int = tracker.add(Interaction(action=1)) + 1
    plot_box_grid({"disparity": {(0, 0): [1.0]}})
"""


def test_mypy_has_nothing_to_say(wheel_site, tmp_path):
    """On the contents of the wheel: mypy does not see that folders of a checkout have other import names. Of what users
    write, it tells where names are misspelt, and nothing else."""
    (tmp_path / "user.py").write_text(USER)
    config = ["--config-file", str(ROOT / "pyproject.toml")]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *config, "-p", "sb3_fair", "-m", "user"],
        cwd=tmp_path,
        env={"PATH": "", "MYPYPATH": str(wheel_site)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_modules_say_what_is_in_them_and_their_examples_hold():
    held = 0
    for package in (sb3_fair, sb3_fair.wrappers, sb3_fair.zoo):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not found.name.endswith("__main__"):
                module = importlib.import_module(found.name)
                assert "?" not in (module.__doc__ or "").partition("\n")[0], found.name
                failed, tried = doctest.testmod(module)
                assert not failed, found.name
                held += tried
    assert held


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("sb3_fair.fairness.populations", "sb3_fair.fairness.disparity.populations"),
        ("sb3_fair.zoo.plan", "sb3_fair.zoo.runs.plan"),
        ("sb3_fair.common.intervals", "sb3_fair.fairness.intervals"),
        ("sb3_fair.zoo.envs.doughnut_exact", "sb3_fair.zoo.envs.doughnut.exact"),
    ],
)
def test_a_module_is_found_at_its_older_path_and_is_the_same_module(older, newer):
    assert importlib.import_module(older) is importlib.import_module(newer)
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        importlib.import_module(f"{older.rpartition('.')[0]}.no_such")
