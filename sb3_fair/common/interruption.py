"""Rollouts that were stopped by a callback or the keyboard: ``learn`` begins new episodes after them."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Collect = TypeVar("Collect", bound=Callable[..., Any])


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
        return rollout

    return cast(Collect, collected)
