"""Exact values of policies in the doughnut scenario.

Dynamic programming over the numbers of doughnuts. Where all are equally likely to be at the counter, and the welfare
does not tell people apart, sorted numbers are enough: five people and 100 doughnuts take seconds.

>>> round(optimum(n_people=3, episode_length=12), 4)
37.6332
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.validation import one_of
from sb3_fair.fairness.welfare import Welfare
from sb3_fair.zoo.envs.doughnut.world import DoughnutConfig
from sb3_fair.zoo.envs.exact import expected_best, expected_first, ranked
from sb3_fair.zoo.envs.settings import configure

Array: TypeAlias = NDArray[Any]
Policy: TypeAlias = Callable[[NDArray[np.bool_], NDArray[np.int64], int], Array]
Backup: TypeAlias = Callable[[Array, Array, NDArray[np.int64], int], Array]

MOST_STATES = 4_000_000


def optimum(gamma: float = 1.0, **config: Any) -> float:
    """The highest expected return there is; policies may know the time and waste on purpose.

    :param gamma: discount factor, in [0, 1]
    :param config: fields of :class:`~sb3_fair.zoo.envs.doughnut.world.DoughnutConfig`
    :raises ValueError: if there are more states than a computer likes
    """
    settings = configure(DoughnutConfig, config)
    chances = settings.presences
    return _solved(settings, gamma, lambda given, wasted, counts, time: expected_best(given, wasted, chances))


def rule_value(rule: str, gamma: float = 1.0, **config: Any) -> float:
    """Expected return of a rule of the scenario.

    :param rule: ``"oracle"`` (fewest doughnuts first), ``"random-all"`` or ``"random-present"``
    :param gamma: discount factor, in [0, 1]
    :param config: fields of :class:`~sb3_fair.zoo.envs.doughnut.world.DoughnutConfig`
    :raises ValueError: if the rule is unknown, or there are more states than a computer likes
    """
    one_of("rule", rule, ("oracle", "random-all", "random-present"))
    settings = configure(DoughnutConfig, config)
    chances = settings.presences

    def fewest_first(given: Array, wasted: Array, counts: NDArray[np.int64], time: int) -> Array:
        order = np.argsort(counts, axis=1, kind="stable")
        return expected_first(ranked(given, order), wasted, ranked(chances, order))

    if rule == "oracle":
        return _solved(settings, gamma, fewest_first)
    lots = chances / len(chances)  # probability of being present and drawn
    if rule == "random-present":
        lots = np.sum([chance * mask / max(1, mask.sum()) for mask, chance in _masks(chances)], axis=0)
    return _solved(settings, gamma, lambda given, wasted, counts, time: given @ lots + (1 - lots.sum()) * wasted)


def policy_value(policy: Policy, gamma: float = 1.0, **config: Any) -> float:
    """Expected return of any policy that decides on who is present, the numbers of doughnuts and the time.

    :param policy: f(present (k, n) bool, counts (k, n) int64, steps done) -> actions (k,) int or their probabilities
        (k, n) float
    :param gamma: discount factor, in [0, 1]
    :param config: fields of :class:`~sb3_fair.zoo.envs.doughnut.world.DoughnutConfig`
    :raises ValueError: if the policy returns something else, or there are more states than a computer likes
    """
    settings = configure(DoughnutConfig, config)

    def follow(given: Array, wasted: Array, counts: NDArray[np.int64], time: int) -> Array:
        value = np.zeros(len(wasted))
        for mask, chance in _masks(settings.presences):
            rows = _rows(policy(np.broadcast_to(mask, counts.shape), counts, time), counts.shape)
            value += chance * (rows * np.where(mask, given, wasted[:, None])).sum(axis=1)
        return value

    return _solved(settings, gamma, follow, alike=False)


@checked
def _solved(settings: DoughnutConfig, gamma: float, backup: Backup, alike: bool = True) -> float:
    """Value of the start, from the last step to the first.

    :param backup: (value of giving to each (k, n), of wasting (k,), counts (k, n), steps done) -> value of states (k,)
    :param alike: whether people who are alike may be told apart by their number of doughnuts alone
    """
    steps = settings.episode_length
    welfare, presences = settings.welfare, settings.presences
    alike &= isinstance(welfare, str) or (isinstance(welfare, Welfare) and welfare.groups is None)
    counts, up_to, successors = _states(settings.n_people, steps, bool(alike and (presences == presences[0]).all()))
    worth = settings.scheme.W(counts.astype(np.float64))
    paid_for_waste = worth if settings.waste == "welfare" else np.zeros_like(worth)
    value = np.zeros(len(worth))
    for time in reversed(range(steps)):
        after, now = up_to[time + 1], up_to[time]
        given = (worth[:after] + gamma * value[:after])[successors[:now]]
        wasted = paid_for_waste[:now] + gamma * value[:now]
        value = backup(given, wasted, counts[:now], time)
    return float(value[0])


@lru_cache(maxsize=1)
def _states(people: int, steps: int, ascending: bool) -> tuple[Array, Array, Array]:
    """All numbers of doughnuts (states, n) of at most ``steps`` in total, ordered by it; or the sorted ones only.

    Then how many states have at most 0, 1, ... doughnuts in total, and the states after one more for each (states, n).
    """
    counts = np.zeros((1, 0), dtype=np.int64)
    for person in range(people):
        left = steps - counts.sum(axis=1)
        first = counts[:, -1] if ascending and person else np.zeros(len(counts), dtype=np.int64)
        options = (left // (people - person) if ascending else left) - first + 1
        if options.sum() > MOST_STATES:
            raise ValueError(
                f"episode_length must be smaller for an exact solution with n_people = {people}, got {steps}: "
                f"more than {MOST_STATES:,} states"
            )
        index = np.arange(options.sum()) - np.repeat(np.cumsum(options) - options, options)
        counts = np.column_stack((np.repeat(counts, options, axis=0), np.repeat(first, options) + index))
    total = counts.sum(axis=1)
    order = np.argsort(total, kind="stable")
    counts, total = counts[order], total[order]
    up_to = np.searchsorted(total, np.arange(steps + 1), side="right")
    base = (steps + 1) ** np.arange(people)
    codes = counts @ base
    by_code = np.argsort(codes)
    before_last = counts[: up_to[-2]]
    successors = np.empty(before_last.shape, dtype=np.int64)
    for person in range(people):
        more = before_last.copy()
        more[:, person] += 1
        if ascending:
            more.sort(axis=1)
        successors[:, person] = by_code[np.searchsorted(codes, more @ base, sorter=by_code)]
    return counts, up_to, successors


def _masks(chances: Array) -> list[tuple[NDArray[np.bool_], float]]:
    """Who may be present (n,), and with which probability."""
    masks = [np.array(mask) for mask in product((False, True), repeat=len(chances))]
    return [(mask, float(np.where(mask, chances, 1 - chances).prod())) for mask in masks]


def _rows(decided: Any, shape: tuple[int, ...]) -> Array:
    decided = np.asarray(decided)
    if decided.shape == shape[:1] and decided.dtype.kind in "iu" and ((decided >= 0) & (decided < shape[1])).all():
        return np.eye(shape[1])[decided]
    if decided.shape == shape and decided.dtype.kind == "f" and np.allclose(decided.sum(axis=1), 1):
        return decided
    raise ValueError(
        f"policy must return actions {shape[:1]}, integers below {shape[1]}, or probabilities {shape}, "
        f"got {decided.dtype} {decided.shape}"
    )
