"""ByValue: pickles objects with the functions of a user."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self

import cloudpickle


class ByValue:
    """Pickles the functions and classes of the main script, and lambdas, by value.

    By name, what an environment in a ``SubprocVecEnv`` sends back would not be found: its process has another main
    script.
    """

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return _made, (cloudpickle.dumps((type(self), vars(self))),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Functions are not copied."""
        memo[id(self)] = copied = object.__new__(type(self))
        vars(copied).update(deepcopy(vars(self), memo))
        return copied


def _made(pickled: bytes) -> Any:
    kind, attributes = cloudpickle.loads(pickled)
    made = object.__new__(kind)
    vars(made).update(attributes)
    return made
