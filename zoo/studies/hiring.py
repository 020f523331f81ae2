"""The study of PCN on job hiring."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.pareto import misses
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo.evaluation.evaluate import evaluate_rules, evaluate_run
from sb3_fair.zoo.names import PREFIX, choose
from sb3_fair.zoo.registry.registration import WORLDS
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.seeds import train_all
from sb3_fair.zoo.studies.sheet import sheet
from sb3_fair.zoo.studies.study import over, save

FRESH = 90_000
"""Seed of the final episodes, far from those of training and of choosing policies."""
GOOD_ENOUGH = 0.7
"""Share of the best performance that a fairer policy should keep."""
FLOORS = {"large": {"R": 60.0, "SP": 0.1, "IF": 0.25}, "small": {"R": 10.0, "SP": 0.15, "IF": 0.25}}
"""Smallest range, per objective, in which missing a command is measured: for objectives that commands hardly vary."""

Figures = dict[str, float]


def study(
    env: str,
    *,
    seeds: int = 3,
    n_eval_episodes: int = 50,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/study",
    **wishes: Any,
) -> dict[str, Any]:
    """Trains one PCN per seed (finished runs in ``log_dir`` are taken as they are), evaluates, prints and saves.

    :param seeds: runs, with the seeds 0, 1, ...
    :param n_jobs: processes; -1: one per core
    :param wishes: further arguments of :func:`~sb3_fair.zoo.runs.plan.make_plan`
    :return: what ``study.json`` in ``log_dir`` holds: figures per seed, mean and 95 % confidence interval over seeds
    :raises InputError: if ``env`` is none of the hiring environments
    """
    choose("hiring environment", env.removeprefix(PREFIX), [name for name in WORLDS if "JobHiring" in name])
    plans = [make_plan("pcn", env, seed=seed, audit=("SP",), **wishes) for seed in range(seeds)]
    runs = train_all(plans, log_dir=log_dir, n_jobs=n_jobs, command=f"sb3-fair benchmark hiring --env {env}")
    rows = {plan.seed: _cached(run, plan, n_eval_episodes) for plan, run in zip(plans, runs, strict=True)}
    summary = over(list(rows.values()))
    result = {"env": env, "n_eval_episodes": n_eval_episodes, "seeds": rows, "mean and 95 % interval": summary}
    save(result, log_dir)
    columns = {**{f"seed {seed}": f"{seed}" for seed in rows}, "mean": "mean"}
    cells = {
        name: {**{f"{seed}": row[name] for seed, row in rows.items()}, "mean": mean} for name, mean in summary.items()
    }
    sheet(f"Trade-offs of PCN in {env}", columns, cells, digits=3).publish(Path(log_dir) / "study.md")
    return result


def _cached(run: RunFolder, plan: Plan, n_eval_episodes: int) -> Figures:
    files = [run.path / f"fresh_{kind}_{n_eval_episodes}.json" for kind in ("policies", "rules")]
    if not all(file.is_file() for file in files):
        Front(tuple(evaluate_run(run, n_eval_episodes=n_eval_episodes, seed=FRESH))).save(files[0])
        Front(tuple(evaluate_rules(plan, n_eval_episodes, FRESH))).save(files[1])
    policies, rules = (Front.load(file) for file in files)
    floors = FLOORS["large" if policies[0].lengths.max() > 100 else "small"]
    return claims(policies, {rule.name: rule for rule in rules}, floors)


def claims(policies: Sequence[EvaluatedPolicy], rules: dict[str, EvaluatedPolicy], floors: dict[str, float]) -> Figures:
    """What can be said of one front.

    :param policies: a front's policies, best performance (in the episodes that chose them) first, on fresh episodes
    :param rules: rules of thumb by name, on the same episodes
    :param floors: see :data:`FLOORS`
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
        **_missed(policies, [floors.get(name, 0.0) for name in objectives]),
    }


def _missed(policies: Sequence[EvaluatedPolicy], floors: Sequence[float]) -> Figures:
    """By how much commands were missed, in shares of their range: acting as in training, and most probably."""
    aimed = [policy for policy in policies if policy.aim is not None]
    aims = np.array([policy.aim for policy in aimed])
    missed = misses(aims, np.array([policy.mean for policy in aimed]), floor=floors)
    figures: Figures = {}
    for way, deterministic in (("sampling", False), ("arg max", True)):
        rows = missed[[policy.deterministic == deterministic for policy in aimed]]
        for name, column in zip(aimed[0].objectives, rows.T, strict=True):
            figures[f"{name} missed, {way}"] = float(column.mean()) if len(rows) else np.nan
        figures[f"mean missed, {way}"] = float(rows.mean()) if len(rows) else np.nan
    return figures
