"""Exact values and optimal policies of loan allocation.

Dynamic programming over the credit levels of both groups, the difference of their loans, repayments minus defaults
(``net``) and the time. The two people of a group are interchangeable: only their sorted levels count. A ``net`` with
which the margin is met, or missed, whatever happens counts as the nearest such one. 40 steps take a minute.

>>> round(optimum(episode_length=4), 4)
-7.668
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, permutations
from math import ceil
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.validation import one_of
from sb3_fair.zoo.envs.exact import expected_best, expected_first, expected_preferred, preference, ranked
from sb3_fair.zoo.envs.loans.world import GROUPS, TOP, LoanAllocationWorld, LoansConfig
from sb3_fair.zoo.envs.settings import configure

Array: TypeAlias = NDArray[Any]

PEOPLE = len(GROUPS)
PAIRS = np.array(list(combinations_with_replacement(range(TOP + 1), 2)))
"""Sorted levels (36, 2) of the people of a group."""
PAIR_OF = np.zeros((TOP + 1, TOP + 1), dtype=np.intp)
"""The pair of two levels in any order."""
PAIR_OF[tuple(PAIRS.T)] = PAIR_OF[tuple(PAIRS[:, ::-1].T)] = np.arange(len(PAIRS))
ORDERS = np.array(list(permutations(range(PEOPLE))))
"""(24, 4): every order in which people can be preferred."""
ORDER_OF = np.zeros((PEOPLE,) * PEOPLE, dtype=np.uint8)
ORDER_OF[tuple(ORDERS.T)] = np.arange(len(ORDERS))


class Worth(NamedTuple):
    """What a policy brings: its expected return, undiscounted, and the probability that it meets the margin."""

    value: float
    margin_met: float


@checked
def optimum(gamma: float = 1.0, **config: Any) -> float:
    """The highest expected return there is; policies may know the time and be refused on purpose.

    :param gamma: discount factor, in [0, 1]
    :param config: fields of :class:`~sb3_fair.zoo.envs.loans.world.LoansConfig`, with discrete credit
    :raises ValueError: if credit is not discrete
    """
    model = _Model(configure(LoansConfig, config))
    value = model.nothing
    for stage in model.stages():
        given, refused = stage.given(stage.paid + gamma * value), stage.refused(stage.fined + gamma * value)
        value = expected_best(given, refused, model.chances)
    return model.at_the_start(value)


def rule_worth(rule: str, **config: Any) -> Worth:
    """What a rule of the scenario brings.

    :param rule: ``"oracle"``, ``"random-applicants"``, ``"random-all"`` or ``"best-credit"``
    :param config: fields of :class:`~sb3_fair.zoo.envs.loans.world.LoansConfig`, with discrete credit
    :raises ValueError: if the rule is unknown, or credit is not discrete
    """
    one_of("rule", rule, ("oracle", "random-applicants", "random-all", "best-credit"))
    model = _Model(configure(LoansConfig, config))
    applies = model.chances[0]
    lots = {"random-all": applies / PEOPLE, "random-applicants": (1 - (1 - applies) ** PEOPLE) / PEOPLE}

    def followed(stage: "_Stage", given: Array, refused: Array) -> Array:
        if rule in lots:
            return lots[rule] * given.sum(axis=-1) + (1 - PEOPLE * lots[rule]) * refused
        order = _best_credit_first(stage.differences if rule == "oracle" else np.zeros_like(stage.differences))
        return expected_first(ranked(given, np.broadcast_to(order, given.shape)), refused, model.chances)

    value, met = model.nothing, model.met
    for stage in model.stages():
        value = followed(stage, stage.given(stage.paid + value), stage.refused(stage.fined + value))
        met = followed(stage, stage.given(met), stage.refused(met))
    return Worth(model.at_the_start(value), model.at_the_start(met))


@checked
def optimal_policy(gamma: float = 1.0, **config: Any) -> "LoansPolicy":
    """The policy with the return that is the :func:`optimum`, of the same arguments."""
    model = _Model(configure(LoansConfig, config))
    goal, value, met = model.nothing, model.nothing, model.met
    codes = []
    for stage in model.stages():
        given, refused = stage.given(stage.paid + gamma * goal), stage.refused(stage.fined + gamma * goal)
        choice = preference(given, refused)
        order = ORDER_OF[tuple(np.moveaxis(choice.order, -1, 0))]
        codes.append(order * np.uint8(PEOPLE + 1) + choice.better.sum(axis=-1, dtype=np.uint8))
        goal = expected_preferred(given, refused, model.chances, choice)
        given, refused = stage.given(stage.paid + value), stage.refused(stage.fined + value)
        value = expected_preferred(given, refused, model.chances, choice)
        met = expected_preferred(stage.given(met), stage.refused(met), model.chances, choice)
    worth = Worth(model.at_the_start(value), model.at_the_start(met))
    return LoansPolicy(worth, tuple(reversed(codes)), model)


@dataclass(frozen=True)
class LoansPolicy:
    """A policy for every state of the scenario; called with a world of the same settings, it acts as a rule does.

    :param worth: what it brings
    :param codes: per step (36, 36, differences, nets): the order of preference, and how many of it are better than
        being refused
    """

    worth: Worth
    codes: tuple[NDArray[np.uint8], ...] = field(repr=False)
    _model: "_Model" = field(repr=False)

    def __call__(self, world: LoanAllocationWorld) -> Array:
        """Action probabilities (n, 4), one of them 1."""
        levels = world.levels.astype(np.intp).reshape(-1, 2, 2)
        pairs = PAIR_OF[levels[:, :, 0], levels[:, :, 1]]
        codes = np.empty(world.n_worlds, dtype=np.intp)
        for time in np.unique(world.time).tolist():
            now = world.time == time
            place = self._model.place(time, world.lead[now], world.net[now])
            codes[now] = self.codes[time][(*pairs[now].T, *place)]
        # The codes tell people apart by their levels: the lower one of A, the higher one, then those of B.
        people = (np.argsort(levels, axis=2, kind="stable") + [[0], [2]]).reshape(-1, PEOPLE)
        order = ranked(people, ORDERS[codes // (PEOPLE + 1)])
        applies = ranked(world.present, order)
        good = applies & (np.arange(PEOPLE) < (codes % (PEOPLE + 1))[:, None])
        # The best who applies; if being refused is better, anybody who does not apply; if all do, the best.
        choice = np.where(good.any(axis=1), good.argmax(axis=1), applies.argmin(axis=1))
        return np.eye(PEOPLE)[ranked(order, choice[:, None])[:, 0]]


class _Model:
    """The states; their values are arrays (36, 36, differences, nets) per step."""

    def __init__(self, settings: LoansConfig) -> None:
        if settings.credit != "discrete":
            raise ValueError(f"credit must be 'discrete' for an exact solution, got {settings.credit!r}")
        self.steps = settings.episode_length
        self.need = ceil(settings.required)
        self.chances = np.full(PEOPLE, float(settings.apply_probability))
        self.start = np.array(settings.start_levels).reshape(2, 2)
        low, high = self.bounds(self.steps)
        self.nothing = np.zeros((len(PAIRS), len(PAIRS), 2 * self.steps + 1, high - low + 1))
        """What is to come after the last step."""
        self.met = self.nothing + (np.arange(low, high + 1) >= self.need)
        """Whether the margin is met, after the last step."""

    def bounds(self, time: int) -> tuple[int, int]:
        """The smallest and the largest ``net`` that there is after ``time`` steps or differs from its neighbour."""
        left = self.steps - time
        return max(-time, self.need - left - 1), min(time, self.need + left)

    def place(self, time: int, lead: Array, net: Array) -> tuple[Array, Array]:
        """Where differences and nets are found in an array of this step."""
        low, high = self.bounds(time)
        return (lead + time).astype(np.intp), (np.clip(net, low, high) - low).astype(np.intp)

    def at_the_start(self, value: Array) -> float:
        """Value of the state in which episodes begin."""
        return float(value[(*PAIR_OF[tuple(self.start.T)], 0, 0)])

    def stages(self) -> "Iterator[_Stage]":
        """The steps, from the last to the first."""
        return (_Stage(self, time) for time in reversed(range(self.steps)))


class _Stage:
    """One step: from what is to come after it to what the choices are worth before it."""

    def __init__(self, model: _Model, time: int) -> None:
        low, high = model.bounds(time)
        after_low, after_high = model.bounds(time + 1)
        nets, after = np.arange(low, high + 1), np.arange(after_low, after_high + 1)
        self.net_after = [np.clip(nets + change, after_low, after_high) - after_low for change in (-1, 0, 1)]
        self.differences = np.arange(-time, time + 1)
        """L_A - L_B before the step."""
        missed = (after < model.need) & (time + 1 == model.steps)
        parity = -1.0 * np.abs(np.arange(-time - 1, time + 2))[:, None]
        self.paid = np.where(missed, -10.0 * model.steps, parity)
        """Reward of a loan, by difference and net after the step."""
        self.fined = np.where(missed, -10.0 * model.steps, np.full_like(parity, -model.steps))
        """Reward of a refusal."""

    def given(self, after: Array) -> Array:
        """Expected value (..., 4) of a loan to each, from that of the states after it."""
        defaulted, _, repaid = (after[..., place] for place in self.net_after)
        values = np.empty((*after.shape[:2], len(self.differences), defaulted.shape[-1], PEOPLE))
        for person, group in enumerate(GROUPS):
            levels = PAIRS[:, person % 2]
            others = PAIRS[:, 1 - person % 2]
            up, down = PAIR_OF[np.minimum(levels + 1, TOP), others], PAIR_OF[np.maximum(levels - 1, 0), others]
            chance = (levels + 2) / 10
            if group == 0:
                chance = chance[:, None, None, None]
                won, lost = repaid[up, :, 2:], defaulted[down, :, 2:]
            else:
                chance = chance[:, None, None]
                won, lost = repaid[:, up, :-2], defaulted[:, down, :-2]
            values[..., person] = chance * won + (1 - chance) * lost
        return values

    def refused(self, after: Array) -> Array:
        """Value of being refused, from that of the states after it."""
        return after[:, :, 1:-1, self.net_after[1]]


def _best_credit_first(differences: NDArray[np.int64]) -> NDArray[np.intp]:
    """(36, 36, differences, 1, 4): the group behind first, in it the best credit; A before B."""
    pairs = len(PAIRS)
    levels = np.empty((pairs, pairs, len(differences), 1, PEOPLE))
    levels[..., :2], levels[..., 2:] = PAIRS[:, None, None, None], PAIRS[:, None, None]
    ahead = np.sign(differences)[:, None, None] * np.where(np.array(GROUPS) == 0, 1, -1) > 0
    return np.argsort(ahead * (TOP + 1) - levels, axis=-1, kind="stable")
