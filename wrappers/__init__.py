"""Wrappers that turn any environment into a fairness MDP, for Gymnasium and for VecEnvs."""

if __name__ != "sb3_fair.wrappers":
    raise ImportError("import this folder as sb3_fair.wrappers")

from sb3_fair.wrappers.choices import Choice, Choices, VecChoices
from sb3_fair.wrappers.desired_return import DesiredReturn, VecDesiredReturn
from sb3_fair.wrappers.disparity import Disparity, VecDisparity
from sb3_fair.wrappers.events import FairEvent
from sb3_fair.wrappers.fmdp import FairMDP, VecFairMDP
from sb3_fair.wrappers.group_label import GroupLabelObs, VecGroupLabelObs
from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.memories import Memory, augment, make_memory
from sb3_fair.wrappers.memory import MemoryAugmentation, VecMemoryAugmentation
from sb3_fair.wrappers.recompute import Recompute
from sb3_fair.wrappers.regularity import CounterExample, find_counterexample
from sb3_fair.wrappers.scalarise import Chebyshev, Scalarise, VecScalarise
from sb3_fair.wrappers.scheme import FairnessScheme, VecFairnessScheme
from sb3_fair.wrappers.standing import VecStanding
from sb3_fair.wrappers.vector_reward import VectorReward, VecVectorReward

__all__ = [
    "Chebyshev",
    "Choice",
    "Choices",
    "CounterExample",
    "DesiredReturn",
    "Disparity",
    "FairEvent",
    "FairMDP",
    "FairnessScheme",
    "GroupLabelObs",
    "GymnasiumVector",
    "Memory",
    "MemoryAugmentation",
    "Recompute",
    "Scalarise",
    "VecChoices",
    "VecDesiredReturn",
    "VecDisparity",
    "VecFairMDP",
    "VecFairnessScheme",
    "VecGroupLabelObs",
    "VecMemoryAugmentation",
    "VecScalarise",
    "VecStanding",
    "VecVectorReward",
    "VectorReward",
    "augment",
    "find_counterexample",
    "make_memory",
]
