"""Tables of card holders and fraudsters.

Figures of MultiMAuS (MIT licence, Copyright (c) 2016 Luisa Zintgraf; see the head of fraud_countries.csv). Classes are
0, genuine, and 1, fraud; printed figures are rounded, so shares are made to sum to 1 again.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.tables import cumulated, table

CLASSES = ("genuine", "fraud")
CONTINENTS = ("EU", "AS", "NA", "AF", "OC", "SA")
CURRENCIES = ("USD", "EUR", "GBP", "NOK", "DKK")
MERCHANTS = 7
EU = CONTINENTS.index("EU")
NORTH_AMERICA = CONTINENTS.index("NA")

MONTHS, MONTHDAYS, WEEKDAYS, HOURS = slice(0, 12), slice(12, 43), slice(43, 50), slice(50, 74)
"""Where the shares of each kind stand in a profile, 74 numbers."""


class Countries(NamedTuple):
    """The countries, arrays (125,) in the order of their codes; for each class the homes, (country, currency).

    :param continent: index in :data:`CONTINENTS`
    :param zones: IANA zone in which most people live
    :param first_zones: the one that lists of zones name first
    :param attacked: whether fraudsters come from here
    :param homes: per class (homes, 2): country and index in :data:`CURRENCIES`
    :param home_chances: per class (homes,), cumulated
    """

    names: tuple[str, ...]
    continent: NDArray[np.int64]
    zones: tuple[str, ...]
    first_zones: tuple[str, ...]
    attacked: NDArray[np.bool_]
    homes: tuple[NDArray[np.int64], NDArray[np.int64]]
    home_chances: tuple[NDArray[np.float64], NDArray[np.float64]]


class Amounts(NamedTuple):
    """Amounts of transactions in 20 equal bins, by 7 * class + merchant (14, ...)."""

    low: NDArray[np.float64]
    bin_width: NDArray[np.float64]
    heights: NDArray[np.float64]
    """(14, 20): shares of the bins."""
    largest: NDArray[np.float64]
    """(7,): the largest amount at each merchant, in whichever class."""


@cache
def countries() -> Countries:
    rows = table("fraud/countries")
    homes, chances = [], []
    for kind in CLASSES:
        pairs = [
            (code, CURRENCIES.index(currency), float(row[kind]) * share)
            for code, row in enumerate(rows)
            for currency, share in _shares(row[f"{kind}_currencies"]).items()
        ]
        homes.append(np.array([pair[:2] for pair in pairs]))
        chances.append(cumulated([pair[2] for pair in pairs]))
    return Countries(
        names=tuple(row["country"] for row in rows),
        continent=np.array([CONTINENTS.index(row["continent"]) for row in rows]),
        zones=tuple(row["zone"] for row in rows),
        first_zones=tuple(row["first_zone"] or row["zone"] for row in rows),
        attacked=np.array([float(row["fraud"]) > 0 for row in rows]),
        homes=(homes[0], homes[1]),
        home_chances=(chances[0], chances[1]),
    )


@cache
def profiles() -> NDArray[np.float64]:
    """(2, 74), by class: shares of the months, the days of a month, the weekdays and the hours of a day."""
    shares = np.array([[float(row[kind]) for row in table("fraud/profiles")] for kind in CLASSES])
    for part in (MONTHS, MONTHDAYS, WEEKDAYS, HOURS):
        shares[:, part] /= shares[:, part].sum(axis=1, keepdims=True)
    return shares


@cache
def merchants() -> NDArray[np.float64]:
    """(10, 7), by 5 * class + currency: shares of the merchants."""
    shares = np.ones((len(CLASSES), len(CURRENCIES), MERCHANTS))
    for row in table("fraud/merchants"):
        place = CLASSES.index(row["class"]), CURRENCIES.index(row["currency"])
        shares[place] = [_shares(row["merchants"]).get(str(merchant), 0.0) for merchant in range(MERCHANTS)]
    return (shares / shares.sum(axis=-1, keepdims=True)).reshape(-1, MERCHANTS)


@cache
def amounts() -> Amounts:
    low, width = np.zeros((2, 2 * MERCHANTS))
    heights = np.ones((2 * MERCHANTS, 20))
    largest = np.zeros(MERCHANTS)
    for row in table("fraud/amounts"):
        merchant = int(row["merchant"])
        place = MERCHANTS * CLASSES.index(row["class"]) + merchant
        low[place] = float(row["low"])
        width[place] = (float(row["high"]) - low[place]) / heights.shape[1]
        heights[place] = [float(height) for height in row["heights"].split()]
        largest[merchant] = float(row["max_amount"])
    return Amounts(low, width, heights / heights.sum(axis=1, keepdims=True), largest)


def _shares(text: str) -> dict[str, float]:
    """``"EUR:0.8 USD:0.2"`` as a dict, made to sum to 1."""
    shares = {name: float(share) for name, share in (entry.split(":") for entry in text.split())}
    return {name: share / sum(shares.values()) for name, share in shares.items()}
