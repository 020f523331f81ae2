"""Runs of the study of fairness MDPs.

Every policy is chosen on some episodes and judged on others, which are the same for all learners and rules: each copy
of the environment plays one episode, from a seed of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.pareto import hypervolume, reference_point
from sb3_fair.common.people import VecPeople
from sb3_fair.fairness import DiscountedHistory
from sb3_fair.fairness.distances import Distance
from sb3_fair.fairness.intervals import mean_of_known
from sb3_fair.pcn import PCN
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo.evaluation.evaluate import evaluate_again, evaluate_model, measurable
from sb3_fair.zoo.registry import reference
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.registry.layers import copies
from sb3_fair.zoo.registry.rules import RuleAgent
from sb3_fair.zoo.runs.plan import AUDIT, Plan, make_plan
from sb3_fair.zoo.runs.settings import DEFAULT
from sb3_fair.zoo.studies.training import Watch
from sb3_fair.zoo.studies.whole_episode import VecWholeEpisode

CHOOSING, FRESH = 50_000, 90_000
"""Seeds of the first copy, far from each other and from those of training."""
COPIES = 100
"""Of the environment while PCN's commands are chosen."""
ROLLOUT = 512
"""Steps between two updates of PPO, in all copies together: budgets of scalar learners are multiples of it."""
SCALAR_COPIES = 8
REPLAYED_EPISODES = 100
POINTS = 40
"""Of learning curves."""
DELAY = 5
"""Of discounted histories."""

Figures = dict[str, Any]


