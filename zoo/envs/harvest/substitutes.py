"""Actions carried out in place of invalid ones.

At most three rounds, with a current action and the set of those not tried yet. In a round, first a move is tried; if it
fails, it leaves the set and another one is drawn from the set, uniformly. Then, in the same round, ripening,
recolouring or obstructing is tried, in the same way; a move or a stay that was drawn waits for the next round. Staying
ends it. So says the published code of the Allelopathic Harvest.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.harvest.rules import N_ACTIONS, RIGHT, RIPEN, STAY, UP

ROUNDS = 3
DRAWS = 2 * ROUNDS
"""Uniforms that a turn may need: one after a move and one after another action, in each round."""
KINDS = ((UP, RIGHT), (RIPEN, N_ACTIONS - 1))
"""First and last action of what is tried first and second in each round."""


def _members(bits: int) -> list[int]:
    return [action for action in range(N_ACTIONS) if bits >> action & 1]


SIZES = np.array([len(_members(bits)) for bits in range(1 << N_ACTIONS)])
"""How many actions are in a set, which is a number of 8 bits."""
MEMBERS = np.array([(_members(bits) + [STAY] * N_ACTIONS)[:N_ACTIONS] for bits in range(1 << N_ACTIONS)])
"""The actions in a set, in order (256, 8)."""


def substituted(actions: NDArray[Any], valid: NDArray[np.uint8], luck: NDArray[np.float64]) -> NDArray[np.int64]:
    """The actions (m,) that are carried out; 0 where nothing valid was found.

    :param actions: chosen (m,)
    :param valid: which actions are valid (m,), one bit each
    :param luck: uniforms (m, 6)
    """
    current = actions.astype(np.int64)
    settled = current == STAY
    untried = np.full(len(current), (1 << N_ACTIONS) - 1)
    for draw in range(DRAWS):
        first, last = KINDS[draw % 2]
        tried = ~settled & (current >= first) & (current <= last)
        works = (valid >> current) & 1 == 1
        settled |= tried & works
        failed = np.flatnonzero(tried & ~works)
        rest = untried[failed] & ~(1 << current[failed])
        untried[failed] = rest
        current[failed] = MEMBERS[rest, (luck[failed, draw] * SIZES[rest]).astype(np.int64)]
    return np.where(settled, current, STAY)
