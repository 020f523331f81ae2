"""Fraud detection: which card transactions need a second authentication.

The fraud-detection environment of Cimpean et al. (FAReL), on MultiMAuS, the multi-modal authentication simulator of
Zintgraf et al. (EMSS 2017), as it was designed.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.fairness.descriptions import Words
from sb3_fair.fairness.tracking.requests import attribute_name
from sb3_fair.fairness.validation import one_of
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.fraud import transactions
from sb3_fair.zoo.envs.fraud.calendar import Calendar
from sb3_fair.zoo.envs.fraud.customers import Customers
from sb3_fair.zoo.envs.fraud.settings import PRESETS, FraudConfig
from sb3_fair.zoo.envs.fraud.tables import EU, MERCHANTS, NORTH_AMERICA, amounts, countries
from sb3_fair.zoo.envs.groups import Group, Groups
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule, Step, World, of_two

IGNORE, AUTHENTICATE = 0, 1
BIAS = 0.1
PERCENT, FEE = 0.003, 0.01
"""What a bank earns with a genuine transaction."""
COMPARED = {"continent": (EU, NORTH_AMERICA), "merchant": tuple(range(MERCHANTS))}

# A case is what the transaction is, and 3 more if it is authenticated.
_UNDETECTED = np.array(transactions.FRAUD)
_MOOD = np.array([1.01, 1.01, 1, 0.95, 0.99, 1])  # what satisfaction is multiplied by
_NOBODY, _ONE, _THREE = map(np.array, (0, 1, 3))
_TRIES = 20

_calendar = lru_cache(maxsize=8)(Calendar)  # one for all who ask the same


class FraudWorld(World):
    """A bank sees one card transaction per step and ignores it (0) or asks for a second authentication (1).

    Observation (12), in [0, 1]: mean satisfaction of the genuine customers; share of frauds in the transactions of the
    episode, as far as the bank knows; then the transaction (2-11), all 0 when there is none any more. See
    :doc:`/fraud`. An episode is truncated after its hours or ``max_transactions``, and terminated when no genuine
    customer is left.

    :param group: what group notions compare: ``"continent"``, ``"merchant"``, a tuple for their product partition, or
        a list of several
    :param detail: whether records have ``detail``: ``fraud``, the hidden label; ``passed``, whether the transaction
        went through; ``amount``, ``continent``, ``card``; ``satisfaction`` of its customer after it, nothing for a
        fraudster; ``customers``, the number of genuine ones, and ``bias`` in the reward
    :param preset: ``"paper"`` or ``"multimaus"``: which defaults hold, see
        :data:`~sb3_fair.zoo.envs.fraud.settings.PRESETS`
    :param config: fields of :class:`~sb3_fair.zoo.envs.fraud.settings.FraudConfig`
    """

    picture = "sb3_fair.zoo.envs.fraud.picture:picture"
    source = "Cimpean et al., FAReL; MultiMAuS"
    words: ClassVar[Words] = {
        "R": {"title": "performance", "sentence": "Genuine payments that went through, less frauds that did."},
        "people": "payments",
        "favourable": "held for a second authentication",
        "deserving": "frauds",
        "groups": {"EU": "payments from Europe", "NA": "payments from North America"},
    }
    rules: ClassVar[Mapping[str, Rule]] = {
        "ignore": lambda world: of_two(world, 0),
        "authenticate": lambda world: of_two(world, 1),
        "random": lambda world: of_two(world, 0.5),
        "oracle": lambda world: of_two(world, world.transactions.fraud),  # which the bank cannot know
        "authenticate-eu": lambda world: of_two(world, world.transactions.continent == EU),
        "authenticate-na": lambda world: of_two(world, world.transactions.continent == NORTH_AMERICA),
    }

    def __init__(
        self, n_worlds: int, *, group: Group = "continent", detail: bool = False, preset: str = "paper", **config: Any
    ) -> None:
        one_of("preset", preset, PRESETS)
        self.config = settings = self.configured(n_worlds, detail, FraudConfig, {**PRESETS[preset], **config})
        self.groups = Groups(group, transactions.ATTRIBUTES)
        self._attribute = self.groups.attributes[0] if self.groups.alone else None
        self.max_steps = settings.max_transactions  # type: ignore[assignment]  # None: the hours are the end
        self.max_return = np.inf if self.max_steps is None else self._best() * self.max_steps
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(0.0, 1.0, (2 + len(transactions.FEATURES),), np.float32)
        self.fairness_spec = FairnessSpec(
            nominal=transactions.NOMINAL,
            sensitive=transactions.SENSITIVE,
            notions=("SP", "PP"),
            history=SlidingWindow(500),
            group=self.groups.source,
            groups=_compared(group),
            group_names=self.groups.names,
            feedback_missing="ignore",
            feature_names=transactions.FEATURES,
        )
        zones = countries().zones if settings.zones == "main" else countries().first_zones
        times = _calendar(settings.start_time, settings.n_hours, zones)
        self.customers = Customers(n_worlds, settings, times)
        self._shops = transactions.Shops(self.customers, times)
        self.hour = np.zeros(n_worlds, dtype=np.int64)
        """Hours since the episode began."""
        self.count = np.zeros(n_worlds, dtype=np.int64)
        """Transactions decided on in the episode."""
        self.frauds = np.zeros(n_worlds, dtype=np.int64)
        """Frauds among them, as far as observations tell."""
        self.transactions = transactions.nothing(n_worlds)
        """What is decided on in the coming step."""
        self._tables()
        self._all = np.arange(n_worlds)
        self._hours = np.array(settings.n_hours)
        self._most = np.array(np.iinfo(np.int64).max if self.max_steps is None else self.max_steps)
        super().__init__(n_worlds, Tapes(n_worlds, transactions.CHANCES))

    def _tables(self) -> None:
        settings = self.config
        authenticated, kind = np.divmod(np.arange(6), 3)
        fraud, known = kind == transactions.FRAUD, (authenticated == 1) | (settings.feedback == "all")
        self._passed = passed = ((authenticated == 0) | (kind == transactions.AUTHENTIC)).astype(np.int64)
        sign = np.where(passed, np.where(fraud, -1.0, 1.0), -1.0 if settings.reward == "main_text" else 0.0)
        money = settings.reward == "money"
        self._value = FEE * (passed & ~fraud) if money else sign
        self._per_amount = np.where(passed, np.where(fraud, -1.0, PERCENT), 0.0) if money else None
        self._feedback = np.where(known, fraud, np.nan)
        self._counted = (fraud & ((authenticated == 1) | (settings.fraud_percentage == "all"))).astype(np.int64)
        self._stay = np.where(fraud, settings.stay_prob[1], settings.stay_prob[0])

    def _best(self) -> float:
        best = PERCENT * amounts().largest.max() + FEE if self.config.reward == "money" else 1.0
        return float(best + BIAS * (self.config.bias > 0))

    @property
    def fraudsters(self) -> NDArray[np.int64]:
        """Number of fraudsters among the customers of each copy (n,)."""
        return ((self.customers.eagerness > 0) & self.customers.fraud).sum(axis=1)

    def massage(self) -> Record:
        """The coming transactions' codes (n,) as ``group``, or by attribute."""
        codes = self._codes()
        return {"group": codes} if self.groups.alone else codes

    def _codes(self) -> Any:
        if self._attribute is not None:
            return getattr(self.transactions, self._attribute)
        return {name: getattr(self.transactions, name) for name in self.groups.attributes}

    def restart(self, which: Array) -> Array:
        self.hour[which], self.count[which], self.frauds[which] = 0, 0, 0
        streams = self.restart_streams(which)
        idle = np.arange(len(which))
        for _ in range(_TRIES):
            banks = which[idle]
            self.hour[banks] = 0
            self.customers.found(banks, [streams[place] for place in idle.tolist()])
            self._pass_hours(banks[self.customers.begin_hour(banks, self.hour[banks]) == 0])
            idle = idle[self.customers.left[banks] == 0]
            if not len(idle):
                break
        else:
            raise ValueError(f"settings must be such that somebody buys something, got {self.config}")
        self.tapes.redraw(which, streams)
        self.transactions = self.transactions.replaced(which, self._next(which))
        return self._observation()[which]

    def step(self, actions: Array) -> Step:
        now, action = self.transactions, actions.astype(np.int64)
        case = _THREE * action + now.kind
        reward = self._value.take(case)
        if self._per_amount is not None:
            reward += self._per_amount.take(case) * now.amount
        if self.config.bias:
            reward += self._bias(now, action)
        record: Record = {
            "individual": {
                "group": self._codes(),
                "features": now.features,
                "action": action,
                "feedback": self._feedback.take(case),
            }
        }
        self.count += _ONE
        self.frauds += self._counted.take(case)
        if self.config.customer_dynamics:
            self.customers.react(now.customer, _MOOD.take(case), self._stay.take(case), now.stay)
            undetected = case == _UNDETECTED
            if np.count_nonzero(undetected):
                self.customers.corrupt(undetected.nonzero()[0], now.card[undetected])
        if self.detail:
            record["detail"] = self._detail(now, action, case)
        self.tapes.advance()
        self._go_on()
        terminated = self.customers.genuine == _NOBODY
        truncated = (self.hour >= self._hours) | (self.count >= self._most)
        return self._observation(), reward, terminated, truncated > terminated, record

    def _bias(self, now: transactions.Transactions, action: NDArray[np.int64]) -> NDArray[np.float64]:
        if not self.config.bias:
            return np.zeros(self.n_worlds)
        favoured = now.continent == EU
        if self.config.bias == 2:
            favoured &= now.merchant == 0
        if self.config.bias_on == "passed":
            favoured &= action == IGNORE
        return BIAS * favoured

    def _detail(self, now: transactions.Transactions, action: NDArray[np.int64], case: NDArray[np.int64]) -> Record:
        satisfaction = self.customers.eagerness[self._all, now.customer]
        return {
            "fraud": now.fraud.astype(np.int64),
            "passed": self._passed.take(case),
            "amount": now.amount,
            "continent": now.continent,
            "card": now.card,
            "satisfaction": np.where(now.fraud, np.nan, satisfaction),
            "customers": self.customers.genuine.copy(),
            "bias": self._bias(now, action),
        }

    def _go_on(self) -> None:
        going = self._all
        if np.count_nonzero(self.customers.left) < self.n_worlds:
            self._pass_hours((self.customers.left == 0).nonzero()[0])
            going = self.customers.left.nonzero()[0]
        if len(going) == self.n_worlds:
            self.transactions = self._next(going)
        else:
            self.transactions = transactions.nothing(self.n_worlds)
            if len(going):
                self.transactions = self.transactions.replaced(going, self._next(going))

    def _pass_hours(self, which: Array) -> None:
        """Ends the hour, and begins hours until somebody buys something, time is up or nobody genuine is left."""
        which = self._going(which)
        while len(which):
            hours = self.hour.take(which)
            self.customers.end_hour(which, hours)
            self.hour[which] = hours + _ONE
            which = self._going(which)
            if len(which):
                which = which[self.customers.begin_hour(which, self.hour.take(which)) == 0]

    def _going(self, which: Array) -> Array:
        going = (self.hour.take(which) < self._hours) & (self.customers.genuine.take(which) > _NOBODY)
        return which if np.count_nonzero(going) == len(which) else which[going]

    def _next(self, which: Array) -> transactions.Transactions:
        chances = self.tapes.now.values
        if len(which) < self.n_worlds:
            chances = chances[which]
        return self._shops.next(which, self.hour.take(which), chances)

    def _observation(self) -> NDArray[np.float32]:
        obs = np.empty((self.n_worlds, 2 + len(transactions.FEATURES)), dtype=np.float32)
        obs[:, 0] = self.customers.satisfaction
        obs[:, 1] = self.frauds / np.maximum(self.count, _ONE)
        obs[:, 2:] = self.transactions.features
        return obs


def _compared(group: Group) -> Any:
    """The groups that a choice of attributes compares; others only occur."""

    def labels(part: str | tuple[str, ...]) -> tuple[Any, ...]:
        return COMPARED[part] if isinstance(part, str) else tuple(product(*(COMPARED[name] for name in part)))

    if isinstance(group, list):
        return {attribute_name(part): labels(part) for part in group}
    return labels(group)
