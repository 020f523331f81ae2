"""Observations of the agents of the Allelopathic Harvest."""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.harvest.field import Field
from sb3_fair.zoo.envs.harvest.rules import BLUE, BUSH, RED

SCALE = np.array([25, 15, 1, 5, 2, 60, 60, 10, 10, 10], dtype=np.float32)
"""What scaled observations are divided by: about the largest values on the field of the paper."""
N_BASIC, N_EXTRA = 10, 14
_KINDS = np.array([(BUSH >> 1) + RED, (BUSH >> 1) + BLUE], dtype=np.uint8)
_CACHED = 2**17
"""Distances between agents that are computed at once."""


class Observer:
    """Sees the field with the eyes of its agents.

    :param field: which one
    :param scaled: whether to divide by :data:`SCALE`
    :param extra: whether observations end with 14 flags
    """

    def __init__(self, field: Field, scaled: bool, extra: bool) -> None:
        self.field, self.scaled, self.extra = field, scaled, extra
        self.far = field.width + field.height
        self.size = N_BASIC + (N_EXTRA if extra else 0)
        """Numbers in an observation, d."""

    @property
    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lowest and highest observation (d,)."""
        field, room = self.field, self.field.width * self.field.height
        low, high = np.zeros(self.size, dtype=np.float32), np.ones(self.size, dtype=np.float32)
        low[4] = 1
        high[:N_BASIC] = field.width - 1, field.height - 1, 1, 5, 2, room, room, self.far, self.far, self.far
        if self.scaled:
            low[:N_BASIC] /= SCALE
            high[:N_BASIC] /= SCALE
        return low, high

    def __call__(
        self, which: Any, lf: NDArray[np.int8], group: NDArray[np.int8], last_reward: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Observations (k, N, d) in the worlds ``which`` (k,); the last two flags are not set.

        :param lf: colours that the agents prefer (k, N)
        :param group: who is slow (k, N)
        :param last_reward: (k, N)
        """
        field, far = self.field, self.far
        kinds = np.ascontiguousarray(field.cells[which].T) >> 1
        absent = kinds != _KINDS[:, None, None]
        places = field.places[which] - field.offsets[which]
        k = len(places)
        distances = nearest(absent.reshape(2, *field.shape, k), far).reshape(2, -1)
        x, y = field.x.take(places), field.y.take(places)
        at = places * k + np.arange(k)[:, None]
        seen = np.empty((*places.shape, self.size), dtype=np.float32)
        seen[..., 0], seen[..., 1] = x, y
        seen[..., 2], seen[..., 3], seen[..., 4] = group, last_reward, lf
        seen[..., 5:7] = (field.size - absent.sum(axis=1, dtype=np.int32)).T[:, None]
        seen[..., 7], seen[..., 8] = distances[0].take(at), distances[1].take(at)
        seen[..., 9] = nearest_other(x.T, y.T, far).T
        if self.scaled:
            seen[..., :N_BASIC] /= SCALE
        if self.extra:
            around = field.neighbours(which).T.reshape(*lf.shape, -1)
            seen[..., N_BASIC:-2] = _flags()[lf[..., None] - RED, around].reshape(*lf.shape, -1)
        return seen


def nearest(absent: NDArray[np.bool_], far: int) -> NDArray[Any]:
    """L1 distance from each cell to the nearest one that is not ``absent``, ``far`` if there is none.

    Each line learns from the one before it, down and up, then right and left.

    :param absent: (..., height, width, k)
    :return: the same shape, small integers
    """
    distance = absent.view(np.int8) * _small(far)(far)
    for axis in (-3, -2):
        lines = np.moveaxis(distance, axis, 0)
        for line, following in pairwise(lines):
            np.minimum(following, line + 1, out=following)
        for line, following in pairwise(lines[::-1]):
            np.minimum(following, line + 1, out=following)
    return distance


def nearest_other(x: NDArray[Any], y: NDArray[Any], far: int) -> NDArray[Any]:
    """L1 distance from each of N points to the nearest other one, ``far`` if there is none.

    :param x: (N, k), as is ``y``
    :return: (N, k), small integers
    """
    x, y = (np.ascontiguousarray(coordinate, dtype=_small(far)) for coordinate in (x, y))
    distance = np.empty_like(x)
    rows = max(_CACHED // x.size, 1)
    for first in range(0, len(x), rows):
        some = slice(first, first + rows)
        apart = np.abs(x[some, None] - x)
        apart += np.abs(y[some, None] - y)
        np.einsum("iik->ik", apart[:, some])[...] = far  # not to themselves
        apart.min(axis=1, out=distance[some])
    return distance


def _small(far: int) -> type[np.signedinteger[Any]]:
    return np.int8 if far < 127 else np.int16 if far < 32767 else np.int32


@cache
def _flags() -> NDArray[np.float32]:
    """Ripe bush of the own colour, ripe other bush, unripe bush: by own colour and what is in a cell (2, 16, 3)."""
    cell = np.arange(16)
    bush, ripe, colour = cell >= BUSH, cell & 1 == 1, (cell >> 1) & 3
    return np.array(
        [
            np.stack([bush & ripe & (colour == own), bush & ripe & (colour != own), bush & ~ripe], axis=1)
            for own in (RED, BLUE)
        ],
        dtype=np.float32,
    )
