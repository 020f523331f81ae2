"""Fair-PPO: PPO whose agents also pay for what sets their groups apart, and the networks of several groups.

Imported when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_fair.fair_ppo.fair_ppo import FairPPO
    from sb3_fair.fair_ppo.policies import GroupedActorCriticPolicy

__all__ = ["FairPPO", "GroupedActorCriticPolicy"]

_HOMES = {"FairPPO": "fair_ppo", "GroupedActorCriticPolicy": "policies"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sb3_fair.fair_ppo' has no attribute {name!r}")
    return getattr(import_module(f"sb3_fair.fair_ppo.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
