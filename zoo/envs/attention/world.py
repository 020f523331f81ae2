"""Attention allocation: incidents are seen only where attention is, and grow elsewhere.

The allocation of attention, after "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning"
(arXiv 2401.06318).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.fairness.arguments import NotNegative, Range, checked
from sb3_fair.fairness.descriptions import Words
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.attention import measures
from sb3_fair.zoo.envs.attention.allocation import all_allocations, allocation_to_index, one_by_one
from sb3_fair.zoo.envs.attention.incidents import poisson_quantile
from sb3_fair.zoo.envs.recent import Recent
from sb3_fair.zoo.envs.settings import TwoOrMore, parameter, several
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule, Step, World

PAPER = "arXiv 2401.06318"
Mode: TypeAlias = Literal["logits", "units", "allocation"]
MODES = get_args(Mode)
MOST_ALLOCATIONS = 100_000
"""That can be actions, one by one."""
EXPERIMENTS = "the published experiments of " + PAPER


@checked
@dataclass(frozen=True)
class AttentionConfig:
    """The parameters of the scenario.

    :param n_locations: K
    :param n_units: attention units per step
    :param initial_rates: incidents per step that are expected at each location when an episode begins
    :param increase_rate: what the rate of a location gains in a step without attention; one number or one per location
    :param decrease_rate: what it loses per unit
    :param discovered_weight: reward of an incident that is discovered
    :param missed_weight: what one that is not takes off the reward
    :param history_length: steps that an observation shows
    :param episode_length: steps per episode; None: no end
    :param window: disparities look at this many steps before the present one, and at the present one; if it is given,
        notions look at as many of the latest decisions, one per location and step
    :param action_mode: ``"logits"``: the allocation nearest to their softmax; ``"units"``: the location of each unit;
        ``"allocation"``: the number of an allocation
    :param logit_bound: largest logit
    :param ratio: discovered incidents as a share of all, ``"step"``: in each step, 0 without incidents; ``"window"``:
        sum of the discovered / (sum of all + 1) in the window
    :param window_norm: what units are divided by to be shares, ``"count"``: all units in the window; ``"paper"``: the
        units of ``window`` steps, so that shares sum to less than 1 at first and to a little more at last
    :param long_term_source: what long-term disparity compares, ``"incidents"``: all in the window; ``"rates"``: the
        hidden rates
    :param max_rate: largest rate; None: a neglected location's rate grows without bound
    """

    n_locations: TwoOrMore = parameter(5, "locations", PAPER)
    n_units: int = parameter(6, "units", PAPER)
    initial_rates: Sequence[NotNegative] = parameter((8, 6, 4, 3, 1.5), "incidents per step", EXPERIMENTS)
    increase_rate: NotNegative | Sequence[NotNegative] = parameter(
        (0.2, 0.26, 0.4, 0.6, 0.3), "incidents per step", EXPERIMENTS
    )
    decrease_rate: NotNegative = parameter(0.1, "incidents per step and unit", EXPERIMENTS)
    discovered_weight: NotNegative = parameter(1.0, "reward per incident", EXPERIMENTS)
    missed_weight: NotNegative = parameter(0.25, "reward per incident", EXPERIMENTS)
    history_length: int = parameter(8, "steps", PAPER)
    episode_length: int | None = parameter(1000, "steps", PAPER)
    window: int = parameter(300, "steps", PAPER)
    action_mode: Mode = parameter("logits", "name", PAPER)
    logit_bound: Annotated[float, Range("[1e-3, 1e3]")] = parameter(10.0, "logit", "ours")
    ratio: Literal["step", "window"] = parameter("step", "name", PAPER)
    window_norm: Literal["count", "paper"] = parameter("count", "name", "ours")
    long_term_source: Literal["incidents", "rates"] = parameter("incidents", "name", PAPER)
    max_rate: NotNegative | None = parameter(None, "incidents per step", "ours")

    def __post_init__(self) -> None:
        if (
            self.action_mode == "allocation"
            and math.comb(self.n_units + self.n_locations - 1, self.n_units) > MOST_ALLOCATIONS
        ):
            raise ValueError(
                f"action_mode must be 'logits' or 'units' for more than {MOST_ALLOCATIONS} allocations, got "
                f"'allocation' for {self.n_units} units at {self.n_locations} locations"
            )
        for name, rates in (("initial_rates", self.initial_rates), ("increase_rate", self.increase_rate)):
            if several(rates) and len(rates) != self.n_locations:
                raise ValueError(f"{name} must be {self.n_locations} numbers, one per location, got {rates!r}")


def _spread(world: "AttentionWorld", first: NDArray[np.int64]) -> NDArray[np.int64]:
    """As equally as can be; the units that are left over go to the location ``first`` (n,) and to those behind it."""
    each, left = divmod(world.config.n_units, world.config.n_locations)
    behind = (np.arange(world.config.n_locations) - first[:, None]) % world.config.n_locations
    return each + (behind < left).astype(np.int64)


def _certain(world: "AttentionWorld", allocation: NDArray[np.int64]) -> Array:
    """Action probabilities (n, m) of a rule that chooses ``allocation`` (n, K)."""
    rows = np.zeros((world.n_worlds, len(all_allocations(world.config.n_units, world.config.n_locations))))
    rows[np.arange(world.n_worlds), allocation_to_index(allocation, world.config.n_units)] = 1
    return rows


def _random(world: "AttentionWorld") -> Array:
    units, locations = world.config.n_units, world.config.n_locations
    orders, ways = math.factorial(units), locations**units  # integers, which do not overflow
    chances = [orders // math.prod(map(math.factorial, row)) / ways for row in all_allocations(units, locations)]
    return np.tile(chances, (world.n_worlds, 1))


def _any(units: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(units) > 0


def _outlook(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack((np.log1p(rates), measures.disparity(rates)[:, None]))


class AttentionWorld(World):
    """Each step, the action allocates units of attention to locations; each unit discovers at most one incident there.

    Observation, of the last ``history_length`` steps, the oldest first: incidents discovered, incidents, units, and
    discovered / incidents, each per location; 0 before the episode began. See :doc:`/attention`.

    Figures (``info["fairness"]``): short-term disparity ``d_s`` is how far the share of a location in the units of the
    window is from 1 / K, at most; ``d_s_prev`` the same after the step before, ``d_s_cumulative`` the same for all
    steps of the episode. Long-term disparity is the same distance for incidents in the window (or rates): ``d_l``
    before the action, and ``d_l_next`` after it, with the incidents of the step to come, which follow from the
    action but are not shown yet; ``d_l_rates`` is that of the rates after the action. ``d_l_raw`` and ``d_l_rates_raw``
    are their largest distances from the mean. Arrays per location: ``shares`` of the units in the window, ``rates``
    after the action, ``incidents``, ``discovered`` and ``allocation`` of the step. Individuals are the locations;
    their action is the number of units, feedback the number of incidents; ``info["needed"]`` says which had any.

    :param detail: whether records have ``detail``: ``outlook_before`` and ``outlook`` (K + 1,), by what a line can tell
        the future before and after the step: log(1 + rate) of the locations, as rates of neglected ones grow without
        bound, and the long-term disparity of the rates
    :param config: fields of :class:`AttentionConfig`
    """

    own_settings = ("window",)
    picture = "sb3_fair.zoo.envs.attention.picture:picture"
    source = "arXiv 2401.06318"
    words: ClassVar[Words] = {
        "R": {"title": "discovered incidents", "sentence": "Less a penalty for those that stayed undiscovered."},
        "d_s": {"title": "gap in attention", "sentence": "Between the locations, in the latest steps."},
        "d_l": {"title": "gap in incidents", "sentence": "Between the locations, as attention changed them."},
    }
    rules: ClassVar[Mapping[str, Rule]] = {
        "cover": lambda world: _certain(world, _spread(world, np.zeros(world.n_worlds, dtype=np.int64))),
        "rotate": lambda world: _certain(
            world, _spread(world, world.time * (world.config.n_units % world.config.n_locations))
        ),
        # Unit after unit to the location with the highest true rate, less the units that it has already.
        "greedy": lambda world: _certain(world, one_by_one(world.rates, world.config.n_units)),
        "random": _random,
    }
    """Of the action mode ``"allocation"``; with other actions there are none."""

    def __init__(self, n_worlds: int, *, detail: bool = False, **config: Any) -> None:
        self.config = settings = self.configured(n_worlds, detail, AttentionConfig, config)
        locations, units = settings.n_locations, settings.n_units
        self.max_steps = settings.episode_length  # type: ignore[assignment]  # None: episodes do not end
        self.endless = settings.episode_length is None
        if settings.episode_length is not None:
            self.max_return = float(settings.discovered_weight * units * settings.episode_length)
        high = np.repeat([units, np.inf, units, 1], locations).astype(np.float32)
        self.observation_space = spaces.Box(0, np.tile(high, settings.history_length), dtype=np.float32)
        norm_steps = settings.window if settings.window_norm == "paper" else None
        self.measures: measures.AttentionMeasures
        if settings.action_mode == "logits":
            bound = settings.logit_bound
            self.action_space = spaces.Box(-bound, bound, (locations,), np.float32)
            self.measures = measures.LogitMeasures(locations, units, norm_steps, logit_bound=bound)
        elif settings.action_mode == "units":
            self.action_space = spaces.MultiDiscrete([locations] * units)
            self.measures = measures.UnitMeasures(locations, units, norm_steps)
        else:
            self.action_space = spaces.Discrete(len(all_allocations(units, locations)))
            self.measures = measures.AttentionMeasures(locations, units, norm_steps)
        if settings.action_mode != "allocation":
            self.rules = {}  # type: ignore[misc]  # they choose among the allocations
        names = tuple(f"location {place}" for place in range(locations))
        self.fairness_spec = FairnessSpec(
            notions=(),
            history=SlidingWindow(config.get("window", 500)),
            group_names=names,
            measures=self.measures,
            favourable=_any,
            feedback="needed",
        )
        self._increase = np.broadcast_to(np.asarray(settings.increase_rate, dtype=np.float64), locations)
        self._most = np.inf if settings.max_rate is None else settings.max_rate
        self._initial = np.minimum(np.asarray(settings.initial_rates, dtype=np.float64), self._most)
        shape = (n_worlds, locations)
        self.time = np.zeros(n_worlds, dtype=np.int64)
        """Steps since the episode began."""
        self.rates = np.zeros(shape)
        """Incidents that are expected in the coming step (n, K)."""
        self.incidents = np.zeros(shape, dtype=np.int64)
        """Those that will occur then."""
        self.history = np.zeros((n_worlds, settings.history_length, 4, locations), dtype=np.float32)
        """Incidents discovered, incidents, units and ratio of the last steps."""
        self.units = np.zeros(shape, dtype=np.int64)
        """What each location has got in the present episode."""
        window = min(settings.window, settings.episode_length or settings.window)
        self._units, self._discovered, self._incidents = (Recent(shape, window, np.int64) for _ in range(3))
        self._before = {name: np.zeros(n_worlds) for name in ("d_s_prev", "d_l", "d_l_raw")}
        self._group = np.broadcast_to(np.arange(locations), shape)
        super().__init__(n_worlds, Tapes(n_worlds, locations))

    def massage(self) -> Record:
        return {"units": self._units.staying, "steps": np.minimum(self.time, self.config.window) + 1}

    def restart(self, which: Array) -> Array:
        self.tapes.redraw(which, self.restart_streams(which))
        for state in (self.time, self.history, self.units):
            state[which] = 0
        self.rates = self.rates.copy()  # the last step has handed it out
        self.rates[which] = self._initial
        incidents = poisson_quantile(self.tapes.now.values[which], self.rates[which])
        self.incidents[which] = incidents
        self._units.restart(which)
        self._discovered.restart(which)
        self._incidents.restart(which, incidents)
        compared = self._compared[which]
        d_l, d_l_raw = measures.disparity(compared), measures.raw_disparity(compared)
        for name, values in {"d_s_prev": np.zeros(len(which)), "d_l": d_l, "d_l_raw": d_l_raw}.items():
            self._before[name] = self._before[name].copy()  # handed out, too
            self._before[name][which] = values
        return np.zeros((len(which), self.history[0].size), dtype=np.float32)

    def step(self, actions: Array) -> Step:
        settings, incidents = self.config, self.incidents
        units = self.measures.allocation(actions)
        discovered = np.minimum(units, incidents)
        found = discovered.sum(axis=1)
        missed = incidents.sum(axis=1) - found
        reward = float(settings.discovered_weight) * found - settings.missed_weight * missed
        self.time += 1
        self.units += units
        self._units.add(units)
        self._show(discovered, incidents, units)
        rates = self.rates
        raised = np.minimum(rates + self._increase, self._most)
        self.rates = np.where(units == 0, raised, np.maximum(0, rates - settings.decrease_rate * units))
        self.tapes.advance()
        self.incidents = poisson_quantile(self.tapes.now.values, self.rates)
        self._incidents.add(self.incidents)
        figures = self._figures() | {"incidents": incidents, "discovered": discovered, "allocation": units}
        record: Record = {
            "individual": {"group": self._group, "action": units, "feedback": incidents},
            "needed": (incidents > 0).astype(np.int64),
            "fairness": figures,
        }
        if self.detail:
            record["detail"] = {"outlook_before": _outlook(rates), "outlook": _outlook(self.rates)}
        over = np.zeros(self.n_worlds, dtype=bool)
        truncated = over if self.max_steps is None else self.time >= self.max_steps
        return self.history.reshape(self.n_worlds, -1).copy(), reward, over, truncated, record

    @property
    def _compared(self) -> NDArray[Any]:
        return self._incidents.total if self.config.long_term_source == "incidents" else self.rates

    def _figures(self) -> dict[str, NDArray[Any]]:
        steps, compared = np.minimum(self.time, self.config.window + 1), self._compared
        short_term, long_term = self.measures.short_term_of(self._units.total, steps), measures.disparity(compared)
        figures = self._before | {
            "d_s": short_term,
            "d_s_cumulative": measures.disparity(self.units),
            "d_l_next": long_term,
            "d_l_rates": measures.disparity(self.rates),
            "d_l_rates_raw": measures.raw_disparity(self.rates),
            "shares": self._units.total / self.measures.total(steps)[:, None],
            "rates": self.rates,
        }
        self._before = {"d_s_prev": short_term, "d_l": long_term, "d_l_raw": measures.raw_disparity(compared)}
        return figures

    def _show(self, discovered: NDArray[np.int64], incidents: NDArray[np.int64], units: NDArray[np.int64]) -> None:
        """The history goes on by one step; the window of the incidents still ends with it."""
        if self.config.ratio == "window":
            self._discovered.add(discovered)
            ratio = self._discovered.total / (self._incidents.total + 1)
        else:
            ratio = discovered / np.maximum(incidents, 1)
        latest = np.stack((discovered, incidents, units, ratio), axis=1, dtype=np.float32, casting="same_kind")
        self.history = np.concatenate((self.history[:, 1:], latest[:, None]), axis=1)
