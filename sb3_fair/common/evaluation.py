"""Evaluation of policies: plays seeded episodes and tells returns, lengths, fairness figures and group counts."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.group_counts import COUNTS
from sb3_fair.common.people import CHANCE, GROUPS
from sb3_fair.common.rollout import episodes, seeded, shares
from sb3_fair.fairness.warning import warn
from sb3_fair.wrappers.group_returns import games_of
from sb3_fair.wrappers.infos import figures_in, is_numeric, tells, vector_rewards
from sb3_fair.wrappers.labels import slots
from sb3_fair.wrappers.layer import attribute

Array = NDArray[np.float64]


class Outcome(NamedTuple):
    """One complete episode.

    :param copy: which copy of the environment played it
    :param vector: undiscounted vector return, (K,)
    :param length: number of steps
    :param final: fairness figures after the last step, NaN where undefined
    :param chance: notion -> chance level
    :param groups: attribute -> group -> :data:`~sb3_fair.common.people.COUNTS`
    """

    copy: int
    vector: Array
    length: int
    final: dict[str, float]
    chance: Mapping[str, float]
    groups: Mapping[str, Mapping[str, Any]]


def outcomes(
    model: Any,
    venv: VecEnv,
    quotas: NDArray[np.int64],
    deterministic: bool = True,
    seeds: Sequence[int] | None = None,
    *,
    scalar: bool = False,
) -> list[Outcome]:
    """Lets ``model.predict`` play ``quotas[i]`` complete episodes on copy i, in the order in which they end.

    :param seeds: of each copy, None: 0, 1, ...; the first is also that of what SB3's models sample from, which is put
        back afterwards
    :param scalar: whether rewards may be scalar, which count as vectors of one entry
    """
    seeds = range(venv.num_envs) if seeds is None else seeds
    found: list[Outcome] = []
    total: Any = 0.0
    length = np.zeros(venv.num_envs, dtype=np.int64)
    with seeded(seeds[0], model):
        for step in episodes(model, venv, quotas, seeds, deterministic):
            is_scalar = scalar and not tells(step.infos, "vector_reward")
            total = total + (step.rewards[:, None].astype(np.float64) if is_scalar else vector_rewards(step.infos))
            length += 1
            for index in np.flatnonzero(step.dones & step.counts).tolist():
                info = step.infos[index]
                final, chance, groups = _figures(figures_in(info)), info.get(CHANCE, {}), info.get(GROUPS, {})
                found.append(Outcome(index, total[index].copy(), int(length[index]), final, chance, groups))
            total[step.dones] = 0.0
            length[step.dones] = 0
    return found


def outcomes_of_games(
    model: Any,
    venv: VecEnv,
    quotas: NDArray[np.int64],
    seeds: Sequence[int],
    deterministic: bool = True,
    *,
    scalar: bool = False,
) -> list[Outcome]:
    """As :func:`outcomes`; where agents share a world, copy i is game i, and an episode has the mean return of its
    agents."""
    games = games_of(venv)
    if games is None:
        return outcomes(model, venv, quotas, deterministic, seeds, scalar=scalar)
    firsts = np.unique(slots(venv, "slot_world"), return_index=True)[1]
    of_worlds = [seeds[game] for game in games[firsts]]  # twins have the same
    played = outcomes(model, venv, quotas[games], deterministic, of_worlds, scalar=scalar)
    size = len(games) // len(quotas)
    return [
        agents[0]._replace(copy=game, vector=np.mean([agent.vector for agent in agents], axis=0))
        for game in range(len(quotas))
        for agents in zip(*[iter(outcome for outcome in played if games[outcome.copy] == game)] * size, strict=True)
    ]


def _figures(fairness: Mapping[str, Any]) -> dict[str, float]:
    """The single numbers among what is published, NaN for None."""
    known = {name: np.nan if value is None else value for name, value in fairness.items()}
    return {name: float(value) for name, value in known.items() if np.ndim(value) == 0 and is_numeric(value)}


def policy_of(
    played: Sequence[Outcome], name: str, objectives: Sequence[str], columns: NDArray[np.int64], **more: Any
) -> EvaluatedPolicy:
    """The figures of a policy from its episodes.

    :param objectives: names of all entries of the vector reward
    :param columns: the entries that count as objectives; the returns of the others stand among the ``final`` figures
        as ``"<name> (return)"``
    :param more: further fields of :class:`~sb3_fair.vector.EvaluatedPolicy`
    """
    vectors = np.array([outcome.vector for outcome in played])
    final = _columns([outcome.final for outcome in played])
    for column in sorted(set(range(len(objectives))) - set(columns.tolist())):
        final[f"{objectives[column]} (return)"] = vectors[:, column]
    chance = _columns([outcome.chance for outcome in played])
    return EvaluatedPolicy(
        name=name,
        objectives=tuple(objectives[column] for column in columns),
        returns=vectors[:, columns],
        lengths=np.array([outcome.length for outcome in played], dtype=np.float64),
        final=final,
        chance={key: float(np.nanmean(values)) for key, values in chance.items() if not np.isnan(values).all()},
        groups=_group_counts([outcome.groups for outcome in played]),
        **more,
    )


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Figure -> its value in every row (m,), NaN in rows without it."""
    keys = dict.fromkeys(chain(*rows))
    return {key: np.array([row.get(key, np.nan) for row in rows], dtype=np.float64) for key in keys}


