"""Fairness schemes: welfare of stakeholders, assessed at any time, periodically or at the end.

A fairness scheme (U, W, B) has a *status* U, how each of n stakeholders fares after a step, a *welfare* function W that
makes one number of a status, and a filter B: *when* it is assessed. The score of an episode aggregates the welfare at
the assessed steps over time ("timepoint first").

Source: Alamdari, Klassen, Creager, McIlraith, *Remembering to Be Fair: Non-Markovian Fairness in Sequential Decision
Making*, sections 3 and 4.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import Count, Positive, Share, checked
from sb3_fair.fairness.intervals import mean_and_interval
from sb3_fair.fairness.schemes.statuses import Array, status_array, within
from sb3_fair.fairness.validation import function_of_vectors, on_copies
from sb3_fair.fairness.welfare import WELFARES, Welfare, find_welfare

When: TypeAlias = Literal["every", "end"] | tuple[Literal["period"], Count] | Callable[[Array, Array], Any]

Temporal: TypeAlias = Literal["last", "sum", "mean", "min", "discounted"]


ROUNDING = 1e-5
"""Part by which a sum of fractions may fall short of a multiple: amounts come as float32."""


class Values(NamedTuple):
    """Welfare and assessment after each of T steps.

    :param welfare: (..., T) float64, W(U); NaN after the end of an episode
    :param assessed: (..., T) bool, whether it counts
    """

    welfare: Array
    assessed: NDArray[np.bool_]


class Estimate(NamedTuple):
    """A mean, and the interval that holds the true one with the confidence asked for; NaN where unknown."""

    mean: float
    low: float
    high: float


@checked
@dataclass(frozen=True)
class NewMultiple:
    """True where the total of the status reaches a new multiple of ``k`` > 0 in a step: "after a dozen doughnuts".

    For bounded schemes, as ``when=NewMultiple(12)``; unlike a lambda it pickles. A step that passes several multiples
    at once counts as one assessment. A total that falls short of a multiple by rounding only has reached it.
    """

    k: Positive

    def __call__(self, status: Array, previous: Array) -> NDArray[np.bool_]:
        """(...), from the status (..., n) after the step and that before it."""
        return self._multiples(status) > self._multiples(previous)

    def _multiples(self, status: Array) -> Array:
        total = status.sum(axis=-1, dtype=np.float64)
        multiples = total / self.k
        slack = np.where(total == np.rint(total), 1e-12, ROUNDING)  # whole totals are exact
        return np.floor(multiples + slack * np.maximum(1, np.abs(multiples)))


@checked
@dataclass(frozen=True)
class Scheme:
    """A fairness scheme: status, welfare, time of assessment and aggregation over time.

    ============  =============================================================================
    scheme        arguments
    ============  =============================================================================
    anytime       ``when="every"``
    periodic      ``when=("period", p)``: steps p, 2p, ..; an incomplete last period is not assessed
    bounded       ``when=f``
    long-term     ``when="end"``, or ``temporal="last"``
    ============  =============================================================================

    It pickles if its callables do.

    :param status: how an environment changes U: ``"counts"`` (how often each stakeholder was served), ``"rewards"``
        (the sum of ``info["vector_reward"]``) or f(info) -> what is added to U, (n,)
    :param welfare: key of :data:`WELFARES`, a :class:`Welfare`, or f(status (..., n)) -> (...), higher is better
    :param temporal: ``"last"``, ``"sum"``, ``"mean"``, ``"min"`` or ``"discounted"``: over the assessed steps
    :param when: ``"every"``, ``("period", p)``, ``"end"``, or f(status after the step (..., n), status before it
        (..., n)) -> bool (...). The start of an episode is never assessed
    :param gamma: of ``"discounted"``, in (0, 1]
    :param discount_by: the factor of the j-th assessment, at step t, is gamma^(j - 1) for ``"assessment"`` and
        gamma^(t - 1) for ``"step"``
    :param restart: True: the status counts anew after every assessment; only with a period. (Not in the paper.)
    :raises ValueError: if an argument is not allowed
    """

    status: Literal["counts", "rewards"] | Callable[[dict[str, Any]], Any] = "counts"
    welfare: str | Welfare | Callable[[Any], Any] = "log_nash"
    temporal: Temporal = "sum"
    when: When = "every"
    gamma: Share = 0.99
    discount_by: Literal["assessment", "step"] = "assessment"
    restart: bool = False

    def __post_init__(self) -> None:
        chosen = find_welfare(self.welfare)
        if isinstance(chosen, Welfare) and WELFARES[chosen.name].index:
            raise ValueError(f"welfare must be higher where it is better, got {chosen.name!r}; take 'neg_gini'")
        if isinstance(self.when, list):
            object.__setattr__(self, "when", tuple(self.when))
        if self.restart and self.period is None:
            raise ValueError(f"restart is only for when=('period', p), got {self.when!r}")

    @cached_property
    def W(self) -> Callable[[Any], Any]:
        """The welfare function: f(status (..., n)) -> (...), which leaves the status as it is."""
        welfare = find_welfare(self.welfare)
        return welfare if isinstance(welfare, Welfare) else partial(on_copies, welfare)

    @property
    def period(self) -> int | None:
        """p of ``("period", p)``, else None."""
        return self.when[1] if isinstance(self.when, tuple) else None

    @property
    def time_based(self) -> bool:
        """True if time alone decides which of the steps are assessed: after a period, or at the end."""
        return self.period is not None or self.when == "end"

    def holds(self, status: Array, previous: Array) -> NDArray[np.bool_]:
        """Whether the status (..., n) after a step meets the condition of a callable ``when``; True for all others.

        :param previous: (..., n) the status before the step
        :raises ValueError: if the callable does not return one entry per status vector
        """
        if not callable(self.when):
            return np.ones(status.shape[:-1], dtype=bool)
        return one_each("when", on_copies(self.when, status, previous), status, bool)

    def values(self, status: ArrayLike, lengths: ArrayLike | None = None) -> Values:
        """Welfare and assessment after each step of logged episodes.

        :param status: (..., T, n), after the steps 1..T, as counted from the start of the episode (a ``restart`` is
            done here)
        :param lengths: (...) number of steps of each episode, the rest is padding and not assessed; None: T
        """
        total = status_array(status)
        steps = np.arange(1, total.shape[-2] + 1)
        inside = within(lengths, total.shape[:-1])
        before = np.zeros_like(total)
        before[..., 1:, :] = total[..., :-1, :]
        if self.restart and self.period is not None:
            total = total - before[..., (steps - 1) // self.period * self.period, :]
        rows = total[inside]
        welfare = np.full(inside.shape, np.nan)
        welfare[inside] = one_each("welfare", self.W(rows), rows)
        assessed = inside.copy()
        assessed[inside] = self.holds(rows, before[inside])
        if self.period is not None:
            assessed &= steps % self.period == 0
        elif self.when == "end":
            assessed &= steps == inside.sum(axis=-1, keepdims=True)
        return Values(welfare, assessed)

    def score(self, status: ArrayLike, lengths: ArrayLike | None = None) -> Array:
        """Score (...) of logged episodes: the welfare at the assessed steps, aggregated over time; higher is better.

        If nothing was assessed: 0 for ``"sum"`` and ``"discounted"``, else NaN. Arguments as for :meth:`values`.
        """
        welfare, assessed = self.values(status, lengths)
        order = np.cumsum(assessed, axis=-1)
        many = assessed.sum(axis=-1)
        if self.temporal == "min":
            least = np.where(assessed, welfare, np.inf).min(axis=-1, initial=np.inf)
            return np.where(many > 0, least, np.nan)[()]
        if self.temporal == "last":
            assessed = assessed & (order == many[..., None])
        if self.temporal == "discounted":
            age = order - 1 if self.discount_by == "assessment" else np.arange(order.shape[-1])
            welfare = welfare * self.gamma ** age.astype(float)
        total = np.where(assessed, welfare, 0.0).sum(axis=-1)
        if self.temporal in ("sum", "discounted"):
            return total
        with np.errstate(invalid="ignore"):
            return total / (many if self.temporal == "mean" else many > 0)

    @checked
    def expected_score(self, status: ArrayLike, lengths: ArrayLike | None = None, confidence: float = 0.95) -> Estimate:
        """Score of a policy: mean over its logged episodes (all leading axes), with Student's t interval.

        :param confidence: of the interval, in (0, 1)
        :return: NaN if a score is undefined; the interval needs two episodes
        """
        scores = np.ravel(self.score(status, lengths))
        if np.isnan(scores).any():
            return Estimate(np.nan, np.nan, np.nan)
        return Estimate(*map(float, mean_and_interval(scores, confidence=confidence)))


@checked
class SchemeTracker:
    """Status, welfare and assessment of ``n_copies`` episodes that move together.

    After each step the same numbers as :meth:`Scheme.values` gives for the whole episode.

    :param scheme: whose welfare and assessments
    :param n_copies: number of episodes
    :param n: number of stakeholders
    :raises ValueError: if a number is not a positive integer, or a callable does not map (..., n) to (...)
    """

    def __init__(self, scheme: Scheme, n_copies: int, n: int) -> None:
        function_of_vectors("welfare", scheme.W, n)
        if callable(scheme.when):
            function_of_vectors("when", scheme.when, n, n_arguments=2)
        self.scheme = scheme
        self._welfare, self._period = scheme.W, scheme.period
        self.status: Array = np.zeros((n_copies, n))
        self._steps = np.zeros(n_copies, dtype=np.int64)

    def restart(self, which: Any = slice(None)) -> None:
        """New episodes in these copies (indices, slice or mask): everybody starts from 0."""
        self.status = self.status.copy()
        self.status[which] = 0.0
        self._steps[which] = 0

    def step(self, increments: ArrayLike, ended: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Each copy makes a step; ``status`` (n_copies, n) is a new array with what everybody has after it.

        :param increments: (n_copies, n) what is added to the status
        :param ended: (n_copies,) bool, whether this was the last step of its episode; :meth:`restart` begins the next
        :return: welfare (n_copies,) after the step, and whether it is assessed, (n_copies,) bool
        :raises ValueError: if the increments have another shape
        """
        before = self.status
        added = np.asarray(increments)
        if added.shape != before.shape:
            raise ValueError(f"increments must have the shape {before.shape}, got {added.shape}")
        if self.scheme.restart and self._period is not None:
            before = np.where((self._steps % self._period == 0)[:, None], 0.0, before)
        self._steps += 1
        self.status = before + added
        welfare = one_each("welfare", self._welfare(self.status), self.status)
        if self._period is not None:
            return welfare, self._steps % self._period == 0
        if self.scheme.when == "end":
            return welfare, np.array(ended, dtype=bool)
        return welfare, self.scheme.holds(self.status, before)


def one_each(name: str, values: Any, status: Array, dtype: Any = np.float64) -> Any:
    """What a callable made of status vectors (..., n), as an array (...)."""
    array = np.asarray(values, dtype=dtype)
    if array.shape != status.shape[:-1]:
        raise ValueError(f"{name} must return one entry per status vector {status.shape[:-1]}, got shape {array.shape}")
    return array
