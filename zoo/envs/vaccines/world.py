"""Vaccine delivery: which country gets the next shipment.

The introductory example of Alamdari et al. ("Remembering to Be Fair"), made an environment: what is best depends on
when fairness is assessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import Proportion, Range, checked
from sb3_fair.fairness.descriptions import Words
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.zoo.envs.allocation import AllocationWorld, arrivals, random_all
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.settings import TwoOrMore, parameter
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule, Step

OURS = "made up; in the paper's example four shipments go to two countries"


@checked
@dataclass(frozen=True)
class VaccinesConfig:
    """The parameters of the scenario.

    :param countries: how many there are, at least two
    :param arrives: probability that a shipment arrives
    :param switch_cost: of sending a shipment to another country than the last one
    :param episode_length: shipments per episode
    """

    countries: TwoOrMore = parameter(2, "countries", "the paper's example")
    arrives: Proportion = parameter(0.9, "probability", OURS)
    switch_cost: Annotated[float, Range("[0, 1e6]")] = parameter(0.5, "welfare", OURS)
    episode_length: int = parameter(24, "shipments", OURS)

    @property
    def scheme(self) -> Scheme:
        """The fairness scheme of the reward: minus the gap between most and fewest shipments, at any time."""
        return Scheme(status="counts", welfare="relaxed_parity", when="every")


def _oracle(world: "VaccineDeliveryWorld") -> Array:
    from sb3_fair.zoo.envs.vaccines.exact import solved  # which needs the parameters above

    return solved(world.config).decide(world.time, world.last, world.counts)


class VaccineDeliveryWorld(AllocationWorld):
    """Each step one shipment of vaccine goes to one of several countries, the action, and usually arrives.

    Observation: where the last shipment was sent (countries,), zeros at first, and the share of the episode that has
    passed. Reward: minus the cost of a switch, and with the scheme (``scheme=`` of the registered ID) its welfare when
    it is assessed. An episode is terminated. Figures and individuals: see :doc:`/vaccines`.

    :param group: what group notions compare: ``"country"`` is all there is
    :param detail: whether records have ``detail``: ``counts``, the shipments that have reached each country
    :param config: fields of :class:`VaccinesConfig`
    """

    clock, end = True, "terminated"
    merit_name = "shipments"
    source = "after Alamdari et al., Remembering to Be Fair"
    words: ClassVar[Words] = {
        "R": {
            "title": "parity less switches",
            "sentence": "Minus the gap when it is assessed, and what switches cost.",
        },
        "gap": {"title": "gap between the countries' shipments", "better": "lower"},
        "switches": {"title": "switches of the country", "better": "lower"},
        "arrived": {"title": "shipments that arrived", "better": "higher"},
    }
    rules: ClassVar[Mapping[str, Rule]] = {
        "oracle": _oracle,
        "take-turns": lambda world: np.eye(world.config.countries)[world.time % world.config.countries],
        # First everything to one country, then to the next: as cheap as it gets.
        "blocks": lambda world: np.eye(world.config.countries)[world.time * world.config.countries // world.max_steps],
        "random-all": random_all,
    }
    """Without the oracle where there are too many states for it."""

    def __init__(self, n_worlds: int, *, group: Group = "country", detail: bool = False, **config: Any) -> None:
        from sb3_fair.zoo.envs.vaccines.exact import fits  # which needs the parameters above

        self.config = settings = self.configured(n_worlds, detail, VaccinesConfig, config)
        countries = settings.countries
        if not fits(settings):
            self.rules = {name: rule for name, rule in self.rules.items() if name != "oracle"}  # type: ignore[misc]
        super().__init__(
            n_worlds,
            Tapes(n_worlds, 1, partial(arrivals, chances=np.array(settings.arrives))),
            Groups(group, {"country": [f"country {index}" for index in range(countries)]}),
            scheme=settings.scheme,
            steps=settings.episode_length,
            bounds=[(0, 1)] * countries,
        )
        self.default_memory = "difference" if countries == 2 else "full"
        self.max_return = 0.0
        self.last = np.full(n_worlds, -1)
        """Where the last shipment was sent, -1: nowhere yet."""
        self._switched = np.zeros(n_worlds, dtype=bool)
        self._switches = np.zeros(n_worlds)

    @property
    def present(self) -> NDArray[np.bool_]:
        """All or none: whether the coming shipment arrives, which nobody sees before."""
        return np.broadcast_to(self.tapes.now.present, (self.n_worlds, self.config.countries))

    def merit(self) -> NDArray[np.float64]:
        return self.counts / self.max_steps

    def restart(self, which: Array) -> Array:
        self.last[which] = -1
        self._switches[which] = 0
        return super().restart(which)

    def step(self, actions: Array) -> Step:
        self._switched = (self.last >= 0) & (actions != self.last)
        self._switches += self._switched
        self.last = np.array(actions)
        return super().step(actions)

    def terms(self, granted: NDArray[np.bool_], last: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Fairness counts also when a shipment is lost."""
        return -self.config.switch_cost * self._switched, np.ones_like(granted)

    def figures(self) -> dict[str, NDArray[np.float64]]:
        return {
            "gap": self.counts.max(axis=1) - self.counts.min(axis=1),
            "switches": self._switches.copy(),
            "arrived": self.counts.sum(axis=1),
        }

    def observed(self) -> list[Array]:
        return [self.last[:, None] == self._places]
