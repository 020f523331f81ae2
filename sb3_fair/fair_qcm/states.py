"""Numbers observed states for Q-tables."""

from itertools import accumulate
from operator import mul
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.wrappers.memories import Memory, bounds
from sb3_fair.wrappers.memory import MEMORY

Array: TypeAlias = NDArray[Any]

MOST_MEMORIES = 2**40
"""With more, products of states and memories might not fit into 64 bits."""
MOST_VALUES = 1000
"""An entry of the observation with more different values is taken for a continuous one."""


class MemoryCode:
    """Memories as one integer each: mixed radix, the first number counts fastest.

    :param memory: of whole numbers between finite bounds
    :raises ValueError: if its bounds are not, or there are too many memories
    """

    def __init__(self, memory: Memory) -> None:
        self.name = memory.name
        low, high = bounds(memory)
        if not (np.isfinite(low) & np.isfinite(high) & (low == np.rint(low)) & (high == np.rint(high))).all():
            raise ValueError(f"memory must be whole numbers between finite bounds, got low {low} and high {high}")
        *strides, self.n_codes = accumulate((int(size) for size in high - low + 1), mul, initial=1)
        if self.n_codes > MOST_MEMORIES:
            raise ValueError(f"memory must have at most 2^40 different values for a table, got {self.n_codes}")
        self.low, self.high, self.strides = low, high, strides
        self.least = int(low @ strides)

    def __call__(self, memories: Array) -> NDArray[np.int64]:
        """Codes (...) in 0 .. n_codes - 1 of memories (..., dim) within the bounds.

        :raises ValueError: if a memory is not of whole numbers
        """
        return (self._whole(memories).astype(np.float64) @ self.strides - self.least).astype(np.int64)

    def holds(self, memories: Array) -> NDArray[np.bool_]:
        """Which of the memories (..., dim) are within the bounds, (...)."""
        inside: NDArray[np.bool_] = np.all((memories >= self.low) & (memories <= self.high), axis=-1)
        return inside

    def of_columns(self, columns: list[Array]) -> NDArray[np.int64]:
        """The same of memories given as their columns (...)."""
        whole = (self._whole(column).astype(np.int64) for column in columns)
        digits = (column * stride for column, stride in zip(whole, self.strides, strict=True))
        return sum(digits, start=np.asarray(-self.least))

    def _whole(self, numbers: Array) -> Array:
        wrong = numbers != np.rint(numbers)
        if wrong.any():
            raise ValueError(
                f"memory {self.name!r} must be of whole numbers for a table, got {numbers[wrong][0]}: use FairQCM, or "
                "count in smaller units"
            )
        return numbers


class StateNumbers:
    """States as integers, numbered as they come; the memory is no part of a state.

    :param space: of the observations: a Dict with the key ``"memory"``, or a Box with the memory last
    :param dim: how many numbers the memory has
    """

    def __init__(self, space: spaces.Space[Any], dim: int) -> None:
        self.space, self.dim = space, dim
        self.numbers: dict[bytes, int] = {}
        self._next_check = MOST_VALUES

    def __len__(self) -> int:
        return len(self.numbers)

    def split(self, observations: Any) -> tuple[Array, Array]:
        """States (n, k) and memories (n, dim) of observations of n copies, or of one (n = 1).

        :raises ValueError: if the observations are not those of the environment
        """
        if not isinstance(self.space, spaces.Dict):
            rows = np.atleast_2d(observations)
            if rows.shape[1:] != self.space.shape:
                raise ValueError(
                    f"observation must have the shape {self.space.shape} with the memory last: model.follow(env) adds "
                    f"it, got the shape {np.shape(observations)}"
                )
            return rows[:, : -self.dim], rows[:, -self.dim :]
        if not isinstance(observations, dict) or set(observations) != set(self.space.spaces):
            raise ValueError(
                f"observation must have the keys {sorted(self.space.spaces)}: model.follow(env) adds the memory, "
                f"got {sorted(observations) if isinstance(observations, dict) else np.shape(observations)}"
            )
        memories = np.atleast_2d(observations[MEMORY])
        n = len(memories)
        states = [np.reshape(observations[key], (n, -1)) for key in sorted(self.space.spaces) if key != MEMORY]
        return (states[0] if len(states) == 1 else np.concatenate(states, axis=1)), memories

    def __call__(self, states: Array, add: bool = True) -> NDArray[np.int64]:
        """Numbers (n,) of states (n, k); unknown ones get the next one, or ``-1`` unless ``add``.

        :raises ValueError: if an entry of the states has so many values that it must be continuous
        """
        rows = np.ascontiguousarray(states, dtype=np.float64) + 0.0  # -0.0 is 0.0
        keys = rows.view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
        known = self.numbers
        if not add:
            return np.array([known.get(key, -1) for key in keys], dtype=np.int64)
        numbers = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
        if len(known) >= self._next_check:
            self._next_check = 2 * len(known)
            for column, values in enumerate(self._seen().T):
                if (different := len(np.unique(values))) >= MOST_VALUES:
                    raise ValueError(
                        f"states must be discrete for a table, got {different} different values of entry {column}: "
                        "use FairQCM, or round it"
                    )
        return numbers

    def arrays(self) -> dict[str, Array]:
        """The states in the order of their numbers, (n, k)."""
        return {"states": self._seen()}

    def set_arrays(self, arrays: dict[str, Array]) -> None:
        """Takes over what :meth:`arrays` told."""
        self.numbers.clear()
        if len(arrays["states"]):
            self(arrays["states"])

    def _seen(self) -> Array:
        rows = np.frombuffer(b"".join(self.numbers), dtype=np.float64)
        return rows.reshape(len(self.numbers), -1) if len(rows) else rows.reshape(0, 0)
