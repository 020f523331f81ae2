"""Runs of the study of fairness MDPs.

Every policy is chosen on some episodes and judged on others, which are the same for all learners and rules: each copy
of the environment plays one episode, from a seed of its own.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.chance import VecChance
from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.pareto import reference_point
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo import reference
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.evaluate import evaluate_model, measurable, with_chance
from sb3_fair.zoo.plan import AUDIT, DEFAULT, Plan, make_plan
from sb3_fair.zoo.rules import RuleAgent
from sb3_fair.zoo.studies.fmdp_matrix import env_kwargs
from sb3_fair.zoo.studies.whole_episode import VecWholeEpisode
from sb3_fair.zoo.train import build_model, training_env

CHOOSING, FRESH = 50_000, 90_000
"""Seeds of the first copy, far from each other and from those of training."""
COPIES = 100
"""Of the environment while PCN's commands are chosen."""
ROLLOUT = 512
"""Steps between two updates of PPO, in all copies together: budgets of scalar learners are multiples of it."""
SCALAR_COPIES = 8
REPLAYED_EPISODES = 100
SETTINGS: dict[str, dict[str, Any]] = {
    "pcn": {"eval_freq": 0},
    "dqn": {"exploration_initial_eps": 0.1, "exploration_final_eps": 0.1, "target_update_interval": 1000},
    "ppo": {"n_steps": ROLLOUT // SCALAR_COPIES, "batch_size": 128},
}
"""Over those of the zoo: PCN's for the environment, of the others the defaults."""

Figures = dict[str, Any]


def scales(env: str, objectives: Sequence[str], settings: Mapping[str, Any]) -> Figures:
    """Reference points, and ranges of what policies return that ignore what they see.

    The policies, episodes and rule are those of :mod:`sb3_fair.zoo.reference`.

    :return: for ``"returns"`` and for ``"whole"``-episode figures, ``"reference"`` and ``"range"`` by name
    """
    venv = _judging_env(env, objectives, settings, reference.EPISODES)
    n = int(venv.action_space.n)  # type: ignore[attr-defined]
    policies = [
        _figures(with_chance(evaluate_vector(reference.Fixed(chances), venv, reference.EPISODES, seed=reference.SEED)))
        for chances in (np.full(n, 1 / n), np.eye(n)[0], np.eye(n)[1])
    ]
    return {kind: _scale([policy[kind] for policy in policies]) for kind in ("returns", "whole")}


def _scale(policies: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """By name; an undefined figure counts as 0, as it does in rewards."""
    values = np.nan_to_num([list(policy.values()) for policy in policies])
    columns = {"reference": reference_point(values), "range": np.ptp(values, axis=0)}
    return {kind: dict(zip(policies[0], numbers.tolist(), strict=True)) for kind, numbers in columns.items()}


def play_rules(env: str, objectives: Sequence[str], settings: Mapping[str, Any], fresh: int) -> Figures:
    """The rules of the environment on the fresh episodes."""
    venv = _judging_env(env, objectives, settings, fresh)
    names = venv.get_attr("world")[0].rules
    played = (evaluate_vector(RuleAgent(name, venv, FRESH), venv, fresh, name=name, seed=FRESH) for name in names)
    return {"policies": [_figures(with_chance(policy)) for policy in played]}


def run_pcn(
    env: str,
    objectives: Sequence[str],
    settings: Mapping[str, Any],
    seed: int,
    steps: int,
    choosing: int,
    fresh: int,
    ref_point: Mapping[str, float],
) -> Figures:
    """Trains PCN; the policies of its evaluated front, judged again."""
    plan = make_plan(
        "pcn",
        env,
        seed=seed,
        objectives=objectives,
        n_timesteps=steps,
        env_kwargs=env_kwargs(settings),
        hyperparams={**SETTINGS["pcn"], "ref_point": dict(ref_point)},
    )
    model, seconds = _trained(plan)
    venv = make_vec(env, n_envs=COPIES, monitor=False, **plan.env_kwargs)
    front = model.coverage_set(choosing, eval_env=venv, seed=CHOOSING)
    judging = _judging_env(env, objectives, settings, fresh)
    found = []
    for policy in front:
        model.set_command(policy)
        again = evaluate_vector(model, model.follow(judging), fresh, policy.deterministic, name=policy.name, seed=FRESH)
        found.append({"choosing": policy.mean.tolist(), **_figures(with_chance(again))})
    return {"steps": model.num_timesteps, "seconds": seconds, "policies": found}


def run_scalar(
    algo: str,
    env: str,
    objectives: Sequence[str],
    settings: Mapping[str, Any],
    weights: Sequence[float],
    units: Sequence[float],
    seed: int,
    steps: int,
    choosing: int,
    fresh: int,
) -> Figures:
    """Trains an algorithm on a weighted sum; what it learned, taking the most probable actions and sampling.

    :param weights: of the objectives, each measured in its unit
    :param units: of the objectives
    :param steps: a multiple of :data:`ROLLOUT`
    """
    plan = make_plan(
        algo,
        env,
        seed=seed,
        objectives=objectives,
        weights=[weight / unit for weight, unit in zip(weights, units, strict=True)],
        n_timesteps=steps,
        n_envs=SCALAR_COPIES,
        env_kwargs=env_kwargs(settings),
        preset=DEFAULT,
        hyperparams=SETTINGS[algo],
    )
    if algo == "dqn":
        longest = attribute(make_vec(env, monitor=False), "max_steps")
        plan.hyperparams["buffer_size"] = REPLAYED_EPISODES * longest
    model, seconds = _trained(plan)
    choice = make_vec(env, n_envs=choosing, monitor=False, **plan.env_kwargs)
    judging = _judging_env(env, objectives, settings, fresh)
    name = f"{algo.upper()} {':'.join(f'{weight:.2g}' for weight in weights)}"
    found = []
    for deterministic in (True, False):
        chosen = evaluate_model(plan, model, choice, choosing, CHOOSING, deterministic)
        again = evaluate_model(plan, model, judging, fresh, FRESH, deterministic)
        found.append({"choosing": chosen.mean.tolist(), **_figures(replace(again, name=name))})
    return {"steps": model.num_timesteps, "seconds": seconds, "policies": found}


def weight_vectors(k: int, divisions: int) -> list[tuple[float, ...]]:
    """All weights of k objectives that are multiples of 1 / ``divisions`` and sum to 1."""

    def lattice(k: int, left: int) -> Iterator[tuple[int, ...]]:
        if k == 1:
            yield (left,)
            return
        for first in range(left, -1, -1):
            yield from ((first, *rest) for rest in lattice(k - 1, left - first))

    return [tuple(part / divisions for part in parts) for parts in lattice(k, divisions)]


def share_of_budget(steps: int, runs: int) -> int:
    """Steps of each run of a sweep, so that together they take no more than ``steps``."""
    return steps // runs // ROLLOUT * ROLLOUT


class Budget(BaseCallback):
    """Stops the training before it takes more steps than it was given; whole episodes would overshoot."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def _on_step(self) -> bool:
        return self.model.num_timesteps + self.training_env.num_envs <= self.steps


def _trained(plan: Plan) -> tuple[Any, float]:
    """The model, and how long it trained in seconds of the processor."""
    venv = training_env(plan)
    model = build_model(plan, venv, "cpu")
    began = time.process_time()
    model.learn(plan.n_timesteps, callback=Budget(plan.n_timesteps) if plan.algorithm.vector else None)
    return model, time.process_time() - began


def _judging_env(env: str, objectives: Sequence[str], settings: Mapping[str, Any], copies: int) -> VecEnv:
    """Rewards as in training; fairness, and how much of SP is chance, over the whole episode."""
    given = env_kwargs(settings)
    venv = make_vec(env, n_envs=copies, monitor=False, objectives=objectives, **given)
    return VecChance(VecWholeEpisode(venv, measurable(AUDIT, env, given)), notions=["SP"])


def _figures(policy: EvaluatedPolicy) -> Figures:
    """Mean returns in the objectives as they were rewarded, and mean figures over whole episodes, NaN where
    undefined."""
    return {
        "name": policy.name,
        "deterministic": policy.deterministic,
        "length": policy.length,
        "returns": dict(zip(policy.objectives, policy.mean.tolist(), strict=True)),
        "whole": {name: _mean(values) for name, values in policy.final.items()},
        "chance": dict(policy.chance),
    }


def _mean(values: Any) -> float:
    known = np.asarray(values)[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
