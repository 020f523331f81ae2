"""Random numbers of n copies, independent of each other."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Row = TypeVar("Row", bound=tuple[Any, ...])
Streams = Sequence[np.random.Generator]


class Uniforms(NamedTuple):
    """The row of a tape from which nothing is derived: ``values`` (n, columns)."""

    values: NDArray[np.float64]


class Tapes(Generic[Row]):
    """What chance holds for n copies, drawn and prepared many steps ahead, one stream of uniforms per copy.

    Every step reads one row of all tapes: ``now``, then :meth:`advance`. A copy's rows are consecutive draws of its
    own stream, so they do not depend on how many are drawn at once, on n, or on when other copies restart. A restart
    puts a first row from another stream in place of the present one (:meth:`redraw`), since it happens at a time that
    depends on the actions.

    :param n: number of copies
    :param columns: uniforms in [0, 1) per step and copy
    :param derive: what follows from uniforms (rows, m, columns) alone, as a named tuple of arrays (rows, m, ...):
        all that does not depend on actions is computed here, for many steps at once
    :param rows: steps drawn at once; None: about 8192 steps over all copies
    """

    def __init__(
        self,
        n: int,
        columns: int,
        derive: Callable[[NDArray[np.float64]], Row] = Uniforms,  # type: ignore[assignment]
        rows: int | None = None,
    ) -> None:
        self.columns = columns
        self.derive = derive
        self.rows = min(max(8192 // n, 16), 1024) if rows is None else rows
        self._streams: list[np.random.Generator | None] = [None] * n
        self._block = derive(np.full((1, n, columns), 0.5))
        self._next = self.rows
        self.now: Row = self._row(self._block, 0)

    def seed(self, which: NDArray[np.intp], streams: Streams) -> None:
        """From the next row on, the copies ``which`` (k,) read these streams."""
        for index, stream in zip(which.tolist(), streams, strict=True):
            self._streams[index] = stream
        if len(which) == len(self._streams):
            self._next = self.rows
        elif self._next < self.rows:
            rest = self._draw(streams, self.rows - self._next)
            for old, new in zip(self._block, rest, strict=True):
                old[self._next :, which] = new

    def advance(self) -> None:
        """Goes on to the next row of all copies."""
        if self._next == self.rows:
            self._block = self._draw(self._streams, self.rows)
            self._next = 0
        self.now = self._row(self._block, self._next)
        self._next += 1

    def redraw(self, which: NDArray[np.intp], streams: Streams) -> None:
        """Replaces the present row of the copies ``which`` (k,) by one from other streams."""
        fresh = self._row(self._draw(streams, 1), 0)
        for old, new in zip(self.now, fresh, strict=True):
            old[which] = new

    def _draw(self, streams: Sequence[Any], rows: int) -> Row:
        return self.derive(np.stack([stream.random((rows, self.columns)) for stream in streams], axis=1))

    @staticmethod
    def _row(block: Row, row: int) -> Row:
        return block._make([array[row] for array in block])  # type: ignore[attr-defined]
