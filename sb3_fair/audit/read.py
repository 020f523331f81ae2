"""Reads decisions of files and tables into a log."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.audit.chunks import Chunk, Chunks
from sb3_fair.audit.columns import Columns
from sb3_fair.audit.log import Log
from sb3_fair.audit.values import Labels, numbers


class OtherPolicy(NamedTuple):
    """A policy that is asked what it would have decided.

    :param name: what to call it
    :param columns: what it wants to know of a person
    :param favourable: f(column -> (m,) numbers or texts) -> (m,) probabilities of the favourable decision
    :param nominal: those columns whose values are names: texts, of which only the empty one is missing
    """

    name: str
    columns: Sequence[str]
    favourable: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]]
    nominal: Collection[str] = ()


def read_log(
    chunks_of: Callable[[list[str]], Chunks], columns: Columns, reservoir: int, seed: int, policy: OtherPolicy | None
) -> Log:
    """The log in a table or file, read chunk by chunk.

    :param chunks_of: f(names of columns) -> their values
    :param policy: who gives ``columns.target``, by what it wants to know; nothing of people of whom that is missing
    :raises ValueError: if a value does not fit its column
    """
    used = columns.used
    if policy is not None:
        used = list(dict.fromkeys([*(name for name in used if name != policy.name), *policy.columns]))
    chunks = chunks_of(used)
    log = Log(columns, reservoir, seed, comma=chunks.comma)
    for chunk in chunks.chunks:
        log.add(chunk if policy is None else {**chunk, policy.name: _asked(policy, chunk, log.n, chunks.comma)})
    log.finish().warnings.extend(chunks.warnings)
    return log


def _asked(policy: OtherPolicy, chunk: Chunk, start: int, comma: bool) -> NDArray[np.float64]:
    """What the policy says of the people of a chunk (m,), NaN of those of whom it wants to know more."""
    people: dict[str, NDArray[Any]] = {}
    known: Any = True
    for name in policy.columns:
        if name in policy.nominal:
            labels = Labels(name, most=None, comma=comma)
            codes = labels.codes(chunk[name])
            people[name] = np.array(["", *labels.names], dtype=object)[codes]
            known = known & (codes > 0)
        else:
            people[name] = numbers(name, chunk[name], start, comma)
            known = known & ~np.isnan(people[name])
    chances = np.full(len(known), np.nan)
    if known.any():
        chances[known] = policy.favourable({name: values[known] for name, values in people.items()})
    return chances
