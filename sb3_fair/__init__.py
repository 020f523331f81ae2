"""Fairness-aware reinforcement learning for Stable-Baselines3.

Importing the package registers the scenarios with Gymnasium; algorithms are imported when first asked for.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if find_spec("sb3_fair.wrappers") is None:
    from sb3_fair._checkout import CheckoutFinder

    sys.meta_path.append(CheckoutFinder())

from sb3_fair.zoo import registration

if TYPE_CHECKING:
    from sb3_fair.f_ppo import FPPO, ConstrainedPPO
    from sb3_fair.fair_ppo import FairPPO
    from sb3_fair.fair_qcm import CounterfactualReplayBuffer, FairQCM, RecurrentDQN, TabularFairQCM
    from sb3_fair.pcn import PCN
    from sb3_fair.zoo.build import make_vec

__version__ = "0.1.0"
__all__ = [
    "FPPO",
    "PCN",
    "ConstrainedPPO",
    "CounterfactualReplayBuffer",
    "FairPPO",
    "FairQCM",
    "RecurrentDQN",
    "TabularFairQCM",
    "__version__",
    "make_vec",
]

_HOMES = {
    "FPPO": "sb3_fair.f_ppo",
    "ConstrainedPPO": "sb3_fair.f_ppo",
    "PCN": "sb3_fair.pcn",
    "CounterfactualReplayBuffer": "sb3_fair.fair_qcm",
    "FairPPO": "sb3_fair.fair_ppo",
    "FairQCM": "sb3_fair.fair_qcm",
    "RecurrentDQN": "sb3_fair.fair_qcm",
    "TabularFairQCM": "sb3_fair.fair_qcm",
    "make_vec": "sb3_fair.zoo.build",
}

registration.register_all()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sb3_fair' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
