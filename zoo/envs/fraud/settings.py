"""Settings of fraud detection."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import Proportion, Range, checked
from sb3_fair.zoo.envs.settings import parameter

PAPER = "Cimpean et al., "
MULTIMAUS = "Zintgraf et al., MultiMAuS (EMSS 2017)"
HOURS_PER_YEAR = 366 * 24
"""2016 was a leap year."""
TRANSACTIONS_PER_YEAR = 90_357
GENUINE_PER_YEAR, FRAUDS_PER_YEAR = 89_194, 1_163
PACIFIC = timezone(timedelta(hours=-8))

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "multimaus": {
        "num_customers": 3333,
        "num_fraudsters": 55,
        "fraud_proportion": None,
        "init_satisfaction": 1.0,
        "stay_prob": (0.516122, 0.333333),
        "n_hours": 365 * 24,
        "max_transactions": None,
    },
}
"""Sets of parameters by name: those of the paper, and the simulator's own."""


@checked
@dataclass(frozen=True)
class FraudConfig:
    """Parameters of the scenario; pairs are for genuine customers and for fraudsters.

    :param num_customers: genuine customers when an episode begins
    :param num_fraudsters: fraudsters when an episode begins
    :param fraud_proportion: share of frauds among the 90,357 transactions of a year; 0: there are none; None: those
        of the simulator, 89,194 genuine ones and 1,163 frauds
    :param init_satisfaction: satisfaction of a new customer, in (0, 1]
    :param stay_prob: probabilities of staying after a transaction; a genuine customer's is multiplied by his or her
        satisfaction
    :param stay_after_fraud: probability that a genuine customer whose card was used in a fraud stays
    :param noise_level: how much customers of a class differ, from 0 to 1
    :param fraud_cards_in_genuine: probability that a fraudster uses the card of a genuine customer
    :param start: of an episode, ISO 8601; without an offset: at UTC-08:00
    :param n_hours: length of an episode
    :param max_transactions: transactions after which an episode ends; None: it ends with its hours
    :param customer_dynamics: whether satisfaction changes, customers leave and cards are corrupted; False: satisfaction
        is 1, and customers only ever arrive
    :param reward: ``"sign"``: +1 for a genuine transaction that goes through, -1 for such a fraud, 0 for what is
        cancelled; ``"main_text"``: -1 for what is cancelled too; ``"money"``: 0.3 % and 0.01 of a genuine transaction,
        minus the amount of a fraud, 0 for what is cancelled
    :param bias: 0.1 is added to the reward of nobody (0), Europe's customers (1), or those of merchant 0 among them (2)
    :param bias_on: ``"always"``, or ``"passed"``: only where the transaction was let pass, without authentication
    :param feedback: for which transactions it is known whether they were frauds: ``"authenticated"`` or ``"all"``
    :param fraud_percentage: what observations count: ``"known"``, the frauds found by authentication, or ``"all"``,
        which tells what the bank cannot know
    :param zones: time of a country with several zones: that of most people, ``"main"``, or of the zone that is listed
        first, ``"first"``
    """

    num_customers: int = parameter(100, "people", PAPER + "Appendix B")
    num_fraudsters: int = parameter(10, "people", PAPER + "Appendix B")
    fraud_proportion: Proportion | None = parameter(0.6, "share", "ours; 0.5 in Cimpean et al., section 6")
    init_satisfaction: Annotated[float, Range("[0.01, 1]")] = parameter(0.9, "", PAPER + "Appendix B")
    stay_prob: tuple[Proportion, Proportion] = parameter((0.9, 0.6), "probability", PAPER + "Appendix B")
    stay_after_fraud: Proportion = parameter(0.0966387, "probability", MULTIMAUS)
    noise_level: Proportion = parameter(0.1, "share of a mean", MULTIMAUS)
    fraud_cards_in_genuine: Proportion = parameter(0.332916, "probability", MULTIMAUS)
    start: str = parameter("2016-01-01T00:00", "date and time", MULTIMAUS)
    n_hours: int = parameter(168, "hours", PAPER + "section 4.2")
    max_transactions: int | None = parameter(1000, "transactions", PAPER + "section 4.2")
    customer_dynamics: bool = parameter(True, "yes or no", MULTIMAUS)
    reward: Literal["sign", "money", "main_text"] = parameter("sign", "name", PAPER + "Eq. 22")
    bias: Literal[0, 1, 2] = parameter(0, "number", PAPER + "section 6.4")
    bias_on: Literal["always", "passed"] = parameter("always", "name", "the published code")
    feedback: Literal["authenticated", "all"] = parameter("authenticated", "name", PAPER + "section 3.1")
    fraud_percentage: Literal["known", "all"] = parameter("known", "name", "ours; all in the published code")
    zones: Literal["main", "first"] = parameter("main", "name", "ours; first in the published code")

    def __post_init__(self) -> None:
        self.start_time  # noqa: B018 (raises)

    @property
    def start_time(self) -> datetime:
        """When an episode begins, in the simulator's own zone."""
        try:
            start = datetime.fromisoformat(self.start)
        except ValueError:
            raise ValueError(f"start must be a date such as '2016-06-01', got {self.start!r}") from None
        return start.replace(tzinfo=PACIFIC) if start.tzinfo is None else start

    @property
    def population(self) -> NDArray[np.int64]:
        """Customers of both classes when an episode begins (2,)."""
        return np.array([self.num_customers, self.num_fraudsters])

    @property
    def volumes(self) -> NDArray[np.float64]:
        """Transactions a year of both classes (2,)."""
        if self.fraud_proportion is None:
            return np.array([GENUINE_PER_YEAR, FRAUDS_PER_YEAR], dtype=np.float64)
        return TRANSACTIONS_PER_YEAR * np.array([1 - self.fraud_proportion, self.fraud_proportion])
