"""People who may become customers of fraud detection, and when they buy."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.fraud.calendar import DAY, Calendar
from sb3_fair.zoo.envs.fraud.settings import HOURS_PER_YEAR, FraudConfig
from sb3_fair.zoo.envs.fraud.tables import CURRENCIES, HOURS, MONTHDAYS, MONTHS, WEEKDAYS, countries, profiles

GENUINE, FRAUD = 0, 1
NO_CARD = -1
OWN_PATIENCE = 0.8
"""What somebody's own patience counts in that with a transaction."""
_PATIENCE = 10, 2
_NOISE = ((MONTHS, 1200), (MONTHDAYS, 305), (WEEKDAYS, 70), (HOURS, 240))  # variance: the level over this
_SCALE = 12 * 30.5 * 7 * 24
_DAY = np.arange(DAY)
_DATES = np.array([MONTHS.start, MONTHDAYS.start, WEEKDAYS.start])

Worlds: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = NDArray[np.int64]
Days: TypeAlias = NDArray[np.int64]


class People:
    """People around n banks: rows of arrays (n, capacity, ...).

    :param n: number of banks
    :param capacity: number of rows at first
    """

    def __init__(self, n: int, capacity: int, config: FraudConfig, calendar: Calendar) -> None:
        self.n = n
        self.config = config
        self.calendar = calendar
        self.countries = countries()
        self._typical = profiles().astype(np.float32)
        self._spread = np.concatenate(
            [np.full(part.stop - part.start, (config.noise_level / divisor) ** 0.5) for part, divisor in _NOISE],
            dtype=np.float32,
        )
        shape = n, capacity
        self.fraud = np.zeros(shape, dtype=bool)
        self.country = np.zeros(shape, dtype=np.int64)
        self.trade = np.zeros(shape, dtype=np.int64)
        """5 * class + currency."""
        self.patience = np.zeros(shape)
        """Patience with an authentication, as far as it is somebody's own; of a fraudster: none."""
        self.card = np.zeros(shape, dtype=np.int64)
        """Its number, :data:`NO_CARD` before the first transaction."""
        self.corrupted = np.zeros(shape, dtype=bool)
        """Whose card was used in a fraud in this hour."""
        self.eagerness = np.zeros(shape)
        """Satisfaction of a genuine customer, 1 of a fraudster, 0 of whoever is no customer."""
        self.rate = np.zeros(shape, dtype=np.float32)
        # Personal profiles, the hours twice, so that a day may begin at any of them.
        self.profile = np.zeros((*shape, HOURS.stop + DAY), dtype=np.float32)
        self.first_row = np.arange(n) * capacity
        """Where the rows of each bank begin in a flat array."""
        self.streams: list[np.random.Generator] = [np.random.default_rng(0)] * n
        """From which all that concerns the people of each bank is drawn."""

    _arrays = ("fraud", "country", "trade", "patience", "card", "corrupted", "eagerness", "rate", "profile")

    @property
    def capacity(self) -> int:
        return int(self.fraud.shape[1])

    def widen(self, needed: int) -> None:
        """Room for at least ``needed`` rows."""
        more = max(needed, self.capacity * 3 // 2) - self.capacity
        for name in self._arrays:
            array = getattr(self, name)
            setattr(self, name, np.pad(array, [(0, 0), (0, more)] + [(0, 0)] * (array.ndim - 2)))
        self.first_row = np.arange(self.n) * self.capacity

    def pack(self, world: int) -> int:
        """Puts the customers of a bank into its first rows; their number."""
        here = np.flatnonzero(self.eagerness[world])
        for name in self._arrays:
            array = getattr(self, name)
            array[world, : len(here)] = array[world, here]
        return len(here)

    def clear(self, world: int, first: int) -> None:
        """There is nobody in the rows of a bank from ``first`` on."""
        self.eagerness[world, first:] = 0
        self.corrupted[world, first:] = False
        self.card[world, first:] = NO_CARD

    def make(self, world: int, first: int, number: int, kind: int) -> None:
        """New people of a class in rows of a bank, who are no customers yet."""
        rows, stream, config = slice(first, first + number), self.streams[world], self.config
        home = np.searchsorted(self.countries.home_chances[kind], stream.random(number), side="right")
        country, currency = self.countries.homes[kind][home].T
        volume = config.volumes[kind]
        yearly = volume * (1 + config.noise_level * stream.standard_normal(number))
        yearly = np.where(yearly > 0, yearly, volume)
        self.fraud[world, rows] = kind == FRAUD
        self.country[world, rows] = country
        self.trade[world, rows] = len(CURRENCIES) * kind + currency
        self.rate[world, rows] = yearly / HOURS_PER_YEAR / config.population[kind] * _SCALE
        self.patience[world, rows] = OWN_PATIENCE * stream.beta(*_PATIENCE, number) if kind == GENUINE else -np.inf
        noise = stream.standard_normal((number, HOURS.stop), dtype=np.float32)
        noise *= self._spread
        noise += self._typical[kind]
        self.profile[world, rows, : HOURS.stop] = np.maximum(noise, 0, out=noise)
        self.profile[world, rows, HOURS.stop :] = noise[:, HOURS]

    def rates(self, worlds: Worlds, rows: Rows, days: Days) -> NDArray[np.float32]:
        """Transactions that people (m, k) would attempt in each hour of a day, if they were as eager as can be.

        :return: (m, k, 24)
        """
        people = self.first_row.take(worlds) + rows
        country = self.country.take(people)
        begins = self.calendar.first_hour[days, country]
        start = people * self.profile.shape[2]
        days_shares = self.profile.take(start[..., None, None] + _DATES + self.calendar.dates[days, country])
        daily = self.rate.take(people)[..., None] * days_shares.prod(axis=-1)  # (m, k, 2)
        hourly = self.profile.take((start + HOURS.start + begins)[..., None] + _DAY)
        tomorrow = (DAY - begins)[..., None] <= _DAY
        return hourly * np.where(tomorrow, daily[..., 1:], daily[..., :1])
