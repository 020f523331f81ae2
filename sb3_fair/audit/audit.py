"""Audits decisions that were already made: a table or file of logged decisions, one per row."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.audit.chunks import Chunks, chunks_of_file, chunks_of_table
from sb3_fair.audit.columns import Columns
from sb3_fair.audit.comparison import gap_rows, group_rows, notion_rows
from sb3_fair.audit.decisions import Decisions, decisions
from sb3_fair.audit.individuals import individual_notions
from sb3_fair.audit.limits import broken_limits, lowest_values
from sb3_fair.audit.log import Log
from sb3_fair.audit.other_policy import other_policy
from sb3_fair.audit.read import OtherPolicy, read_log
from sb3_fair.audit.result import Audit, Moment, Series
from sb3_fair.audit.stakeholders import welfare_figures
from sb3_fair.audit.warn import all_warnings
from sb3_fair.audit.windows import MOST_OVER_TIME, RollingNotions
from sb3_fair.audit.words import sentences
from sb3_fair.fairness.arguments import Count, checked
from sb3_fair.fairness.notions.table import ACCEPTED, NOTIONS, FeedbackMissing, GroupNotion, notion_named
from sb3_fair.fairness.proportions import holm
from sb3_fair.fairness.schemes.scheme import Scheme

POINTS = 120
BAND_DRAWS = 200
"""Rows at which notions over time are shown, and bootstrap draws at each."""


class _File(NamedTuple):
    chunks_of: Callable[[list[str]], Chunks]


@checked
def audit(
    table: Any,
    *,
    action: str,
    group: str | Iterable[str],
    feedback: str | None = None,
    features: Any = (),
    nominal: Any = (),
    score: str | None = None,
    time: str | None = None,
    reward: str | None = None,
    stakeholder: str | None = None,
    propensity: str | None = None,
    target: str | OtherPolicy | None = None,
    window: Count | None = None,
    favourable: Any = None,
    deserving: Any = None,
    notions: Iterable[str] | None = None,
    limits: Mapping[str, float] | None = None,
    distance: Literal["hmom", "heom", "braycurtis"] = "hmom",
    scheme: Scheme | None = None,
    feedback_missing: FeedbackMissing = "undefined",
    confidence: float = 0.95,
    n_boot: Count = 1000,
    n_permutations: Count = 200,
    reservoir: Count = 1000,
    seed: int = 0,
) -> Audit:
    """How fairly the logged decisions in a table treated groups and individuals.

    Intervals of notions are made by a parametric bootstrap of the rates of groups: see
    :mod:`sb3_fair.audit.resampling`.

    >>> log = {"hired": ["yes", "yes", "no", "no"], "gender": ["m", "m", "f", "f"]}
    >>> audit(log, action="hired", group="gender").value("SP")
    -1.0

    :param table: a DataFrame of pandas or polars, a table of pyarrow, or a dict of arrays; one row per decision
    :param action: name of the column with what was decided
    :param group: one or more columns whose groups are compared, alone and combined
    :param feedback: column that says which decision would have been right, or whether the favourable one would
    :param features: columns that describe a person, for individual notions
    :param nominal: those of them whose values are names, not numbers
    :param score: column with the probability of the favourable decision; None: individual notions take the decision
    :param time: column with numbers or dates; None: the rows are in order of time
    :param reward: column with what a decision brought to its stakeholder
    :param stakeholder: column with whom it concerned, for welfare
    :param propensity: column with the probability with which the decision that was made had been made
    :param target: column with the probability with which another policy would make the favourable decision, or that
        policy: see
        :mod:`sb3_fair.audit.other_policy`
    :param window: number of latest decisions for notions over time; None: not over time
    :param favourable: the favourable action, or several; None: the one that means yes
    :param deserving: the values of ``feedback`` that mean a favourable decision was right; None: the favourable
        actions if all values are actions, else the one that means yes
    :param notions: names; None: all that the columns allow
    :param limits: notion, or notion@attribute -> lowest value that is accepted
    :param distance: between people, for individual notions; see :class:`sb3_fair.fairness.Distance`
    :param scheme: a fairness scheme, scored on the sums of rewards
    :param feedback_missing: what unknown outcomes mean, see :func:`sb3_fair.fairness.group_notion`
    :param confidence: of all intervals, in (0, 1)
    :param n_boot: draws of the bootstrap
    :param n_permutations: draws for chance levels
    :param reservoir: at most so many people, a uniform sample, for individual notions
    :param seed: of everything random
    :raises ValueError: if a column is missing, or a value does not fit; names it, and the rows
    :raises TypeError: if the table is of another kind
    """
    from sb3_fair import __version__

    policy = target if isinstance(target, OtherPolicy) else None
    named = target if policy is None else policy.name
    columns = Columns(action, group, feedback, features, nominal, score, time, reward, stakeholder, propensity, named)  # type: ignore[arg-type]
    names = _asked(notions, columns)
    lowest = lowest_values(limits or {}, names, columns.group)
    chunks_of = table.chunks_of if isinstance(table, _File) else partial(chunks_of_table, table)
    log = read_log(chunks_of, columns, reservoir, seed, policy)
    decided = decisions(log, favourable, deserving)
    rng = np.random.default_rng(seed)
    group_names = [name for name in names if NOTIONS[name].needs_groups]
    chosen = [notion for name in group_names if isinstance(notion := NOTIONS[name], GroupNotion)]
    groups, found, gaps = [], [], []
    for attribute in decided.compared:
        counts = attribute.counts(decided.cells)
        own = group_rows(attribute, counts, feedback_missing, confidence)
        groups += own
        if chosen:
            found += notion_rows(
                attribute, counts, chosen, feedback_missing, confidence, n_boot, n_permutations, rng
            )  # fmt: skip
            gaps += gap_rows(attribute, counts, own, group_names, feedback_missing, confidence)
    accepted = np.zeros(log.n, dtype=bool)
    accepted[decided.rows] = ACCEPTED[decided.cells]
    individual = [name for name in names if name not in group_names]
    found += individual_notions(log, accepted, individual, distance, confidence)
    raised = holm([gap.p_holm for gap in gaps])
    gaps = [replace(gap, p_holm=float(p)) for gap, p in zip(gaps, raised, strict=True)]
    windows: RollingNotions | None = None
    series: list[Series] = []
    moments: list[Moment] = []
    if window is not None and chosen and window <= decided.timed:
        few = [attribute for attribute in decided.attributes if len(attribute.labels) <= MOST_OVER_TIME]
        windows = RollingNotions(few, decided.cells[: decided.timed], chosen, window, feedback_missing)
        series, moments = _over_time(windows, log, decided, lowest, rng, confidence)
    about = {
        "rows": log.n,
        "decisions": len(decided.rows),
        **asdict(columns),
        "favourable": decided.favourable,
        "deserving": decided.deserving,
        "feedback_missing": feedback_missing,
        "notions": names,
        "window": window,
        "sample": None if log.sample is None else len(log.sample.rows),
        "confidence": confidence,
        "n_boot": n_boot,
        "n_permutations": n_permutations,
        "seed": seed,
        "version": __version__,
    }
    warned = [*log.warnings, *all_warnings(log, decided, groups, found, gaps, window, feedback_missing)]
    broken = broken_limits(found, lowest)
    welfare = welfare_figures(log, decided, scheme)
    rates, earned, wrong = other_policy(log, decided, confidence, seed)
    warned += wrong
    telling = not (decided.selective and feedback_missing == "ignore")
    said = sentences(about, groups, found, gaps, moments, broken, rates, telling)
    return Audit(about, groups, found, gaps, series, moments, welfare, broken, said, warned, rates, earned, windows)


def audit_file(
    path: str | Path, *, delimiter: str | None = None, encoding: str | None = None, **arguments: Any
) -> Audit:
    """:func:`audit` of a CSV, Parquet or JSON-lines file, which is read in chunks.

    :param path: ends in .csv, .tsv, .txt, .parquet, .pq, .jsonl, .ndjson or .json
    :param delimiter: of CSV; None: as the file looks
    :param encoding: of CSV; None: UTF-8, or where the file is not, that of Western Windows (cp1252), with a warning
    :param arguments: those of :func:`audit` but the table
    :raises OSError: if there is no such file
    :raises ValueError: as for :func:`audit`, or if the file is unreadable, damaged or empty
    """
    return audit(_File(partial(chunks_of_file, path, delimiter=delimiter, encoding=encoding)), **arguments)


def _asked(notions: Iterable[str] | None, columns: Columns) -> list[str]:
    lacking = {
        name: "feedback" if notion.needs_feedback and columns.feedback is None
        else "features" if notion.needs_features and not columns.features else ""
        for name, notion in NOTIONS.items()
    }  # fmt: skip
    if notions is None:
        return [name for name, what in lacking.items() if not what]
    names = list(dict.fromkeys(notions))
    for name in names:
        notion_named(name)
        if lacking[name]:
            raise ValueError(f"notion {name!r} needs {lacking[name]}")
    if not names:
        raise ValueError("notions must name at least one, got none")
    return names


def _over_time(
    windows: RollingNotions,
    log: Log,
    decided: Decisions,
    limits: Mapping[tuple[str, str], float],
    rng: np.random.Generator,
    confidence: float,
) -> tuple[list[Series], list[Moment]]:
    series, moments = [], []
    for attribute in windows.attributes:
        own = {name: limit for (name, of), limit in limits.items() if of == attribute}
        places, shown, found = windows.course(attribute, POINTS, own, BAND_DRAWS, rng, confidence)
        rows = decided.rows[places]
        for column, name in enumerate(windows.notions):
            values = shown[:, :, column].tolist()
            limit = own.get(name, math.nan)
            series.append(Series(attribute, name, limit, (rows + 1).tolist(), _times(log, rows), *values))
        for name, runs in found.items():
            for run in runs:
                ends = decided.rows[[run.first, run.last]]
                (first, last), (start, end) = (ends + 1).tolist(), _times(log, ends) or (None, None)
                moments.append(Moment(attribute, name, own[name], first, last, start, end, run.worst))
    return series, moments


def _times(log: Log, rows: NDArray[np.int64]) -> list[str] | None:
    if log.times is None:
        return None
    times = log.times[rows]
    if times.dtype.kind == "M":
        daily = (log.times.astype("datetime64[D]") == log.times)[~np.isnat(log.times)].all()
        return [text.replace("T", " ") for text in np.datetime_as_string(times, unit="D" if daily else "s").tolist()]
    return [np.format_float_positional(value, trim="-") for value in times]
