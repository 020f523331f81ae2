"""Keyword-only arguments that older code gives by position: still taken, with a DeprecationWarning."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from sb3_fair.fairness.warning import warn

T = TypeVar("T")


def formerly_positional(*names: str) -> Callable[[T], T]:
    """A decorator for a function whose arguments ``names`` are keyword-only now.

    Given by position, in the order of ``names``, they come with a DeprecationWarning that says what to write.
    """

    def decorate(target: T) -> T:
        function: Any = target
        kinds = [parameter.kind for parameter in signature(function).parameters.values()]
        first = sum(kind is not kind.KEYWORD_ONLY for kind in kinds)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            by_name = dict(zip(names, args[first:], strict=False))
            if not by_name or len(args) > first + len(names) or by_name.keys() & kwargs.keys():
                return function(*args, **kwargs)  # which refuses what is wrong
            written = ", ".join(f"{name}=..." for name in by_name)
            warn(
                f"{function.__name__} will take {', '.join(by_name)} by name only: write {written}",
                DeprecationWarning,
            )
            return function(*args[:first], **by_name, **kwargs)

        return call  # type: ignore[return-value]

    return decorate
