"""Fair-PPO: PPO with penalties for unequal returns of groups, and policies with a network per group.

Imported when first asked for.
"""

from typing import TYPE_CHECKING

from sb3_fair._lazy import lazy

if TYPE_CHECKING:
    from sb3_fair.fair_ppo.fair_ppo import FairPPO
    from sb3_fair.fair_ppo.policies import GroupedActorCriticPolicy

__all__ = ["FairPPO", "GroupedActorCriticPolicy"]

_HOMES = {"FairPPO": "fair_ppo", "GroupedActorCriticPolicy": "policies"}

__getattr__, __dir__ = lazy(__name__, _HOMES)
