"""State of the field of the Allelopathic Harvest."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.harvest.rules import AGENT, AROUND, BLUE, BUSH, COLOURLESS, EMPTY, RED, WALL

NEVER = 2**30


class Field:
    """The grids of B worlds, with a wall around each, and where their agents are.

    A *place* is a number of a cell in all worlds, a *cell* one within a world.

    :param n_worlds: B
    :param width: cells from left to right, without the wall
    :param height: cells from top to bottom
    :param n_agents: N
    :param life: age at which a bush dies; None: it does not
    :param ripening: steps after which a bush that was eaten or recoloured is ripe; None: it does not ripen itself
    """

    def __init__(
        self, n_worlds: int, width: int, height: int, n_agents: int, life: int | None, ripening: int | None
    ) -> None:
        self.width, self.height, self.life, self.ripening = width, height, life, ripening
        self.shape = (height + 2, width + 2)
        self.size = self.shape[0] * self.shape[1]
        """C, cells of a world with its wall."""
        row = self.shape[1]
        self.around = np.array([dx + dy * row for dx, dy in AROUND])[:, None]
        """From an agent's place to its neighbours' (4, 1)."""
        self.steps = np.append(self.around, 0)
        """From an agent's place to where a direction leads (5,): the neighbours, or nowhere."""
        y, x = np.divmod(np.arange(self.size), row)
        self.x, self.y = x - 1, y - 1
        """Coordinates of the cells (C,); the wall is at -1 and at the width or height."""
        self.inside = np.flatnonzero((self.x >= 0) & (self.x < width) & (self.y >= 0) & (self.y < height))
        """The cells within the wall, row by row (width * height,)."""
        self.offsets = np.arange(n_worlds)[:, None] * self.size
        """The first place of each world (B, 1)."""
        walled = np.full(self.size, WALL, dtype=np.uint8)
        walled[self.inside] = EMPTY
        self._bare = walled
        self.cells = np.tile(walled, (n_worlds, 1))
        """What is in them (B, C), see :mod:`~sb3_fair.zoo.envs.harvest.rules`."""
        self.held = np.zeros((n_worlds, self.size), dtype=np.float32)
        """Turns that the agent in a cell will still lose to an obstruction (B, C)."""
        self.born = np.full((n_worlds, self.size), NEVER, dtype=np.int32)
        """The step before which the bush in a cell had age 0 (B, C)."""
        self.ripens = np.full((n_worlds, self.size) if ripening else (n_worlds, 0), NEVER, dtype=np.int32)
        """The step at the end of which the bush in a cell is ripe of itself (B, C)."""
        self.places = self.offsets + np.tile(self.inside[:1], n_agents)
        """Of the agents (B, N)."""

    def cell(self, x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell at these coordinates."""
        return (y + 1) * self.shape[1] + x + 1

    def neighbours(self, which: Any = slice(None)) -> NDArray[np.uint8]:
        """What is in the four cells around the agents of the worlds ``which`` (k,): (4, k * N)."""
        return self.cells.take(self.places[which].reshape(-1) + self.around)

    def obstructed(self, which: Any = slice(None)) -> NDArray[np.bool_]:
        """Which agents of the worlds ``which`` (k,) lose the next turn to an obstruction (k, N)."""
        return self.held.take(self.places[which]) > 0

    def plant(
        self,
        which: NDArray[np.intp],
        agents: NDArray[np.int64],
        preferences: NDArray[np.int8],
        bushes: NDArray[np.int64],
        colours: NDArray[Any],
        ripe: NDArray[Any] | int = 0,
        ages: NDArray[Any] | int = 0,
    ) -> None:
        """Begins anew in the worlds ``which`` (k,).

        :param agents: their cells (k, N)
        :param preferences: their colours (k, N)
        :param bushes: their cells (k, m)
        :param colours: of the bushes, (k, m) or (m,), as are ``ripe`` and ``ages``
        """
        rows = which[:, None]
        self.cells[which] = self._bare
        self.held[which], self.born[which], self.ripens[which] = 0, NEVER, NEVER
        self.cells[rows, agents] = AGENT + preferences
        self.cells[rows, bushes] = BUSH + 2 * colours + ripe
        self.born[rows, bushes] = -np.asarray(ages)
        self.places[which] = self.offsets[which] + agents

    def grow_older(self, time: NDArray[np.int64]) -> None:
        """Ages all bushes by the step ``time`` (B,): those old enough die, others ripen of themselves."""
        if self.life is not None:
            dead = np.flatnonzero(self.born <= (time + 1 - self.life).astype(np.int32)[:, None])
            self.cells.reshape(-1)[dead] = EMPTY
            self.born.reshape(-1)[dead] = NEVER
        if self.ripening is not None:
            due = np.flatnonzero((self.ripens == time[:, None]) & (self.cells >= BUSH))
            self.cells.reshape(-1)[due] |= 1

    def sprout(self, which: NDArray[np.intp], cubic: bool, luck: NDArray[np.float64], time: NDArray[np.int64]) -> None:
        """One new bush in each of the worlds ``which`` (k,), where there is room.

        :param luck: uniforms (k, 2), for the colour and for the cell
        :param time: step in which it grows (k,)
        """
        cells = self.cells[which]
        red, blue = ((cells >> 1 == (BUSH >> 1) + colour).sum(axis=1, dtype=np.int32) for colour in (RED, BLUE))
        if cubic:
            red, blue = red.astype(np.float64) ** 3, blue.astype(np.float64) ** 3
        total = red + blue
        colour = np.where(total == 0, COLOURLESS, np.where(luck[:, 0] * total < red, RED, BLUE))
        starts = np.arange(len(which) + 1) * self.size
        empty = np.flatnonzero(cells == EMPTY)  # world by world, row by row
        ends = np.searchsorted(empty, starts)
        room = np.diff(ends)
        grows = room > 0
        chosen = empty[(ends[:-1] + (luck[:, 1] * room).astype(np.int64))[grows]]
        places = (self.offsets[which, 0] - starts[:-1])[grows] + chosen
        self.cells.reshape(-1)[places] = BUSH + 2 * colour[grows]
        self.born.reshape(-1)[places] = time[grows] + 1
        if self.ripening is not None:
            self.ripens.reshape(-1)[places] = NEVER

    def within(self, grid: NDArray[Any]) -> NDArray[Any]:
        """The part of a grid (B, C) within the wall: (B, width, height)."""
        return grid.reshape(-1, *self.shape)[:, 1:-1, 1:-1].swapaxes(1, 2)
