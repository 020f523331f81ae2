"""Turns of a step of the Allelopathic Harvest in numpy, and their random numbers."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.harvest import rules as table
from sb3_fair.zoo.envs.harvest.field import Field
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.substitutes import DRAWS, substituted

VOID = -1


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


class Substitution(NamedTuple):
    """What invalid actions are substituted with.

    :param luck: uniforms (N, B, 6)
    :param able: which actions may be substitutes (N, B), one bit each
    """

    luck: NDArray[np.float64]
    able: NDArray[np.uint8]


class Turns(NamedTuple):
    """Who does what in a step, in the order in which the agents act, or in which they come first.

    :param agents: numbers in all worlds (N, B)
    :param colours: which they prefer (N, B)
    :param actions: which they chose (N, B), -1: the turn is void
    :param substitution: for the substitutes of invalid actions; None: there are none
    :param time: of each world (B,)
    """

    agents: NDArray[np.int64]
    colours: NDArray[np.int8]
    actions: NDArray[np.int64]
    substitution: Substitution | None
    time: NDArray[np.int64]


class Played(NamedTuple):
    """What came of it, in the order of the turns (N, B).

    :param rewards: float32
    :param executed: the actions carried out, int8; 0 where an invalid action was not, -1 where the turn was void
    """

    rewards: NDArray[np.float32]
    executed: NDArray[np.int8]


def in_turn(field: Field, rules: table.Rules, turns: Turns, obstruct_turns: float) -> Played:
    """One agent of each world after the other."""
    cells, held, places = field.cells.reshape(-1), field.held.reshape(-1), field.places.reshape(-1)
    actions = np.maximum(turns.actions, table.STAY)
    cases, own = table.case(actions, turns.colours), table.AGENT + turns.colours
    outcomes, free = np.empty(actions.shape, dtype=np.uint32), np.empty(actions.shape, dtype=np.bool_)
    for turn, agents in enumerate(turns.agents):
        here = places.take(agents)
        around = here + field.around
        before = cells.take(around)
        seen = table.surrounding(before)
        waiting = held.take(here)
        held[here] = np.maximum(waiting - 1, 0)
        np.equal(waiting, 0, out=free[turn])
        if turns.substitution is not None:
            valid = rules.valid.take(seen) & turns.substitution.able[turn]
            actions[turn] = substituted(actions[turn] * free[turn], valid, turns.substitution.luck[turn])
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
    here = places.take(agents)
    around = here + field.around
    before = cells.take(around)
    seen = table.surrounding(before)
    waiting = held.take(here)
    held[here] = np.maximum(waiting - 1, 0)
    free = waiting == 0
    actions *= free
    if turns.substitution is not None:
        luck, able = turns.substitution.luck.reshape(len(agents), -1), turns.substitution.able.reshape(-1)
        actions = substituted(actions, rules.valid.take(seen) & able, luck)
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
    return Played(table.part(outcomes, table.REWARD).astype(np.float32), executed.astype(np.int8))
