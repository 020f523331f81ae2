"""How good and how fair is what a trial trained?"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Literal

import numpy as np

from sb3_fair.common.pareto import hypervolume
from sb3_fair.fairness import NOTIONS
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo import names
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.evaluate import SEED, evaluate_model, evaluation_env, policies_of
from sb3_fair.zoo.harvest_evaluation import Columns, harvest_figures
from sb3_fair.zoo.names import PREFIX, InputError
from sb3_fair.zoo.plan import OURS, Plan
from sb3_fair.zoo.reference import REFERENCE
from sb3_fair.zoo.studies.fair_ppo import ENV as HARVEST
from sb3_fair.zoo.studies.fair_ppo import Arm, learner
from sb3_fair.zoo.train import build_model, training_env
from sb3_fair.zoo.tuning.means import MEAN, VecMeans
from sb3_fair.zoo.weights import check_weights

RETURN, HYPERVOLUME = "R", "hypervolume"
HARVEST_DISPARITIES = ("dp", "csp", "pairs", "value", "gini")
"""How the columns of :func:`~sb3_fair.zoo.harvest_evaluation.harvest_figures` begin that tell an inequality."""

Figures = dict[str, float]
Direction = Literal["maximize", "minimize"]


def notion(name: str) -> str:
    """The fairness notion behind the name of a figure: SP for SP, SP@gender and mean_SP."""
    return name.removeprefix(MEAN).partition("@")[0]


def direction(name: str) -> Direction:
    """What Optuna is to do with a figure. Disparities are 0 if fair and grow with unfairness, all else is to grow."""
    return "maximize" if name in (RETURN, HYPERVOLUME) or notion(name) in NOTIONS else "minimize"


def check_figures(plan: Plan, wanted: Iterable[str]) -> None:
    """Nothing.

    :raises InputError: if a figure is not measured, or is asked for twice
    """
    wanted = list(wanted)
    if len(set(wanted)) < len(wanted):
        raise InputError(f"scores must name a figure once, got {':'.join(wanted)}")
    known = _known(plan)
    for name in wanted:
        names.choose("figure", name, known)


def _known(plan: Plan) -> list[str]:
    if plan.algorithm.vector:
        return [HYPERVOLUME]
    if plays_all_agents(plan):
        columns = _play("random", 1, SEED, False, **{**_game(plan), "horizon": 1})
        return [RETURN, *(column for column in columns if column.startswith(HARVEST_DISPARITIES))]
    venv = evaluation_env(plan, 1)
    venv.reset()
    infos = venv.step(np.array([venv.action_space.sample()]))[3]
    fairness = [name for name, value in stack(infos, "fairness").items() if np.ndim(value) == 1]
    venv.close()
    return [
        *(name for name in plan.objectives if name == RETURN),
        *fairness,
        *(f"{MEAN}{name}" for name in fairness),
    ]


def build(plan: Plan, device: str) -> Any:
    """The model of a plan, ready to learn. Fair-PPO plays all agents of the Allelopathic Harvest, not one of them."""
    if not plays_all_agents(plan):
        return build_model(plan, training_env(plan), device)
    penalty = {field.name for field in fields(Arm)}
    given = {key: value for key, value in plan.hyperparams.items() if key not in penalty}
    settings = {**OURS, "policy": plan.policy, "n_envs": plan.n_envs, "env_kwargs": _game(plan), **given}
    return learner(
        Arm(**{key: value for key, value in plan.hyperparams.items() if key in penalty}), plan.seed, settings
    )


def measure(
    plan: Plan,
    model: Any,
    wanted: Sequence[str],
    deterministic: bool = True,
) -> Figures:
    """Figures of a trained model on the episodes on which ``sb3-fair train`` would evaluate it.

    Means over episodes: ``R`` is the return, a notion or disparity what it was after the last step, or with ``mean_``
    before it over all steps; NaN where it was undefined in all episodes.

    :param wanted: names of figures, which the result has at least. The hypervolume of a plan for vectors is measured
        against its ``ref_point``, a number by objective
    :param deterministic: whether the most probable actions are taken, or sampled ones
    :raises WorkError: if weights are not finite
    """
    if plan.algorithm.vector:
        if not len(model.buffer):
            return {HYPERVOLUME: 0.0}  # no episode is over yet
        front = policies_of(plan, model)
        reference = [plan.hyperparams[REFERENCE][name] for name in front[0].objectives]
        return {HYPERVOLUME: hypervolume([policy.mean for policy in front], reference)}
    check_weights(model)
    if plays_all_agents(plan):
        return _harvest(plan, model, deterministic)
    venv = evaluation_env(plan)
    averaged = [name.removeprefix(MEAN) for name in wanted if name.startswith(MEAN)]
    if averaged:
        venv = VecMeans(venv, averaged)
    policy = evaluate_model(plan, model, venv, plan.n_eval_episodes, plan.seed + SEED, deterministic)
    venv.close()
    return {
        **{name: float(mean) for name, mean in zip(policy.objectives, policy.mean, strict=True) if name == RETURN},
        **{name: _mean(values) for name, values in policy.final.items()},
    }


def _mean(values: Any) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def plays_all_agents(plan: Plan) -> bool:
    """Whether a model of the plan plays every agent of a game."""
    return plan.algo == "fair_ppo" and plan.env == PREFIX + HARVEST


def _game(plan: Plan) -> dict[str, Any]:
    """The rules of the harvest, without what only the game of one agent has."""
    given = {key: value for key, value in plan.env_kwargs.items() if key in HarvestConfig.__dataclass_fields__}
    return {"horizon": HarvestConfig().horizon, **given}


def _play(model: Any, n_episodes: int, seed: int, deterministic: bool, *, horizon: int, **rules: Any) -> Columns:
    return harvest_figures(model, n_episodes, horizon, seed, deterministic=deterministic, **rules)


def _harvest(plan: Plan, model: Any, deterministic: bool) -> Figures:
    rows = _play(model, plan.n_eval_episodes, plan.seed + SEED, deterministic, **_game(plan))
    figures = {name: _mean(np.abs(rows[name])) for name in rows if name != "seed"}
    return {**figures, RETURN: _mean((rows["U"] + rows["S"]) / (rows["n_U"] + rows["n_S"]))}
