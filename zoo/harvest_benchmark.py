"""Speed of the Allelopathic Harvest and of fair-PPO."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from sb3_fair.zoo.studies.fair_ppo import Arm, learner, zoo_settings
from sb3_fair.zoo.timing import Figure, in_turns, steps_of

WORLDS = 1024
KINDS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("one after the other", {}, 500_000),
    ("simultaneous", {"order": "simultaneous"}, 2_000_000),
    ("one after the other, numba", {"backend": "numba"}, 2_000_000),
)


def harvest(scale: float) -> Iterator[Figure]:
    """Steps of single agents: of the game with random actions, and of training with the zoo's settings.

    :param scale: share of the work
    """
    rate = "agent-steps/s"
    for name, rules, target in KINDS:
        if "backend" in rules and find_spec(rules["backend"]) is None:
            continue
        venv = HarvestVecEnv(WORLDS, rules, seed=0)
        yield Figure(f"harvest, {WORLDS} games, {name}", steps_of(venv, scale), rate, target)
    settings, chosen = zoo_settings()
    models = [learner(arm, 0, settings) for arm in (Arm(), chosen)]
    steps = max(int(200_000 * scale), models[0].n_steps * models[0].n_envs)
    without, within = in_turns(models, steps)
    yield Figure("fair-PPO on the harvest", within, rate, 20_000)
    share = 100 * (1 - within / without)
    yield Figure("share of penalties in its time", share, "%", 15, lower_is_better=True)
