"""The Allelopathic Harvest: a game of berries for 40 agents, half of them slow, and how different libraries play it.

Imported when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_fair.zoo.envs.harvest.ego import EgoHarvestWorld
    from sb3_fair.zoo.envs.harvest.parallel import HarvestParallelEnv, parallel_env
    from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
    from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
    from sb3_fair.zoo.envs.harvest.twins import CounterfactualHarvest
    from sb3_fair.zoo.envs.harvest.world import HarvestWorld

__all__ = [
    "CounterfactualHarvest",
    "EgoHarvestWorld",
    "HarvestConfig",
    "HarvestParallelEnv",
    "HarvestVecEnv",
    "HarvestWorld",
    "parallel_env",
]

_HOMES = {
    "CounterfactualHarvest": "twins",
    "EgoHarvestWorld": "ego",
    "HarvestConfig": "settings",
    "HarvestParallelEnv": "parallel",
    "HarvestVecEnv": "slots",
    "HarvestWorld": "world",
    "parallel_env": "parallel",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sb3_fair.zoo.envs.harvest' has no attribute {name!r}")
    return getattr(import_module(f"sb3_fair.zoo.envs.harvest.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
