"""Lazy imports: a package whose public names are imported when first asked for."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` (PEP 562) of a package.

    :param package: its full name
    :param homes: name -> module of the package, by its path inside; a module's own name is the module itself
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes[name]}")
        return module if homes[name] == name else getattr(module, name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
