"""Scenarios, tuned hyperparameters and the command line."""

if __name__ != "sb3_fair.zoo":
    raise ImportError("import this folder as sb3_fair.zoo")

from typing import TYPE_CHECKING

from sb3_fair._lazy import lazy

if TYPE_CHECKING:
    from sb3_fair.zoo.harvest_evaluation import evaluate_harvest

__all__ = ["evaluate_harvest"]

__getattr__, __dir__ = lazy(__name__, {"evaluate_harvest": "harvest_evaluation"})
