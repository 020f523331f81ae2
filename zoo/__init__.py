"""Scenarios, tuned hyperparameters and the command line."""

if __name__ != "sb3_fair.zoo":
    raise ImportError("import this folder as sb3_fair.zoo")

from typing import TYPE_CHECKING

from sb3_fair._lazy import lazy

if TYPE_CHECKING:
    from sb3_fair.zoo.evaluation.harvest_evaluation import evaluate_harvest
    from sb3_fair.zoo.runs.episode_log import EpisodeCallback
    from sb3_fair.zoo.runs.tracking import TrackingCallback

__all__ = ["EpisodeCallback", "TrackingCallback", "evaluate_harvest"]

_HOMES = {
    "EpisodeCallback": "runs.episode_log",
    "TrackingCallback": "runs.tracking",
    "evaluate_harvest": "evaluation.harvest_evaluation",
}

if not TYPE_CHECKING:  # a checker would take every name for one that exists
    __getattr__, __dir__ = lazy(__name__, _HOMES)
