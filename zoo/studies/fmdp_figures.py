"""Figures of the study of fairness MDPs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.pareto import front_of
from sb3_fair.report.figures import radars
from sb3_fair.zoo.runs.plan import AUDIT
from sb3_fair.zoo.studies.curves import COLOURS, Curve, Panel, curve, figure, tidy
from sb3_fair.zoo.studies.fmdp_results import Policies, Row

AXES = ("R", *AUDIT)
MARKERS = "os^vDP*Xph"


def draw(folder: Path, rows: Mapping[str, Row], rules: Policies) -> None:
    """Writes ``radar.png``, the figures of all policies over whole episodes, ``fronts.png``, performance against
    individual fairness, and ``curves.png``, PCN's progress in training."""
    folder.mkdir(parents=True, exist_ok=True)
    fronts = {label: together(row) for label, row in rows.items()}
    picture = radars(fronts, [whole_episode(rule, ("R",)) for rule in rules])
    picture.savefig(folder / "radar.png", dpi=70)
    _scatter(folder / "fronts.png", rows, rules)
    figure(folder / "curves.png", panels(rows))


def panels(rows: Mapping[str, Row]) -> list[Panel]:
    """PCN's progress, and the size of the window, in the course of the training, of rows that noted it."""
    learned = {label: row for label, row in rows.items() if "course" in row.runs[0][0]}
    courses = {label: course(row) for label, row in learned.items()}
    found = [Panel("Learning", courses, "hypervolume of the episodes that PCN keeps", low=0.0)]
    windows = {
        label: curve([run["window"] for (run,) in row.runs], "size")
        for label, row in learned.items()
        if all("window" in run for (run,) in row.runs)
    }
    return [*found, Panel("Window", windows, "decisions that the history keeps", low=0.0)] if windows else found


def course(row: Row) -> Curve:
    """Steps, and seed by seed the hypervolume of the episodes from which PCN learns, as a share of the last one."""
    steps, values = curve([run["course"] for (run,) in row.runs], "hypervolume")
    return steps, values / np.maximum(values[:, -1:], 1e-12)


def together(row: Row) -> Front:
    """The policies of all seeds none of which is worse than another in all optimised figures over whole episodes."""
    policies = [whole_episode(policy, row.objectives) for front in row.fronts for policy in front]
    known = [policy for policy in policies if not np.isnan(policy.returns).any()]
    return front_of(known or policies[:1])


def whole_episode(policy: Mapping[str, Any], objectives: Sequence[str]) -> EvaluatedPolicy:
    """A policy as its mean figures over whole episodes."""
    whole = {name: policy["whole"][name] for name in AXES if name in policy["whole"]}
    return EvaluatedPolicy(
        policy["name"],
        tuple(objectives),
        np.array([[whole[name] for name in objectives]]),
        np.array([policy["length"]]),
        final={name: np.array([value]) for name, value in whole.items()},
    )


def _scatter(path: Path, rows: Mapping[str, Row], rules: Policies) -> None:
    from matplotlib.figure import Figure

    picture = Figure(figsize=(8.4, 4.6), dpi=110, layout="constrained")
    axes = picture.subplots()
    for number, (label, row) in enumerate(rows.items()):
        figures = np.array(
            [(policy["whole"]["R"], policy["whole"]["IF"]) for front in row.fronts for policy in front], dtype=float
        )
        axes.plot(
            *figures.T, MARKERS[number % len(MARKERS)], color=COLOURS[number % len(COLOURS)], markersize=5, label=label
        )
    for rule in rules:
        point = rule["whole"]["R"], rule["whole"]["IF"]
        axes.plot(*point, "D", markersize=9, color="white", markeredgecolor="#5d6573", zorder=1)
        axes.annotate(
            rule["name"].replace("-", " "), point, xytext=(6, 4), textcoords="offset points", color="#5d6573", size=7
        )
    axes.set_xlabel("R")
    axes.set_ylabel("IF of the whole episode")
    tidy(axes)
    picture.savefig(path)
