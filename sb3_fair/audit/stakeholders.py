"""Welfare of the stakeholders of a log, and the score of a fairness scheme."""

import math
import warnings
from contextlib import suppress

import numpy as np

from sb3_fair.audit.decisions import Decisions
from sb3_fair.audit.log import Log
from sb3_fair.audit.result import Figure
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.fairness.welfare import WELFARES, Welfare

SHOWN = ("utilitarian", "rawls", "nash_geometric", "gini", "gini_welfare", "jain")
MOST = 50_000_000
"""Entries of the statuses after every row that a scheme is scored on."""


def welfare_figures(log: Log, decisions: Decisions, scheme: Scheme | None) -> list[Figure]:
    """Welfare of the sums of rewards per stakeholder, and the scheme's score of these sums row by row.

    NaN where a formula is not defined, as for negative sums.

    :raises ValueError: if a scheme is given without rewards, or the log is too long for it
    """
    if "reward" not in log.numbers or log.stakeholders is None:
        if scheme is not None:
            raise ValueError("scheme must be given with reward and stakeholder")
        return []
    rewards, who = log.numbers["reward"][decisions.rows], log.stakeholders[decisions.rows]
    known = ~np.isnan(rewards) & (who > 0)
    rewards, who = rewards[known], np.unique(who[known], return_inverse=True)[1]  # of others, nothing is known
    if not len(who):
        return []
    totals = np.bincount(who, rewards)
    people = len(totals)
    found = []
    for name in SHOWN:
        with warnings.catch_warnings(), suppress(ValueError):  # of negative sums
            warnings.simplefilter("ignore")
            value = math.nan
            value = float(Welfare(name)(totals))
        found.append(Figure(name, WELFARES[name].title, value))
    if scheme is not None:
        if len(who) * people > MOST:
            raise ValueError(
                f"scheme must have at most {MOST:,} statuses (rows times stakeholders), got {len(who):,} times {people}"
            )
        status = np.zeros((len(who), people))
        status[np.arange(len(who)), who] = rewards
        np.cumsum(status, axis=0, out=status)
        name = scheme.welfare if isinstance(scheme.welfare, str) else getattr(scheme.welfare, "name", "welfare")
        title = f"score of the scheme: {scheme.temporal} of {name}"
        found.append(Figure("scheme", title, float(scheme.score(status))))
    return found
