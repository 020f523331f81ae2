"""Histories: sliding window, full, discounted.

A history is a frozen recipe: many environments can share one, each tracker keeps its own state.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sb3_fair.fairness.arguments import FINITE, Share, checked


class History:
    """The attributes of a history that trackers read.

    ``people``: how many individuals are kept for the individual notions. ``decisions``: how many of the latest
    decisions can leave the counts again or receive late feedback. ``forgets``: do decisions beyond these leave the
    group counts? ``samples``: are the individuals a random sample? ``factor``: weight = factor ** age. ``truncates``:
    does it drop decisions once the fairness value of the latest ones has settled?
    """

    forgets = True
    samples = False
    factor: float = 1.0
    _sizes: ClassVar[tuple[str, str]]
    """Which fields are ``people`` and ``decisions``."""

    @property
    def people(self) -> int:
        return int(getattr(self, self._sizes[0]))

    @property
    def decisions(self) -> int:
        return int(getattr(self, self._sizes[1]))

    @property
    def truncates(self) -> bool:
        return False


@checked
@dataclass(frozen=True)
class SlidingWindow(History):
    """The ``window`` most recent interactions, equal weights.

    :raises ValueError: if ``window`` is not a positive integer
    """

    window: int = 500

    _sizes = ("window", "window")


@checked
@dataclass(frozen=True)
class FullHistory(History):
    """All interactions, equal weights.

    Group notions are exact at any length, with bounded memory. Individual notions are exact until ``reservoir``
    individuals have been seen, then estimated on a uniform sample of that size (Vitter's algorithm R).

    :param reservoir: size of the sample, positive integer
    :param seed: of the sampling; each copy of a tracker draws from its own stream
    :param late: how many of the most recent interactions can still receive feedback
    :raises ValueError: if an argument is out of range
    """

    reservoir: int = 1000
    seed: int = 0
    late: int = 100_000

    forgets = False
    samples = True
    _sizes = ("reservoir", "late")


@checked
@dataclass(frozen=True)
class DiscountedHistory(History):
    """Weight ``factor ** age``; drops decisions that no longer change IF (Cimpean et al., FAReL, section 5).

    Let F_m be IF on the m newest interactions. At the first m >= ``min_window`` at which ``|F_m - F_(m-1)|`` has been
    at most ``threshold`` for ``delay`` consecutive m, everything older than the m newest is dropped, in all notions.
    So it needs features and probabilities, unless ``threshold`` is negative (then nothing is dropped). With several
    distances the first one decides. Dropping happens once per step, after its last individual.

    :param factor: in (0, 1]
    :param max_size: never keep more than this; a warning says when it is reached
    :raises ValueError: if an argument is out of range; ``min_window`` must exceed ``delay`` + 1
    """

    factor: Share = 1.0
    threshold: Annotated[float, FINITE] = 1e-4
    delay: int = 5
    min_window: int = 100
    max_size: int = 10_000

    _sizes = ("max_size", "max_size")

    def __post_init__(self) -> None:
        if self.min_window <= self.delay + 1:
            raise ValueError(f"min_window must exceed delay + 1 = {self.delay + 1}, got {self.min_window}")
        if self.max_size < self.min_window:
            raise ValueError(f"max_size must be at least min_window = {self.min_window}, got {self.max_size}")

    @property
    def truncates(self) -> bool:
        return self.threshold >= 0


DEFAULT_HISTORY = SlidingWindow(500)


def check_history(history: Any) -> History:
    """``history`` itself."""
    if not isinstance(history, History):
        raise TypeError(f"history must be a SlidingWindow, FullHistory or DiscountedHistory, got {history!r}")
    return history
