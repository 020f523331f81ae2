"""Scenarios, tuned hyperparameters and the command line."""

if __name__ != "sb3_fair.zoo":
    raise ImportError("import this folder as sb3_fair.zoo")

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_fair.zoo.harvest_evaluation import evaluate_harvest

__all__ = ["evaluate_harvest"]


def __getattr__(name: str) -> Any:
    if name != "evaluate_harvest":
        raise AttributeError(f"module 'sb3_fair.zoo' has no attribute {name!r}")
    from sb3_fair.zoo.harvest_evaluation import evaluate_harvest

    return evaluate_harvest
