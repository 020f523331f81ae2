"""Values as files can hold them."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def plain(value: Any, *, finite: bool = False) -> Any:
    """The value as the numbers, strings, lists and dicts that YAML and JSON know; a dataclass becomes a dict.

    :param finite: None in place of NaN and infinite numbers, which JSON does not know
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry, finite=finite) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist(), finite=finite)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(entry, finite=finite) for entry in value]
    if finite and isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
