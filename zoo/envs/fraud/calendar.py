"""Local time of the customers of fraud detection."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

DAY = 24


class Calendar:
    """Local times during an episode, converted once per day and country: a day is 24 hours from the start on.

    :param start: of the episode, with its offset
    :param n_hours: length of the episode
    :param zones: IANA zone of each country
    :raises ValueError: if the episode is not within the years 1 to 9999
    """

    def __init__(self, start: datetime, n_hours: int, zones: Sequence[str]) -> None:
        clocks = [ZoneInfo(name) for name in zones]
        try:
            first = start.astimezone(UTC)
            mornings = [first + timedelta(days=day) for day in range(-(-n_hours // DAY))]
            local = [[morning.astimezone(clock).replace(tzinfo=None) for clock in clocks] for morning in mornings]
        except OverflowError as error:
            raise ValueError(
                f"start must be a date from which n_hours = {n_hours} are within the years 1 to 9999, got '{start}'"
            ) from error
        self.first_hour: NDArray[np.int64] = np.array([[time.hour for time in times] for times in local])
        """(days, countries): the local hour in which each day begins."""
        begun = np.array(local, dtype="datetime64[D]")
        dates = np.stack((begun, begun + np.timedelta64(1, "D")), axis=-1)
        months = dates.astype("datetime64[M]")
        parts = [months.astype(np.int64) % 12, (dates - months).astype(np.int64), (dates.astype(np.int64) + 3) % 7]
        self.dates: NDArray[np.int64] = np.stack(parts, axis=-1)
        """(days, countries, 2, 3): month, day of the month and weekday, from 0, before and after local midnight."""
        day, phase = np.divmod(np.arange(n_hours), DAY)
        tomorrow, hour = np.divmod(self.first_hour[day] + phase[:, None], DAY)
        date = self.dates[day[:, None], np.arange(len(clocks)), tomorrow] + (1, 1, 0)
        self.moments: NDArray[np.uint8] = np.concatenate((date, hour[..., None]), axis=-1).astype(np.uint8)
        """(hours, countries, 4): month and day of the month, from 1, weekday, 0 for Monday, and hour."""
        own = np.datetime64(start.replace(tzinfo=None), "h") + np.arange(n_hours).astype("timedelta64[h]")
        self.months: NDArray[np.int64] = own.astype("datetime64[M]").astype(np.int64) % 12
        """(hours,): month of each hour by the clock of the start, from 0."""
