"""Actions of the Allelopathic Harvest: effects and payoffs.

An agent sees and changes nothing but its four neighbours, of which each is in one of few states. So the rules are a
table: from the action, the agent's colour and what is around it to what is around it afterwards, its reward, whether it
moves and whom it obstructs. All ways to play a step (in turn, at once, compiled) look into the same table.
"""

from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

EMPTY, WALL, AGENT, BUSH = 0, 1, 4, 8
"""What is in a cell: an agent is ``AGENT`` + its colour, a bush is ``BUSH`` + 2 * its colour + 1 if it is ripe."""
COLOURLESS, RED, BLUE = 0, 1, 2
AROUND = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""The neighbours (dx, dy) in the order in which they are looked at: down, right, up, left."""
STAY, UP, DOWN, LEFT, RIGHT, RIPEN, RECOLOUR, OBSTRUCT = range(8)
N_ACTIONS = 8
NOWHERE = 4
"""The direction of whoever does not move or obstructs nobody."""
SHIFTS = np.array([0, 4, 8, 12], dtype=np.uint16)[:, None]
"""Where the neighbours are in a surrounding, a number of 16 bits."""

Cells: TypeAlias = NDArray[Any]

_KEYS = 1 << 16
_DIRECTIONS = {UP: 2, DOWN: 0, LEFT: 3, RIGHT: 1}
TOWARDS, VICTIM, REWARD, VALID = (np.uint32(shift) for shift in (16, 19, 22, 25))
"""Where the parts of an outcome are, a number of 32 bits: direction of the move and of who is obstructed, reward, and
whether the action was valid; the first 16 bits are the surrounding afterwards."""
_THREE_BITS = np.uint32(7)


class Rules(NamedTuple):
    """What follows from a surrounding.

    :param outcomes: (8 * 2 * 65536,) uint32, what an action leads to: see :func:`case`, and the functions below
    :param valid: (65536,) uint8, which actions are valid, one bit each
    """

    outcomes: NDArray[np.uint32]
    valid: NDArray[np.uint8]


def case(actions: NDArray[np.int64], colours: NDArray[np.int8]) -> NDArray[np.int64]:
    """Where the outcomes of these actions of agents of these colours begin; the surrounding is to be added."""
    return (2 * actions + colours - RED) << 16


def surrounding(cells: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """The number (...) that stands for four neighbours (4, ...)."""
    return np.bitwise_or.reduce(np.left_shift(cells, SHIFTS, dtype=np.uint16), axis=0)


def neighbours(outcomes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """What is in the four neighbours afterwards (4, ...)."""
    return ((outcomes >> SHIFTS.astype(np.uint32)) & np.uint32(15)).astype(np.uint8)


def part(outcomes: NDArray[np.uint32], shift: np.uint32) -> NDArray[np.uint32]:
    """A part of the outcomes: a direction or :data:`NOWHERE`, the reward, or 1 if the action was valid."""
    return (outcomes >> shift) & _THREE_BITS


@cache
def rules(movement: str, scan: str) -> Rules:
    """The table of the rules that go by these settings."""
    keys = np.arange(_KEYS, dtype=np.uint32)
    around = neighbours(keys)
    outcomes = np.empty((N_ACTIONS, 2, _KEYS), dtype=np.uint32)
    for colour in (RED, BLUE):
        column = outcomes[:, colour - RED]
        column[STAY] = _packed(around)
        for action, direction in _DIRECTIONS.items():
            column[action] = _move(around, colour, direction, movement == "on")
        column[RIPEN] = (_ripen_all if scan == "all" else _ripen_first)(around, colour)
        column[RECOLOUR] = _recolour(around, colour)
        column[OBSTRUCT] = _obstruct(around, colour)
    bits = part(outcomes[:, 0], VALID) << np.arange(N_ACTIONS)[:, None]
    table = Rules(outcomes.reshape(-1), np.bitwise_or.reduce(bits, axis=0).astype(np.uint8))
    for array in table:
        array.flags.writeable = False  # shared by all worlds
    return table


def _packed(
    after: Cells, reward: Any = 0, valid: Any = True, towards: Any = NOWHERE, victim: Any = NOWHERE
) -> NDArray[np.uint32]:
    """An outcome as one number; ``after`` is (4, keys)."""
    packed = np.bitwise_or.reduce(after << SHIFTS.astype(np.uint32), axis=0)
    for value, shift in ((towards, TOWARDS), (victim, VICTIM), (reward, REWARD), (valid, VALID)):
        packed |= np.asarray(value, dtype=np.uint32) << shift
    return packed


def _first(which: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first direction in which there is one, or :data:`NOWHERE`; ``which`` is (4, keys)."""
    return np.where(which.any(axis=0), which.argmax(axis=0), NOWHERE)


