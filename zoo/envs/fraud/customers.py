"""People around the banks of fraud detection: how they become customers, buy, and go."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

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
# Arrays, since numpy is slower with Python's numbers.
_ONE, _ALL = np.array(1), np.array(1.0)
GRAIN = np.array(2.0**-40)
"""Satisfactions are multiples of this, so that sums of them are exact in any order."""
_RESERVE_HOURS = 7 * DAY
_LARGEST_BLOCK = 2**18  # numbers computed at once, so that they stay in the processor's cache
_EURO_DOLLAR_POUND = np.array([currency in ("EUR", "USD", "GBP") for currency in CURRENCIES] + [False] * 5)

Worlds: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = NDArray[np.int64]
Days: TypeAlias = NDArray[np.int64]


class Customers:
    """The customers of n banks.

    Whoever will come in about a week is there already, and becomes a customer by arriving; rows of those who left stay
    behind. When nobody is in reserve any more, the bank's rows are packed and new people are made. So a bank's rows
    depend on its own past alone, and what the arrays hold beyond them is nobody.

    What people do in a day of 24 hours is drawn when it begins: somebody buys in an hour if his or her *reluctance*,
    chance over rate, is below the eagerness.

    :param n: number of banks
    """

    def __init__(self, n: int, config: FraudConfig, calendar: Calendar) -> None:
        self._first_eagerness = grained(np.array([config.init_satisfaction if config.customer_dynamics else 1.0, 1.0]))
        self.immigration = expected_arrivals(config, calendar)
        """(hours, 2): expected arrivals by class, of genuine customers if satisfaction is 1."""
        week = self.immigration[:_RESERVE_HOURS].sum(axis=0)
        self._reserve = np.ceil(week + 2 * np.sqrt(week)).astype(np.int64)
        self.n, self.config, self.calendar, self.countries = n, config, calendar, countries()
        self._typical = profiles().astype(np.float32)
        self._spread = np.concatenate(
            [np.full(part.stop - part.start, (config.noise_level / divisor) ** 0.5) for part, divisor in _NOISE],
            dtype=np.float32,
        )
        capacity = int((config.population + self._reserve).sum())
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
        self.reluctance = np.zeros((n, DAY, capacity), dtype=np.float32)
        self.genuine = np.zeros(n, dtype=np.int64)
        """Number of genuine customers."""
        self.goodwill = np.zeros(n)
        """Sum of their satisfaction."""
        self.cards = np.zeros(n, dtype=np.int64)
        """Cards issued."""
        self._all = np.arange(n)
        self._crowds = bool((self.immigration > 1).any())
        self.left = np.zeros(n, dtype=np.int64)
        """Customers who will still buy in this hour."""
        self._queue = np.zeros((n, 16), dtype=np.int64)  # their rows, the first one last,
        self._leaving = np.zeros((n, 17), dtype=np.int64)  # and those of who leaves when the hour is over
        self._first_place = np.arange(n) * self._queue.shape[1]
        self._leavers, self._victims, self._rows = (np.zeros(n, dtype=np.int64) for _ in range(3))
        self._doors = np.zeros((n, DAY, 2))  # chances on which it depends who arrives
        self._next, self._end = (np.zeros((n, 2), dtype=np.int64) for _ in range(2))

    _arrays = ("fraud", "country", "trade", "patience", "card", "corrupted", "eagerness", "rate", "profile")

    @property
    def capacity(self) -> int:
        return int(self.fraud.shape[1])

    def _widen(self, needed: int) -> None:
        """Room for at least ``needed`` rows."""
        more = max(needed, self.capacity * 3 // 2) - self.capacity
        for name in self._arrays:
            array = getattr(self, name)
            setattr(self, name, np.pad(array, [(0, 0), (0, more)] + [(0, 0)] * (array.ndim - 2)))
        self.reluctance = np.pad(self.reluctance, [(0, 0), (0, 0), (0, more)])
        self.first_row = np.arange(self.n) * self.capacity

    def _pack(self, world: int) -> int:
        """Puts the customers of a bank into its first rows; their number."""
        here = np.flatnonzero(self.eagerness[world])
        for name in self._arrays:
            array = getattr(self, name)
            array[world, : len(here)] = array[world, here]
        return len(here)

    def _make(self, world: int, first: int, number: int, kind: int) -> None:
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

    @property
    def satisfaction(self) -> NDArray[np.float64]:
        """Mean over the genuine customers of each bank (n,), 0 where there are none."""
        return self.goodwill / np.maximum(self.genuine, _ONE)

    def found(self, worlds: Worlds, streams: Sequence[np.random.Generator]) -> None:
        """New banks, with the customers of the first hour."""
        population = self.config.population
        for world, stream in zip(worlds.tolist(), streams, strict=True):
            self.streams[world] = stream
            self._engage(world, 0, population + self._reserve)
            for kind in (GENUINE, FRAUD):
                first = self._next[world, kind]
                self.eagerness[world, first : first + population[kind]] = self._first_eagerness[kind]
        self._next[worlds] += population
        self.genuine[worlds] = population[GENUINE]
        self.goodwill[worlds] = population[GENUINE] * self._first_eagerness[GENUINE]
        for counter in (self.cards, self.left, self._leavers, self._victims):
            counter[worlds] = 0

    def _engage(self, world: int, first: int, numbers: NDArray[np.int64]) -> None:
        """Makes people in the rows from ``first`` on, who come later, genuine ones before fraudsters."""
        self._end[world] = first + numbers.cumsum()
        self._next[world] = self._end[world] - numbers
        self._rows[world] = self._end[world, FRAUD]
        if self._rows[world] > self.capacity:
            self._widen(int(self._rows[world]))
        self.eagerness[world, first:] = 0
        self.corrupted[world, first:] = False
        self.card[world, first:] = NO_CARD
        for kind in (GENUINE, FRAUD):
            self._make(world, int(self._next[world, kind]), int(numbers[kind]), kind)

    def begin_hour(self, worlds: Worlds, hours: NDArray[np.int64]) -> NDArray[np.int64]:
        """Queues those who buy in the hour, in random order; their number (m,)."""
        phases = hours % DAY
        if np.count_nonzero(phases) < len(phases):
            dawn = phases == 0
            self._plan(worlds[dawn], hours[dawn] // DAY)
        if np.count_nonzero(self._victims.take(worlds)):
            self._settle(worlds)
        reluctance, eagerness = self.reluctance[worlds, phases], self.eagerness.take(worlds, axis=0)
        places, rows = (reluctance < eagerness).nonzero()
        numbers = np.bincount(places, minlength=len(worlds))
        self.left[worlds] = numbers
        if len(rows) > 1:
            # Of those who buy, reluctance / eagerness is uniform: an order at random.
            rows = rows[np.lexsort((reluctance[places, rows] / eagerness[places, rows], places))]
        if len(rows):
            self._make_room(int(numbers.max()))
            order = np.arange(len(rows)) - (numbers.cumsum() - numbers)[places]
            self._queue[worlds[places], order] = rows
        return numbers

    def _make_room(self, longest: int) -> None:
        more = longest - self._queue.shape[1]
        if more > 0:
            self._queue = np.pad(self._queue, [(0, 0), (0, more)])
            self._leaving = np.pad(self._leaving, [(0, 0), (0, more)])
            self._first_place = np.arange(self.n) * self._queue.shape[1]

    def _plan(self, worlds: Worlds, days: Days) -> None:
        """Draws what everybody will do in a day, or in what is left of it."""
        at_once = max(_LARGEST_BLOCK // (DAY * self.capacity), 1)
        for first in range(0, len(worlds), at_once):
            banks = worlds[first : first + at_once]
            luck = np.ones((len(banks), self.capacity, DAY), dtype=np.float32)
            for place, world in enumerate(banks.tolist()):
                stream = self.streams[world]
                stream.random(out=luck[place, : self._rows[world]], dtype=np.float32)
                self._doors[world] = stream.random((DAY, 2))
            rates = self.rates(banks[:, None], np.arange(self.capacity), days[first : first + at_once, None])
            self.reluctance[banks] = _reluctance(luck, rates, self.fraud[banks]).swapaxes(1, 2)

    def buyers(self, worlds: Worlds) -> Rows:
        """Who buys next in each of these banks (m,), where some are left."""
        left = self.left.take(worlds) - _ONE
        self.left[worlds] = left
        return self._queue.take(self._first_place.take(worlds) + left)

    def end_hour(self, worlds: Worlds, hours: NDArray[np.int64]) -> None:
        """Some customers leave, others arrive."""
        if np.count_nonzero(self._leavers.take(worlds)):
            self._depart(worlds)
        expected = self.immigration.take(hours, axis=0)
        expected[:, GENUINE] *= self.satisfaction.take(worlds)
        chance = self._doors[worlds, hours % DAY]
        arriving = chance < expected
        if self._crowds:
            crowd = np.maximum(np.rint(expected + ndtri(chance)), 0)
            arriving = np.where(expected > 1, crowd, arriving)
        if np.count_nonzero(arriving):
            self._arrive(worlds, arriving.astype(np.int64), hours)

    def _arrive(self, worlds: Worlds, numbers: NDArray[np.int64], hours: NDArray[np.int64]) -> None:
        lacking = self._next[worlds] + numbers > self._end[worlds]
        if np.count_nonzero(lacking):
            places = np.flatnonzero(lacking.any(axis=1))
            for place, world in zip(places.tolist(), worlds[places].tolist(), strict=True):
                self._engage(world, self._pack(world), np.maximum(self._reserve, numbers[place]))
            self._plan(worlds[places], hours[places] // DAY)
        while np.count_nonzero(numbers):
            places, kinds = (numbers > 0).nonzero()
            banks = worlds[places]
            rows, eagerness = self._next[banks, kinds], self._first_eagerness[kinds]
            self.eagerness[banks, rows] = eagerness
            self._next[banks, kinds] = rows + 1
            genuine = kinds == GENUINE
            self.genuine[banks[genuine]] += 1
            self.goodwill[banks[genuine]] += self._first_eagerness[GENUINE]
            numbers = np.maximum(numbers - 1, 0)

    def react(
        self, rows: Rows, mood: NDArray[np.float64], stay: NDArray[np.float64], chance: NDArray[np.float64]
    ) -> None:
        """After a transaction of one customer of every bank: all arrays (n,).

        :param mood: what his or her satisfaction is multiplied by
        :param stay: probability of staying with satisfaction 1
        :param chance: on which it depends who leaves when the hour is over
        """
        people = self.first_row + rows
        before = self.eagerness.take(people)
        after = np.minimum(grained(before * mood), _ALL)
        self.eagerness.reshape(-1)[people] = after
        self.goodwill += after - before
        self._leaving[self._all, self._leavers] = rows
        self._leavers += chance >= after * stay

    def issue(self, worlds: Worlds, rows: Rows, chances: NDArray[np.float64], hours: NDArray[np.int64]) -> None:
        """Gives one person of each bank (m,) a first card: a new one, or to a fraudster one of a genuine customer.

        :param chances: (m, 2), uniform: whether he would rather steal one, and whose
        """
        thieves = self.fraud[worlds, rows] & (chances[:, 0] < self.config.fraud_cards_in_genuine)
        if np.count_nonzero(thieves):
            victims, found = self._victims_of(worlds[thieves], chances[thieves, 1])
            thieves[thieves] = found
            self._rob(worlds[thieves], rows[thieves], victims[found], hours[thieves] // DAY)
            worlds, rows = worlds[~thieves], rows[~thieves]
        self.card[worlds, rows] = self.cards[worlds]
        self.cards[worlds] += _ONE

    def _victims_of(self, worlds: Worlds, choice: NDArray[np.float64]) -> tuple[Rows, NDArray[np.bool_]]:
        """One genuine customer (m,) of each bank whose card can be used, and whether there is one (m,)."""
        fit = self._genuine_in(worlds) & (self.card[worlds] != NO_CARD)
        fit &= self.countries.attacked[self.country[worlds]] & _EURO_DOLLAR_POUND[self.trade[worlds]]
        number = fit.sum(axis=1)
        chosen = (choice * number).astype(np.int64)
        return (fit.cumsum(axis=1) > chosen[:, None]).argmax(axis=1), number > 0

    def _rob(self, worlds: Worlds, rows: Rows, victims: Rows, days: Days) -> None:
        """One fraudster of each bank (m,), in ``rows``, acts as one of its customers from now on."""
        if len(worlds):
            self.card[worlds, rows] = self.card[worlds, victims]
            self.country[worlds, rows] = self.country[worlds, victims]
            self.trade[worlds, rows] = len(CURRENCIES) + self.trade[worlds, victims]
            luck = [self.streams[world].random((1, DAY), dtype=np.float32) for world in worlds.tolist()]
            rates = self.rates(worlds[:, None], rows[:, None], days[:, None])
            reluctance = _reluctance(np.stack(luck), rates, self.fraud[worlds, rows][:, None])
            self.reluctance[worlds, :, rows] = reluctance[:, 0]

    def corrupt(self, worlds: Worlds, cards: NDArray[np.int64]) -> None:
        """A fraud went through in each of the banks (m,) with these cards: their genuine owners will find out."""
        owners = self._genuine_in(worlds) & (self.card[worlds] == cards[:, None])
        self._victims[worlds] += owners.sum(axis=1)
        self.corrupted[worlds] |= owners

    def _genuine_in(self, worlds: Worlds) -> NDArray[np.bool_]:
        return (self.eagerness[worlds] > 0) & ~self.fraud[worlds]

    def _settle(self, worlds: Worlds) -> None:
        """Whose card was corrupted in the last hour leaves, or stays with a new card."""
        places, rows = (self.corrupted[worlds] & (self.eagerness[worlds] > 0)).nonzero()
        banks = worlds[places]
        leave = np.ones(len(rows), dtype=bool)
        for victim, (world, row) in enumerate(zip(banks.tolist(), rows.tolist(), strict=True)):
            if self.streams[world].random() < self.config.stay_after_fraud:
                leave[victim] = False
                self.card[world, row] = self.cards[world]
                self.cards[world] += 1
        self._remove(banks[leave], rows[leave])
        self.corrupted[worlds] = False
        self._victims[worlds] = 0

    def _depart(self, worlds: Worlds) -> None:
        leavers = self._leavers[worlds]
        places, order = (np.arange(leavers.max()) < leavers[:, None]).nonzero()
        banks = worlds[places]
        self._remove(banks, self._leaving[banks, order])
        self._leavers[worlds] = 0

    def _remove(self, worlds: Worlds, rows: Rows) -> None:
        genuine = ~self.fraud[worlds, rows]
        lost = np.where(genuine, self.eagerness[worlds, rows], 0.0)
        self.genuine -= np.bincount(worlds, genuine, minlength=len(self.genuine)).astype(np.int64)
        self.goodwill -= np.bincount(worlds, lost, minlength=len(self.genuine))
        self.eagerness[worlds, rows] = 0


def expected_arrivals(config: FraudConfig, calendar: Calendar) -> NDArray[np.float64]:
    """New customers (hours, 2) by hour and class, of genuine ones if satisfaction is 1."""
    months = 12 * profiles()[:, MONTHS][:, calendar.months].T
    hourly = config.volumes / HOURS_PER_YEAR * (1 - np.asarray(config.stay_prob))
    return hourly * ((1 - config.noise_level) * months + config.noise_level)


def _reluctance(luck: NDArray[np.float32], rates: NDArray[np.float32], fraud: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Chance over rate (m, k, 24) of people (m, k). Fraudsters, always as eager as can be, buy for sure at a rate of 1;
    a larger one would only make them the last to buy."""
    np.minimum(rates, 1, out=rates, where=fraud[..., None])
    with np.errstate(divide="ignore", invalid="ignore"):
        reluctance: NDArray[np.float32] = luck / rates
    return reluctance


def grained(satisfaction: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest multiples of :data:`GRAIN`."""
    return np.rint(satisfaction / GRAIN) * GRAIN
