"""The study of FairQCM.

All learners of an experiment get the same batch, the same real history and the same number of updates, unless they are
as printed; what differs is what they remember and whether they learn from memories that might have been.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.zoo.envs.doughnut import exact as doughnut_exact
from sb3_fair.zoo.envs.loans import exact as loans_exact
from sb3_fair.zoo.evaluation.evaluate import evaluate_model, evaluation_env
from sb3_fair.zoo.registry.registration import bare
from sb3_fair.zoo.registry.rules import RuleAgent
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.settings import DEFAULT
from sb3_fair.zoo.studies import schemes
from sb3_fair.zoo.studies.curves import Curve, Panel, curve, figure
from sb3_fair.zoo.studies.grid import Job, Result, by_label
from sb3_fair.zoo.studies.sheet import sheet
from sb3_fair.zoo.studies.study import Results, Study, over, read
from sb3_fair.zoo.studies.training import Watch

EPISODES, FINAL_EPISODES = 100, 200
"""While a learner trains, and after it; an experiment may have its own number of the latter."""
EVALUATION_SEED, FINAL_SEED = 10_000, 20_000
COPIES = 100
"""Of the environment in evaluations."""
N_ENVS = 8
POINTS = 20
"""How often learners are evaluated while they train."""
QUICK = 5
"""How many times fewer steps a quick study takes."""


def _value_of_table(model: Any) -> float | None:
    """Exact value of a greedy table over who is present and all counts, in small doughnuts."""
    if model.memory.name != "full":
        return None

    def act(present: Any, counts: Any, time: int) -> Any:
        observation = {"state": present.astype(np.float32), "memory": counts.astype(np.float32)}
        return np.asarray(model.predict(observation, deterministic=True)[0])

    return doughnut_exact.policy_value(act, n_people=3, episode_length=12)


EXPERIMENTS = read("fair_qcm")
SCHEMES = "schemes"
"""The experiment of :mod:`~sb3_fair.zoo.studies.schemes`."""
OPTIMA: dict[str, Callable[[], float]] = {
    "doughnut": doughnut_exact.optimum,
    "loans": partial(loans_exact.optimum, start_levels=(4, 4, 7, 7)),
    "tabular": partial(doughnut_exact.optimum, n_people=3, episode_length=12),
}
"""Experiment -> value of the best policy there is."""
EXACT: dict[str, Callable[[Any], float | None]] = {EXPERIMENTS["tabular"]["env"]: _value_of_table}
"""Environment -> exact value of a model's greedy policy, if that can be known, instead of playing."""


def learners(experiment: str) -> dict[str, dict[str, Any]]:
    """Arms by name, each at all levels of the experiment."""
    chosen = EXPERIMENTS[experiment]
    if "levels" not in chosen:
        return dict(chosen["arms"])
    return {
        f"{label}, {level} {chosen['along']}": {**arm, "env_kwargs": {**arm.get("env_kwargs", {}), **settings}}
        for label, arm in chosen["arms"].items()
        for level, settings in chosen["levels"].items()
    }


def plan_of(experiment: str, arm: str, seed: int, quick: bool = False) -> Plan:
    """The training of a learner."""
    chosen = EXPERIMENTS[experiment]
    settings = dict(learners(experiment)[arm])
    preset = settings.pop("preset", DEFAULT)
    return make_plan(
        settings.pop("algo"),
        chosen["env"],
        seed=seed,
        preset=preset,
        objectives=["R"],
        audit=(),
        n_timesteps=settings.pop("n_timesteps", chosen["n_timesteps"]) // (QUICK if quick else 1),
        n_envs=N_ENVS if preset == DEFAULT else None,
        env_kwargs=settings.pop("env_kwargs", None),
        hyperparams={"n_eval_episodes": chosen.get("n_eval_episodes", FINAL_EPISODES), **settings},
    )


def judge(plan: Plan, model: Any) -> dict[str, Any]:
    """What a learner reaches on fresh episodes."""
    policy = _evaluated(plan, model, plan.n_eval_episodes, FINAL_SEED)
    return {"final": {**_means(policy), **({} if (exact := _exact(plan, model)) is None else {"return": exact})}}


