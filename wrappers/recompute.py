"""Rewards of a step recomputed with another memory."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.fairness.welfare import find_welfare
from sb3_fair.wrappers.memories import Memory, parts_of

Array: TypeAlias = NDArray[Any]


@checked
class Recompute:
    """Next memories and rewards of steps, from their memories, actions and events alone.

    reward = base + mask * B(m, m') * W(U(m')), with the filter of a period or of the end in the mask already.

    :param memory: holds the status U, or its differences where the welfare needs no more
    :param scheme: status, welfare and filter
    :raises ValueError: if the reward is no function of the memory
    """

    def __init__(self, memory: Memory, scheme: Scheme) -> None:
        self.memory, self.scheme = memory, scheme
        start, holder = memory.initial((1,)), _holder(memory)
        differences = getattr(holder, "differences", None) and getattr(memory, "differences", None)
        if differences and scheme.status != "counts":
            raise ValueError(
                f"memory {memory.name!r} counts who was served, so the scheme's status must be 'counts' for its reward "
                f"to follow from it, got {scheme.status!r}"
            )
        if memory.status(start) is not None:
            self._status = memory.status
        elif needs_differences_only(scheme) and differences and differences(start) is not None:
            self._status = differences
        else:
            raise ValueError(
                f"memory {memory.name!r} does not hold the status that the welfare {scheme.welfare!r} and the filter "
                f"{scheme.when!r} need, so the reward with another memory cannot be computed: use 'full', or train "
                "with n_counterfactual=0"
            )
        rounds = getattr(holder, "round_length", None)
        wanted = scheme.period if scheme.restart else None
        if differences and rounds != wanted:
            allowed = f"'rounds({wanted})'" if wanted else "one that counts over the whole episode"
            kind = "restarts" if wanted else "does not restart"
            raise ValueError(f"memory must be {allowed} for a scheme whose status {kind}, got {memory.name!r}")

    def __call__(self, memory: Array, action: Array, event: Array) -> tuple[Array, Array]:
        """Next memories (..., dim) and rewards (...) from memories, actions (...) and events (..., 3)."""
        following = self.memory.update(memory, action, event)
        return following, self.reward(memory, following, event)

    def reward(self, memory: Array, following: Array, event: Array) -> Array:
        """Rewards (...) from the memories (..., dim) before and after the step and the events (..., 3)."""
        status: Any = self._status(following)
        counts = event[..., 2]
        if callable(self.scheme.when):
            previous: Any = self._status(memory)
            counts = counts * self.scheme.holds(status, previous)
        return event[..., 1] + np.where(counts, counts * self.scheme.W(status), 0.0)

    def welfare(self, memory: Array) -> Array:
        """W(U(m)), (...), of memories (..., dim)."""
        return self.scheme.W(self._status(memory))


def _holder(memory: Memory) -> Memory:
    """The part of a joined memory that holds the status; any other memory itself."""
    return next(
        (
            part
            for part in parts_of(memory)
            if getattr(part, "differences", part.status)(part.initial((1,))) is not None
        ),
        memory,
    )


def needs_differences_only(scheme: Scheme) -> bool:
    """Whether a number added to everybody's status changes neither the welfare nor when it is assessed."""
    return getattr(find_welfare(scheme.welfare), "shift_invariant", False) and not callable(scheme.when)
