"""Window: draws the counterfactual memories with which a step is replayed."""

from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fair_qcm.states import MemoryCode
from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.memories import (
    ClockMemory,
    CounterMemory,
    DifferenceMemory,
    FullMemory,
    Memory,
    parts_of,
    require_rows,
)

Array: TypeAlias = NDArray[Any]
WindowLike: TypeAlias = int | Literal["paper", "uniform"] | None
MOST_ROWS = 2**20


@checked
class Window:
    """Draws counterfactual memories from the real memory alone, without the outcome of the step.

    :param memory: what is remembered
    :param n_counterfactual: draws per step, or ``"all"`` memories of the window
    :param window: w: the memory plus a number from -w .. w in every count; ``"paper"``: the memories that the paper
        stores beside the real one (every count larger by 1 .. 2); ``"uniform"``: any memory; None: as the memory says
    :raises ValueError: if an argument is not allowed, or this memory has no such window
    """

    def __init__(self, memory: Memory, n_counterfactual: int | Literal["all"], window: WindowLike = None) -> None:
        self.memory, self.n, self.window = memory, n_counterfactual, window
        self.code = MemoryCode(memory)
        self.counts = _columns_of_counts(memory)
        if self.counts is None and (n_counterfactual == "all" or window not in (None, "paper")):
            raise ValueError(
                f"memory {memory.name!r} draws its counterfactuals itself: window must be None and n_counterfactual a "
                f"number, got {window!r} and {n_counterfactual!r}"
            )
        if n_counterfactual == "all" and window == "uniform":
            raise ValueError("n_counterfactual must be a number for window='uniform', got 'all'")
        self.shifts: Array | None = None
        if window == "paper":
            require_rows(memory, "window='paper'")
        elif window != "uniform" and self.counts is not None:
            width = self.width = window or next(part.window for part in parts_of(memory) if hasattr(part, "window"))
            if n_counterfactual == "all":
                if (2 * width + 1) ** int(self.counts.sum()) > MOST_ROWS:
                    raise ValueError(f"n_counterfactual must be a number for so wide a window, got 'all' of {width}")
                columns = [range(-width, width + 1) if counts else (0,) for counts in self.counts]
                self.shifts = np.array(list(product(*columns)), dtype=np.float32)

    def __call__(self, memories: Array, rng: np.random.Generator) -> tuple[NDArray[np.intp], Array]:
        """Counterfactual memories of memories (n, dim): the copy of each, (k,), and the memory, (k, dim).

        None is out of bounds, the real one, or twice the same of one copy.
        """
        columns = self._candidates(memories, rng)
        own = self.code(memories)[:, None]
        bounded = zip(columns, self.code.low, self.code.high, strict=True)
        inside = np.logical_and.reduce([(column >= low) & (column <= high) for column, low, high in bounded])
        codes = np.where(inside, self.code.of_columns(columns), own)
        n_rows = codes.shape[1]
        bits = n_rows.bit_length()
        ranked = (codes << bits) | np.arange(n_rows)  # sorted together with their rows, equals side by side
        ranked.sort(axis=1)
        codes = ranked >> bits
        keep = codes != own
        keep[:, 1:] &= codes[:, 1:] != codes[:, :-1]
        places = np.flatnonzero(keep)
        copies = places // n_rows
        rows = copies * n_rows + (ranked.ravel()[places] & ((1 << bits) - 1))
        return copies, np.stack([column.reshape(-1)[rows] for column in columns]).T

    def _candidates(self, memories: Array, rng: np.random.Generator) -> list[Array]:
        """Each column of the candidates, (n, rows)."""
        if self.window == "paper":
            stored, _ = self.memory.rows(memories)  # type: ignore[attr-defined]
            if self.n != "all":
                chosen = rng.integers(stored.shape[1], size=(len(memories), self.n))
                stored = np.take_along_axis(stored, chosen[..., None], axis=1)
            return _columns(stored)
        shape = (len(memories), int(self.n) if self.shifts is None else len(self.shifts))
        if self.counts is None:
            repeated = np.broadcast_to(memories[:, None], (*shape, self.memory.dim))
            return _columns(self.memory.sample_counterfactuals(repeated, rng))
        columns = []
        for column, (now, counts) in enumerate(zip(memories.T[..., None], self.counts, strict=True)):
            if not counts:
                columns.append(np.broadcast_to(now, shape))
            elif self.shifts is not None:
                columns.append(now + self.shifts[:, column])
            elif self.window == "uniform":
                drawn = rng.integers(int(self.code.low[column]), int(self.code.high[column]) + 1, size=shape)
                columns.append(drawn.astype(np.float32))
            else:
                columns.append(now + rng.integers(-self.width, self.width + 1, size=shape, dtype=np.int16))
        return columns


def _columns(memories: Array) -> list[Array]:
    """Each column (n, rows) of memories (n, rows, dim): numpy is slow where the last axis is short."""
    return list(np.ascontiguousarray(np.moveaxis(memories, -1, 0)))


def _columns_of_counts(memory: Memory) -> NDArray[np.bool_] | None:
    """Which columns (dim,) are counts that may be others, None if only the memory knows what fits together."""
    columns: list[bool] = []
    for part in parts_of(memory):
        if type(part) not in (FullMemory, DifferenceMemory, ClockMemory, CounterMemory):
            return None
        columns += [hasattr(part, "window")] * part.dim
    return np.array(columns) if any(columns) else None
