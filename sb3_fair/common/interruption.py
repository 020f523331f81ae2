"""Rollouts that were stopped, or after which others used the environment: ``learn`` begins new episodes after them."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from stable_baselines3.common.vec_env import VecEnv

Collect = TypeVar("Collect", bound=Callable[..., Any])
_left: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""Algorithm -> :func:`mark_of_reset` of its environment after its last rollout."""


def resets_if_stopped(collect: Collect) -> Collect:
    """Decorates ``collect_rollouts``: after a stop by a callback or from the keyboard, ``learn`` begins new episodes.

    SB3 leaves a rollout before it has noted the step at which it stops, while the environment has taken it: memories,
    sums of rewards and sequences would go on without that step, or over the end of an episode.
    """

    @wraps(collect)
    def collected(model: Any, *args: Any, **kwargs: Any) -> Any:
        goes_on = False
        try:
            rollout = collect(model, *args, **kwargs)
            goes_on = getattr(rollout, "continue_training", rollout)
        finally:
            if not goes_on:
                model._last_obs = None
            _left[model] = mark_of_reset(model.env)
        return rollout

    return cast(Collect, collected)


def resets_if_left(model: Any) -> None:
    """``learn`` begins new episodes if the environment was reset since the last rollout, as evaluations in it do.

    SB3 would go on with the last observation of an episode that is no longer played.
    """
    if model in _left and _left[model] is not mark_of_reset(model.env):
        model._last_obs = None


def mark_of_reset(venv: VecEnv) -> Any:
    """An object that is another one after every reset of ``venv``, but not after those at the end of an episode."""
    return venv.unwrapped._options
