"""Fairness-aware reinforcement learning for Stable-Baselines3.

Importing the package registers the shipped environments with Gymnasium; algorithms are imported when first asked for.
"""

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if find_spec("sb3_fair.wrappers") is None:
    from sb3_fair._checkout import CheckoutFinder

    sys.meta_path.append(CheckoutFinder())

from sb3_fair._lazy import lazy
from sb3_fair._moved import MovedFinder
from sb3_fair.zoo.registry.registration import register, register_all

if TYPE_CHECKING:
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
    "evaluate": "zoo.evaluation.evaluator",
    "load_agent": "zoo.runs.agent",
    "make_vec": "zoo.registry.build",
}

sys.meta_path.append(MovedFinder())
register_all()

__getattr__, __dir__ = lazy(__name__, _HOMES)
