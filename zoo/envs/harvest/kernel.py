"""The turns of a step of the Allelopathic Harvest, compiled with numba.

The same rules, chances and field as in :mod:`~sb3_fair.zoo.envs.harvest.turns`, hence the same paths. Needs numba.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.extras import extra
from sb3_fair.zoo.envs.harvest.field import Field
from sb3_fair.zoo.envs.harvest.rules import BUSH, EMPTY, NOWHERE, RED, REWARD, STAY, TOWARDS, VALID, VICTIM, Rules
from sb3_fair.zoo.envs.harvest.turns import DRAWS, KINDS, MEMBERS, SIZES, VOID, Played, Turns

with extra("numba", 'backend="numba"'):
    from numba import njit

_KINDS = np.array(KINDS)
_TOWARDS, _VICTIM, _REWARD, _VALID = (int(shift) for shift in (TOWARDS, VICTIM, REWARD, VALID))


def _compiled(function: Any) -> Any:
    try:
        return njit(cache=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return njit(function)


def in_turn(field: Field, rules: Rules, turns: Turns, obstruct_turns: float) -> Played:
    """One agent of each world after the other: :func:`~sb3_fair.zoo.envs.harvest.turns.in_turn`."""
    shape = turns.actions.shape
    played = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.int8)
    state = field.cells, field.held, field.places.reshape(-1), field.ripens, field.ripening or 0, field.steps
    _play(state, rules, turns, obstruct_turns, played)
    return played


@_compiled
def _substituted(action: int, valid: int, luck: NDArray[np.float64]) -> int:
    untried = 255
    for draw in range(DRAWS):
        first, last = _KINDS[draw % 2]
        if first <= action <= last:
            if valid >> action & 1:
                return action
            untried &= ~(1 << action)
            action = MEMBERS[untried, int(luck[draw] * SIZES[untried])]
    return STAY


@_compiled
def _play(state: Any, rules: Any, turns: Any, obstruct_turns: float, played: Any) -> None:
    cells, held, places, ripens, ripening, steps = state
    outcomes, valid = rules
    agents, colours, actions, luck, able, time = turns
    rewards, executed = played
    size = cells.shape[1]
    for world in range(cells.shape[0]):
        grid, waiting = cells[world], held[world]
        for turn in range(agents.shape[0]):
            agent, colour, action = agents[turn, world], colours[turn, world], actions[turn, world]
            rewards[turn, world], executed[turn, world] = 0, VOID
            here = places[agent] - world * size
            if waiting[here] > 0:
                waiting[here] -= 1
                continue
            if action == VOID:
                continue
            seen = 0
            for direction in range(4):
                seen |= grid[here + steps[direction]] << (4 * direction)
            if luck.size:
                action = _substituted(action, valid[seen] & able[turn, world], luck[turn, world])
            outcome = outcomes[((2 * action + colour - RED) << 16) + seen]
            rewards[turn, world] = outcome >> _REWARD & 7
            executed[turn, world] = action if outcome >> _VALID else STAY
            for direction in range(4):
                place, after = here + steps[direction], outcome >> (4 * direction) & 15
                if grid[place] != after:
                    grid[place] = after
                    if ripening and after >= BUSH and after & 1 == 0:
                        ripens[world, place] = time[world] + ripening
            step = steps[outcome >> _TOWARDS & 7]
            if step != 0:
                grid[here] = EMPTY
                places[agent] += step
            victim = outcome >> _VICTIM & 7
            if victim != NOWHERE:
                waiting[here + steps[victim]] = obstruct_turns
