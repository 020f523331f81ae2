"""Intervals by a parametric bootstrap, effective numbers of people and Manski bounds of group notions.

A decision is only known by its group and its cell, so that any number of rows is a table of counts (groups, CELLS), and
nothing takes longer for more rows.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.intervals import Interval
from sb3_fair.fairness.notions.table import ACCEPTED, CELLS, DESERVING, KNOWN, RIGHT, GapTable, feedback_counts
from sb3_fair.fairness.proportions import newcombe, wilson

Array = NDArray[np.float64]
_CANDIDATE = 3.0
"""Groups whose rate is so many standard errors from the highest may be the highest."""
_PAIRS = 2000
"""With more pairs of groups than this, all have intervals of the same width."""
_ALIKE = 2.0
"""Rates that differ up to so many times as much as by chance may be equal."""
_NUDGE = 1e-6
"""Relative change of a count that shows how much a rate depends on it."""


def effective_part(counts: Array, table: GapTable, hits: Array, people: Array) -> Array:
    """Effective number of people as a part of those whom ``table`` counts (groups, rates).

    1, or less where known outcomes stand for unknown ones: then the variance of a rate by the delta method is rate *
    (1 - rate) / effective number. A rate of 0 or 1 shows no variance; everybody counts as little as those of known
    outcome who stand for the most others.

    :param counts: (groups, CELLS)
    :param hits: of the table's rates, with people (groups, rates)
    """
    part = np.ones_like(people)
    if table.reweights:
        made, known = feedback_counts(counts)
        part /= np.divide(made, known, out=np.ones_like(made), where=known > 0).max(axis=1, keepdims=True)
        nudged = table.hits_and_people(counts * (1 + _NUDGE * np.eye(CELLS)[:, None]))
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = hits / people
            slopes = (np.divide(*nudged) - rates) / _NUDGE  # (CELLS, groups, rates), by the logarithm of a count
        cells = counts.T[:, :, None]
        variance = np.divide(slopes**2, cells, out=np.zeros_like(slopes), where=cells > 0).sum(axis=0)
        spread = rates * (1 - rates)
        np.divide(spread, variance * people, out=part, where=spread > _NUDGE**2)
    return part


def notion_intervals(counts: Array, table: GapTable, n_boot: int, rng: np.random.Generator, confidence: float) -> Array:
    """Confidence intervals (notions, 2) of the values that ``table`` has for ``counts`` (groups, CELLS).

    The value is minus the largest of several differences, so that percentiles of its draws lie beside the truth where
    rates are nearly equal: the largest difference of equal rates is never 0. Therefore every pair of groups that may be
    the furthest apart gets an interval for its signed difference; their half-widths are multiples of the standard
    errors, the same for all pairs, chosen by draws of all rates so that all of them hold at once. With two groups this
    is an ordinary interval, folded at 0. An interval is never shorter than Newcombe's. Those of the rates of a notion
    that has two hold at once (Bonferroni).

    :param n_boot: number of draws
    """
    (hits,), (people,) = table.hits_and_people(counts[None])
    part = effective_part(counts, table, hits, people)
    hits, people = hits * part, people * part
    draws = rng.standard_normal((n_boot, len(counts)))
    found = np.full((len(table.rates_of), 2), np.nan)
    for notion, rates in enumerate(table.rates_of):
        known = [(rate, there) for rate in rates if (there := people[:, rate] > 0).sum() > 1]
        ends = [
            _range_interval(hits[there, rate], people[there, rate], draws[:, there], 1 - (1 - confidence) / len(known))
            for rate, there in known
        ]
        if ends:
            found[notion] = 0.0 - np.max(ends, axis=0)[::-1]
    return found


def _range_interval(hits: Array, people: Array, draws: Array, confidence: float) -> tuple[float, float]:
    """Interval of max - min of the rates of groups, (groups,) each, given standard normal draws (n_boot, groups)."""
    rates, spread = hits / people, _standard_errors(hits, people)
    high, low = rates.argmax(), rates.argmin()
    tops, bottoms = (
        np.flatnonzero(np.abs(rates - rates[end]) <= _CANDIDATE * np.hypot(spread, spread[end])) for end in (high, low)
    )
    one, two = (index.ravel() for index in np.meshgrid(tops, bottoms))
    one, two = one[one != two], two[one != two]
    if not len(one):  # all rates are the same, without any spread
        one, two = np.array([high]), np.array([(high + 1) % len(rates)])
    gaps = rates[one] - rates[two]
    off = draws * spread
    if len(one) > _PAIRS:
        candidates = off[:, np.union1d(tops, bottoms)]
        errors: Array | float = 1.0
        worst = candidates.max(axis=1) - candidates.min(axis=1)
    else:
        errors = np.hypot(spread[one], spread[two])
        apart = np.abs(off[:, one] - off[:, two])
        worst = np.divide(apart, errors, out=np.zeros_like(apart), where=errors > 0).max(axis=1)
    half = np.quantile(worst, confidence) * errors
    shares = wilson(hits, people, confidence)
    pair = newcombe(*(Interval(*(each[index] for each in shares)) for index in (one, two)))
    lows, highs = np.minimum(gaps - half, pair.low), np.maximum(gaps + half, pair.high)
    return float(np.clip(lows.max(), 0.0, 1.0)), float(np.clip(np.maximum(highs, -lows).max(), 0.0, 1.0))


def _standard_errors(hits: Array, people: Array) -> Array:
    """Of the rates of groups.

    The variance of a rate is smaller near 0 and 1, and the groups that are the furthest apart are so in part by chance.
    Therefore all rates are first moved towards the rate of all people: the less the groups differ, the further.
    """
    rates, whole = hits / people, hits.sum() / people.sum()
    variance = whole * (1 - whole)
    chi2 = (people * (rates - whole) ** 2).sum() / variance if variance else 0.0
    usual = len(rates) - 1
    moved = np.clip(rates + (whole - rates) * (usual * _ALIKE / max(chi2, usual * _ALIKE)), 0.0, 1.0)
    return np.sqrt(moved * (1 - moved) / people)


def bounds(counts: Array, table: GapTable) -> Array:
    """Lowest and highest value (notions, 2) of each notion, whatever the unknown outcomes are (Manski 1990).

    The lowest value can be attained by notions of one rate; the highest may be missed by less than a person.

    :param counts: (groups, CELLS) of what is known
    """
    corners = []
    for deserve in product((False, True), repeat=2):  # the rejected, the accepted
        filled = np.where(KNOWN, counts, 0.0)
        for took, right in enumerate(deserve):
            cell = np.equal(ACCEPTED, took) & np.equal(DESERVING, right) & np.equal(RIGHT, took == right)
            filled[:, np.flatnonzero(KNOWN & cell)[0]] += counts[:, ~KNOWN & np.equal(ACCEPTED, took)].sum(axis=1)
        corners.append(filled)
    hits, people = table.hits_and_people(np.array(corners))
    gaps = np.full((hits.shape[-1], 2), np.nan)
    for rate in range(len(gaps)):
        there = (people[..., rate] > 0).any(axis=0)
        if there.sum() > 1:
            with np.errstate(invalid="ignore", divide="ignore"):
                share = hits[:, there, rate] / people[:, there, rate]
            low, high = np.nanmin(share, axis=0), np.nanmax(share, axis=0)
            apart = high[:, None] - low[None, :]
            np.fill_diagonal(apart, -1.0)
            always = (people[:, there, rate] > 0).all(axis=0)  # other groups may have no rate at all
            least = low[always].max() - high[always].min() if always.any() else 0.0
            gaps[rate] = max(0.0, least), apart.max()
    return np.stack([table.worst(0.0 - gaps[None, :, end])[0] for end in (1, 0)], axis=-1)
