"""Evaluates several commands of a conditioned policy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sb3_fair.common.evaluation import Outcome, outcomes, policy_of
from sb3_fair.common.front import Command, EvaluatedPolicy
from sb3_fair.pcn.objectives import Objectives
from sb3_fair.wrappers.desired_return import VecDesiredReturn
from sb3_fair.wrappers.layer import attribute


def evaluate_commands(
    model: Any,
    venv: VecDesiredReturn,
    commands: Sequence[Command],
    objectives: Objectives,
    n_eval_episodes: int = 10,
    deterministic: bool = True,
    seed: int = 0,
) -> list[EvaluatedPolicy]:
    """One evaluated policy per command.

    All copies are set to work on the next episodes of the list (command 0 episode 0, command 0 episode 1, ...) and
    play one each, so that with enough copies all commands are evaluated in one go. Episode j has the same seed under
    every command: differences between commands are not due to luck with the environment.

    :param venv: any number of copies; it is seeded and reset, and fairness histories begin empty
    :param n_eval_episodes: episodes per command
    """
    if n_eval_episodes < 1:
        raise ValueError(f"n_eval_episodes must be a positive integer, got {n_eval_episodes!r}")
    n = venv.num_envs
    desired_return = np.array([command.desired_return for command in commands])
    desired_horizon = np.array([command.desired_horizon for command in commands])
    tasks = np.repeat(np.arange(len(commands)), n_eval_episodes)
    played: list[list[Outcome]] = [[] for _ in commands]
    for start in range(0, len(tasks), n):
        now = tasks[start : start + n]
        asked = np.resize(now, n)
        venv.set_command(desired_return[asked], desired_horizon[asked])
        quotas = (np.arange(n) < len(now)).astype(np.int64)
        seeds = [seed + task % n_eval_episodes for task in range(start, start + n)]
        for outcome in outcomes(model, venv, quotas, deterministic, seeds):
            played[now[outcome.copy]].append(outcome)
    return [
        policy_of(
            played[index],
            f"PCN {index}",
            objectives.all_names,
            objectives.columns,
            command=command,
            deterministic=deterministic,
            probabilities=attribute(venv, "probabilities_used"),
        )
        for index, command in enumerate(commands)
    ]
