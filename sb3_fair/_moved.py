"""Where modules are that Python does not find itself: in a checkout, and under older paths.

Modules moved into a room of `fairness` or `zoo`, or into the folder of a scenario.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType

CHECKOUT = {
    f"sb3_fair.{name}": Path(__file__).resolve().parent.parent / name / "__init__.py" for name in ("wrappers", "zoo")
}
"""Packages that are in folders of their own where nothing is installed."""
RENAMED = {"sb3_fair.common.intervals": "sb3_fair.fairness.intervals"}


class MovedFinder(MetaPathFinder, Loader):
    """Finds the packages of a checkout, and ``sb3_fair.zoo.plan`` at ``sb3_fair.zoo.runs.plan``: in scripts, and in
    models that were saved before."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if fullname in CHECKOUT and CHECKOUT[fullname].is_file():
            return spec_from_file_location(fullname, CHECKOUT[fullname])
        if fullname in RENAMED:
            return spec_from_loader(fullname, self, origin=RENAMED[fullname])
        home = next((file for folder in path or () for file in _homes(package, name, Path(folder))), None)
        if home is None:
            return None
        return spec_from_loader(fullname, self, origin=f"{package}.{home.parent.name}.{home.stem}")

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None and spec.origin is not None:
            sys.modules[module.__name__] = import_module(spec.origin)


def _homes(package: str, name: str, folder: Path) -> Iterator[Path]:
    if package in ("sb3_fair.fairness", "sb3_fair.zoo"):
        yield from folder.glob(f"*/{name}.py")
    elif package == "sb3_fair.zoo.envs":
        scenario, _, part = name.partition("_")
        yield from folder.glob(f"{scenario}/{part}.py")
