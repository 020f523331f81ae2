"""Tables of the study of fairness MDPs.

Which policy of a front is its best performer, or its fairest one that still performs, is decided on the episodes that
chose the front; all figures are of the fresh ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.pareto import expected_utility, generational_distance, hypervolume, min_max, nondominated
from sb3_fair.fairness.intervals import mean_of_known
from sb3_fair.report.selection import kind
from sb3_fair.zoo.studies.hiring import GOOD_ENOUGH
from sb3_fair.zoo.studies.study import over

Policies = Sequence[Mapping[str, Any]]
Summary = dict[str, list[float]]
COMMON = ("R", "SP", "IF")
"""Whole-episode figures in which all fronts of a study are compared."""
USUAL = {"group": "SP", "individual": "IF"}
"""Notion shown of fronts that optimise none of its kind."""


@dataclass(frozen=True)
class Row:
    """The fronts of one setting or learner.

    :param objectives: optimised
    :param scale: of its environment, as :func:`~sb3_fair.zoo.studies.fmdp_runs.scales` gives it
    :param floors: smallest unit per objective
    :param runs: of each seed, its runs
    """

    objectives: tuple[str, ...]
    scale: Mapping[str, Mapping[str, Mapping[str, float]]]
    floors: Mapping[str, float]
    runs: Sequence[Sequence[Mapping[str, Any]]]

    @property
    def fronts(self) -> list[Policies]:
        """Of each seed, the policies that were not dominated on the choosing episodes, best first objective first."""
        return [_front([policy for run in runs for policy in run["policies"]]) for runs in self.runs]

    @property
    def steps(self) -> list[int]:
        """Of each seed, of all its runs together."""
        return [sum(run["steps"] for run in runs) for runs in self.runs]

    def notion(self, which: str) -> str:
        """The ``"group"`` or ``"individual"`` notion that it is about."""
        return next((name for name in self.objectives if kind(name) == which), USUAL[which])


def units(scale: Mapping[str, Mapping[str, float]], floors: Mapping[str, float], names: Sequence[str]) -> list[float]:
    """What a difference in each objective is measured in: the range of policies that ignore what they see, or more."""
    return [max(scale["range"][name], floors.get(name, 0.0)) or 1.0 for name in names]


def points(policies: Policies, figures: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Means (m, k).

    :param figures: ``"returns"`` or ``"whole"``
    """
    return np.array([[policy[figures][name] for name in names] for policy in policies], dtype=np.float64)


def volume(row: Row, policies: Policies, figures: str, names: Sequence[str]) -> float:
    """Hypervolume above the reference point of the environment, every objective in its unit. A policy that lacks a
    figure adds nothing."""
    scale = row.scale[figures]
    reference = np.array([scale["reference"][name] for name in names])
    found = points(policies, figures, names)
    found = np.where(np.isnan(found).any(axis=1, keepdims=True), reference, found)
    return hypervolume((found - reference) / units(scale, row.floors, names), np.zeros(len(names)))


def summaries(rows: Mapping[str, Row], *, compete: bool = False) -> dict[str, Summary]:
    """Mean and 95 % interval over seeds of every figure of every row.

    :param compete: whether rows are learners on the same objectives: adds what compares them, and by how much the first
        row's hypervolume exceeds the others'
    """
    found = {
        label: [
            {**_figures(row, front), "steps": float(steps)} for front, steps in zip(row.fronts, row.steps, strict=True)
        ]
        for label, row in rows.items()
    }
    if compete:
        _compare(rows, found)
    return {label: over(each) for label, each in found.items()}


def _front(policies: Policies) -> Policies:
    chosen = np.array([policy["choosing"] for policy in policies])
    kept = [policy for policy, best in zip(policies, nondominated(chosen), strict=True) if best]
    return sorted(kept, key=lambda policy: -policy["choosing"][0])


def _figures(row: Row, front: Policies) -> dict[str, float]:
    first = front[0]
    parities = [abs(policy["whole"]["SP"]) for policy in front]
    chances = [policy["chance"].get("SP", np.nan) for policy in front]
    return {
        "policies": float(len(front)),
        **first["whole"],
        **{f"{which} notion": first["whole"].get(row.notion(which), np.nan) for which in USUAL},
        **{f"{which} notion, fairer": _fairer(row, front, row.notion(which)) for which in USUAL},
        "individual notion, mean": mean_of_known([policy["whole"][row.notion("individual")] for policy in front]),
        "|SP|": mean_of_known(parities),
        "|SP| by chance": mean_of_known(chances),
        "hypervolume": volume(row, front, "returns", row.objectives),
        "hypervolume, whole": volume(row, front, "whole", COMMON),
    }


def _fairer(row: Row, front: Policies, notion: str) -> float:
    """The notion of the policy that is fairest among those with most of the best performance."""
    if "R" not in row.objectives or notion not in row.objectives:
        return float(front[0]["whole"].get(notion, np.nan))
    chosen = np.array([policy["choosing"] for policy in front])
    performance, fairness = (chosen[:, row.objectives.index(name)] for name in ("R", notion))
    good = performance >= performance.max() - (1 - GOOD_ENOUGH) * abs(performance.max())
    best = int(np.argmax(np.where(good, fairness, -np.inf)))
    return float(front[best]["whole"].get(notion, np.nan))


def _compare(rows: Mapping[str, Row], found: Mapping[str, list[dict[str, float]]]) -> None:
    """Adds distance to the front of all learners and seeds together, expected utility, and what the first row gains.

    Objectives are scaled by the range of that front.
    """
    labels = list(rows)
    names = rows[labels[0]].objectives
    each = [
        (label, seed, points(front, "returns", names))
        for label in rows
        for seed, front in enumerate(rows[label].fronts)
    ]
    everything = np.concatenate([found for _, _, found in each])
    best = nondominated(everything)
    low, width = everything[best].min(axis=0), np.ptp(everything[best], axis=0)
    width = np.where(width > 0, width, 1.0)
    for label, seed, front in each:
        scaled = (front - low) / width
        figures = found[label][seed]
        figures["distance"] = generational_distance(scaled, min_max(everything[best]))
        figures["utility"] = expected_utility(scaled)
        figures["lead"] = found[labels[0]][seed]["hypervolume"] - figures["hypervolume"]


def of_rule(rule: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a rule that learners have too."""
    whole = rule["whole"]
    return {
        **whole,
        **{f"{which} notion": whole[notion] for which, notion in USUAL.items()},
        "|SP|": abs(whole["SP"]),
        "|SP| by chance": rule["chance"].get("SP", np.nan),
    }