def env_kwargs(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a registered ID.

    :param settings: those arguments, in which ``factor``, ``threshold`` and ``min_window`` make a discounted history
        and ``kernel`` goes with ``distance``
    """
    given = dict(settings)
    if "factor" in given:
        discount = {name: given.pop(name) for name in ("factor", "threshold", "min_window")}
        given["history"] = DiscountedHistory(delay=DELAY, **discount)
    if "kernel" in given:
        given["distance"] = Distance(given["distance"], kernel=given.pop("kernel"))
    return given


def plan_of(algo: str, env: str, settings: Mapping[str, Any], steps: int, **wishes: Any) -> Plan:
    """The training of PCN, or of another algorithm on a weighted sum.

    :param steps: on a weighted sum, a multiple of :data:`ROLLOUT`
    :param wishes: further arguments of :func:`~sb3_fair.zoo.runs.plan.make_plan`; hyperparameters go over those of the
        zoo: PCN's for the environment, of others the defaults
    """
    hyperparams = dict(wishes.pop("hyperparams", {}))
    if algo == "dqn":
        hyperparams["buffer_size"] = REPLAYED_EPISODES * attribute(make_vec(env, monitor=False), "max_steps")
    if algo == "ppo":
        hyperparams["n_steps"] = ROLLOUT // SCALAR_COPIES
    if algo != "pcn":
        wishes |= {"n_envs": SCALAR_COPIES, "preset": DEFAULT}
    wishes |= {"env_kwargs": env_kwargs(settings), "hyperparams": hyperparams}
    return make_plan(algo, env, n_timesteps=steps, **wishes)


class Budget(Watch):
    """Stops the training before it takes more steps than it was given; whole episodes would overshoot. On the way it
    notes the hypervolume of the episodes from which PCN learns, and of every rollout the mean size of the window: how
    many decisions the history kept."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.figures = {"course": {"steps": [], "hypervolume": []}, "window": {"steps": [], "size": []}}

    def _on_rollout_start(self) -> None:
        self._sizes: list[Any] = []

    def _on_step(self) -> bool:
        course = self.figures["course"]
        if self.num_timesteps * POINTS >= self.steps * (len(course["steps"]) + 1):
            course["steps"].append(self.num_timesteps)
            model: PCN = self.model  # type: ignore[assignment]
            course["hypervolume"].append(hypervolume(model.buffer_points(), model.ref_point))
        kept = attribute(self.training_env, "decisions_kept")
        self._sizes.append(np.where(kept > 0, kept, np.nan))  # an episode that is over has left nothing
        return self.num_timesteps + self.training_env.num_envs <= self.steps

    def _on_rollout_end(self) -> None:
        self.figures["window"]["steps"].append(self.num_timesteps)
        self.figures["window"]["size"].append(mean_of_known(self._sizes))


def weight_vectors(k: int, divisions: int) -> list[tuple[float, ...]]:
    """All weights of k objectives that are multiples of 1 / ``divisions`` and sum to 1."""
    parts = product(range(divisions, -1, -1), repeat=k)
    return [tuple(part / divisions for part in some) for some in parts if sum(some) == divisions]


def share_of_budget(steps: int, runs: int) -> int:
    """Steps of each run of a sweep, so that together they take no more than ``steps``."""
    return steps // runs // ROLLOUT * ROLLOUT


def scales(env: str, settings: Mapping[str, Any]) -> Figures:
    """Reference points, and ranges of what policies return that ignore what they see.

    :return: for ``"returns"`` and for ``"whole"``-episode figures, ``"reference"`` and ``"range"`` by name
    """
    venv = _judging_env(env, env_kwargs(settings), reference.EPISODES)
    found = [
        _figures(evaluate_vector(policy, venv, reference.EPISODES, seed=reference.SEED))
        for policy in reference.policies(venv.action_space)
    ]
    return {kind: _scale([figures[kind] for figures in found]) for kind in ("returns", "whole")}


def _scale(policies: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """By name; an undefined figure counts as 0, as it does in rewards."""
    values = np.nan_to_num([list(policy.values()) for policy in policies])
    columns = {"reference": reference_point(values), "range": np.ptp(values, axis=0)}
    return {kind: dict(zip(policies[0], numbers.tolist(), strict=True)) for kind, numbers in columns.items()}


def play_rules(env: str, settings: Mapping[str, Any], fresh: int) -> Figures:
    """The rules of the environment on the fresh episodes."""
    venv = _judging_env(env, env_kwargs(settings), fresh)
    played = (
        evaluate_vector(RuleAgent(name, venv, FRESH), venv, fresh, name=name, seed=FRESH)
        for name in attribute(venv, "rules")
    )
    return {"policies": [_figures(policy) for policy in played]}


def judge(plan: Plan, model: Any, choosing: int, fresh: int, name: str | None = None) -> Figures:
    """The policies of PCN's evaluated front, or what an algorithm learned on a weighted sum, taking the most probable
    actions and sampling; judged again.

    :param name: of an algorithm's policies
    """
    if plan.algorithm.vector:
        front = model.coverage_set(choosing, eval_env=copies(plan, COPIES, monitor=False), seed=CHOOSING)
    else:
        choice = copies(plan, choosing, monitor=False)
        front = [evaluate_model(plan, model, choice, choosing, CHOOSING, way) for way in (True, False)]
    judging = _judging_env(plan.env, plan.env_kwargs, fresh)
    again = (evaluate_again(plan, model, policy, judging, fresh, FRESH) for policy in front)
    policies = [
        {"choosing": policy.mean, **_figures(replace(found, name=name or found.name))}
        for policy, found in zip(front, again, strict=True)
    ]
    return {"steps": model.num_timesteps, "policies": policies}


def _judging_env(env: str, given: Mapping[str, Any], n_envs: int) -> VecEnv:
    """Rewards as in training; fairness, and how much of SP is chance, over the whole episode."""
    venv = make_vec(env, n_envs=n_envs, monitor=False, **given)
    return VecPeople(VecWholeEpisode(venv, measurable(AUDIT, env, given)), notions=["SP"])


def _figures(policy: EvaluatedPolicy) -> Figures:
    """Mean returns in the objectives as they were rewarded, and mean figures over whole episodes, NaN where
    undefined."""
    return {
        "name": policy.name,
        "length": policy.length,
        "returns": dict(zip(policy.objectives, policy.mean.tolist(), strict=True)),
        "whole": {name: mean_of_known(values) for name, values in policy.final.items()},
        "chance": dict(policy.chance),
    }
