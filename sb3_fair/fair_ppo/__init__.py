"""Fair-PPO: PPO with penalties for unequal returns of groups, and policies with a network per group."""

from sb3_fair.fair_ppo.fair_ppo import FairPPO
from sb3_fair.fair_ppo.policies import GroupedActorCriticPolicy

__all__ = ["FairPPO", "GroupedActorCriticPolicy"]