def _group_counts(rows: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, NDArray[Any]]]:
    """Attribute -> group, in the order of their names -> counts (m, len(COUNTS)); 0 in episodes without the group."""
    nobody = np.zeros(len(COUNTS), dtype=np.int64)
    found = {attribute_: [row.get(attribute_, {}) for row in rows] for attribute_ in dict.fromkeys(chain(*rows))}
    return {
        attribute_: {
            group: np.array([counts.get(group, nobody) for counts in episodes_])
            for group in sorted(set(chain(*episodes_)))
        }
        for attribute_, episodes_ in found.items()
    }


def warn_of_undefined(policies: Sequence[EvaluatedPolicy]) -> None:
    """Warns of objectives that were undefined at the end of episodes, which mean returns do not show.

    :param policies: those of one evaluation
    """
    for name in dict.fromkeys(name for policy in policies for name in policy.objectives):
        ends = np.concatenate([np.isnan(policy.final.get(name, np.zeros(0))) for policy in policies])
        if ends.any():
            warn(
                f"{name} was undefined at the end of {ends.sum()} of {len(ends)} episodes, which tables and summary() "
                "leave out; mean returns count what is undefined as undefined= says, by default as 0"
            )


def objective_names(venv: VecEnv, k: int) -> tuple[str, ...]:
    """Names of the k entries of the vector reward: the environment's ``objective_names``, else R0, R1, ..."""
    return tuple(attribute(venv, "objective_names", invented_names(k)))


def invented_names(k: int) -> tuple[str, ...]:
    """Names of k objectives that have none."""
    return ("R",) if k == 1 else tuple(f"R{index}" for index in range(k))


def evaluate_vector(
    model: Any,
    venv: VecEnv,
    n_eval_episodes: int = 10,
    deterministic: bool = True,
    name: str = "policy",
    seed: int = 0,
    *,
    scalar: bool = False,
) -> EvaluatedPolicy:
    """Plays complete episodes in an environment as the policy is to see it; see :func:`sb3_fair.evaluate`.

    :param model: anything with SB3's ``predict``
    :param venv: a VecEnv; it is seeded and reset
    :param scalar: whether rewards may be scalar, which count as vectors of one entry
    :raises ValueError: if ``n_eval_episodes`` is not positive, or there is no vector reward
    """
    if n_eval_episodes < 1:
        raise ValueError(f"n_eval_episodes must be a positive integer, got {n_eval_episodes!r}")
    games = games_of(venv)
    n = venv.num_envs if games is None else int(games.max()) + 1
    quotas, seeds = shares(n_eval_episodes, n), range(seed, seed + n)
    played = outcomes_of_games(model, venv, quotas, seeds, deterministic, scalar=scalar)
    k = len(played[0].vector)
    return policy_of(
        played,
        name,
        objective_names(venv, k),
        np.arange(k),
        deterministic=deterministic,
        probabilities=attribute(venv, "probabilities_used"),
    )
