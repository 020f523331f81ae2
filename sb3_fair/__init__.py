"""Fairness-aware reinforcement learning for Stable-Baselines3.

Importing the package registers the shipped environments with Gymnasium; algorithms are imported when first asked for.
"""

import sys
from typing import TYPE_CHECKING

from sb3_fair._lazy import lazy
from sb3_fair._moved import MovedFinder

sys.meta_path.append(MovedFinder())

from sb3_fair.zoo.registry.registration import register, register_all  # noqa: E402

if TYPE_CHECKING:
    from sb3_fair import audit as audit
    from sb3_fair import vector as vector
    from sb3_fair.f_ppo import FPPO, ConstrainedPPO, PPOLagrangian
    from sb3_fair.fair_ppo import FairPPO
    from sb3_fair.fair_qcm import CounterfactualReplayBuffer, FairQCM, RecurrentDQN, TabularFairQCM
    from sb3_fair.pcn import PCN
    from sb3_fair.zoo.evaluation.evaluator import evaluate
    from sb3_fair.zoo.registry.build import make_vec
    from sb3_fair.zoo.runs.agent import load_agent

__version__ = "0.1.0"
__all__ = [
    "FPPO",
    "PCN",
    "ConstrainedPPO",
    "CounterfactualReplayBuffer",
    "FairPPO",
    "FairQCM",
    "PPOLagrangian",
    "RecurrentDQN",
    "TabularFairQCM",
    "__version__",
    "evaluate",
    "load_agent",
    "make_vec",
    "register",
]

_HOMES = {
    "FPPO": "f_ppo",
    "ConstrainedPPO": "f_ppo",
    "PPOLagrangian": "f_ppo",
    "PCN": "pcn",
    "CounterfactualReplayBuffer": "fair_qcm",
    "FairPPO": "fair_ppo",
    "FairQCM": "fair_qcm",
    "RecurrentDQN": "fair_qcm",
    "TabularFairQCM": "fair_qcm",
    "audit": "audit",
    "evaluate": "zoo.evaluation.evaluator",
    "load_agent": "zoo.runs.agent",
    "make_vec": "zoo.registry.build",
    "vector": "vector",
}

register_all()

if not TYPE_CHECKING:  # a checker would take every name for one that exists
    __getattr__, __dir__ = lazy(__name__, _HOMES)
