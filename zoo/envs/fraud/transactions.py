"""Transactions of fraud detection, and what is observed of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.fraud.calendar import Calendar
from sb3_fair.zoo.envs.fraud.customers import OWN_PATIENCE, Customers, Rows, Worlds
from sb3_fair.zoo.envs.fraud.tables import CONTINENTS, CURRENCIES, MERCHANTS, amounts, countries, merchants

FEATURES = ("month", "day", "weekday", "hour", "card", "merchant", "country", "continent", "amount", "currency")
NOMINAL = (4, 5, 6, 7, 9)
SENSITIVE = (4, 6, 7)
ATTRIBUTES = {"continent": CONTINENTS, "merchant": tuple(f"merchant {code}" for code in range(MERCHANTS))}
REFUSED, AUTHENTIC, FRAUD = 0, 1, 2
CHANCES = 6
"""Uniforms that a transaction depends on."""
# Arrays, since numpy is slower with Python's numbers.
_NONE, _ONE, _TWO = np.array(0), np.array(1.0), np.array(2)
_SCALE = np.array([12, 31, 6, 23, 10_000, MERCHANTS - 1, 124, len(CONTINENTS) - 1, 8000, len(CURRENCIES) - 1.0])


class Transactions(NamedTuple):
    """What is decided on in the coming step of each copy (n,).

    :param customer: row in :class:`~sb3_fair.zoo.envs.fraud.customers.Customers`
    :param kind: :data:`REFUSED`, a genuine customer who would not get through an authentication; :data:`AUTHENTIC`,
        one who would; or :data:`FRAUD`
    :param stay: chance on which it depends whether he or she stays
    :param card: its number
    :param merchant: 0 to 6
    :param continent: index in :data:`~sb3_fair.zoo.envs.fraud.tables.CONTINENTS`
    :param amount: of money
    :param features: (n, 10), in [0, 1]
    """

    customer: Rows
    kind: NDArray[np.int64]
    stay: NDArray[np.float64]
    card: NDArray[np.int64]
    merchant: NDArray[np.int64]
    continent: NDArray[np.int64]
    amount: NDArray[np.float64]
    features: NDArray[np.float64]

    @property
    def fraud(self) -> NDArray[np.bool_]:
        return self.kind == FRAUD

    def replaced(self, which: Worlds, fresh: "Transactions") -> "Transactions":
        """Others in the copies ``which``: new arrays, since the old ones were handed out."""
        changed = Transactions._make([column.copy() for column in self])
        for column, values in zip(changed, fresh, strict=True):
            column[which] = values
        return changed


def nothing(n: int) -> Transactions:
    """No transactions, and nobody who could leave."""
    no, zero = np.zeros(n, dtype=np.int64), np.zeros(n)
    return Transactions(no, no, zero - 1, no, no, no, zero, np.zeros((n, len(FEATURES))))


class Shops:
    """Turns chances into transactions."""

    def __init__(self, customers: Customers, calendar: Calendar) -> None:
        self.customers = customers
        self._moments = calendar.moments
        self._continents = countries().continent
        # Cells are merchants and bins of the amount; those of class and currency have a row of cumulated chances, and
        # the rows stand one after the other, row r in 2 r to 2 r + 1.
        table, shares = amounts(), merchants()
        fraud, currency = np.divmod(np.arange(len(shares)), len(CURRENCIES))
        source = MERCHANTS * fraud[:, None] + np.arange(MERCHANTS)
        sums = (shares[..., None] * table.heights[source]).reshape(len(shares), -1).cumsum(axis=1)
        edges = np.where(sums > sums[:, -1:] - 1e-12, 2, sums / sums[:, -1:])
        self._edges = (2 * np.arange(len(shares))[:, None] + edges).ravel()
        cells = (*source.shape, table.heights.shape[1])

        def per_cell(values: NDArray[Any]) -> NDArray[Any]:
            return np.broadcast_to(values, cells).ravel()

        self._width = per_cell(table.bin_width[source][..., None])
        self._low = per_cell(table.low[source][..., None]) + self._width * per_cell(np.arange(cells[2]))
        self._impatience = per_cell((1 - OWN_PATIENCE) / table.largest[:, None])
        self._merchant = per_cell(np.arange(MERCHANTS)[:, None])
        self._currency = per_cell(currency[:, None, None])
        self._kind = per_cell(FRAUD * fraud[:, None, None])

    def next(self, worlds: Worlds, hours: NDArray[np.int64], chances: NDArray[np.float64]) -> Transactions:
        """The next transaction of each bank (m,), where somebody still buys.

        :param chances: (m, 6), uniform: whether a fraudster steals his first card, and whose; what is bought, and where
            in its bin the amount is; whether authentication would succeed; and whether the customer stays
        """
        people = self.customers
        customer = people.buyers(worlds)
        row = people.first_row.take(worlds) + customer
        card = people.card.take(row)
        new = card < _NONE
        if np.count_nonzero(new):
            people.issue(worlds[new], customer[new], chances[new, :2], hours[new])
            card = people.card.take(row)
        country = people.country.take(row)
        cell = self._edges.searchsorted(_TWO * people.trade.take(row) + chances[:, 2], side="right")
        amount = self._low.take(cell) + self._width.take(cell) * chances[:, 3]
        patience = people.patience.take(row) + self._impatience.take(cell) * amount
        kind = self._kind.take(cell) + (chances[:, 4] < patience)
        merchant, continent = self._merchant.take(cell), self._continents.take(country)
        features = np.empty((len(row), len(FEATURES)))
        features[:, :4] = self._moments[hours, country]
        features[:, 4] = card
        features[:, 5] = merchant
        features[:, 6] = country
        features[:, 7] = continent
        features[:, 8] = amount
        features[:, 9] = self._currency.take(cell)
        features /= _SCALE
        np.minimum(features, _ONE, out=features)
        return Transactions(customer, kind, chances[:, 5], card, merchant, continent, amount, features)
