"""Evaluates models that play all agents of the Allelopathic Harvest."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.connection import apart, connected, normaliser_of, reward_scale
from sb3_fair.common.extras import extra
from sb3_fair.common.rollout import Step, episodes, seeded
from sb3_fair.fairness import action_counts, action_frequencies, value_disparity
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.disparity.returns import return_figures
from sb3_fair.wrappers import VecStanding
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv

if TYPE_CHECKING:
    from pandas import DataFrame

Array: TypeAlias = NDArray[Any]
Columns: TypeAlias = dict[str, Array]

ACTIONS = ("stay", "up", "down", "left", "right", "ripen_eat", "recolour", "obstruct")
GROUPS = ("U", "S")
"""Agents without the sensitive attribute, and with it."""
FACTORS = {1: "G1", 2: "G2"}
"""Who prefers red, and who prefers blue."""


def evaluate_harvest(
    model: Any,
    n_episodes: int,
    horizon: int,
    seeds: int | Sequence[int],
    counterfactual: str | None = None,
    deterministic: bool = False,
    **settings: Any,
) -> "DataFrame":
    """:func:`harvest_figures` as a pandas DataFrame, one row per episode; same arguments. Needs the extra
    ``[pandas]``.
    """
    with extra("pandas", "evaluate_harvest"):
        from pandas import DataFrame
    return DataFrame(harvest_figures(model, n_episodes, horizon, seeds, counterfactual, deterministic, **settings))


@checked
def harvest_figures(
    model: Any,
    n_episodes: int,
    horizon: int,
    seeds: int | Sequence[int],
    counterfactual: str | None = None,
    deterministic: bool = False,
    *,
    n_worlds: int = 100,
    **config: Any,
) -> Columns:
    """Lets a model play every agent of fresh episodes of the Allelopathic Harvest; arrays (episodes,) by name.

    Each episode has its own layout, which follows from its seed alone. What the model samples follows from the first
    seed; the model itself stays as it was. With ``counterfactual`` an episode is a pair of twin worlds, and its
    figures are of the agents of both, each by the attribute that it has in its world. Models whose observations have
    one entry more see how far their group is ahead (:class:`~sb3_fair.wrappers.VecStanding`).

    ==========================================  =======================================================================
    name                                        what
    ==========================================  =======================================================================
    ``seed``                                    of the world
    ``U``, ``S``, ``n_U``, ``n_S``              sum of the returns of the agents without and with the attribute; number
    ``mean_U``, ``mean_S``                      mean return
    ``U_G1``, ``n_U_G1``, ..                    the same among those who prefer red (G1), blue (G2)
    ``dp``, ``dp_norm``, ``dp_pc``, ..          demographic disparity; shares of the sum, per capita, both
    ``csp_G1``, ``csp_G1_norm``, ..             conditional disparity
    ``pairs``, ``pairs_sum``                    pairwise disparity
    ``value``                                   gap of the values that the model's critic expects at the start, or NaN
    ``gini``, ``jain``, ``nash``, ..            of all agents; also ``nash_norm``
    ``chosen_U_stay``, ``executed_U_stay``, ..  share of the group's actions, as chosen and as carried out
    ``void_U``, ``void_S``                      share of turns in which no action was carried out
    ``obstructed_U``, ``obstructed_S``          share of agents who are obstructed, mean over steps
    ``F``, ``K``, ``cf``, ``cf_norm``, ..       twins: sum of the returns in the factual and counterfactual world; gap
    ``twins``                                   twins: mean distance between the returns of an agent and of its twin
    ==========================================  =======================================================================

    :param model: anything with SB3's ``predict``, or ``"random"``: all actions equally likely
    :param n_episodes: number of episodes, or of pairs
    :param horizon: steps of each
    :param seeds: of the worlds, one per episode; a number: this one and the next ones
    :param counterfactual: None, ``"none_vs_all"`` or ``"swap"``
    :param deterministic: passed to ``predict``
    :param n_worlds: how many worlds, or pairs, are played at once; with sampled actions, figures depend on it
    :param config: of the game, as the model was trained with it: ``obs_scale=True``, ...
    :raises ValueError: if a number is not positive, there is not one seed per episode, or ``config`` is refused
    """
    numbers = list(range(seeds, seeds + n_episodes)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if len(numbers) != n_episodes:
        raise ValueError(f"seeds must be one number or one per episode ({n_episodes}), got {len(numbers)}")
    settings = {**config, "horizon": horizon}
    copies = 1 if counterfactual is None else 2
    agent = RandomAgent(numbers[0]) if isinstance(model, str) and model == "random" else apart(model)
    parts = []
    with seeded(numbers[0], agent):
        for first in range(0, n_episodes, n_worlds):
            some = np.array(numbers[first : first + n_worlds])
            venv: Any = HarvestVecEnv(copies * len(some), settings, counterfactual=counterfactual, detail=True)
            if _sees_standing(agent, venv):
                venv = VecStanding(venv)
            each, seeds_of_worlds = np.ones(venv.num_envs, dtype=np.int64), np.repeat(some, copies).tolist()
            steps = episodes(agent, connected(agent, venv), each, seeds_of_worlds, deterministic, n_steps=horizon)
            parts.append({"seed": some, **_columns(agent, venv, steps, len(some), twins=counterfactual is not None)})
            venv.close()
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class RandomAgent:
    """Chooses all actions equally often."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def predict(self, observation: Array, **given: Any) -> tuple[Array, None]:
        """Actions (slots,)."""
        return self.rng.integers(len(ACTIONS), size=len(observation)), None


