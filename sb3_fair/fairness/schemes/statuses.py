"""Statuses of stakeholders after each step of logged episodes, their unfairness and balance.

Unlike the score of a scheme, unfairness and balance compare the stakeholders with their mean at every step. They are
for audits, not for rewards.

Source: Alamdari, Klassen, Creager, McIlraith, *Remembering to Be Fair*.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import MaybeNumbers, Numbers, checked
from sb3_fair.fairness.validation import as_array

Array: TypeAlias = NDArray[np.float64]


def status_array(status: ArrayLike) -> Array:
    """``status`` as (..., T, n), float64."""
    array = as_array(status, np.float64)
    if array.ndim < 2 or not array.shape[-1]:
        raise ValueError(f"status must have the shape (..., T, n) with n > 0, got {array.shape}")
    return array


def within(lengths: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which steps (..., T) = ``shape`` belong to their episodes of ``lengths`` (...) steps, None: of T."""
    if lengths is None:
        return np.ones(shape, dtype=bool)
    array = np.asarray(lengths)
    if array.shape != shape[:-1] or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"lengths must be integers of shape {shape[:-1]}, got {lengths!r}")
    if array.size and not 0 <= array.min() <= array.max() <= shape[-1]:
        raise ValueError(f"lengths must be in 0..{shape[-1]}, got {lengths!r}")
    return np.arange(shape[-1]) < array[..., None]


@checked
def count_status(
    actions: Numbers,
    granted: Numbers | None = None,
    *,
    stakeholders: Sequence[int],
    lengths: int | Numbers | None = None,
) -> Array:
    """How often each stakeholder was served up to and including each step, (..., T, n).

    :param actions: (..., T) logged actions, int from 0 on (of ``Discrete(n, start=s)``: the action less s)
    :param granted: (..., T) whether each took effect (bool, or 0 and 1); None: all did
    :param stakeholders: whom each action serves: a number from 0 on, -1 is nobody; n is one more than the largest
    :param lengths: (...) number of steps of each episode; later ones count nothing, whatever they hold
    :raises ValueError: if shapes differ or an action has no entry in ``stakeholders``
    """
    serves = np.asarray(stakeholders)
    if not len(serves) or serves.max() < 0:
        raise ValueError(f"stakeholders must serve somebody, got {stakeholders!r}")
    taken = np.asarray(actions)
    if taken.size and taken.dtype.kind not in "iu":
        raise ValueError(f"actions must be integers of shape (..., T), got {actions!r}")
    counted = within(lengths, taken.shape)
    taken = np.where(counted, taken, 0).astype(int)
    if taken.size and not 0 <= taken.min() <= taken.max() < len(serves):
        raise ValueError(f"actions must be in 0..{len(serves) - 1}, got {taken.min()}..{taken.max()}")
    if granted is not None:
        effective = np.asarray(granted)
        if effective.shape != taken.shape:
            raise ValueError(f"granted must have the shape of actions {taken.shape}, got {effective.shape}")
        counted = counted & (effective != 0)
    served = (serves[taken][..., None] == np.arange(serves.max() + 1)) & counted[..., None]
    return np.cumsum(served, axis=-2, dtype=np.float64)


@checked
def unfairness(status: MaybeNumbers) -> Array:
    """U_i - mean(U) after each step, (..., T, n): negative is unfair to i, positive in favour of i.

    :param status: (..., T, n)
    """
    array = status_array(status)
    return array - array.mean(axis=-1, keepdims=True)


@checked
def overall_unfairness(status: MaybeNumbers, lengths: int | Numbers | None = None) -> Array:
    """Unfairness, summed over the steps of each episode: (..., n).

    :param status: (..., T, n)
    :param lengths: (...) number of steps of each episode, the rest is padding; None: T
    """
    each = unfairness(status)
    return np.where(within(lengths, each.shape[:-1])[..., None], each, 0.0).sum(axis=-2)


@checked
def balance(status: MaybeNumbers, lengths: int | Numbers | None = None) -> Array:
    """Minus the sum of the squares of the overall unfairness: (...), 0 is fair, negative is unfair.

    Arguments as for :func:`overall_unfairness`.
    """
    return -np.square(overall_unfairness(status, lengths)).sum(axis=-1)
