"""All algorithms on all scenarios with the settings of the zoo."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo.algorithms import find_algorithm
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.evaluate import COPIES, evaluate_again, evaluate_rules, evaluation_env, policies_of
from sb3_fair.zoo.names import PREFIX, InputError
from sb3_fair.zoo.pairs import obstacles
from sb3_fair.zoo.plan import Plan, default_settings, make_plan, mark
from sb3_fair.zoo.studies.curves import mean_and_interval
from sb3_fair.zoo.studies.grid import Job, run_grid
from sb3_fair.zoo.studies.sheet import Sheet, interval_text
from sb3_fair.zoo.train import build_model, training_env

ALGORITHMS = ("ppo", "dqn", "pcn", "f_ppo", "fair_ppo", "fair_qcm")
SCENARIOS = (
    "sb3_fair/JobHiring-v0",
    "sb3_fair/FraudDetection-v0",
    "sb3_fair/Lending-v0",
    "sb3_fair/AttentionAllocation-v0",
    "sb3_fair/AttentionAllocation-Discrete-v0",
    "sb3_fair/EpidemicControl-v0",
    "sb3_fair/AllelopathicHarvest-v0",
    "sb3_fair/Doughnut-v0",
    "sb3_fair/LoanAllocation-v0",
    "sb3_fair/HomeVisits-v0",
    "sb3_fair/VaccineDelivery-v0",
)
SHOWN = ("R", "SP", "EO", "IF", "d_s", "d_l", "steps")
"""Entries of the zoo may differ in the length of episodes, and with it in returns."""
RULES = "rules"
FRESH = 70_000
"""Seed of the episodes that count, far from those of training and of choosing among policies."""
QUICK = 100
"""How many times fewer steps a quick study takes."""

Figures = dict[str, float]


def study(
    algos: Sequence[str] = ALGORITHMS,
    envs: Sequence[str] = SCENARIOS,
    *,
    seeds: int = 5,
    quick: bool = False,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/all",
) -> dict[str, Any]:
    """Trains every pair that makes sense with the seeds 0, 1, ..., evaluates on fresh episodes, prints and saves.

    :param seeds: runs per pair
    :param quick: at most two seeds, a hundredth of the steps and a fifth of the episodes: a look at what would come out
    :param n_jobs: processes; -1: one per core
    :param log_dir: for the results of the runs, which are not done again, and ``study.json``
    :return: what ``study.json`` holds: environment -> algorithm or rule -> figure -> mean and ends of its 95 %
        confidence interval, over the seeds, of a rule over episodes
    :raises InputError: if no pair makes sense
    """
    plans = {env: {algo: _plan(algo, env, quick) for algo in sensible(algos, env)} for env in envs}
    plans = {env: found for env, found in plans.items() if found}
    if not plans:
        raise InputError(f"there is nothing to train: {next(_obstacles(algos[0], envs[0]))}")
    numbers = range(min(seeds, 2) if quick else seeds)
    results = run_grid([*_jobs(plans, numbers)], log_dir, n_jobs)
    found: dict[str, Any] = {}
    for env, pairs in plans.items():
        found[env] = {algo: _over([results[_name(env, algo, seed)] for seed in numbers]) for algo in pairs}
        found[env] |= {rule: _over(played) for rule, played in results[_name(env, RULES)].items()}
    Path(log_dir, "study.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    for env, rows in found.items():
        sheet(env, rows).publish(Path(log_dir, f"{_name(env)}.md"))
    return found


def sensible(algos: Sequence[str], env: str) -> list[str]:
    """The algorithms that make sense in an environment, with their settings there."""
    return [algo for algo in algos if not [*_obstacles(algo, env)]]


def _obstacles(algo: str, env: str) -> Iterator[str]:
    algorithm = find_algorithm(algo)
    entry = default_settings(algorithm, env)
    return obstacles(algorithm, env, entry.pop("env_kwargs", {}), entry)


def _plan(algo: str, env: str, quick: bool) -> Plan:
    plan = make_plan(algo, env)
    return shortened(plan, QUICK) if quick else plan


def shortened(plan: Plan, times: int) -> Plan:
    """So many times fewer steps, of learners from whole episodes at least two episodes per copy; a fifth of the
    episodes in evaluations."""
    steps = plan.n_timesteps // times
    if plan.algorithm.vector:
        longest = attribute(make_vec(plan.env, **plan.env_kwargs), "max_steps")
        steps = max(steps, 2 * plan.n_envs * longest)
    return replace(plan, n_timesteps=steps, n_eval_episodes=max(2, plan.n_eval_episodes // 5))


def _jobs(plans: Mapping[str, Mapping[str, Plan]], seeds: Sequence[int]) -> Iterator[Job]:
    for env, pairs in plans.items():
        plan = next(iter(pairs.values()))
        yield Job(_name(env, RULES), play_rules, {"config": plan.config})
        for algo, plan in pairs.items():
            for seed in seeds:
                yield Job(_name(env, algo, seed), run, {"config": {**plan.config, "seed": seed}})


def _name(env: str, *parts: Any) -> str:
    return "/".join(map(str, (env.removeprefix(PREFIX).split("/")[1], *parts)))


def run(config: Mapping[str, Any]) -> Figures:
    """Trains one plan; the figures of its policy, of a trade-off that with the best performance, on fresh episodes."""
    plan = Plan.from_config(config)
    model = build_model(plan, training_env(plan), "cpu")
    model.learn(plan.n_timesteps)
    best = max(policies_of(plan, model), key=lambda policy: policy.mean[0])
    venv = evaluation_env(plan, min(COPIES, plan.n_eval_episodes))
    played = evaluate_again(plan, model, best, venv, plan.n_eval_episodes, FRESH)
    return {name: float(known.mean()) for name, known in _figures(played).items() if len(known)}


def play_rules(config: Mapping[str, Any]) -> dict[str, list[Figures]]:
    """The figures of every rule, episode by episode."""
    plan = Plan.from_config(config)
    return {
        rule.name: [
            {name: float(values[episode]) for name, values in _figures(rule).items() if len(values) > episode}
            for episode in range(len(rule.returns))
        ]
        for rule in evaluate_rules(plan, seed=FRESH)
    }


def _figures(policy: EvaluatedPolicy) -> dict[str, Any]:
    """What is shown: the return, and the others after an episode's last step, without episodes that have none."""
    values = {**policy.final, "R": policy.returns[:, policy.objectives.index("R")], "steps": policy.lengths}
    return {name: values[name][~np.isnan(values[name])] for name in SHOWN if name in values}


def _over(runs: Sequence[Figures]) -> dict[str, list[float]]:
    """Mean and interval of each figure over the runs that have it."""
    names = [name for name in SHOWN if any(name in figures for figures in runs)]
    return {name: mean_and_interval([figures.get(name, np.nan) for figures in runs]) for name in names}


def sheet(env: str, found: Mapping[str, Mapping[str, Sequence[float]]]) -> Sheet:
    """A row per learner or rule: means and 95 % confidence intervals.

    :param found: learner or rule -> figure -> mean and ends of its interval
    """
    shown = [name for name in SHOWN if any(name in figures for figures in found.values())]
    rows = {
        learner: [interval_text(figures[name]) if name in figures else "" for name in shown]
        for learner, figures in found.items()
    }
    learned = [[learner, _settings(learner, env), *cells] for learner, cells in rows.items() if learner in ALGORITHMS]
    rules = [[rule, "", *cells] for rule, cells in rows.items() if rule not in ALGORITHMS]
    return Sheet(env, ["", "settings", *shown], learned, rules)


def _settings(algo: str, env: str) -> str:
    return "inherited" if mark(find_algorithm(algo), env) is None else "tuned"
