"""Weights that are NaN or infinite: an error, since a policy that cannot act may look fair."""

import time
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback

from sb3_fair.zoo.names import WorkError

SECONDS = 1.0
"""Between two looks."""


class FiniteWeights(BaseCallback):
    """Ends a training whose weights are no longer finite, at the beginning of a rollout or at the end."""

    _looked = -np.inf

    def _on_rollout_start(self) -> None:
        if time.monotonic() - self._looked >= SECONDS:
            check_weights(self.model)
            self._looked = time.monotonic()

    def _on_training_end(self) -> None:
        check_weights(self.model)

    def _on_step(self) -> bool:
        return True


def check_weights(model: Any) -> None:
    """Raises a WorkError if one of the weights of a model, or an entry of its table, is NaN or infinite."""
    if not all(map(_finite, _weights(model))):
        raise WorkError(
            f"weights of {type(model).__name__} are not finite after {model.num_timesteps:,} steps of training: "
            "try a smaller learning rate, and look for settings that are NaN, infinite or too large"
        )


def _weights(model: Any) -> Iterator[Any]:
    if hasattr(model, "table"):
        yield model.table.values
    modules, variables = model._get_torch_save_params()
    for name in (*modules, *variables):
        value = attrgetter(name)(model)
        if isinstance(value, th.nn.Module):
            yield from value.parameters()
        elif isinstance(value, th.Tensor):
            yield value


def _finite(values: Any) -> bool:
    return bool((th.isfinite(values) if isinstance(values, th.Tensor) else np.isfinite(values)).all())
