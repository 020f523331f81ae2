"""Rule baselines of the Allelopathic Harvest, of one agent of each game or of all."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sb3_fair.zoo.envs.harvest.rules import N_ACTIONS, RIPEN, STAY
from sb3_fair.zoo.envs.world import Array, Rule, World


def _stay(world: World) -> Array:
    return np.tile(np.eye(N_ACTIONS)[STAY], (_slots(world), 1))


def _random(world: World) -> Array:
    return np.full((_slots(world), N_ACTIONS), 1 / N_ACTIONS)


def _busy(world: Any) -> Array:
    """Ripens, eats, recolours or obstructs where that is possible, else moves or stays, at random."""
    masks = world.action_masks().reshape(-1, N_ACTIONS)
    useful, moves = masks.copy(), masks.copy()
    useful[:, :RIPEN], moves[:, RIPEN:] = False, False
    chosen = np.where(useful.any(axis=1, keepdims=True), useful, moves)
    return chosen / chosen.sum(axis=1, keepdims=True)


def _slots(world: World) -> int:
    return world.n_worlds * (world.n_agents or 1)


BASELINES: Mapping[str, Rule] = {"stay": _stay, "random": _random, "busy": _busy}
