"""Learning with counterfactual memories, for fairness that depends on the whole past; imported when first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "CounterfactualBoxReplayBuffer": "buffer",
    "CounterfactualReplayBuffer": "buffer",
    "FairQCM": "fair_qcm",
    "MemoryExtractor": "extractor",
    "RecurrentDQN": "recurrent",
    "TabularFairQCM": "tabular",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sb3_fair.fair_qcm' has no attribute {name!r}")
    return getattr(import_module(f"sb3_fair.fair_qcm.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
