"""What several test files share."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import settings

ROOT = Path(__file__).parent.parent
# Of all processes: where the package is, and the key that signs runs.
PATHS = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
os.environ |= {"PYTHONPATH": os.pathsep.join(PATHS), "XDG_CONFIG_HOME": tempfile.mkdtemp()}
torch.set_num_threads(1)
# The same examples each time; --hypothesis-profile=default tries others.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Runs the console script in this process, in an empty folder; returns exit code, stdout, stderr."""
    from sb3_fair.zoo.cli.commands import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["sb3-fair", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def registries():
    """What a test registers is gone after it."""
    import gymnasium as gym

    from sb3_fair.zoo.registry.registration import ROWS

    before = [(registry, dict(registry)) for registry in (ROWS, gym.registry)]
    yield
    for registry, rows in before:
        registry.clear()
        registry.update(rows)


@pytest.fixture(scope="session")
def wheel_site(tmp_path_factory):
    """A folder into which the wheel of this checkout was installed, without its dependencies."""
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source") / "sb3-fair"
    leave = shutil.ignore_patterns(
        ".*", "build", "logs", "__pycache__", "*.egg-info"
    )  # setuptools builds in its source
    shutil.copytree(ROOT, source, ignore=leave)
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(source)], check=True)
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)
    return site
