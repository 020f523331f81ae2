"""The doughnut scenario: who gets the next doughnut.

The doughnut scenario of Alamdari et al. ("Remembering to Be Fair").
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import Proportion, checked
from sb3_fair.fairness.descriptions import Words
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.fairness.welfare import Welfare
from sb3_fair.zoo.envs.allocation import RANDOM, AllocationWorld, arrivals
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.settings import TwoOrMore, parameter, several
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule

PAPER = 'Alamdari et al., "Remembering to Be Fair"'


@checked
@dataclass(frozen=True)
class DoughnutConfig:
    """The parameters of the scenario.

    :param n_people: how many wait for doughnuts, at least two
    :param episode_length: doughnuts per episode
    :param presence: probability that a person is at the counter, one for all or one for each
    :param welfare: W, of the numbers of doughnuts: a name of :data:`~sb3_fair.fairness.welfare.WELFARES`, a
        :class:`~sb3_fair.fairness.welfare.Welfare` or a function (..., n) -> (...)
    :param offset: added to the numbers of doughnuts, where ``welfare`` is a name; None: that of the formula
    :param waste: whether a wasted doughnut pays nothing (``"zero"``) or the present welfare (``"welfare"``)
    :param clock: whether the observation shows the time
    :param end: whether an episode is ``"truncated"`` or ``"terminated"`` after its last doughnut
    """

    n_people: TwoOrMore = parameter(5, "people", PAPER)
    episode_length: int = parameter(100, "doughnuts", PAPER)
    presence: Proportion | Sequence[Proportion] = parameter(0.8, "probability", PAPER)
    welfare: str | Welfare | Callable[[Any], Any] = parameter("log_nash", "name or function", PAPER)
    offset: float | None = parameter(None, "doughnuts", "1 for log_nash, 0 otherwise; 1.0001 in the published code")
    waste: Literal["zero", "welfare"] = parameter("zero", "name", PAPER)
    clock: bool = parameter(False, "yes or no", PAPER)
    end: Literal["truncated", "terminated"] = parameter("truncated", "name", "the published code")

    def __post_init__(self) -> None:
        if several(self.presence) and len(self.presence) != self.n_people:
            raise ValueError(
                f"presence must be one probability or one for each of {self.n_people} people, got {self.presence!r}"
            )
        if self.offset is not None and not isinstance(self.welfare, str):
            raise ValueError(f"offset must be None unless welfare is a name, got {self.offset!r}")

    @property
    def presences(self) -> NDArray[np.float64]:
        """Probability that each person is at the counter (n_people,)."""
        return np.broadcast_to(np.asarray(self.presence, dtype=np.float64), self.n_people)

    @property
    def scheme(self) -> Scheme:
        """The fairness scheme of the reward: the welfare of the numbers of doughnuts, at any time."""
        welfare = self.welfare if self.offset is None else Welfare(str(self.welfare), offset=self.offset)
        return Scheme(status="counts", welfare=welfare, temporal="sum", when="every")


def _oracle(world: "DoughnutWorld") -> Array:
    """Whoever of those present has had fewest, the first of several; the first person if nobody is present."""
    missing = np.where(world.present, world.counts, np.inf)
    return np.eye(world.config.n_people)[missing.argmin(axis=1)]


class DoughnutWorld(AllocationWorld):
    """Each step one doughnut goes to one of several people, the action; each is at the counter now and then.

    Observation: who is at the counter (n_people,), then the share of the episode that has passed, if there is a
    clock. Reward: the welfare of the numbers of doughnuts that people have had so far, by default 0 for a wasted one.
    Figures and individuals: see :doc:`/doughnut`.

    :param group: what group notions compare: ``"person"`` is all there is
    :param detail: whether records have ``detail``: ``counts``, the doughnuts everybody has had
    :param config: fields of :class:`DoughnutConfig`
    """

    default_memory = "full"
    merit_name = "doughnuts"
    source = "Alamdari et al., Remembering to Be Fair"
    words: ClassVar[Words] = {
        "R": {"title": "welfare", "sentence": "Welfare of all customers, summed over the steps."},
        "spread": {"title": "most minus fewest doughnuts", "better": "lower"},
        "least": {"title": "fewest doughnuts of a customer", "better": "higher"},
        "wasted": {"title": "wasted doughnuts", "better": "lower"},
    }
    rules: ClassVar[Mapping[str, Rule]] = {"oracle": _oracle} | RANDOM

    def __init__(self, n_worlds: int, *, group: Group = "person", detail: bool = False, **config: Any) -> None:
        self.config = settings = self.configured(n_worlds, detail, DoughnutConfig, config)
        people = settings.n_people
        self.clock, self.end = settings.clock, settings.end
        super().__init__(
            n_worlds,
            Tapes(n_worlds, people, partial(arrivals, chances=settings.presences)),
            Groups(group, {"person": [f"person {index}" for index in range(people)]}),
            scheme=settings.scheme,
            steps=settings.episode_length,
            bounds=[(0, 1)] * people,
        )
        self.max_return = self._bound()

    def _bound(self) -> float:
        """Upper bound of the return: all take turns; a W that wants less is best served by wasting at once.

        It is one for every W that prefers equality (Schur-concave), as all known by name do.
        """
        if not isinstance(self.config.welfare, str | Welfare):
            return float("inf")
        turns = np.arange(self.max_steps + 1)[:, None] + np.arange(self.config.n_people)[::-1]
        worth = self._welfare((turns // self.config.n_people).astype(np.float64))
        worth = np.maximum.accumulate(worth)[1:]
        return float(worth.sum() if self.config.waste == "welfare" else np.maximum(worth, 0).sum())

    def merit(self) -> NDArray[np.float64]:
        return self.counts / self.max_steps

    def terms(self, granted: NDArray[np.bool_], last: NDArray[np.bool_]) -> tuple[Array, Array]:
        base, mask = super().terms(granted, last)
        return base, mask if self.config.waste == "zero" else np.ones_like(mask)

    def figures(self) -> dict[str, NDArray[np.float64]]:
        least = self.counts.min(axis=1)
        return {"spread": self.counts.max(axis=1) - least, "least": least, "wasted": self.refused}
