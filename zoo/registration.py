"""Which environment IDs exist, and which World with which settings is behind each?

The IDs exist after ``import sb3_fair``. ``"sb3_fair:sb3_fair/JobHiring-v0"`` also works where nothing imported the
package before, as in the workers of a ``SubprocVecEnv``.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import gymnasium as gym

HIRING = "sb3_fair.zoo.envs.hiring:HiringWorld"
POPULATIONS = {"": "belgian", "-Gender": "gender", "-NationalityGender": "nationality-gender", "-Marital": "marital"}
BIASES = {"": 0, "-BiasMen": 1, "-BiasBelgianMen": 2}


def _hiring() -> Iterator[tuple[str, dict[str, Any]]]:
    for (people, population), (preference, bias) in product(POPULATIONS.items(), BIASES.items()):
        yield f"sb3_fair/JobHiring{people}{preference}-v0", {"population": population, "bias": bias}
    yield "sb3_fair/JobHiring-Small-v0", {"team_size": 20, "episode_length": 100}


WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{env_id: (HIRING, settings) for env_id, settings in _hiring()},
}


def register_all() -> None:
    """Registers every ID with Gymnasium; what is registered already stays as it is."""
    for env_id, (world, settings) in WORLDS.items():
        if env_id not in gym.registry:
            gym.register(
                env_id,
                entry_point="sb3_fair.zoo.build:make",
                vector_entry_point="sb3_fair.zoo.build:make_gymnasium_vec",
                kwargs={"world": world, **settings},
            )
