"""Rules of fraud detection."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sb3_fair.zoo.envs.fraud.tables import EU, NORTH_AMERICA
from sb3_fair.zoo.envs.world import Array, Rule, of_two

if TYPE_CHECKING:
    from sb3_fair.zoo.envs.fraud.world import FraudWorld


def _ignore(world: "FraudWorld") -> Array:
    return of_two(world, 0)


def _authenticate(world: "FraudWorld") -> Array:
    return of_two(world, 1)


def _random(world: "FraudWorld") -> Array:
    return of_two(world, 0.5)


def _oracle(world: "FraudWorld") -> Array:
    """Authenticates frauds alone, which the bank cannot know."""
    return of_two(world, world.transactions.fraud)


def _authenticate_eu(world: "FraudWorld") -> Array:
    return of_two(world, world.transactions.continent == EU)


def _authenticate_na(world: "FraudWorld") -> Array:
    return of_two(world, world.transactions.continent == NORTH_AMERICA)


RULES: Mapping[str, Rule] = {
    "ignore": _ignore,
    "authenticate": _authenticate,
    "random": _random,
    "oracle": _oracle,
    "authenticate-eu": _authenticate_eu,
    "authenticate-na": _authenticate_na,
}
