"""Optimal vaccine delivery, exactly, by scheme.

Dynamic programming over the time, where the last shipment was sent, and the shipments that every country has got.

>>> solved(VaccinesConfig(episode_length=12)).route()
(0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0)
>>> solved(VaccinesConfig(episode_length=12), Scheme(welfare="relaxed_parity", when="end")).route()
(0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1)
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.scheme import as_reward
from sb3_fair.zoo.envs.vaccines.world import VaccinesConfig

Array: TypeAlias = NDArray[Any]
Policy: TypeAlias = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], Array]

MOST_NUMBERS = 20_000_000


@dataclass(frozen=True)
class Solution:
    """What a policy is worth, and how it decides.

    :param config: the scenario
    :param value: expected return
    :param chances: (T, n + 1, states, n) probability of each country, by the time, where the last shipment was sent
        (the last entry: nowhere yet) and what every country has got, as numbers with T + 1 digits
    """

    config: VaccinesConfig
    value: float
    chances: Array

    def decide(self, time: Any, last: Any, counts: Array) -> Array:
        """Probability of each country (..., n), when ``time`` (...) shipments were sent, the last one to ``last``
        (...), -1 for nowhere yet, and ``counts`` (..., n) have arrived.
        """
        state = counts.astype(np.int64) @ _digits(self.config)
        return self.chances[time, last, state]

    def route(self, lost: Collection[int] = ()) -> tuple[int, ...]:
        """Where the shipments are sent, if those with the numbers ``lost`` (from 0) get lost and all others arrive."""
        counts = np.zeros(self.config.countries)
        sent: list[int] = []
        for time in range(self.config.episode_length):
            sent.append(int(self.decide(time, sent[-1] if sent else -1, counts).argmax()))
            counts[sent[-1]] += time not in lost
        return tuple(sent)


@lru_cache(maxsize=16)
def solved(config: VaccinesConfig, scheme: Scheme | None = None, gamma: float = 1.0) -> Solution:
    """The best policy; of equally good countries, it takes the first.

    :param scheme: of which the reward is made; None: the scenario's own
    :param gamma: discount factor, in [0, 1]
    :raises ValueError: if the scheme cannot be the reward or restarts, or there are more states than a computer likes
    """
    return _backwards(config, scheme, gamma, None)


def policy_value(policy: Policy, config: VaccinesConfig, scheme: Scheme | None = None, gamma: float = 1.0) -> float:
    """Expected return of any policy.

    :param policy: f(time (k,), last (k,), counts (k, n)) -> probability of each country (k, n); see
        :meth:`Solution.decide`; the rest as for :func:`solved`
    """
    return _backwards(config, scheme, gamma, policy).value


def fits(config: VaccinesConfig) -> bool:
    """Whether there are few enough states for an exact solution."""
    steps, countries = config.episode_length, config.countries
    return steps * (countries + 1) * (steps + 1) ** countries * countries <= MOST_NUMBERS


@checked
def _backwards(config: VaccinesConfig, scheme: Scheme | None, gamma: float, policy: Policy | None) -> Solution:
    scheme = as_reward(scheme or config.scheme)
    if scheme.status != "counts" or scheme.restart:
        raise ValueError(f"scheme must count shipments over the whole episode, got {scheme!r}")
    steps, countries, digits = config.episode_length, config.countries, _digits(config)
    states = (steps + 1) ** countries
    if not fits(config):
        raise ValueError(
            f"episode_length must be smaller for an exact solution with countries = {countries}, got {steps}: "
            f"more than {MOST_NUMBERS:,} numbers"
        )
    state = np.arange(states)[:, None]
    counts = state // digits % (steps + 1)
    # A country that has got T shipments gets no more: the time is over then.
    more = np.where(counts < steps, state + digits, state)
    # To no further shipment, (states, 1), and to one for each country, (states, n).
    unchanged, grown = (_paid(scheme, counts[there], counts[state]) for there in (state, more))
    cost = config.switch_cost * np.vstack((1 - np.eye(countries), np.zeros(countries)))
    value = np.zeros((countries, states))
    chances = np.zeros((steps, countries + 1, states, countries))
    for time in reversed(range(steps)):
        assessed = scheme.period is None or (time + 1) % scheme.period == 0
        assessed &= scheme.when != "end" or time + 1 == steps
        lost = assessed * unchanged + gamma * value.T
        arrived = assessed * grown + gamma * value[np.arange(countries), more]
        sent = config.arrives * arrived + (1 - config.arrives) * lost - cost[:, None]
        if policy is None:
            chances[time] = np.eye(countries)[sent.argmax(axis=-1)]
        else:
            for last in range(-1, countries):
                chances[time, last] = policy(np.full(states, time), np.full(states, last), counts)
        following = (chances[time] * sent).sum(axis=-1)
        value = following[:-1]
    return Solution(config, float(following[-1, 0]), chances)


def _paid(scheme: Scheme, after: NDArray[np.int64], before: NDArray[np.int64]) -> Array:
    """Welfare of the counts (..., n) after a step, 0 where the condition of the scheme does not hold."""
    status, previous = (counts.astype(np.float64) for counts in np.broadcast_arrays(after, before))
    return np.where(scheme.holds(status, previous), scheme.W(status), 0.0)


def _digits(config: VaccinesConfig) -> NDArray[np.int64]:
    """A number has one digit for each country."""
    return (config.episode_length + 1) ** np.arange(config.countries)