def _columns(agent: Any, venv: HarvestVecEnv | VecStanding, steps: Iterable[Step], n: int, twins: bool) -> Columns:
    """Figures of n episodes that are played at once; of a pair, of the agents of both worlds."""
    shape = (n, venv.num_envs // n)
    returns, obstructed, number = np.zeros(shape), np.zeros(shape), 0
    counts = {kind: np.zeros((n, 2, len(ACTIONS)), dtype=np.int64) for kind in ("chosen", "executed")}
    for number, step in enumerate(steps, start=1):
        if number == 1:
            labels = stack(step.infos, "individual")  # the arrays of the VecEnv are those of the next observation
            groups, factors = (np.reshape(labels[kind], shape) for kind in ("group", "lf"))
            values = _values(agent, step.observations).reshape(shape)
        detail = stack(step.infos, "detail")
        returns += step.rewards.reshape(shape)
        obstructed += detail["obstructed"].reshape(shape)
        for kind, actions in (("chosen", step.actions), ("executed", detail["executed_action"])):
            counts[kind] += action_counts(np.reshape(actions, shape), groups, len(ACTIONS))
    found: Columns = {}
    members = {group: groups == label for label, group in enumerate(GROUPS)}
    for group, everyone in members.items():
        among = {f"{group}_{factor}": everyone & (factors == value) for value, factor in FACTORS.items()}
        for name, some in {group: everyone, **among}.items():
            found |= {name: np.where(some, returns, 0).sum(axis=1), f"n_{name}": some.sum(axis=1)}
        found[f"mean_{group}"] = _share(found[group], found[f"n_{group}"])
    found |= return_figures(returns, groups, factors, twins=twins)
    if twins:
        found["F"], found["K"] = (half.sum(axis=1) for half in np.split(returns, 2, axis=1))
    found["value"] = value_disparity(values, groups)
    for kind, counted in counts.items():
        shares = np.moveaxis(action_frequencies(counted), 0, -1)
        found |= {
            f"{kind}_{group}_{action}": shares[g, a]
            for g, group in enumerate(GROUPS)
            for a, action in enumerate(ACTIONS)
        }
    for label, (group, some) in enumerate(members.items()):
        turns = some.sum(axis=1) * number
        found[f"void_{group}"] = 1 - _share(counts["executed"][:, label].sum(axis=1), turns)
        found[f"obstructed_{group}"] = _share(np.where(some, obstructed, 0).sum(axis=1), turns)
    return found


def _share(part: Array, whole: Array) -> Array:
    """NaN of nobody."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _sees_standing(agent: Any, venv: HarvestVecEnv) -> bool:
    """Whether the model was trained on observations with one entry more."""
    shape: Any = getattr(getattr(agent, "observation_space", None), "shape", None)
    return shape is not None and tuple(shape) == (venv.observation_space.shape[0] + 1,)  # type: ignore[index]


def _values(agent: Any, observations: Any) -> Array:
    """What the model's critic expects, (slots,), in the game's own rewards; NaN without one."""
    import torch as th

    policy: Any = getattr(agent, "policy", None)
    if not hasattr(policy, "predict_values"):
        return np.full(len(observations), np.nan)
    with th.no_grad():
        values: Array = policy.predict_values(policy.obs_to_tensor(observations)[0]).cpu().numpy()
    return values / reward_scale(normaliser_of(agent))
