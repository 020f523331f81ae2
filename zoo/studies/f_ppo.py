"""The study of F-PPO.

Figures 1 to 4 of "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning" (arXiv
2401.06318) on our versions of its scenarios. All learners of an experiment get the same environment, number of steps
and settings of PPO, those of F-PPO in the zoo, unless an arm says otherwise; all agents play the same episodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair import f_ppo
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.registry.algorithms import find_algorithm
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.studies.curves import Panel, curve, figure
from sb3_fair.zoo.studies.grid import Job, by_label
from sb3_fair.zoo.studies.sheet import sheet
from sb3_fair.zoo.studies.study import Results, Study, over, read
from sb3_fair.zoo.studies.training import Watch

EVALUATION_SEED = 20_000
POINTS = 200
"""Of every curve over the steps of an episode."""
FIGURES = {"utility": "utility", "short_term": "short-term disparity", "long_term": "long-term disparity"}
ALONE = ", policy alone"
"""After the name of a learner with massaging: evaluated without it."""
QUICK = 20
"""How many times less a quick study does."""
DATA = read("f_ppo")
EXPERIMENTS: dict[str, dict[str, Any]] = DATA["experiments"]


def _jobs(name: str, seeds: Sequence[int], quick: bool) -> Iterator[Job]:
    chosen, share = EXPERIMENTS[name], QUICK if quick else 1
    given = {"episodes": chosen["episodes"] // share, "steps": chosen["steps"], "after": chosen.get("after", 0)}
    for label, rule in chosen["rules"].items():
        yield Job(f"{name}/{label}", play, {"rule": rule, "env": chosen["env"], **given})
    for seed in seeds:
        for label, arm in chosen["arms"].items():
            plan = plan_of(chosen["env"], arm, seed, share)
            yield Job(f"{name}/{label}/{seed}", evaluate, given, plan, TrainingDisparity())


def plan_of(env: str, arm: Mapping[str, Any], seed: int, share: int = 1) -> Plan:
    """The zoo's plan of F-PPO, or its ``preset``, with the algorithm and the settings of an arm."""
    settings = dict(arm)
    algo, weights = settings.pop("algo"), settings.pop("weights", {"R": 1.0})
    base = make_plan("f_ppo", env, seed=seed, preset=settings.pop("preset", None))
    if "settings_in" in settings:
        base = replace(base, hyperparams=make_plan("f_ppo", settings.pop("settings_in")).hyperparams)
    known = find_algorithm("f_ppo" if algo == "f_ppo" else "ppo").settings  # others know nothing of F-PPO's weights
    return replace(
        base,
        algo=algo,
        weights=tuple(weights.values()),
        env_kwargs={**base.env_kwargs, "objectives": list(weights)},
        n_timesteps=base.n_timesteps // share,
        n_eval_episodes=100,  # plays no part here: another number in the zoo must not redo runs
        hyperparams={name: value for name, value in base.hyperparams.items() if name in known} | settings,
    )


def evaluate(plan: Plan, model: Any, **given: int) -> dict[str, Any]:
    """Evaluations of a learner with and without massaging."""
    filters = (False, True) if getattr(model, "massage", False) else (None,)
    return {"evaluations": [_evaluated(model, plan.env, massage=massage or None, **given) for massage in filters]}


def play(rule: Mapping[str, Any], env: str, **given: int) -> dict[str, Any]:
    """Evaluates a rule."""
    agent = getattr(f_ppo, rule["agent"])(**{name: value for name, value in rule.items() if name != "agent"})
    return _evaluated(agent, env, massage=None, **given)


class TrainingDisparity(Watch):
    """Mean short-term disparity of the steps of every rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.figures = {"training": {"steps": [], "short_term": []}}

    def _on_rollout_start(self) -> None:
        self._rollout: list[float] = []

    def _on_step(self) -> bool:
        self._rollout.append(float(np.mean(stack(self.locals["infos"], "fairness")["d_s"])))
        return True

    def _on_rollout_end(self) -> None:
        self.figures["training"]["steps"].append(self.num_timesteps)
        self.figures["training"]["short_term"].append(float(np.mean(self._rollout)))


def _evaluated(agent: Any, env: str, episodes: int, steps: int, after: int, massage: bool | None) -> dict[str, Any]:
    """Per figure: final value, mean after the beginning and share of fair steps; and its curve."""
    found = f_ppo.evaluate_fairness(agent, env, episodes, steps, EVALUATION_SEED, massage=massage)
    shown = np.unique(np.linspace(0, steps - 1, POINTS).round().astype(int))
    return {
        "summary": {
            name: {statistic: list(interval) for statistic, interval in statistics.items()}
            for name, statistics in found.summary(after=after).items()
        },
        "steps": shown + 1,
        "curves": {name: found.curve(name).mean[shown] for name in FIGURES},
    }


def _played(learned: Mapping[str, Sequence[dict[str, Any]]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The evaluations of every learner; those with massaging have its name, those without say so."""
    for label, runs in learned.items():
        *without, last = range(len(runs[0]["evaluations"]))
        for number in (*without, last):
            yield label + ALONE * (number in without), [run["evaluations"][number] for run in runs]


def _means(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {statistic: interval[0] for statistic, interval in statistics.items()}
        for name, statistics in evaluation["summary"].items()
    }


def _tell(name: str, results: Results, seeds: range, folder: Path) -> dict[str, Any]:
    chosen = EXPERIMENTS[name]
    learned = by_label(results, name, chosen["arms"], seeds)
    rules = {label: results[f"{name}/{label}"] for label in chosen["rules"]}
    played = dict(_played(learned))
    found = {label: over([_means(run) for run in runs]) for label, runs in played.items()}
    found |= {label: rule["summary"] for label, rule in rules.items()}
    sheet(chosen["title"], DATA["columns"], found).publish(folder / f"{name}.md")
    shown = {**played, **{label: [rule] for label, rule in rules.items()}}
    panels = [
        Panel(words, {label: curve(runs, "curves", key) for label, runs in shown.items()}, words)
        for key, words in FIGURES.items()
    ]
    figure(folder / f"{name}.png", panels)
    noted = {
        label: curve([run["training"] for run in runs], "short_term")
        for label, runs in learned.items()
        if label.startswith("F-PPO")
    }
    if noted:
        figure(folder / f"{name}-training.png", [Panel(chosen["title"], noted, "d_s in training")])
    return found


study = Study(tuple(EXPERIMENTS), _jobs, _tell)
"""A quick one takes a twentieth of the steps and of the episodes."""
