"""One recorded decision: group, action, feedback, features."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from numpy.typing import ArrayLike


@dataclass(frozen=True, kw_only=True)
class Interaction:
    """One decision about one individual: all fields belong to the same individual and the same step.

    :param action: the action executed for the individual
    :param group: its label at that step, or a dict attribute -> label
    :param features: (d,) the individual's features, each in [0, 1]
    :param probabilities: (n_actions,) the distribution that the policy had over the actions for it
    :param reward: performance reward of the step
    :param feedback: the action that would have been right, None while unknown
    :param id: running number, as :meth:`FairnessTracker.add` returned it
    """

    action: int
    group: Hashable | Mapping[str, Hashable] = None
    features: ArrayLike | None = None
    probabilities: ArrayLike | None = None
    reward: float | None = None
    feedback: float | None = None
    id: int | None = None
