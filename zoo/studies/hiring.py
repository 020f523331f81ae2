"""The study of PCN on job hiring: what its front offers, and whether its commands are obeyed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.pareto import misses
from sb3_fair.zoo.evaluation.evaluate import evaluate_again, evaluate_rules, evaluation_env, policies_of
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.studies.grid import Job, by_label
from sb3_fair.zoo.studies.overview import planned
from sb3_fair.zoo.studies.sheet import sheet
from sb3_fair.zoo.studies.study import Results, Study, over, read

COMPANIES = read("hiring")
FRESH = 90_000
"""Seed of the final episodes, far from those of training and of choosing policies."""
GOOD_ENOUGH = 0.7
"""Share of the best performance that a fairer policy should keep."""
QUICK = 100
"""How many times fewer steps a quick study takes."""

Figures = dict[str, float]


def _jobs(company: str, seeds: Sequence[int], quick: bool) -> Iterator[Job]:
    entry = COMPANIES[company]
    plan = planned("pcn", entry["env"], QUICK if quick else 1, audit=("SP",))
    told = {"episodes": entry["episodes"] // (10 if quick else 1), "floor": entry["floor"]}
    for seed in seeds:
        yield Job(f"{company}/PCN/{seed}", judge, told, replace(plan, seed=seed))


def judge(plan: Plan, model: Any, episodes: int, floor: Mapping[str, float]) -> Figures:
    """What can be said of the front of a model, on fresh episodes."""
    venv = evaluation_env(plan)
    again = [evaluate_again(plan, model, each, venv, episodes, FRESH) for each in policies_of(plan, model)]
    return claims(again, {rule.name: rule for rule in evaluate_rules(plan, episodes, FRESH)}, floor)


def claims(
    policies: Sequence[EvaluatedPolicy], rules: Mapping[str, EvaluatedPolicy], floor: Mapping[str, float]
) -> Figures:
    """What can be said of one front.

    :param policies: a front's policies, best performance (in the episodes that chose them) first, on fresh episodes
    :param rules: rules of thumb by name, on the same episodes
    :param floor: smallest range, per objective, in which missing a command is measured
    """
    objectives = policies[0].objectives
    means = np.array([policy.mean for policy in policies])
    performance = means[:, objectives.index("R")]
    fairness = means[:, objectives.index("IF")]
    good = performance >= performance[0] - (1 - GOOD_ENOUGH) * abs(performance[0])
    sizes = [float(np.nanmean(np.abs(policy.final["SP"]))) for policy in policies]
    chances = [policy.chance["SP"] for policy in policies]
    return {
        "policies": float(len(policies)),
        "best R": float(performance[0]),
        **{f"R of {name}": float(rule.mean[rule.objectives.index("R")]) for name, rule in rules.items()},
        "share of the patient oracle": float(performance[0] / rules["patient oracle"].mean[objectives.index("R")]),
        "IF of the best R": float(fairness[0]),
        f"IF gained at {GOOD_ENOUGH:.0%} of the best R": float(fairness[good].max() - fairness[0]),
        "|SP| at the end": float(np.mean(sizes)),
        "|SP| by chance": float(np.mean(chances)),
        **_missed(policies, [floor.get(name, 0.0) for name in objectives]),
    }


def _missed(policies: Sequence[EvaluatedPolicy], floor: Sequence[float]) -> Figures:
    """By how much commands were missed, in shares of their range: acting as in training, and most probably."""
    aimed = [policy for policy in policies if policy.aim is not None]
    aims = np.array([policy.aim for policy in aimed])
    missed = misses(aims, np.array([policy.mean for policy in aimed]), floor=floor)
    figures: Figures = {}
    for way, deterministic in (("sampling", False), ("arg max", True)):
        rows = missed[[policy.deterministic == deterministic for policy in aimed]]
        for name, column in zip(aimed[0].objectives, rows.T, strict=True):
            figures[f"{name} missed, {way}"] = float(column.mean()) if len(rows) else np.nan
        figures[f"mean missed, {way}"] = float(rows.mean()) if len(rows) else np.nan
    return figures


def _tell(company: str, results: Results, seeds: Sequence[int], _: Path) -> dict[str, Any]:
    return over(by_label(results, company, ["PCN"], seeds)["PCN"])


def _finish(found: Mapping[str, Any], _: Results, __: Sequence[int], folder: Path) -> None:
    names = dict.fromkeys(name for figures in found.values() for name in figures)
    rows = {name: {company: figures[name] for company, figures in found.items()} for name in names}
    sheet("Trade-offs of PCN in job hiring", {name: name for name in found}, rows).publish(folder / "hiring.md")


study = Study(list(COMPANIES), _jobs, _tell, finish=_finish)
"""A :class:`~sb3_fair.zoo.studies.study.Study` whose experiments are the companies of ``hiring.yml``."""
