"""Reference points of hypervolumes.

Per registered ID that can have all objectives, way of emission and kind of probabilities: the worst mean return, over
the policies "uniformly random", "always action 0" and "always action 1" (20 episodes each), less 10 % of the range of
the three, for every objective by itself. ``python -m sb3_fair.zoo.registry.reference`` computes anew the table that
ships with the package.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from itertools import product
from typing import Any

import numpy as np
import yaml
from gymnasium.spaces import Discrete, Space

from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.common.pareto import reference_point
from sb3_fair.fairness import NOTIONS
from sb3_fair.wrappers.choices import Choices
from sb3_fair.wrappers.layer import max_steps_of
from sb3_fair.wrappers.starts import ends
from sb3_fair.wrappers.vector_reward import PERFORMANCE
from sb3_fair.zoo.evaluation.evaluate import measurable
from sb3_fair.zoo.evaluation.evaluator import FunctionPolicy
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.packaged import packaged
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.registry.pairs import LONGEST
from sb3_fair.zoo.registry.registration import WORLDS, bare, find
from sb3_fair.zoo.runs.plan import Plan

OBJECTIVES = (PERFORMANCE, *NOTIONS)
REFERENCE = "ref_point"
"""The argument of an algorithm that has the point."""
EPISODES, SEED = 20, 0
DEFAULTS = {"emit": "level", "probabilities": "policy"}
COMPATIBLE = {*DEFAULTS, "objectives", "audit", "detail", "scalarise"}
"""Settings that may differ from an ID's own without making its table useless."""


class Fixed:
    """A policy that ignores what it sees: its actions have always the same probabilities."""

    def __init__(self, probabilities: Any) -> None:
        self.probabilities = np.asarray(probabilities, dtype=np.float64)
        self.rng = np.random.default_rng(SEED)

    def predict(self, observation: Any, **kwargs: Any) -> tuple[Choices, None]:
        """Actions for a batch of observations."""
        n = len(observation)
        actions = self.rng.choice(len(self.probabilities), size=n, p=self.probabilities)
        return Choices(actions, np.tile(self.probabilities, (n, 1))), None


def policies(space: Space[Any]) -> list[Any]:
    """Uniformly random, and two that always do the same: actions 0 and 1, or the smallest and the largest action."""
    if isinstance(space, Discrete) and space.start == 0:
        n = int(space.n)
        return [Fixed(chances) for chances in (np.full(n, 1 / n), np.eye(n)[0], np.eye(n)[1])]
    low, high = ends(space)
    sampled = deepcopy(space)
    sampled.seed(SEED)
    choices = (lambda _: sampled.sample(), lambda _: low, lambda _: high)
    return [FunctionPolicy(choose, EPISODES) for choose in choices]


def worst_returns(env_id: str, objectives: Sequence[str] = OBJECTIVES, **settings: Any) -> dict[str, float]:
    """The reference point of an ID by objective, computed now."""
    with closing(make_vec(env_id, n_envs=EPISODES, monitor=False, objectives=objectives, **settings)) as venv:
        means = [evaluate_vector(policy, venv, EPISODES, seed=SEED).mean for policy in policies(venv.action_space)]
    return dict(zip(objectives, reference_point(means).tolist(), strict=True))


def shipped_reference(env_id: str, env_kwargs: Mapping[str, Any]) -> dict[str, float] | None:
    """The reference point of an ID by objective; None where its settings are not those of the table."""
    settings = {**DEFAULTS, **env_kwargs}
    registered = find(env_id).reference_point
    shipped = packaged("registry", "reference_points").get(bare(env_id))
    if registered is not None:
        entry: Mapping[str, float] = registered
    elif shipped is None or not settings.keys() <= COMPATIBLE:
        return None
    else:
        entry = shipped[settings["emit"]][settings["probabilities"]]
    objectives = settings.get("objectives") or ()
    return {name: entry[name] for name in objectives} if entry.keys() >= set(objectives) else None


def reference_of(plan: Plan) -> Mapping[str, float]:
    """Against which point the hypervolume of a plan is measured, by objective: its own one, the shipped one, or one
    computed now.
    """
    given = plan.hyperparams.get(REFERENCE) or shipped_reference(plan.env, plan.env_kwargs)
    if given is None:
        return worst_returns(plan.env, **plan.env_kwargs)
    point = dict(given) if isinstance(given, Mapping) else dict(zip(plan.objectives, given, strict=True))
    if missing := [name for name in plan.objectives if name not in point]:
        raise InputError(f"{REFERENCE} must have a number for each objective, got none for {', '.join(missing)}")
    return point


def with_all_objectives() -> list[str]:
    """The IDs that can have all notions, those with discrete actions on people with features, in episodes that are not
    too long to be learned from as a whole."""
    return [
        env_id
        for env_id in WORLDS
        if len(measurable(NOTIONS, env_id, {})) == len(NOTIONS)
        and (max_steps_of(make_vec(env_id, monitor=False)) or np.inf) <= LONGEST
    ]


def compute_table() -> dict[str, Any]:
    """What ``reference_points.yml`` holds."""
    table: dict[str, Any] = {}
    ways = ("level", "difference", "terminal"), ("policy", "executed")
    for env_id, emit, probabilities in product(with_all_objectives(), *ways):
        figures = worst_returns(env_id, emit=emit, probabilities=probabilities)
        rounded = {name: round(value, 4) for name, value in figures.items()}
        table.setdefault(env_id, {}).setdefault(emit, {})[probabilities] = rounded
    return table


if __name__ == "__main__":
    print(yaml.safe_dump(compute_table(), sort_keys=False, default_flow_style=None, width=200), end="")
