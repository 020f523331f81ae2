"""Experiments of the study of fairness MDPs.

The experiments of Cimpean et al., "Fairness-Aware Reinforcement Learning (FAReL)", section 6.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sb3_fair.fairness import DiscountedHistory
from sb3_fair.fairness.distances import DISTANCES, Distance
from sb3_fair.zoo.names import InputError

PCN_OBJECTIVES = ("R", "SP", "IF")
"""Of every experiment that varies something else."""
SINGLE = ("R", "SP", "EO", "OAE", "PP", "PE", "IF", "CSC")
MULTI = (("R", "SP", "IF"), ("R", "SP", "CSC"), ("R", "EO", "IF"), ("R", "EO", "CSC"))
FACTORS, THRESHOLDS = (0.9, 0.95, 1.0), (1e-3, 1e-4, 1e-5)
FACTOR, THRESHOLD, DELAY = 1.0, 1e-4, 5
"""Of a discounted history where the other of factor and threshold varies."""
MEASUREMENTS: dict[str | None, dict[str, Any]] = {
    None: {"emit": "difference", "probabilities": "executed"},
    "paper": {
        "emit": "level",
        "probabilities": "policy",
        "reset_on_episode": False,
        "kernel": "exp",
        "distance": "heom",
    },
}
"""By preset. ``"paper"``: the level of a notion is rewarded at every step, histories are carried over to the next
episode, and the exponential kernel, a similarity, stands for the distance."""


@dataclass(frozen=True)
class Size:
    """How much is done.

    :param steps: of the environment, for PCN and for all runs of a sweep together
    :param choosing: episodes on which a policy is chosen
    :param fresh: episodes on which what was chosen is judged
    :param divisions: of each weight of a sweep: 2 makes 0, 1/2 and 1
    """

    steps: int
    choosing: int
    fresh: int
    divisions: int


@dataclass(frozen=True)
class Scenario:
    """An environment and the values that the experiments try in it.

    :param env: ID
    :param window: that of the ID, or the whole episode if that is shorter
    :param windows: the four that ``history`` tries; ``multi`` tries the last two
    :param min_window: of a discounted history
    :param full: sizes of the study
    :param quick: sizes of a glance at it
    :param populations: in words -> argument of the environment; none: there is but one
    :param biases: in words -> argument of the environment
    :param settings: arguments of the environment that never vary
    """

    env: str
    window: int
    windows: tuple[int, int, int, int]
    min_window: int
    full: Size
    quick: Size
    biases: Mapping[str, int]
    populations: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


APPLICANTS = {"all Belgium": "belgian", "more men": "gender", "few foreign women": "nationality-gender"}
HIRING_BIASES = {"no bias": 0, "men": 1, "Belgian men": 2}
SCENARIOS = {
    "hiring": Scenario(
        "sb3_fair/JobHiring-v0",
        window=500,
        windows=(100, 200, 500, 1000),
        min_window=100,
        full=Size(500_000, choosing=10, fresh=50, divisions=3),
        quick=Size(50_000, choosing=5, fresh=20, divisions=2),
        biases=HIRING_BIASES,
        populations=APPLICANTS,
    ),
    "hiring-small": Scenario(
        "sb3_fair/JobHiring-Small-v0",
        window=100,
        windows=(10, 20, 50, 100),
        min_window=10,
        full=Size(200_000, choosing=20, fresh=100, divisions=3),
        quick=Size(40_000, choosing=10, fresh=30, divisions=2),
        biases=HIRING_BIASES,
        populations=APPLICANTS,
    ),
    "fraud": Scenario(
        "sb3_fair/FraudDetection-v0",
        window=500,
        windows=(100, 200, 500, 1000),
        min_window=100,
        full=Size(500_000, choosing=10, fresh=50, divisions=3),
        quick=Size(50_000, choosing=5, fresh=20, divisions=2),
        biases={"no bias": 0, "EU": 1, "EU, merchant 0": 2},
        settings={"feedback": "all", "bias_on": "passed"},
    ),
}


@dataclass(frozen=True)
class Cell:
    """What is optimised, and which settings of the environment differ from the scenario's.

    :param settings: numbers and strings by name, as :func:`env_kwargs` understands them
    """

    objectives: tuple[str, ...] = PCN_OBJECTIVES
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of its files; two experiments share the runs of a cell they have in common."""
        parts = [f"{key}-{value:g}" if isinstance(value, float) else f"{key}-{value}" for key, value in self._sorted()]
        return "/".join(["-".join(self.objectives), "_".join(parts) or "plain"])

    def _sorted(self) -> list[tuple[str, Any]]:
        return sorted(self.settings.items())

    @property
    def people(self) -> dict[str, Any]:
        """The settings that change what happens, not only how its fairness is measured."""
        return {key: value for key, value in self._sorted() if key in ("population", "bias")}