def _replaced(around: Cells, direction: NDArray[np.int64] | int, new: Any) -> Cells:
    """``around`` with something else in one direction, which may be :data:`NOWHERE`."""
    return np.where(np.arange(4)[:, None] == direction, new, around)


def _colour(cells: Cells) -> Cells:
    return (cells >> 1) & 3


def _ripening_pays(cells: Cells, colour: int) -> NDArray[np.int64]:
    return np.where(_colour(cells) == colour, 3, 1)


def _eating_pays(cells: Cells, colour: int) -> NDArray[np.int64]:
    return np.where(_colour(cells) == colour, 5, np.where(_colour(cells) == COLOURLESS, 0, 1))


def _move(around: Cells, colour: int, direction: int, possible: bool) -> NDArray[np.uint32]:
    free = (around[direction] == EMPTY) & possible
    towards = np.where(free, direction, NOWHERE)
    return _packed(_replaced(around, towards, AGENT + colour), valid=free, towards=towards)


def _ripen_first(around: Cells, colour: int) -> NDArray[np.uint32]:
    bush = around >= BUSH
    ripe = bush & (around & 1 == 1)
    eats = ripe.any(axis=0)
    direction = np.where(eats, _first(ripe), _first(bush))
    pays = np.where(ripe, _eating_pays(around, colour), _ripening_pays(around, colour))
    reward = np.where(np.arange(4)[:, None] == direction, pays, 0).sum(axis=0)
    return _packed(_replaced(around, direction, around ^ 1), reward, bush.any(axis=0))


def _ripen_all(around: Cells, colour: int) -> NDArray[np.uint32]:
    after, reward = around.copy(), np.zeros(around.shape[1], dtype=np.int64)
    fed = np.zeros(around.shape[1], dtype=np.bool_)
    for before, cell in zip(around, after, strict=True):
        bush = (before >= BUSH) & ~fed
        ripe = bush & (before & 1 == 1)
        cell ^= bush
        reward = np.where(bush & ~ripe, _ripening_pays(before, colour), reward)
        # A colourless berry leaves the reward as it is, rather than 0.
        reward = np.where(ripe & (_colour(before) != COLOURLESS), _eating_pays(before, colour), reward)
        fed |= ripe
    return _packed(after, reward, (around >= BUSH).any(axis=0))


def _recolour(around: Cells, colour: int) -> NDArray[np.uint32]:
    bush = around >= BUSH
    direction = _first(bush & (_colour(around) != colour))
    after = _replaced(around, direction, BUSH + 2 * colour)
    return _packed(after, np.where(direction == NOWHERE, 0, 5), bush.any(axis=0))


def _obstruct(around: Cells, colour: int) -> NDArray[np.uint32]:
    agent = (around == AGENT + RED) | (around == AGENT + BLUE)
    direction = _first(agent)
    other = (np.arange(4)[:, None] == direction) & (around == AGENT + RED + BLUE - colour)
    return _packed(around, np.where(other.any(axis=0), 3, 0), agent.any(axis=0), victim=direction)
