"""Makes the folders `wrappers` and `zoo` of a checkout importable as sb3_fair.wrappers and sb3_fair.zoo."""

from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

FOLDERS = {f"sb3_fair.{name}": Path(__file__).resolve().parent.parent / name for name in ("wrappers", "zoo")}


class CheckoutFinder(MetaPathFinder):
    """Finds ``sb3_fair.wrappers`` and ``sb3_fair.zoo`` beside the package when nothing is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        folder = FOLDERS.get(fullname)
        if folder is None or not (folder / "__init__.py").is_file():
            return None
        return spec_from_file_location(fullname, folder / "__init__.py", submodule_search_locations=[str(folder)])
