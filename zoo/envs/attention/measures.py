"""Disparities of attention allocation.

Short- and long-term disparity of the attention scenario, from "Striking a Balance in Fairness for Dynamic Systems
Through Reinforcement Learning" (arXiv 2401.06318).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.disparity.measures import Array, Candidates, Facts, Measures, Rows, by_probability
from sb3_fair.zoo.envs.attention import allocation

_LEAST = 0.005  # probability that a location keeps when a unit is moved away from it


def disparity(values: ArrayLike, total: ArrayLike | None = None) -> NDArray[np.float64]:
    """Largest distance of a location's share from the equal share: max over k of abs(v_k / total - 1 / K) (...).

    0 if all are equal, or if there is nothing to share. Whole numbers that are equally unequal have equal disparities,
    with no rounding error.

    :param values: (..., K), non-negative
    :param total: what the values are shares of (...); None: their sum
    """
    columns = allocation.by_location(values)
    total = np.asarray(columns.sum(axis=0) if total is None else total)
    known = total > 0
    gap: NDArray[np.float64] = _deviation(columns, total) / (np.where(known, total, 1) * len(columns))
    return np.where(known, gap, 0.0)


def raw_disparity(values: ArrayLike) -> NDArray[np.float64]:
    """Largest distance of a location's value from their mean: max over k of abs(v_k - mean(v)) (...).

    :param values: (..., K)
    """
    columns = allocation.by_location(values)
    return _deviation(columns, columns.sum(axis=0)) / len(columns)


def _deviation(columns: NDArray[Any], total: NDArray[Any]) -> NDArray[Any]:
    """K times the largest distance of a value from total / K.

    :param columns: (K, ...)
    """
    return np.abs(columns * len(columns) - total).max(axis=0)


@dataclass(frozen=True)
class AttentionMeasures(Measures):
    """Measures of the action mode ``"allocation"``: actions are numbers of allocations (n,), and every other one is a
    candidate. Preferred are probable ones, then low ones.

    ``massage`` has ``units`` (n, K), the units that each location got in those steps of the window that still belong
    to it when the coming step is added, and ``steps`` (n,), the number of steps in the window with the coming one.

    :param n_locations: K
    :param n_units: units per step
    :param norm_steps: number of steps that shares refer to; None: as many as there are in the window
    """

    n_locations: int
    n_units: int
    norm_steps: int | None = None

    reported: ClassVar[Mapping[str, str]] = {
        "utility": "reward",
        "short_term": "d_s",
        "long_term": "d_l_rates",
        "raw rates": "d_l_rates_raw",
        "cumulative short-term": "d_s_cumulative",
    }

    def threshold(self, iteration: int) -> float:
        """Always 0.08."""
        return 0.08

    def short_term_of(self, units: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Short-term disparity (...) of the units (..., K) that the locations got in a number of steps (...)."""
        return disparity(units, self.total(steps))

    def total(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the units of a number of steps (...) are divided by, to be shares."""
        counted = steps if self.norm_steps is None else np.full_like(steps, self.norm_steps)
        return self.n_units * counted

    def would_be(self, massage: Facts, candidates: Array) -> NDArray[np.float64]:
        """Short-term disparity (n, k) after the coming step, if ``candidates`` (n, k, ...) were executed."""
        units, steps = np.asarray(massage["units"]), np.asarray(massage["steps"])
        return self.short_term_of(units[:, None] + self.allocation(candidates), steps[:, None])

    def allocation(self, actions: Array) -> NDArray[np.int64]:
        """Units per location (..., K) that the actions stand for."""
        return allocation.index_to_allocation(actions, self.n_units, self.n_locations)

    def candidates(self, massage: Facts, actions: Array, probabilities: Rows) -> Candidates:
        return by_probability(np.asarray(actions), _known(probabilities))


@dataclass(frozen=True)
class LogitMeasures(AttentionMeasures):
    """Actions are logits (n, K); a candidate moves one unit between two locations, for all ordered pairs.

    Probabilities of actions are those of locations, the softmax of the logits. The move is written back to the logits:
    the probability of the location that loses the unit falls by ``1 / n_units``, but not below 0.005; what it loses
    goes to the other one, and the rest stays. Where logits do not stand for the allocation that was meant, or leave the
    Box, there is no candidate. Preferred are close locations, then low ones.

    :param logit_bound: bound of the Box; actions beyond are clipped
    """

    logit_bound: float = 10.0

    def allocation(self, actions: Array) -> NDArray[np.int64]:
        return allocation.logits_to_allocation(np.clip(actions, -self.logit_bound, self.logit_bound), self.n_units)

    def candidates(self, massage: Facts, actions: Array, probabilities: Rows) -> Candidates:
        return self.close_candidates(massage, actions, probabilities, np.inf)

    def close_candidates(self, massage: Facts, actions: Array, probabilities: Rows, threshold: float) -> Candidates:
        """Those whose locations are closer than the threshold."""
        logits = np.clip(np.asarray(actions), -self.logit_bound, self.logit_bound)
        chances = allocation.location_probabilities(logits)
        units = allocation.nearest_allocation(chances, self.n_units)
        losers, winners = np.nonzero(~np.eye(self.n_locations, dtype=bool))
        closeness = np.abs(chances[:, losers] - chances[:, winners])
        able = (units > 0) & (chances > _LEAST)
        rows, pairs = np.nonzero(able[:, losers] & (closeness < threshold))
        moves, loser, winner = np.arange(len(rows)), losers[pairs], winners[pairs]
        lost, won = chances[rows, loser], chances[rows, winner]
        kept = np.maximum(_LEAST, lost - 1 / self.n_units)
        scale = logits.max(axis=1) - np.log(chances.max(axis=1))  # log of the sum of the exponentials
        moved, meant = logits[rows], units[rows]
        moved[moves, loser] = scale[rows] + np.log(kept)
        moved[moves, winner] = scale[rows] + np.log(won + lost - kept)
        meant[moves, loser] -= 1
        meant[moves, winner] += 1
        valid = ((np.abs(moved) <= self.logit_bound) & (self.allocation(moved) == meant)).all(axis=1)
        # Candidates by closeness; rows that have fewer than others are filled up with the logits themselves.
        close = closeness[rows, pairs]
        order = np.lexsort((close, rows))
        counts = np.bincount(rows, minlength=len(logits))
        there = np.arange(counts.max(initial=0)) < counts[:, None]
        listed, near = np.repeat(logits[:, None], there.shape[1], axis=1), np.full(there.shape, np.inf)
        listed[there], near[there] = moved[order], close[order]
        there[there] = valid[order]
        return Candidates(listed, near, there)


@dataclass(frozen=True)
class UnitMeasures(AttentionMeasures):
    """Actions are the locations of the units (n, units); a candidate moves one unit to another location.

    Probabilities are those of that unit's location. Preferred are close ones, then low locations.
    """

    def allocation(self, actions: Array) -> NDArray[np.int64]:
        return allocation.units_to_allocation(actions, self.n_locations)

    def candidates(self, massage: Facts, actions: Array, probabilities: Rows) -> Candidates:
        actions, rows = np.asarray(actions), _known(probabilities)
        unit, winner = (places.ravel() for places in np.indices((self.n_units, self.n_locations)))
        loser = actions[:, unit]
        moved = np.repeat(actions[:, None], len(unit), axis=1)
        moved[:, np.arange(len(unit)), unit] = winner
        present = np.take_along_axis(rows, actions[:, :, None], axis=2)
        closeness = np.abs(rows - present).reshape(len(actions), -1)
        order = np.lexsort((np.broadcast_to(winner, loser.shape), loser, closeness), axis=-1)
        return Candidates(
            np.take_along_axis(moved, order[:, :, None], axis=1),
            np.take_along_axis(closeness, order, axis=1),
            np.take_along_axis(loser != winner, order, axis=1),
        )


def _known(probabilities: Rows) -> NDArray[np.float64]:
    if probabilities is None:
        raise ValueError("probabilities must be those of the policy in this action mode, got None")
    return np.asarray(probabilities)
