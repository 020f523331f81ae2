"""One trial of a tuning study."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna import Trial, TrialPruned

from sb3_fair.common.plain import plain
from sb3_fair.zoo.evaluation.evaluate import words_of
from sb3_fair.zoo.registry.reference import REFERENCE
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.settings import PLAN_KEYS
from sb3_fair.zoo.runs.train import built
from sb3_fair.zoo.tuning.scores import Direction, Figures, direction, measure
from sb3_fair.zoo.tuning.space import Space, planned

ERROR, FIGURES, SEEDS, SETTINGS = "error", "figures", "seeds", "settings"
"""Under these names, a trial keeps why it failed, its figures, those seed by seed, and what it trained."""


@dataclass(frozen=True)
class Tuning:
    """What a study is about; all that decides what its trials are worth.

    :param budgets: figure -> largest size; trials above it count as worse than all others
    :param plan: what would be trained without the study; trials train it with other values
    :param n_seeds: a trial trains with so many seeds, those of the plan and the next ones; its figures are the means
    :param n_evaluations: a trial that may be pruned is evaluated so often, the last time at its end
    """

    scores: tuple[str, ...]
    budgets: Mapping[str, float]
    plan: Plan
    space: Space
    n_seeds: int = 1
    n_evaluations: int = 5
    deterministic: bool = True

    @property
    def wanted(self) -> list[str]:
        """The figures that trials are judged by."""
        return list(dict.fromkeys((*self.scores, *self.budgets)))

    @property
    def directions(self) -> list[Direction]:
        """What Optuna is to do with the scores."""
        words = words_of(self.plan)
        return [direction(name, words) for name in self.scores]

    @property
    def config(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts: studies with the same ones can be continued by each other."""
        config: dict[str, Any] = plain({**vars(self), "plan": self.plan.config})
        return config


def run_trial(trial: Trial, tuning: Tuning, *, prunes: bool = False, device: str = "auto") -> list[float]:
    """Trains and evaluates with each seed; the scores. ``prunes``: whether the study's pruner may end the trial
    early.
    """
    plan = planned(tuning.plan, {name: values.suggest(trial, name) for name, values in tuning.space.items()})
    trial.set_user_attr(SETTINGS, settings_of(plan))
    done: list[Figures] = []
    for number in range(tuning.n_seeds):
        done.append(_trained(trial, tuning, replace(plan, seed=plan.seed + number), done, prunes, device))
    figures = _means(done)
    trial.set_user_attr(FIGURES, figures)
    trial.set_user_attr(SEEDS, done)
    for name in tuning.wanted:
        if not np.isfinite(figures[name]):
            raise ValueError(f"{name} is {figures[name]} in all episodes")
    for name, budget in tuning.budgets.items():
        trial.set_constraint(name, abs(figures[name]) - budget)
    return [figures[name] for name in tuning.scores]


def settings_of(plan: Plan) -> dict[str, Any]:
    """The plan as an entry of the zoo's YAML files."""
    ours = {key: getattr(plan, key) for key in PLAN_KEYS}
    known = {key: value for key, value in ours.items() if value is not None}
    entry: dict[str, Any] = plain(known | {key: plan.hyperparams[key] for key in plan.hyperparams if key != REFERENCE})
    return entry


def _trained(trial: Trial, tuning: Tuning, plan: Plan, before: list[Figures], prunes: bool, device: str) -> Figures:
    """The figures of one seed; ``before``: those of the seeds before it."""
    parts, part, pruned = tuning.n_evaluations, 1, False

    def judge() -> Figures:
        return measure(plan, model, tuning.wanted, tuning.deterministic)

    def goes_on(*_: Any) -> bool:
        """Tells the study after each of the equal parts of the training but the last how good the trial is by now."""
        nonlocal part, pruned
        if part < parts and model.num_timesteps >= plan.n_timesteps * part / parts:
            figure = _means([*before, judge()])[tuning.scores[0]]
            trial.report(figure, len(before) * parts + part)
            part, pruned = part + 1, trial.should_prune()
        return not pruned

    with built(plan, device) as model:
        model.learn(plan.n_timesteps, callback=goes_on if prunes else None)
        if pruned:
            raise TrialPruned
        return judge()


def _means(seeds: list[Figures]) -> Figures:
    return {name: float(np.mean([figures[name] for figures in seeds])) for name in seeds[0]}
