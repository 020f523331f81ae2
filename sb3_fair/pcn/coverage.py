"""Coverage set of PCN: evaluates the commands of its best episodes, at the end and during training."""

import copy
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage

from sb3_fair.common.connection import scaled
from sb3_fair.common.evaluation import Outcome, outcomes, policy_of
from sb3_fair.common.front import Command, EvaluatedPolicy
from sb3_fair.common.monitor import VectorMonitor
from sb3_fair.common.pareto import (
    crowding_distance,
    epsilon_metric,
    front_of,
    hypervolume,
    nondominated,
    nondominated_ranks,
    sparsity,
)
from sb3_fair.common.rollout import twin
from sb3_fair.fairness.warning import warn
from sb3_fair.pcn.objectives import Array, check_alike
from sb3_fair.wrappers.desired_return import VecDesiredReturn
from sb3_fair.wrappers.layer import attribute

if TYPE_CHECKING:
    from sb3_fair.pcn.pcn import PCN

FEW, MOST = 25, 200
"""Commands that a coverage set tries at least, as far as there are so many, and at most."""
COPIES = 16
"""Copies of a Gymnasium environment that play side by side."""


def _played(
    model: "PCN",
    venv: VecDesiredReturn,
    n_eval_episodes: int,
    ways: Sequence[bool],
    seed: int,
    commands: Sequence[Command],
    aims: Sequence[Array | None],
) -> list[EvaluatedPolicy]:
    """One evaluated policy per way of acting (deterministic or not) and command.

    All copies are set to work on the next episodes of the list (command 0 episode 0, command 0 episode 1, ...) and
    play one each, so that with enough copies all commands are evaluated in one go. Episode j has the same seed under
    every command: differences between commands are not due to luck with the environment.

    :param venv: any number of copies; it is seeded and reset, and fairness histories begin empty
    """
    n = venv.num_envs
    desired_return = np.array([command.desired_return for command in commands])
    desired_horizon = np.array([command.desired_horizon for command in commands])
    tasks = np.repeat(np.arange(len(commands)), n_eval_episodes)
    policies = []
    for way in ways:
        played: list[list[Outcome]] = [[] for _ in commands]
        for start in range(0, len(tasks), n):
            now = tasks[start : start + n]
            asked = np.resize(now, n)
            venv.set_command(desired_return[asked], desired_horizon[asked])
            quotas = (np.arange(n) < len(now)).astype(np.int64)
            seeds = [seed + task % n_eval_episodes for task in range(start, start + n)]
            for outcome in outcomes(model, venv, quotas, way, seeds):
                played[now[outcome.copy]].append(outcome)
        told = {"deterministic": way, "probabilities": attribute(venv, "probabilities_used")}
        names, columns = model.objective_names, model._chosen.columns
        policies += [
            policy_of(episodes, f"PCN {index}", names, columns, command=command, aim=aim, **told)
            for index, (episodes, command, aim) in enumerate(zip(played, commands, aims, strict=True))
        ]
    return policies


def evaluated(
    model: "PCN",
    n_eval_episodes: int,
    deterministic: bool | Literal["both"] | None,
    n_commands: int | None,
    eval_env: GymEnv | None,
    seed: int = 0,
) -> list[EvaluatedPolicy]:
    """One policy per command and way of acting; the arguments are those of :meth:`PCN.coverage_set`."""
    if not len(model.buffer):
        raise ValueError("there are no episodes to take commands from: call learn() first")
    slots = _promising(model, n_commands)
    commands = [Command(model.buffer.asks[slot], float(model.buffer.lengths[slot])) for slot in slots]
    venv = _evaluation_env(model, eval_env, min(n_eval_episodes * len(commands), COPIES))
    told = model.eval_deterministic if deterministic is None else deterministic
    ways = (True, False) if told in (None, "both") else (bool(told),)
    play = partial(_played, model, venv, n_eval_episodes, ways, seed)
    policies = play(commands, list(model.buffer.points[slots]))
    raised = _raised(model, policies)
    return policies + play(raised, [None] * len(raised))


