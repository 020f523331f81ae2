"""Evaluates a plan's model and the rules of its environment on fresh episodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.connection import connected
from sb3_fair.common.evaluation import (
    Outcome,
    evaluate_vector,
    objective_names,
    outcomes_of_games,
    policy_of,
    warn_of_undefined,
)
from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.people import VecPeople
from sb3_fair.common.rollout import shares
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.fairness import find_notion
from sb3_fair.fairness.descriptions import Words, check_words
from sb3_fair.fairness.warning import warn
from sb3_fair.wrappers.disparity import measured
from sb3_fair.wrappers.group_returns import VecGroupReturns, games_of
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.build import make_vec, unseen
from sb3_fair.zoo.registry.layers import copies, transparent
from sb3_fair.zoo.registry.rules import RuleAgent, RuleError
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.policy_file import load_policy
from sb3_fair.zoo.runs.weights import check_weights

COPIES = 25
FINAL, AGAIN, FILMED = 10_000, 20_000, 30_000
"""Seeds for the final evaluation of a run with seed 0, for later ones, and for films."""


def evaluation_env(plan: Plan, n_envs: int = COPIES) -> VecEnv:
    """Environments with fairness histories of their own, which measure all audited notions and their chance levels;
    those whose episodes never end are refused.
    """
    venv = copies(plan, n_envs, monitor=False, audit=audited(plan))
    if "disparity" in plan.algorithm.needs:
        venv = measured(venv)
    if attribute(venv, "endless", False):
        raise InputError("episode_length must be a number of steps: evaluations are over whole episodes, got None")
    return VecPeople(venv) if games_of(venv) is None else VecGroupReturns(venv)


def words_of(plan: Plan) -> Words:
    """What the plan's environment calls its measures, groups and decisions."""
    with closing(evaluation_env(plan, 1)) as venv:
        return words_in(venv)


def words_in(venv: VecEnv) -> Words:
    """What an environment calls its measures, groups and decisions; ``words`` of another kind are something else."""
    return check_words(attribute(venv, "words", {}, kind=Mapping))


def held_out(plan: Plan) -> Plan:
    """The plan among people whom nobody learned from, where its environment keeps some for evaluations."""
    return replace(plan, env_kwargs={**plan.env_kwargs, **unseen(plan.env, plan.env_kwargs)})


def audited(plan: Plan) -> list[str]:
    """What is measured besides the objectives."""
    return [name for name in measurable(plan.audit, plan.env, plan.env_kwargs) if name not in plan.objectives]


def measurable(notions: Iterable[str], env: str, env_kwargs: Mapping[str, Any]) -> list[str]:
    """The notions that an environment can have: all compare decisions, some also features of people or distances of
    actions. Other actions than discrete ones are decisions if the ID itself asks for notions of them. The history of an
    agent among others holds nobody to compare it with."""
    given = {key: value for key, value in env_kwargs.items() if key not in ("objectives", "audit", "scalarise")}
    with closing(make_vec(env, monitor=False, **given)) as venv:
        spec, space = attribute(venv, "fairness_spec"), venv.action_space
        if not (isinstance(space, spaces.Discrete) or spec.notions) or games_of(venv) is not None:
            return []
    rows = {name: find_notion(name) for name in notions}
    if isinstance(space, spaces.Box) and not space.is_bounded() and spec.treatment is None:
        rows = {name: notion for name, notion in rows.items() if not notion.needs_probabilities}
    featured = spec.features is not None or spec.feature_names is not None
    return [name for name, notion in rows.items() if featured or not notion.needs_features]


def seed_of(plan: Plan, purpose: int = FINAL) -> int:
    """The seed of the first copy in an evaluation of a run. Two runs share no seed, however many copies they have."""
    return purpose + 10 * FINAL * plan.seed % 2**31


def policies_of(plan: Plan, model: Any, deterministic: bool | None = None) -> list[EvaluatedPolicy]:
    """The evaluated trade-off of an algorithm that learns one, else the one policy of the model.

    :param deterministic: see :func:`most_probable`
    """
    check_weights(model)
    seed = seed_of(plan)
    if plan.algorithm.vector:
        with closing(evaluation_env(plan)) as venv:
            return list(model.coverage_set(plan.n_eval_episodes, eval_env=venv, seed=seed))
    with closing(evaluation_env(plan, min(COPIES, plan.n_eval_episodes))) as venv:
        policy = evaluate_model(plan, model, venv, plan.n_eval_episodes, seed, most_probable(venv, deterministic))
    warn_of_undefined([policy])
    return [policy]


def most_probable(venv: VecEnv, deterministic: bool | None) -> bool:
    """Whether an evaluation takes the most probable actions, or samples; None: it samples where one model plays several
    agents of a game, who would all do the same."""
    return games_of(venv) is None if deterministic is None else deterministic


