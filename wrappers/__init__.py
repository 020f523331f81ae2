"""Wrappers that turn any environment into a fairness MDP, each with its VecEnv twin."""

if __name__ != "sb3_fair.wrappers":
    raise ImportError("import this folder as sb3_fair.wrappers")

from sb3_fair.wrappers.choices import Choice, Choices, VecChoices
from sb3_fair.wrappers.desired_return import DesiredReturn, VecDesiredReturn
from sb3_fair.wrappers.fmdp import FairMDP, VecFairMDP
from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.scalarise import Chebyshev, Scalarise, VecScalarise
from sb3_fair.wrappers.vector_reward import VectorReward, VecVectorReward

__all__ = [
    "Chebyshev",
    "Choice",
    "Choices",
    "DesiredReturn",
    "FairMDP",
    "GymnasiumVector",
    "Scalarise",
    "VecChoices",
    "VecDesiredReturn",
    "VecFairMDP",
    "VecScalarise",
    "VecVectorReward",
    "VectorReward",
]
