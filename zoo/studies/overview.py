"""All algorithms on all scenarios with the settings of the zoo."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.pareto import hypervolume
from sb3_fair.wrappers.layer import max_steps_of
from sb3_fair.zoo import names
from sb3_fair.zoo.evaluation.evaluate import COPIES, evaluate_again, evaluate_rules, evaluation_env, policies_of
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import find_algorithm
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.registry.pairs import obstacles
from sb3_fair.zoo.registry.registration import bare
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.settings import default_settings, tuning
from sb3_fair.zoo.studies.grid import Job, by_label
from sb3_fair.zoo.studies.sheet import Sheet, sheet
from sb3_fair.zoo.studies.study import Results, conduct, numbers, over, read
from sb3_fair.zoo.studies.training import Stopwatch

DATA = read("overview")
ALGORITHMS: tuple[str, ...] = tuple(DATA["algorithms"])
SCENARIOS: tuple[str, ...] = tuple(DATA["scenarios"])
SHOWN: tuple[str, ...] = tuple(DATA["shown"])
FAIRNESS: tuple[str, ...] = tuple(DATA["fairness"])
COMPARED = {"unfairness at 95 % of R": "fair", "hypervolume": "hypervolume", "seconds": "seconds"}
GIVEN_UP = 0.05
"""Share of the best return that may be given up for fairness."""
RULES = "rules"
FRESH = 70_000
"""Seed of the episodes that count, far from those of training and of choosing among policies."""
QUICK = 100
"""How many times fewer steps a quick study takes."""

Figures = dict[str, float]


def study(
    algos: Sequence[str] | None = None,
    envs: Sequence[str] | None = None,
    *,
    seeds: int = 5,
    quick: bool = False,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/all",
) -> dict[str, Any]:
    """As :class:`~sb3_fair.zoo.studies.study.Study`: every pair that makes sense.

    :param algos: of :data:`ALGORITHMS`; None: all
    :param envs: IDs; None: :data:`SCENARIOS`
    :return: environment -> algorithm or rule -> figure -> mean and ends of its 95 % confidence interval, over the
        seeds, of a rule over episodes
    :raises InputError: if a name is unknown, or no pair makes sense
    """
    algos = names.choose_all("algorithm", algos, ALGORITHMS)
    envs = [names.environment(env) for env in envs or SCENARIOS]
    share = QUICK if quick else 1
    known = {env: {algo: planned(algo, env, share) for algo in sensible(ALGORITHMS, env)} for env in envs}
    plans = {env: {algo: known[env][algo] for algo in algos if algo in known[env]} for env in envs}
    plans = {env: found for env, found in plans.items() if found}
    if not plans:
        raise InputError(f"there is nothing to train: {next(_obstacles(algos[0], envs[0]))}")
    longest = {env: max(known[env].values(), key=_max_steps) for env in plans}  # whichever are chosen
    some = numbers(seeds, quick)
    log_dir = Path(log_dir, "quick" if quick else "")

    def tell(env: str, results: Results) -> dict[str, Any]:
        learned = _at_equal_length(plans[env], by_label(results, _name(env), plans[env], some), longest[env])
        played = results[f"{_name(env)}/{RULES}"]
        sizes = [over([_sizes(episode) for episode in episodes]) for episodes in played.values()]
        found = {name: over(runs) for name, runs in (*compared(learned, sizes).items(), *played.items())}
        summary(env, found).publish(Path(log_dir, f"{_name(env)}.md"))
        return found

    return conduct(
        {env: _jobs(env, found, some, longest[env]) for env, found in plans.items()},
        tell,
        log_dir,
        n_jobs,
        lambda found, _: front_page(found).publish(Path(log_dir, "all.md")),
    )


def sensible(algos: Sequence[str], env: str) -> list[str]:
    """The algorithms that make sense in an environment, with their settings there."""
    return [algo for algo in algos if not any(_obstacles(algo, env))]


def _obstacles(algo: str, env: str) -> Iterator[str]:
    algorithm = find_algorithm(algo)
    entry = default_settings(algorithm, env)
    return obstacles(algorithm, env, entry.pop("env_kwargs", {}), entry)


def planned(algo: str, env: str, share: int, **wishes: Any) -> Plan:
    """The zoo's plan. If ``share`` is not 1, so many times fewer steps, of learners from whole episodes at least two
    episodes per copy; and a fifth of the episodes in evaluations."""
    plan = make_plan(algo, env, **wishes)
    if share == 1:
        return plan
    steps = plan.n_timesteps // share
    if plan.algorithm.vector:
        steps = max(steps, 2 * plan.n_envs * _max_steps(plan))
    return replace(plan, n_timesteps=steps, n_eval_episodes=max(2, plan.n_eval_episodes // 5))


def _max_steps(plan: Plan) -> int:
    """Of an episode; 1 where no number is known."""
    return max_steps_of(make_vec(plan.env, monitor=False, **plan.env_kwargs)) or 1


def _at_equal_length(
    plans: Mapping[str, Plan], learned: Mapping[str, Sequence[Mapping[str, Any]]], longest: Plan
) -> dict[str, list[dict[str, Any]]]:
    """Runs whose returns are multiplied to the length of the episodes of ``longest``."""

    def stretched(run: Mapping[str, Any], times: float) -> dict[str, Any]:
        points = {name: [[times * some, unfair] for some, unfair in each] for name, each in run["points"].items()}
        return {**run, "R": times * run["R"], "points": points}

    most = _max_steps(longest)
    times = {algo: most / _max_steps(plans[algo]) for algo in learned}
    return {algo: [stretched(run, times[algo]) for run in runs] for algo, runs in learned.items()}


def _jobs(env: str, plans: Mapping[str, Plan], seeds: Sequence[int], longest: Plan) -> Iterator[Job]:
    yield Job(f"{_name(env)}/{RULES}", play_rules, {"config": longest.config})
    for algo, plan in plans.items():
        for seed in seeds:
            yield Job(f"{_name(env)}/{algo}/{seed}", judge, plan=replace(plan, seed=seed), watch=Stopwatch())


def _name(env: str) -> str:
    return bare(env).removeprefix("sb3_fair/").replace("/", "-")


def judge(plan: Plan, model: Any) -> dict[str, Any]:
    """Figures of a model on fresh episodes: of a trade-off, those of the policy with the best performance, and the
    fairness (if it is measured) of the fairest one that gives up at most 5 % of it.

    Both policies are chosen on other episodes. A model that learns probabilities of actions has two: it can take the
    most probable actions, or sample. ``fair`` is that of every measure that all policies have, ``points`` the return
    and the size of the unfairness of every policy.
    """
    ways = (True, False) if isinstance(model, OnPolicyAlgorithm) else (None,)
    learned = [policy for way in ways for policy in policies_of(plan, model, way)]
    venv = evaluation_env(plan, min(COPIES, plan.n_eval_episodes))
    anew = [_figures(evaluate_again(plan, model, each, venv, plan.n_eval_episodes, FRESH)) for each in learned]
    before, again = ([_means(_sizes(each)) for each in some] for some in (map(_figures, learned), anew))
    best = max(range(len(learned)), key=lambda number: before[number]["R"])
    least = before[best]["R"] - GIVEN_UP * abs(before[best]["R"])
    allowed = [number for number in range(len(learned)) if before[number]["R"] >= least]
    fair, points = {}, {}
    for name in FAIRNESS:
        if all(name in figures for figures in (*before, *again)):
            fairest = min(allowed, key=lambda number: before[number][name])
            fair[name] = again[fairest][name]
            points[name] = [[figures["R"], figures[name]] for figures in again]
    return {**_means(anew[best]), "fair": fair, "points": points}


def compared(
    learned: Mapping[str, Sequence[Mapping[str, Any]]], rules: Iterable[Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """The runs of all algorithms, with the measure of unfairness that most of them have.

    In place of ``points`` is the share of what is possible that their policies attain: the hypervolume of return and
    fairness, each scaled: 0 is the worst that a policy or rule has, 1 the best return and no unfairness.
    """
    common = max(FAIRNESS, key=lambda name: sum(any(name in run["fair"] for run in runs) for runs in learned.values()))
    points = [point for runs in learned.values() for run in runs for point in run["points"].get(common, ())]
    points += [(rule["R"][0], rule[common][0] if common in rule else 0.0) for rule in rules]
    low, high = (choose((value for value, _ in points), default=0.0) for choose in (min, max))
    worst = max((unfair for _, unfair in points), default=0.0)

    def told(run: Mapping[str, Any]) -> dict[str, float]:
        found = {name: value for name, value in run.items() if name not in ("fair", "points")}
        if common in run["fair"]:
            found["fair"] = run["fair"][common]
            if high > low and worst > 0:
                scaled = [((value - low) / (high - low), 1 - unfair / worst) for value, unfair in run["points"][common]]
                found["hypervolume"] = hypervolume(scaled, (0.0, 0.0))
        return found

    return {algo: [told(run) for run in runs] for algo, runs in learned.items()}


def play_rules(config: Mapping[str, Any]) -> dict[str, list[Figures]]:
    """The figures of every rule, episode by episode."""
    return {
        rule.name: [
            {name: float(values[episode]) for name, values in _figures(rule).items() if len(values) > episode}
            for episode in range(len(rule.returns))
        ]
        for rule in evaluate_rules(Plan.from_config(config), seed=FRESH)
    }


def _means(figures: Mapping[str, Any]) -> Figures:
    return {name: float(known.mean()) for name, known in figures.items() if len(known)}


def _sizes(figures: Mapping[str, Any]) -> dict[str, Any]:
    """With the size of every unfairness in place of its value, which may be negative."""
    return {name: abs(value) if name in FAIRNESS else value for name, value in figures.items()}


def _figures(policy: EvaluatedPolicy) -> dict[str, Any]:
    """What is shown: the return, and the others after an episode's last step, without episodes that have none."""
    values = {**policy.final, "R": policy.returns[:, policy.objectives.index("R")], "steps": policy.lengths}
    return {name: values[name][~np.isnan(values[name])] for name in SHOWN if name in values}


def summary(env: str, found: Mapping[str, Mapping[str, Sequence[float]]]) -> Sheet:
    """A row per learner or rule: means and 95 % confidence intervals.

    :param found: learner or rule -> figure -> mean and ends of its interval
    """
    shown = {name: name for name in SHOWN if any(name in figures for figures in found.values())}
    rules = {rule: figures for rule, figures in found.items() if rule not in ALGORITHMS}
    return sheet(_name(env), {"settings": "settings", **shown, **COMPARED}, _learned(env, found), rules)


def front_page(found: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> Sheet:
    """A row per environment and learner: which algorithm where.

    :param found: environment -> learner or rule -> figure -> mean and ends of its interval
    """
    rows = {
        f"{_name(env)}: {algo}": figures for env, some in found.items() for algo, figures in _learned(env, some).items()
    }
    return sheet("Which algorithm where", {"settings": "settings", "R": "R", **COMPARED}, rows)


def _learned(env: str, found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        algo: {**figures, "settings": "inherited" if tuning(find_algorithm(algo), env) is None else "tuned"}
        for algo, figures in found.items()
        if algo in ALGORITHMS
    }
