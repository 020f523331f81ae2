"""The YAML files that ship with the package."""

from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


def packaged(package: str, name: str) -> dict[str, Any]:
    """What ``<name>.yml`` in the folder of a package of the zoo holds."""
    return deepcopy(_read(package, name))


@cache  # it takes long
def _read(package: str, name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(files(f"sb3_fair.zoo.{package}").joinpath(f"{name}.yml").read_bytes())
    return content