class Curves(Watch):
    """Evaluates the greedy policy of a learner at evenly spaced steps."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.figures = {"steps": [], "returns": []}

    def _on_step(self) -> bool:
        apart = self.plan.n_timesteps / POINTS
        last = self.figures["steps"][-1] if self.figures["steps"] else 0
        if self.num_timesteps // apart > last // apart:
            value = _exact(self.plan, self.model)
            if value is None:
                value = float(_evaluated(self.plan, self.model, EPISODES, EVALUATION_SEED).mean[0])
            self.figures["steps"].append(self.num_timesteps)
            self.figures["returns"].append(value)
        return True


def _exact(plan: Plan, model: Any) -> float | None:
    known = EXACT.get(bare(plan.env))
    return None if known is None else known(model)


def _evaluated(plan: Plan, model: Any, episodes: int, seed: int) -> EvaluatedPolicy:
    return evaluate_model(plan, model, evaluation_env(plan, COPIES), episodes, seed)


def rule_figures(experiment: str) -> dict[str, dict[str, float]]:
    """What the rules of an experiment's environment reach on the learners' episodes, and the best there is."""
    plan = plan_of(experiment, next(iter(learners(experiment))), 0)
    figures = {"optimum": {"return": OPTIMA[experiment]()}} if experiment in OPTIMA else {}
    for rule in EXPERIMENTS[experiment].get("rules", ("oracle",)):
        venv = evaluation_env(plan, COPIES)
        policy = evaluate_vector(RuleAgent(rule, venv, FINAL_SEED), venv, plan.n_eval_episodes, seed=FINAL_SEED)
        figures[rule.replace("-", " ")] = _means(policy)
    return figures


def _means(policy: EvaluatedPolicy) -> dict[str, float]:
    return {"return": float(policy.mean[0]), **{key: float(np.nanmean(each)) for key, each in policy.final.items()}}


def _jobs(name: str, seeds: range, quick: bool) -> Iterator[Job]:
    if name == SCHEMES:
        yield from schemes.jobs(seeds, quick)
        return
    for seed in seeds:
        for label in learners(name):
            plan = plan_of(name, label, seed, quick)
            yield Job(f"{name}/{label}/{seed}", judge, plan=plan, watch=Curves(plan))


def _tell(name: str, results: Results, seeds: range, folder: Path) -> dict[str, Any]:
    if name == SCHEMES:
        return schemes.tell(results, seeds, folder)
    chosen = EXPERIMENTS[name]
    runs = by_label(results, name, learners(name), seeds)
    rules = {} if "levels" in chosen else rule_figures(name)
    found = {label: over([run["final"] for run in each]) for label, each in runs.items()}
    columns = {figure: figure for figure in next(iter(found.values()))}
    sheet(chosen["title"], columns, found, rules, digits=2).publish(folder / f"{name}.md")
    figure(folder / f"{name}.png", list(_panels(chosen, runs, rules)))
    return found


def _panels(
    chosen: Mapping[str, Any], runs: Mapping[str, Sequence[Result]], rules: Mapping[str, Mapping[str, float]]
) -> Iterator[Panel]:
    """Returns in the course of the training, then the figures after it that the experiment shows; of an experiment with
    levels, all of them over the levels."""
    words = {"return": "return of the greedy policy", **chosen.get("shown", {})}
    for key, label in words.items():
        lines = {rule: figures[key] for rule, figures in rules.items() if key in figures}
        if "levels" in chosen:
            curves, along = _over_levels(chosen, runs, key), chosen["along"]
        elif key == "return":
            curves, along = {name: curve(each, "returns") for name, each in runs.items()}, "steps"
        else:
            finals = {name: [[run["final"][key]] for run in each] for name, each in runs.items()}
            curves = {name: (np.array([place]), np.array(each)) for place, (name, each) in enumerate(finals.items())}
            along = ""
        title, low = (chosen["title"], chosen["low"]) if key == "return" else ("After the training", 0.0)
        yield Panel(title, curves, label, lines, low, along)


def _over_levels(chosen: Mapping[str, Any], runs: Mapping[str, Sequence[Result]], key: str) -> dict[str, Curve]:
    finals = np.array([[run["final"][key] for run in each] for each in runs.values()])
    of_arms = finals.reshape(len(chosen["arms"]), len(chosen["levels"]), -1).swapaxes(1, 2)
    levels = np.array([*chosen["levels"]], dtype=float)
    return {label: (levels, each) for label, each in zip(chosen["arms"], of_arms, strict=True)}


study = Study((*EXPERIMENTS, SCHEMES), _jobs, _tell)
"""A quick one takes a fifth of the steps."""
