"""Ids of individuals for late feedback: plain numbers that also know the reset they come from."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Id(int):
    """The running number of an individual since the last seeded reset, and ``life``, the number of that reset.

    It equals and prints as a number; that it is of an earlier life is seen where feedback for it arrives.
    """

    life: int

    def __new__(cls, number: Any, life: int) -> "Id":
        made = super().__new__(cls, number)
        made.life = life
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Id, (int(self), self.life)


class Ids(np.ndarray[Any, np.dtype[np.int64]]):
    """An array of such numbers, whose entries are :class:`Id`."""

    life: int = 0

    @classmethod
    def of(cls, numbers: NDArray[np.int64], life: int) -> "Ids":
        """The ids with these numbers."""
        made = numbers.view(cls)
        made.life = life
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.life = getattr(source, "life", 0)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Id(found, self.life) if isinstance(found, np.integer) else found

    def tolist(self) -> Any:
        return [each if isinstance(each, Id) else each.tolist() for each in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return Ids.of, (self.view(np.ndarray), self.life)
