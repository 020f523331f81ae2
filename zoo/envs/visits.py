"""Home visits: which client a carer visits next.

A scenario of this package in which fairness is assessed seldom: once a day, by the client who was visited least.
Nearly every day of a policy that does not know yet what it is asked for ends with nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import Proportion, checked
from sb3_fair.fairness.descriptions import Words
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.zoo.envs.allocation import RANDOM, AllocationWorld, arrivals
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.settings import parameter
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule

OURS = "made up: a round of visits with some slack, and clients who are more and less often at home"


@checked
@dataclass(frozen=True)
class VisitsConfig:
    """The parameters of the scenario.

    :param at_home: probability that each client is at home in a slot
    :param slots: visits that fit into a day
    :param days: length of an episode
    :param welfare: W, of the numbers of visits today
    """

    at_home: Sequence[Proportion] = parameter((0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.5), "probability", OURS)
    slots: int = parameter(14, "visits per day", OURS)
    days: int = parameter(3, "days", OURS)
    welfare: Any = parameter("rawls", "name or function", OURS)

    def __post_init__(self) -> None:
        if len(self.at_home) < 2:
            raise ValueError(f"at_home must be a probability for each of at least two clients, got {self.at_home!r}")

    @property
    def scheme(self) -> Scheme:
        """The fairness scheme of the reward: the welfare of the numbers of visits, at the end of every day."""
        return Scheme(status="counts", welfare=self.welfare, when=("period", self.slots), restart=True)


def _oracle(world: "HomeVisitsWorld") -> Array:
    """Of those at home, whoever was visited least today, and of those whoever is least often at home."""
    at_home = np.asarray(world.config.at_home)
    return np.eye(len(at_home))[np.where(world.present, world.today + at_home / 2, np.inf).argmin(axis=1)]


class HomeVisitsWorld(AllocationWorld):
    """Each slot of a day one of several clients is visited, the action; each is at home now and then.

    Observation: who is at home (clients,), then the share of the day that has passed. Reward: 0, but at the end of a
    day the visits of the client who had fewest that day. Figures and individuals: see :doc:`/visits`.

    :param group: what group notions compare: ``"client"`` is all there is
    :param detail: whether records have ``detail``: ``counts``, the visits so far today
    :param config: fields of :class:`VisitsConfig`
    """

    source = "this package"
    words: ClassVar[Words] = {
        "R": {"title": "visits of the client with fewest", "sentence": "Summed over the ends of days."},
        "least": {"title": "fewest visits of a client today", "better": "higher"},
        "missed": {"title": "clients without a visit today", "better": "lower"},
        "wasted": {"title": "visits to empty homes", "better": "lower"},
        "good_days": {"title": "days on which everybody was visited", "better": "higher"},
    }
    masked_by_scheme = True
    merit_name = "at home"
    rules: ClassVar[Mapping[str, Rule]] = {"oracle": _oracle} | RANDOM

    def __init__(self, n_worlds: int, *, group: Group = "client", detail: bool = False, **config: Any) -> None:
        self.config = settings = self.configured(n_worlds, detail, VisitsConfig, config)
        clients = len(settings.at_home)
        super().__init__(
            n_worlds,
            Tapes(n_worlds, clients, partial(arrivals, chances=np.asarray(settings.at_home))),
            Groups(group, {"client": [f"client {index}" for index in range(clients)]}),
            scheme=settings.scheme,
            steps=settings.slots * settings.days,
            bounds=[(0, 1)] * (clients + 1),
        )
        self.default_memory = f"rounds({settings.slots})"
        self._at_home = np.tile(settings.at_home, (n_worlds, 1))
        self._visits = np.zeros(n_worlds)
        self._good_days = np.zeros(n_worlds)
        if settings.welfare == "rawls":
            self.max_return = float(settings.days * (settings.slots // clients))

    @property
    def today(self) -> NDArray[np.float64]:
        """Visits that each client has had today when the coming slot begins (n, clients)."""
        return np.where((self.time % self.config.slots == 0)[:, None], 0.0, self.counts)

    @property
    def refused(self) -> NDArray[np.float64]:
        return self.time - self._visits

    def merit(self) -> NDArray[np.float64]:
        return self._at_home

    def give(self, given: NDArray[np.bool_], granted: NDArray[np.bool_]) -> None:
        day_begins = (self.time - 1) % self.config.slots == 0
        self.counts = np.where(day_begins[:, None], given, self.counts)
        self._visits += granted
        self._good_days += (self.time % self.config.slots == 0) & (self.counts.min(axis=1) > 0)

    def terms(self, granted: NDArray[np.bool_], last: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Nothing is paid but at the end of a day."""
        return np.zeros(len(granted)), self.time % self.config.slots == 0

    def restart(self, which: Array) -> Array:
        self._visits[which] = 0
        self._good_days[which] = 0
        return super().restart(which)

    def figures(self) -> dict[str, NDArray[np.float64]]:
        return {
            "least": self.counts.min(axis=1),
            "missed": np.count_nonzero(self.counts == 0, axis=1).astype(np.float64),
            "wasted": self.refused,
            "good_days": self._good_days.copy(),
        }

    def observed(self) -> list[Array]:
        return [*super().observed(), (self.time % self.config.slots)[:, None] / self.config.slots]
