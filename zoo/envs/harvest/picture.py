"""Pictures of the Allelopathic Harvest.

Squares are agents, circles bushes; both have the colour that they prefer or bear. A bush is hollow until it is ripe, a
slow agent has a white diagonal, an obstructed one a dark frame.
"""

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.validation import integer
from sb3_fair.zoo.envs.harvest.world import HarvestWorld

GROUND, FRAME, MARK = (244, 241, 232), (34, 34, 34), (255, 255, 255)
COLOURS = ((140, 140, 140), (196, 78, 82), (76, 114, 176))
"""Of nobody, red and blue."""
BUSH, AGENT = 1, 7
"""The first of the 6 tiles of bushes (colour, ripe) and of the 8 tiles of agents (colour, slow, obstructed)."""


@cache
def tiles(size: int) -> NDArray[np.uint8]:
    """A picture of everything that can be in a cell, (15, size, size, 3)."""
    place = (np.arange(size) + 0.5) / size - 0.5
    y, x = np.meshgrid(place, place, indexing="ij")
    radius, reach = np.hypot(x, y), np.maximum(np.abs(x), np.abs(y))
    ground = np.full((size, size, 3), GROUND, dtype=np.uint8)
    drawn = [ground]
    for colour, ripe in product(COLOURS, (False, True)):
        drawn.append(_painted(ground, (radius < 0.4) & ((radius > 0.25) | ripe), colour))
    for colour, slow, obstructed in product(COLOURS[1:], (False, True), (False, True)):
        agent = _painted(ground, reach < 0.4, colour)
        if slow:
            agent = _painted(agent, (reach < 0.4) & (np.abs(x - y) < 0.09), MARK)
        if obstructed:
            agent = _painted(agent, (reach < 0.5) & (reach > 0.36), FRAME)
        drawn.append(agent)
    pictures = np.stack(drawn)
    pictures.flags.writeable = False  # shared
    return pictures


def _painted(picture: NDArray[np.uint8], where: NDArray[np.bool_], colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    return np.where(where[..., None], np.array(colour, dtype=np.uint8), picture)


def picture(world: HarvestWorld, index: int, size: int = 16) -> NDArray[np.uint8]:
    """The field of copy ``index``; (height * size, width * size, 3).

    :param size: pixels of a cell's side
    """
    pictures = tiles(integer("size", size, 1))
    bushes = world.bushes[index]
    shown = np.where(bushes >= 0, BUSH + 2 * bushes + world.ripe[index], 0)
    x, y = world.positions[index].T
    shown[x, y] = AGENT + 4 * (world.lf[index] - 1) + 2 * world.group[index] + world.obstructed[index]
    width, height = shown.shape
    return pictures[shown.T].swapaxes(1, 2).reshape(height * size, width * size, 3)
