"""Bootstrap intervals, effective numbers of people and Manski bounds of group notions, from tables of counts alone.

A decision is only known by its group and its cell, so that any number of rows is a table of counts (groups, CELLS).
Drawing n people of a group with replacement is drawing a multinomial count over its cells, which is exact and takes no
longer for more rows.
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
_ENTRIES = 2_000_000
"""Counts drawn at once."""
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


def drawn(counts: Array, n_boot: int, rng: np.random.Generator) -> Array:
    """Counts (n_boot, ..., groups, CELLS) of as many people of each group, drawn with replacement."""
    people = counts.sum(axis=-1)
    shares = np.divide(counts, people[..., None], out=np.zeros_like(counts), where=people[..., None] > 0)
    # The largest cell is drawn last, as the rest: shares that add up to a little more than 1 do no harm there.
    order = np.argsort(shares, axis=-1)
    shares = np.take_along_axis(shares, order, axis=-1)
    shares[..., -1] = np.maximum(1.0 - shares[..., :-1].sum(axis=-1), 0.0)
    found = rng.multinomial(people.astype(np.int64), shares, size=(n_boot, *people.shape))
    back = np.broadcast_to(np.argsort(order, axis=-1), found.shape)
    return np.take_along_axis(found, back, axis=-1).astype(np.float64)


def notion_intervals(counts: Array, table: GapTable, n_boot: int, rng: np.random.Generator, confidence: float) -> Array:
    """Confidence intervals (notions, 2) of the values that ``table`` has for ``counts`` (groups, CELLS).

    The value is minus the largest of several differences, so that percentiles of its draws lie beside the truth where
    rates are nearly equal: the largest difference of equal rates is never 0. Therefore every pair of groups that may be
    the furthest apart gets an interval for its signed difference; their half-widths are multiples of the standard
    errors of the draws, the same for all pairs, chosen so that all of them hold at once. With two groups this is an
    ordinary bootstrap interval, folded at 0. It covers more than asked for where the extremes are nearly tied. As draws
    have no spread where all or nobody of a small group got the favourable decision, an interval is never shorter than
    Newcombe's.

    :param n_boot: number of draws
    """
    (hits,), (people,) = table.hits_and_people(counts[None])
    part = effective_part(counts, table, hits, people)
    batch = max(1, _ENTRIES // counts.size)
    parts = (drawn(counts, min(batch, n_boot - start), rng) for start in range(0, n_boot, batch))
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = hits / people
        draws = np.concatenate([np.divide(*table.hits_and_people(part)) for part in parts])
    ends = np.full((rates.shape[1], 2), np.nan)
    for rate in range(rates.shape[1]):
        there = np.flatnonzero(~np.isnan(rates[:, rate]))
        if len(there) > 1:
            among = part[there, rate]
            shares = wilson(hits[there, rate] * among, people[there, rate] * among, confidence)
            ends[rate] = _range_interval(rates[there, rate], draws[:, there, rate], shares, confidence)
    return _worst_of_both(table, ends)


def _range_interval(rates: Array, draws: Array, shares: Interval, confidence: float) -> tuple[float, float]:
    """Interval of max - min of rates (groups,), given draws (n_boot, groups) of them."""
    off = draws - rates
    high, low = rates.argmax(), rates.argmin()
    spread = _spread(off)
    tops, bottoms = (
        np.flatnonzero(np.abs(rates - rates[end]) <= _CANDIDATE * np.hypot(spread, spread[end])) for end in (high, low)
    )
    one, two = (index.ravel() for index in np.meshgrid(tops, bottoms))
    one, two = one[one != two], two[one != two]
    if not len(one):  # all rates are the same, without any spread
        one, two = np.array([high]), np.array([(high + 1) % len(rates)])
    gaps = rates[one] - rates[two]
    if len(one) > _PAIRS:
        candidates = off[:, np.union1d(tops, bottoms)]
        errors: Array | float = 1.0
        worst = np.fmax.reduce(candidates, axis=1) - np.fmin.reduce(candidates, axis=1)
    else:
        apart = off[:, one] - off[:, two]
        errors = _spread(apart)
        with np.errstate(invalid="ignore", divide="ignore"):
            worst = np.fmax.reduce(np.where(errors > 0, np.abs(apart) / errors, 0.0), axis=1)
    half = np.quantile(np.nan_to_num(worst), confidence) * errors
    pair = newcombe(*(Interval(*(each[index] for each in shares)) for index in (one, two)))
    lows, highs = np.minimum(gaps - half, pair.low), np.maximum(gaps + half, pair.high)
    return float(np.clip(lows.max(), 0.0, 1.0)), float(np.clip(np.maximum(highs, -lows).max(), 0.0, 1.0))


def _spread(draws: Array) -> Array:
    """Root mean square of draws (n_boot, m) that are defined; 0 where none is."""
    defined = np.count_nonzero(~np.isnan(draws), axis=0)
    return np.sqrt(np.nansum(draws * draws, axis=0) / np.maximum(defined, 1))


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
    return _worst_of_both(table, gaps)


def _worst_of_both(table: GapTable, ends: Array) -> Array:
    """Lowest and highest values (notions, 2) from the smallest and largest size (rates, 2) of each rate's gap."""
    low, high = (table.worst(0.0 - ends[None, :, end])[0] for end in (1, 0))
    return np.stack([low, high], axis=-1)
