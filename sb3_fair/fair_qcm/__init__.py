"""FairQCM: Q-learning with counterfactual memories, for fairness that depends on the whole past."""

from sb3_fair.fair_qcm.buffer import CounterfactualBoxReplayBuffer, CounterfactualReplayBuffer
from sb3_fair.fair_qcm.extractor import MemoryExtractor
from sb3_fair.fair_qcm.fair_qcm import FairQCM
from sb3_fair.fair_qcm.recurrent import RecurrentDQN
from sb3_fair.fair_qcm.tabular import TabularFairQCM

__all__ = [
    "CounterfactualBoxReplayBuffer",
    "CounterfactualReplayBuffer",
    "FairQCM",
    "MemoryExtractor",
    "RecurrentDQN",
    "TabularFairQCM",
]
