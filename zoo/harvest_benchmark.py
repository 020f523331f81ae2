"""How fast is the Allelopathic Harvest, and what do penalties cost fair-PPO?"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from sb3_fair.fair_ppo import FairPPO
from sb3_fair.zoo.algorithms import find_algorithm
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from sb3_fair.zoo.plan import PLAN_KEYS, default_settings
from sb3_fair.zoo.timing import ROUNDS, Figure, learning, steps_of
from sb3_fair.zoo.train import arguments

WORLDS = 1024
KINDS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("one after the other", {}, 500_000),
    ("simultaneous", {"order": "simultaneous"}, 2_000_000),
)
COMPILED: tuple[str, dict[str, Any], int] = ("one after the other, numba", {"backend": "numba"}, 2_000_000)


def harvest(scale: float) -> Iterator[Figure]:
    """Steps of single agents: of the game with random actions, and of training with the zoo's settings.

    :param scale: share of the work
    """
    rate, compiled = "agent-steps/s", find_spec("numba") is not None
    for name, settings, target in (*KINDS, *([COMPILED] if compiled else [])):
        yield Figure(
            f"harvest, {WORLDS} games, {name}", steps_of(HarvestVecEnv(WORLDS, settings, seed=0), scale), rate, target
        )
    backend = {"backend": "numba"} if compiled else {}
    plain, fair = _learner(backend, alpha=0.0), _learner(backend, alpha=1.0)
    steps = max(int(200_000 * scale), plain.n_steps * plain.n_envs)
    speeds = [(learning(plain, steps), learning(fair, steps)) for _ in range(ROUNDS)]
    without, within = (max(each) for each in zip(*speeds, strict=True))
    yield Figure("fair-PPO on the harvest", within, rate, 20_000)
    share = 100 * (1 - within / without)
    yield Figure("share of penalties in its time", share, "%", 15, lower_is_better=True)


def _learner(backend: dict[str, str], **penalty: Any) -> FairPPO:
    """Plays all agents of the zoo's games with the zoo's settings of PPO."""
    settings = default_settings(find_algorithm("fair_ppo"), "sb3_fair/AllelopathicHarvest-v0")
    game = {key: value for key, value in settings["env_kwargs"].items() if key != "objectives"}
    given = {key: value for key, value in settings.items() if key not in PLAN_KEYS}
    venv = HarvestVecEnv(settings["n_envs"], game | backend, seed=0)
    return FairPPO(settings["policy"], venv, seed=0, device="cpu", **arguments({**given, **penalty}))
