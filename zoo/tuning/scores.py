"""Scores of a trial."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any, Literal

import numpy as np

from sb3_fair.common.means import VecMeans
from sb3_fair.common.pareto import hypervolume
from sb3_fair.fairness.descriptions import MEAN, NO_WORDS, Words, describe
from sb3_fair.fairness.intervals import mean_of_known
from sb3_fair.wrappers.choices import random_actions
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo import names
from sb3_fair.zoo.evaluation.evaluate import evaluate_model, evaluation_env, policies_of, seed_of, words_of
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.reference import REFERENCE
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.weights import check_weights

RETURN, HYPERVOLUME = "R", "hypervolume"

Figures = dict[str, float]
Direction = Literal["maximize", "minimize"]


def direction(name: str, words: Words = NO_WORDS) -> Direction:
    """What Optuna is to do with a figure; the size is minimized of what is best at 0."""
    better = "higher" if name == HYPERVOLUME else describe(name, words).better
    if better is None:
        raise InputError(
            f"scores must be figures of which better and worse are known (see words of register), got {name!r}"
        )
    return "maximize" if better == "higher" else "minimize"


def check_figures(plan: Plan, scores: Sequence[str], budgets: Iterable[str]) -> None:
    """Refuses figures that a plan does not measure, or that are asked for twice."""
    if len(set(scores)) < len(scores):
        raise InputError(f"scores must name a figure once, got {':'.join(scores)}")
    known = _known(plan)
    for name in (*scores, *budgets):
        names.choose("figure", name, known)


def _known(plan: Plan) -> list[str]:
    if plan.algorithm.vector:
        return [HYPERVOLUME]
    with closing(evaluation_env(plan, 1)) as venv:
        venv.reset()
        infos = venv.step(random_actions(venv))[3]
        fairness = [name for name, value in stack(infos, "fairness").items() if np.ndim(value) == 1]
        returns = attribute(venv, "return_names", ())
    return [
        *(name for name in plan.objectives if name == RETURN),
        *fairness,
        *(f"{MEAN}{name}" for name in fairness),
        *returns,
    ]


def measure(
    plan: Plan,
    model: Any,
    wanted: Sequence[str],
    deterministic: bool = True,
) -> Figures:
    """Figures of a trained model on the episodes on which ``sb3-fair train`` would evaluate it.

    Means over episodes: ``R`` is the return, a notion or disparity what it was after the last step, or with ``mean_``
    before it over all steps, its size where 0 is best; NaN where it was undefined in all episodes.

    :param wanted: names of figures, which the result has at least
    """
    if plan.algorithm.vector:
        if not len(model.buffer):
            return {HYPERVOLUME: 0.0}  # no episode is over yet
        front = policies_of(plan, model)
        reference = [plan.hyperparams[REFERENCE][name] for name in front[0].objectives]
        return {HYPERVOLUME: hypervolume([policy.mean for policy in front], reference)}
    check_weights(model)
    averaged = [name.removeprefix(MEAN) for name in wanted if name.startswith(MEAN)]
    with closing(evaluation_env(plan)) as venv:
        measured = VecMeans(venv, averaged) if averaged else venv
        policy = evaluate_model(plan, model, measured, plan.n_eval_episodes, seed_of(plan), deterministic)
    words = words_of(plan)
    return {
        **{name: float(mean) for name, mean in zip(policy.objectives, policy.mean, strict=True) if name == RETURN},
        **{name: mean_of_known(describe(name, words).sizes(values)) for name, values in policy.final.items()},
    }
