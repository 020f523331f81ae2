"""The Allelopathic Harvest: a game of berries for 40 agents, half of them slow, and how different libraries play it.

Imported when first asked for.
"""

from typing import TYPE_CHECKING

from sb3_fair._lazy import lazy

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

if not TYPE_CHECKING:  # a checker would take every name for one that exists
    __getattr__, __dir__ = lazy(__name__, _HOMES)
