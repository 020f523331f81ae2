"""Evaluation of policies: plays complete episodes and tells returns, lengths and how fair they were."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.rollout import play, seeded, shares
from sb3_fair.wrappers.group_returns import games_of
from sb3_fair.wrappers.labels import slots
from sb3_fair.wrappers.layer import attribute, forget_history, seed_copies

Array = NDArray[np.float64]


class Outcome(NamedTuple):
    """One complete episode.

    :param copy: which copy of the environment played it
    :param vector: undiscounted vector return, (K,)
    :param length: number of steps
    :param final: fairness figures after the last step, NaN where undefined
    """

    copy: int
    vector: Array
    length: int
    final: dict[str, float]


def outcomes(
    model: Any, venv: VecEnv, quotas: NDArray[np.int64], deterministic: bool = True, seeds: Sequence[int] | None = None
) -> list[Outcome]:
    """Lets ``model.predict`` play ``quotas[i]`` complete episodes on copy i, in the order in which they end.

    :param seeds: of each copy, None: 0, 1, ...; the first is also that of what SB3's models sample from, which is put
        back afterwards
    """
    seeds = range(venv.num_envs) if seeds is None else seeds
    state: Any = None

    def act(observations: Any, begins: NDArray[np.bool_]) -> NDArray[Any]:
        nonlocal state
        actions, state = model.predict(observations, state=state, episode_start=begins, deterministic=deterministic)
        return np.asanyarray(actions)

    found: list[Outcome] = []
    total: Any = 0.0
    length = np.zeros(venv.num_envs, dtype=np.int64)
    forget_history(venv)
    seed_copies(venv, seeds)
    with seeded(seeds[0], model):
        for step in play(venv, act, quotas):
            total = total + step.rewards
            length += 1
            for index in np.flatnonzero(step.dones & step.counts):
                final = _figures(step.infos[index].get("fairness"))
                found.append(Outcome(int(index), total[index].copy(), int(length[index]), final))
            total[step.dones] = 0.0
            length[step.dones] = 0
    return found


def seeds_of(venv: VecEnv, games: NDArray[np.int64], seed: int) -> list[int]:
    """A seed for each world: twins have the same one."""
    worlds = slots(venv, "slot_world")
    seeds: list[int] = (seed + games[np.unique(worlds, return_index=True)[1]]).tolist()
    return seeds


def of_games(played: Sequence[Outcome], games: NDArray[np.int64]) -> list[Outcome]:
    """Episodes of agents as those of their games: means of their returns.

    :param played: the episodes of a game end together
    :param games: of each copy
    """
    size = len(games) // (int(games.max()) + 1)
    return [
        first._replace(vector=np.mean([outcome.vector for outcome in agents], axis=0))
        for game in range(int(games.max()) + 1)
        for agents in zip(*[iter(outcome for outcome in played if games[outcome.copy] == game)] * size, strict=True)
        for first in agents[:1]
    ]


def _figures(fairness: Any) -> dict[str, float]:
    scalars = {name: value for name, value in (fairness or {}).items() if np.ndim(value) == 0}
    return {name: np.nan if value is None else float(value) for name, value in scalars.items()}


def policy_of(
    played: Sequence[Outcome], name: str, objectives: Sequence[str], columns: NDArray[np.int64], **more: Any
) -> EvaluatedPolicy:
    """The figures of a policy from its episodes.

    :param objectives: names of all entries of the vector reward
    :param columns: the entries that count as objectives; the returns of the others stand among the ``final`` figures
        as ``"<name> (return)"``
    :param more: further fields of :class:`~sb3_fair.common.front.EvaluatedPolicy`
    """
    vectors = np.array([outcome.vector for outcome in played])
    final = {key: np.array([outcome.final[key] for outcome in played]) for key in played[0].final}
    for column in sorted(set(range(len(objectives))) - set(columns.tolist())):
        final[f"{objectives[column]} (return)"] = vectors[:, column]
    return EvaluatedPolicy(
        name=name,
        objectives=tuple(objectives[column] for column in columns),
        returns=vectors[:, columns],
        lengths=np.array([outcome.length for outcome in played], dtype=np.float64),
        final=final,
        **more,
    )


def objective_names(venv: VecEnv, k: int) -> tuple[str, ...]:
    """Names of the k entries of the vector reward: the environment's ``objective_names``, else R0, R1, ..."""
    return tuple(attribute(venv, "objective_names", [f"R{index}" for index in range(k)]))


def evaluate_vector(
    model: Any,
    venv: VecEnv,
    n_eval_episodes: int = 10,
    deterministic: bool = True,
    name: str = "policy",
    seed: int = 0,
) -> EvaluatedPolicy:
    """Plays complete episodes and reports the vector return of each.

    :param model: anything with SB3's ``predict``: an SB3 model, a conditioned model, a rule agent
    :param venv: a VecEnv whose infos carry ``vector_reward``; it is seeded and reset
    :param n_eval_episodes: number of episodes, shared out over the copies. Where agents share a world, an episode is
        that of all of them: its returns are means over agents
    :param deterministic: passed to ``predict``
    :param name: what to call the policy
    :param seed: of the environments and of what SB3's models sample from, which is put back afterwards
    :raises ValueError: if ``n_eval_episodes`` is not positive, or there is no vector reward
    """
    if n_eval_episodes < 1:
        raise ValueError(f"n_eval_episodes must be a positive integer, got {n_eval_episodes!r}")
    games = games_of(venv)
    if games is None:
        played = outcomes(
            model, venv, shares(n_eval_episodes, venv.num_envs), deterministic, range(seed, seed + venv.num_envs)
        )
    else:
        quotas = shares(n_eval_episodes, int(games.max()) + 1)[games]
        played = of_games(outcomes(model, venv, quotas, deterministic, seeds_of(venv, games, seed)), games)
    k = len(played[0].vector)
    return policy_of(
        played,
        name,
        objective_names(venv, k),
        np.arange(k),
        deterministic=deterministic,
        probabilities=attribute(venv, "probabilities_used"),
    )
