"""Turns of a step of the Allelopathic Harvest in numpy, and their random numbers.

Actions may be carried out in place of invalid ones, in at most three rounds, with a current action and the set of those
not tried yet. In a round, first a move is tried; if it fails, it leaves the set and another one is drawn from the set,
uniformly. Then, in the same round, ripening, recolouring or obstructing is tried, in the same way; a move or a stay
that was drawn waits for the next round. Staying ends it. So says the published code of the Allelopathic Harvest.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.harvest import rules as table
from sb3_fair.zoo.envs.harvest.field import Field
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig

VOID = -1
DRAWS = 6
"""Uniforms that a turn may need: one after a move and one after another action, in each of three rounds."""
KINDS = ((table.UP, table.RIGHT), (table.RIPEN, table.N_ACTIONS - 1))
"""First and last action of what is tried first and second in each round."""


_SETS = [[action for action in range(table.N_ACTIONS) if bits >> action & 1] for bits in range(1 << table.N_ACTIONS)]
SIZES = np.array([len(actions) for actions in _SETS])
"""How many actions are in a set, which is a number of 8 bits."""
MEMBERS = np.array([actions + [table.STAY] * (table.N_ACTIONS - len(actions)) for actions in _SETS])
"""The actions in a set, in order (256, 8)."""

Played: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int8]]
"""Rewards and the actions carried out (N, B), in the order of the turns: 0 for an invalid one, -1 for a void turn."""


class Draws(NamedTuple):
    """The order of the turns of a step, and what will be drawn in them.

    :param order: the agents (..., N), from first to last
    :param luck: uniforms (..., N, 6 or 0) for the substitutes of invalid actions, in the order of the turns
    """

    order: NDArray[np.int16]
    luck: NDArray[np.float64]


class Chances:
    """From N uniforms for the order, and 6 N for substitutes if there are any, to the turns of a step."""

    def __init__(self, config: HarvestConfig) -> None:
        self.n_agents, self.fixed = config.n_agents, config.order == "fixed"
        self.draws = DRAWS if config.invalid == "substitute" else 0
        self.columns = self.n_agents * (1 + self.draws)

    def __call__(self, uniforms: NDArray[np.float64]) -> Draws:
        keys, luck = uniforms[..., : self.n_agents], uniforms[..., self.n_agents :]
        order = np.broadcast_to(np.arange(self.n_agents), keys.shape) if self.fixed else keys.argsort(axis=-1)
        return Draws(order.astype(np.int16), luck.reshape(*keys.shape, self.draws).copy())


class Turns(NamedTuple):
    """Who does what in a step (N, B), in the order in which the agents act, or in which they come first.

    :param agents: numbers in all worlds
    :param colours: which they prefer
    :param actions: which they chose, -1: the turn is void
    :param luck: uniforms (N, B, 6) for the substitutes of invalid actions; (N, B, 0): there are none
    :param able: which actions may be substitutes, one bit each
    :param time: of each world (B,)
    """

    agents: NDArray[np.int64]
    colours: NDArray[np.int8]
    actions: NDArray[np.int64]
    luck: NDArray[np.float64]
    able: NDArray[np.uint8]
    time: NDArray[np.int64]


def substituted(actions: NDArray[Any], valid: NDArray[np.uint8], luck: NDArray[np.float64]) -> NDArray[np.int64]:
    """The actions (m,) that are carried out; 0 where nothing valid was found.

    :param actions: chosen (m,)
    :param valid: which actions are valid (m,), one bit each
    :param luck: uniforms (m, 6)
    """
    current = actions.astype(np.int64)
    settled = current == table.STAY
    untried = np.full(len(current), (1 << table.N_ACTIONS) - 1)
    for draw in range(DRAWS):
        first, last = KINDS[draw % 2]
        tried = ~settled & (current >= first) & (current <= last)
        works = (valid >> current) & 1 == 1
        settled |= tried & works
        failed = np.flatnonzero(tried & ~works)
        rest = untried[failed] & ~(1 << current[failed])
        untried[failed] = rest
        current[failed] = MEMBERS[rest, (luck[failed, draw] * SIZES[rest]).astype(np.int64)]
    return np.where(settled, current, table.STAY)


def in_turn(field: Field, rules: table.Rules, turns: Turns, obstruct_turns: float) -> Played:
    """One agent of each world after the other."""
    cells, held, places = field.cells.reshape(-1), field.held.reshape(-1), field.places.reshape(-1)
    actions = np.maximum(turns.actions, table.STAY)
    cases, own = table.case(actions, turns.colours), table.AGENT + turns.colours
    outcomes, free = np.empty(actions.shape, dtype=np.uint32), np.empty(actions.shape, dtype=np.bool_)
    for turn, agents in enumerate(turns.agents):
        here, around, before, seen, free[turn] = _begun(field, cells, held, places.take(agents))
        if turns.luck.size:
            valid = rules.valid.take(seen) & turns.able[turn]
            actions[turn] = substituted(actions[turn] * free[turn], valid, turns.luck[turn])
            cases[turn] = table.case(actions[turn], turns.colours[turn])
        outcome = outcomes[turn] = rules.outcomes.take(cases[turn] * free[turn] + seen)
        after = table.neighbours(outcome)
        cells[around.reshape(-1)] = after.reshape(-1)
        there = here + field.steps.take(table.part(outcome, table.TOWARDS))
        cells[here] = table.EMPTY
        cells[there] = own[turn]
        places[agents] = there
        victim = table.part(outcome, table.VICTIM)
        hit = np.flatnonzero(victim != table.NOWHERE)
        held[around[victim[hit], hit]] = obstruct_turns
        _set_ripening(field, around, before, after, turns.time)
    return _played(turns, actions, outcomes, free)


def at_once(field: Field, rules: table.Rules, turns: Turns, obstruct_turns: float) -> Played:
    """All agents on the field as it was; of several who would change the same cell, only the first one acts.

    An agent who would change several cells (``scan="all"``) acts only if it comes first at all of them.
    """
    cells, held, places = field.cells.reshape(-1), field.held.reshape(-1), field.places.reshape(-1)
    agents, colours = turns.agents.reshape(-1), turns.colours.reshape(-1)
    actions = np.maximum(turns.actions, table.STAY).reshape(-1)
    here, around, before, seen, free = _begun(field, cells, held, places.take(agents))
    actions *= free
    if turns.luck.size:
        valid = rules.valid.take(seen) & turns.able.reshape(-1)
        actions = substituted(actions, valid, turns.luck.reshape(len(agents), -1))
    outcomes = rules.outcomes.take(table.case(actions, colours) + seen)
    after = table.neighbours(outcomes)

    wanted = np.flatnonzero(after != before)
    wanting, wanted_places = wanted % len(agents), around.reshape(-1).take(wanted)
    first = np.empty(len(cells), dtype=np.int64)
    first[wanted_places] = len(agents)
    np.minimum.at(first, wanted_places, wanting)
    beaten = wanting[first.take(wanted_places) != wanting]
    actions[beaten] = table.STAY
    outcomes[beaten] = rules.outcomes.take(seen[beaten])
    after[:, beaten] = before[:, beaten]

    got = np.zeros(len(agents), dtype=np.bool_)
    got[wanting] = True
    got[beaten] = False
    changed = wanted[got.take(wanting)]
    cells[around.reshape(-1).take(changed)] = after.reshape(-1).take(changed)
    there = here + field.steps.take(table.part(outcomes, table.TOWARDS))
    cells[here[there != here]] = table.EMPTY
    places[agents] = there
    victim = table.part(outcomes, table.VICTIM)
    hit = np.flatnonzero(victim != table.NOWHERE)
    first[here] = there
    held[first.take(around[victim[hit], hit])] = obstruct_turns
    _set_ripening(field, around, before, after, turns.time)
    return _played(turns, actions, outcomes, free)


def _begun(field: Field, cells: table.Cells, held: table.Cells, here: table.Cells) -> tuple[table.Cells, ...]:
    """Of agents (m,): places, those around (4, m), what is there, the same as one number, and who is not obstructed."""
    around = here + field.around
    before, waiting = cells.take(around), held.take(here)
    held[here] = np.maximum(waiting - 1, 0)
    return here, around, before, table.surrounding(before), waiting == 0


def _set_ripening(
    field: Field, around: NDArray[np.int64], before: NDArray[Any], after: NDArray[Any], time: NDArray[np.int64]
) -> None:
    if field.ripening is not None:
        fresh = around[(after != before) & (after >= table.BUSH) & (after & 1 == 0)]
        field.ripens.reshape(-1)[fresh] = time[fresh // field.size] + field.ripening


def _played(turns: Turns, actions: NDArray[np.int64], outcomes: NDArray[np.uint32], free: NDArray[np.bool_]) -> Played:
    shape = turns.actions.shape
    actions, outcomes, free = actions.reshape(shape), outcomes.reshape(shape), free.reshape(shape)
    executed = np.where(free & (turns.actions != VOID), actions * table.part(outcomes, table.VALID), VOID)
    return table.part(outcomes, table.REWARD).astype(np.float32), executed.astype(np.int8)