@dataclass(frozen=True)
class Experiment:
    """Fronts to compare.

    :param title: of its table
    :param cells: by the name of their row
    """

    title: str
    cells: Mapping[str, Cell]


def env_kwargs(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a registered ID.

    :param settings: those arguments, in which ``factor``, ``threshold`` and ``min_window`` make a discounted history
        and ``kernel`` goes with ``distance``
    """
    given = dict(settings)
    if "factor" in given:
        discount = {name: given.pop(name) for name in ("factor", "threshold", "min_window")}
        given["history"] = DiscountedHistory(delay=DELAY, **discount)
    if "kernel" in given:
        given["distance"] = Distance(given["distance"], kernel=given.pop("kernel"))
    return given


def experiments(scenario: Scenario, preset: str | None = None) -> dict[str, Experiment]:
    """All experiments that make sense in a scenario, by name.

    :param preset: a key of :data:`MEASUREMENTS`
    """
    windows = {f"window {window}": window for window in scenario.windows}
    long = {words: windows[words] for words in list(windows)[2:]}
    usual = MEASUREMENTS[preset].get("distance", "hmom")
    found = {
        "single": Experiment("One objective", {name: Cell((name,)) for name in SINGLE}),
        "multi": Experiment(
            "Performance, a group notion and an individual notion",
            {
                f"{':'.join(names)}, {words}": _windowed(scenario, window, names)
                for names in MULTI
                for words, window in long.items()
            },
        ),
        "distance": Experiment(
            "Distance between people",
            {
                f"R:SP, {usual}": Cell(("R", "SP")),
                **{f"R:SP:IF, {name}": _differing({"distance": name}, {"distance": usual}) for name in DISTANCES},
            },
        ),
        "history": Experiment(
            "Decisions that count", {words: _windowed(scenario, window) for words, window in windows.items()}
        ),
        "discount": Experiment("Decisions that fade", dict(_discounts(scenario))),
        "population": Experiment("Who applies", {words: _people(scenario, words) for words in scenario.populations}),
        "bias": Experiment("Whom the reward prefers", dict(_biases(scenario))),
        "competitors": Experiment("PCN beside sweeps over weights, at the same number of steps", {"PCN": Cell()}),
    }
    return {name: experiment for name, experiment in found.items() if experiment.cells}


def choose(scenario: str, names: Sequence[str] | None = None, preset: str | None = None) -> dict[str, Experiment]:
    """The experiments with these names in a scenario, all by default.

    :raises InputError: if one of them does not exist there
    """
    known = experiments(SCENARIOS[scenario], preset)
    for name in names or ():
        if name not in known:
            raise InputError(f"experiment must be one of {', '.join(known)} with env {scenario}, got {name!r}")
    return {name: known[name] for name in names or known}


def _differing(
    settings: Mapping[str, Any], usual: Mapping[str, Any], objectives: tuple[str, ...] = PCN_OBJECTIVES
) -> Cell:
    return Cell(objectives, {key: value for key, value in settings.items() if value != usual.get(key)})


def _windowed(scenario: Scenario, window: int, objectives: tuple[str, ...] = PCN_OBJECTIVES) -> Cell:
    return _differing({"window": window}, {"window": scenario.window}, objectives)


def _discounts(scenario: Scenario) -> Iterator[tuple[str, Cell]]:
    yield f"window {scenario.window}", Cell()
    pairs = [*((factor, THRESHOLD) for factor in FACTORS), *((FACTOR, threshold) for threshold in THRESHOLDS)]
    for factor, threshold in dict.fromkeys(pairs):
        settings = {"factor": factor, "threshold": threshold, "min_window": scenario.min_window}
        yield f"factor {factor:g}, threshold {threshold:g}", Cell(settings=settings)


def _people(scenario: Scenario, people: str | None, bias: str | None = None) -> Cell:
    settings: dict[str, Any] = {} if people is None else {"population": scenario.populations[people]}
    if bias is not None:
        settings["bias"] = scenario.biases[bias]
    return _differing(settings, {"population": "belgian", "bias": 0})


def _biases(scenario: Scenario) -> Iterator[tuple[str, Cell]]:
    for people in scenario.populations or (None,):
        for bias in scenario.biases:
            yield ", ".join(word for word in (people, bias) if word), _people(scenario, people, bias)