def _promising(model: "PCN", n_commands: int | None) -> NDArray[np.intp]:
    """Which stored episodes to take commands from: the non-dominated ones.

    Where nothing is said of their number, ``FEW`` at least: one lucky episode may dominate all others, and the next
    ranks hold what can be relied upon. The shortest episodes of all returns come before the same returns in other
    numbers of steps.
    """
    buffer, points = model.buffer, model.buffer.points
    shortest = np.unique(buffer.shortest())
    best = shortest[nondominated(points[shortest])]
    if n_commands is None and len(best) < FEW:
        parts = shortest, np.setdiff1d(np.arange(len(points)), shortest)
        order = np.concatenate([part[np.argsort(nondominated_ranks(points[part]), kind="stable")] for part in parts])
        asked = np.column_stack([buffer.asks[order], buffer.lengths[order]])
        return order[np.sort(np.unique(asked, axis=0, return_index=True)[1])][:FEW]
    if n_commands is None and len(best) > MOST:
        warn(f"{len(best)} commands are not dominated, of which the {MOST} least crowded are tried: give n_commands")
    least_crowded = np.argsort(-crowding_distance(points[best]), kind="stable")[: n_commands or MOST]
    return best[np.sort(least_crowded)]


def _raised(model: "PCN", policies: Sequence[EvaluatedPolicy]) -> list[Command]:
    """Commands that ask for more of each objective than the one that brought most of it."""
    asked = np.array([policy.command.desired_return for policy in policies if policy.command])
    best = np.array([policy.mean for policy in policies]).argmax(axis=0)
    steps = np.diag(asked.std(axis=0))
    horizons = [policy.command.desired_horizon for policy in policies if policy.command]
    return [
        Command(np.minimum(asked[index] + times * step, model.max_return), horizons[index])
        for index, step in zip(best, steps, strict=True)
        for times in model.eval_optimism
    ]


def _evaluation_env(model: "PCN", eval_env: GymEnv | None, n: int = 1) -> VecDesiredReturn:
    """``eval_env``, else a copy of the training environment: of environments that are stepped one by one ``n``."""
    if eval_env is not None:
        venv = model._wrap_env(eval_env)
        check_alike("eval_env", venv, model.objective_names, model.emit)
        return model._commanded(scaled(model, venv))
    if model.env is None:
        raise ValueError("eval_env must be given because the model has no environment")
    try:
        copied = twin(model.env)
    except Exception as error:
        message = f"eval_env must be given because the training environment cannot be copied ({error})"
        raise ValueError(message) from error
    assert isinstance(copied, VecDesiredReturn)
    inside = copied.venv
    while isinstance(inside, VectorMonitor | VecTransposeImage):  # which keep nothing that is to be copied
        inside = inside.venv
    if type(inside) is not DummyVecEnv:
        return copied
    envs = inside.envs + [copy.deepcopy(inside.envs[0]) for _ in range(n - inside.num_envs)]
    return model._commanded(
        model._wrap_env(DummyVecEnv([partial(envs.__getitem__, index) for index in range(len(envs))]))
    )


def evaluation_times(model: "PCN", total_timesteps: int) -> NDArray[np.float64]:
    """At which numbers of steps ``learn`` evaluates."""
    every, started = model.eval_freq, model._num_timesteps_at_start
    if isinstance(every, float) and every < 1:
        every *= total_timesteps - started
    if every and model.eval_env is None:
        try:
            _evaluation_env(model, None)
        except ValueError as error:
            warn(f"no evaluations during training: {error}")
            every = 0
    return np.arange(started + every, total_timesteps + every, every) if every else np.zeros(0)


def evaluate_in_training(model: "PCN") -> None:
    """Evaluates, keeps the front in ``model.evaluations`` and logs its figures."""
    way = True if model.eval_deterministic is None else model.eval_deterministic
    policies = evaluated(model, model.n_eval_episodes, way, model.n_eval_commands, model.eval_env)
    front = front_of(policies)
    model.evaluations.append((model.num_timesteps, front))
    reached = np.array([policy.mean for policy in policies])
    aimed = [policy.aim is not None for policy in policies]
    aims = np.array([policy.aim for policy in policies if policy.aim is not None])
    mean_miss, max_miss = epsilon_metric(aims, reached[aimed], floor=model.scaling_floor)
    model.n_eval_timesteps += int(sum(policy.lengths.sum() for policy in policies))
    figures = {f"best_{name}": float(best) for name, best in zip(model.optimised, reached.max(axis=0), strict=True)}
    figures |= {"hypervolume": hypervolume(front.means, model.ref_point), "front_size": len(front)}
    figures |= {"sparsity": sparsity(front.means), "epsilon_mean": mean_miss, "epsilon_max": max_miss}
    figures["timesteps"] = model.n_eval_timesteps
    for name, value in figures.items():
        model.logger.record(f"eval/{name}", value)