def evaluate_rules(
    plan: Plan,
    n_eval_episodes: int | None = None,
    seed: int | None = None,
    around: Callable[[VecEnv], VecEnv] | None = None,
) -> list[EvaluatedPolicy]:
    """The environment's rules of thumb on the evaluation episodes, all rules in one pass, without those that fail, of
    which it warns; ``around`` measures more."""
    plan = transparent(plan)  # rules know the environment as it is
    with closing(evaluation_env(plan, 1)) as one:
        rules = tuple(attribute(one, "rules"))
    seed = seed_of(plan) if seed is None else seed
    episodes = n_eval_episodes or plan.n_eval_episodes
    while rules:
        try:
            return _in_one_pass(plan, rules, episodes, seed, around)
        except RuleError as error:
            warn(f"rule {error.rule!r} of {plan.env} is left out: it {error.what}")
            rules = tuple(rule for rule in rules if rule != error.rule)
    return []


def _in_one_pass(
    plan: Plan, rules: Sequence[str], episodes: int, seed: int, around: Callable[[VecEnv], VecEnv] | None
) -> list[EvaluatedPolicy]:
    size = min(COPIES, episodes)
    quotas = np.tile(shares(episodes, size), len(rules))
    seeds = list(range(seed, seed + size)) * len(rules)
    played: list[list[Outcome]] = [[] for _ in rules]
    with closing(evaluation_env(plan, size * len(rules))) as own:
        venv = own if around is None else around(own)
        for outcome in outcomes_of_games(RuleAgent(rules, venv, seed), venv, quotas, seeds):
            played[outcome.copy // size].append(outcome)
        k = len(played[0][0].vector)
        names = objective_names(venv, k)
    return [
        policy_of(episodes_of_rule, rule.replace("-", " "), names, np.arange(k), deterministic=True)
        for rule, episodes_of_rule in zip(rules, played, strict=True)
    ]


def check_rules(plan: Plan) -> None:
    """Asks every rule of the environment for one action, so that one that fails does not do so after a training.

    :raises InputError: if one fails
    """
    with closing(evaluation_env(transparent(plan), 1)) as venv:
        observation = venv.reset()
        for rule in attribute(venv, "rules"):
            try:
                RuleAgent(rule, venv, 0).predict(observation)
            except RuleError as error:
                raise InputError(f"rules must return actions, but {rule!r} of {plan.env} {error.what}") from error


def evaluate_run(
    run: RunFolder,
    policy: int | str | None = None,
    *,
    n_eval_episodes: int = 20,
    seed: int | None = None,
    device: str = "auto",
) -> list[EvaluatedPolicy]:
    """The policies of a run, or the one of a number or name in its report, on episodes of their own.

    :param seed: of the first copy of the environment; None: one that no other run has
    """
    front = front_of(run)
    policies = list(front) if policy is None else [chosen(front, policy)]
    plan = held_out(Plan.of_run(run))
    model = load_policy(plan, run, device)
    seed = seed_of(plan, AGAIN) if seed is None else seed
    with closing(evaluation_env(plan)) as venv:
        found = [evaluate_again(plan, model, learned, venv, n_eval_episodes, seed) for learned in policies]
    warn_of_undefined(found)
    return found


def front_of(run: RunFolder) -> Front:
    """The policies of a run, if it is finished."""
    if not len(run.front):
        raise InputError(f"run must be finished, with policies in front.json, got {str(run.path)!r}")
    return run.front


def chosen(front: Front, policy: int | str) -> EvaluatedPolicy:
    """The policy of a number or a name, if there is one."""
    names = [each.name for each in front]
    number = names.index(policy) if policy in names else policy
    if not isinstance(number, Integral) or not 0 <= number < len(front):
        few = ", ".join(names[:3]) + ", ..." * (len(names) > 3)
        raise InputError(f"policy must be a number from 0 to {len(front) - 1} or one of {few}, got {policy!r}")
    return front[int(number)]


def evaluate_again(
    plan: Plan, model: Any, learned: EvaluatedPolicy, venv: VecEnv, n_eval_episodes: int, seed: int
) -> EvaluatedPolicy:
    """A policy of a run's front, on the copies of ``venv``."""
    if plan.algorithm.vector:
        model.set_command(learned)
    again = evaluate_model(plan, model, venv, n_eval_episodes, seed, learned.deterministic)
    return replace(again, name=learned.name, command=learned.command, aim=learned.aim)


def evaluate_model(
    plan: Plan, model: Any, venv: VecEnv, n_eval_episodes: int, seed: int, deterministic: bool = True
) -> EvaluatedPolicy:
    """What a model does, under the command it has if there is one, on the copies of ``venv``."""
    check_weights(model)
    return evaluate_vector(
        model, connected(model, venv), n_eval_episodes, deterministic, name=plan.algo.upper(), seed=seed
    )
