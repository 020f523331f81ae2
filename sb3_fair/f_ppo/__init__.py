"""F-PPO: PPO for short- and long-term fairness, its baselines and their evaluation.

Imported when first asked for.
"""

from typing import TYPE_CHECKING

from sb3_fair._lazy import lazy

if TYPE_CHECKING:
    from sb3_fair.f_ppo.agents import EqualOpportunityAgent, MaxAgent, MaxProfitAgent, RandomAgent
    from sb3_fair.f_ppo.buffer import FairDictRolloutBuffer, FairRolloutBuffer
    from sb3_fair.f_ppo.constrained import ConstrainedPPO, CPOAgent, PPOLagrangian
    from sb3_fair.f_ppo.evaluation import evaluate_fairness
    from sb3_fair.f_ppo.f_ppo import FPPO
    from sb3_fair.f_ppo.massaging import massage
    from sb3_fair.f_ppo.regulariser import regularise_advantages

__all__ = [
    "FPPO",
    "CPOAgent",
    "ConstrainedPPO",
    "EqualOpportunityAgent",
    "FairDictRolloutBuffer",
    "FairRolloutBuffer",
    "MaxAgent",
    "MaxProfitAgent",
    "PPOLagrangian",
    "RandomAgent",
    "evaluate_fairness",
    "massage",
    "regularise_advantages",
]

_HOMES = {
    "FPPO": "f_ppo",
    "CPOAgent": "constrained",
    "ConstrainedPPO": "constrained",
    "EqualOpportunityAgent": "agents",
    "FairDictRolloutBuffer": "buffer",
    "FairRolloutBuffer": "buffer",
    "MaxAgent": "agents",
    "MaxProfitAgent": "agents",
    "PPOLagrangian": "constrained",
    "RandomAgent": "agents",
    "evaluate_fairness": "evaluation",
    "massage": "massaging",
    "regularise_advantages": "regulariser",
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
