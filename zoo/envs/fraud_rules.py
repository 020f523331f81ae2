"""How would a bank act that follows a rule of thumb, or knows the truth?"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sb3_fair.zoo.envs.fraud_tables import EU, NORTH_AMERICA
from sb3_fair.zoo.envs.world import Array, Rule

if TYPE_CHECKING:
    from sb3_fair.zoo.envs.fraud import FraudWorld


def _authenticating(world: "FraudWorld", probability: ArrayLike) -> Array:
    """Action probabilities (n, 2) from the probability of authentication, one number or (n,)."""
    authenticate = np.broadcast_to(np.asarray(probability, dtype=np.float64), world.n_worlds)
    return np.stack((1 - authenticate, authenticate), axis=1)


def _ignore(world: "FraudWorld") -> Array:
    return _authenticating(world, 0)


def _authenticate(world: "FraudWorld") -> Array:
    return _authenticating(world, 1)


def _random(world: "FraudWorld") -> Array:
    return _authenticating(world, 0.5)


def _oracle(world: "FraudWorld") -> Array:
    """Authenticates frauds alone, which the bank cannot know."""
    return _authenticating(world, world.transactions.fraud)


def _authenticate_eu(world: "FraudWorld") -> Array:
    return _authenticating(world, world.transactions.continent == EU)


def _authenticate_na(world: "FraudWorld") -> Array:
    return _authenticating(world, world.transactions.continent == NORTH_AMERICA)


RULES: Mapping[str, Rule] = {
    "ignore": _ignore,
    "authenticate": _authenticate,
    "random": _random,
    "oracle": _oracle,
    "authenticate-eu": _authenticate_eu,
    "authenticate-na": _authenticate_na,
}
