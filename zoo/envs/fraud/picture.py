"""Pictures of fraud detection."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.drawing import blank, pixels
from sb3_fair.zoo.envs.fraud.tables import CONTINENTS, countries
from sb3_fair.zoo.envs.fraud.world import FraudWorld

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def picture(world: FraudWorld, index: int) -> NDArray[np.uint8]:
    """How satisfied the customers of copy ``index`` are, where they live, and its transaction; (360, 720, 3)."""
    figure = blank()
    moods, homes, words = figure.subplots(1, 3)
    customers = world.customers
    here = (customers.eagerness[index] > 0) & ~customers.fraud[index]
    moods.hist(customers.eagerness[index, here], bins=np.linspace(0, 1, 21), color="#4c72b0")
    moods.set(xlabel="satisfaction", ylabel="customers", title=f"{customers.genuine[index]} customers")
    continents = np.bincount(countries().continent[customers.country[index, here]], minlength=len(CONTINENTS))
    homes.barh(CONTINENTS[::-1], continents[::-1], color="#dd8452")
    homes.set_title("where they live")
    words.set_axis_off()
    words.set_title(f"transaction {world.count[index] + 1}")
    words.text(0, 0.95, _in_words(world, index), va="top", linespacing=1.6)
    return pixels(figure)


def _in_words(world: FraudWorld, index: int) -> str:
    now = world.transactions
    if not now.features[index].any():
        return "nobody wants to pay"
    month, day, weekday, hour = np.rint(now.features[index, :4] * (12, 31, 6, 23)).astype(int).tolist()
    country = countries().names[round(now.features[index, 6] * (len(countries().names) - 1))]
    return "\n".join(
        [
            f"{WEEKDAYS[weekday]}, {day}/{month}, {hour}:00",
            f"card {now.card[index]}",
            f"from {country} ({CONTINENTS[now.continent[index]]})",
            f"{now.amount[index]:,.2f} to merchant {now.merchant[index]}",
            f"{world.frauds[index]} frauds found so far" if world.config.fraud_percentage == "known" else "",
        ]
    )
