"""A table of people as an environment."""

from typing import TYPE_CHECKING

from sb3_fair._lazy import lazy

if TYPE_CHECKING:
    from sb3_fair.zoo.envs.table.settings import TableConfig
    from sb3_fair.zoo.envs.table.world import TableWorld

__all__ = ["TableConfig", "TableWorld"]

if not TYPE_CHECKING:  # a checker would take every name for one that exists
    __getattr__, __dir__ = lazy(__name__, {"TableConfig": "settings", "TableWorld": "world"})
