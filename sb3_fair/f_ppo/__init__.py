"""F-PPO: PPO for short- and long-term fairness, its baselines and their evaluation."""

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
