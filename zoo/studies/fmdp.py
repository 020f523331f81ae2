"""The study of fairness MDPs.

The experiment matrix of Cimpean et al., "Fairness-Aware Reinforcement Learning (FAReL)", with what it lacks: evaluated
policies, several seeds with confidence intervals, and competitors of PCN that take as many steps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from sb3_fair.zoo import names
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import find_algorithm
from sb3_fair.zoo.runs.settings import default_settings
from sb3_fair.zoo.studies import fmdp_figures, fmdp_results, fmdp_runs
from sb3_fair.zoo.studies.fmdp_results import Row
from sb3_fair.zoo.studies.grid import Job, run_grid
from sb3_fair.zoo.studies.sheet import sheet
from sb3_fair.zoo.studies.study import Results, conduct, numbers, read, size

DATA = read("fmdp")
SCENARIOS: dict[str, dict[str, Any]] = DATA["scenarios"]
MEASUREMENTS: dict[str, dict[str, Any]] = DATA["measurements"]


@dataclass(frozen=True)
class Cell:
    """What is optimised, and which settings of the environment differ from the scenario's.

    :param settings: numbers and strings by name, as :func:`~sb3_fair.zoo.studies.fmdp_runs.env_kwargs` understands them
    """

    objectives: tuple[str, ...] = tuple(DATA["usual"]["objectives"])
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of its files; two experiments share the runs of a cell they have in common."""
        parts = [
            f"{key}-{value:g}" if isinstance(value, float) else f"{key}-{value}"
            for key, value in sorted(self.settings.items())
        ]
        return "/".join(["-".join(self.objectives), "_".join(parts) or "plain"])


def matrix(env: str, preset: str | None = None, wanted: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """The experiments that make sense in a scenario, by name, with ``cells`` by the name of their row.

    :param env: key of :data:`SCENARIOS`
    :param preset: a key of :data:`MEASUREMENTS`
    :param wanted: names of some; None: all
    :raises InputError: if one of them does not exist there
    """
    scenario = SCENARIOS[env]
    usual = {**DATA["usual"], **scenario["usual"]}
    usual["distance"] = MEASUREMENTS[preset or "usual"].get("distance", usual["distance"])
    values = {**DATA["values"], **scenario["values"]}
    known = {}
    for name, entry in DATA["experiments"].items():
        rows = [values[row] for row in entry["rows"] if values[row]]
        if rows:
            known[name] = {**entry, "cells": dict(_cells(rows, usual))}
    for name in wanted or ():
        if name not in known:
            raise InputError(f"experiment must be one of {', '.join(known)} with env {env}, got {name!r}")
    return {name: known[name] for name in wanted or known}


def _cells(rows: Sequence[Mapping[str, Any]], usual: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    for combination in product(*(row.items() for row in rows)):
        settings = {key: value for _, some in combination for key, value in some.items()}
        objectives = settings.pop("objectives", usual["objectives"])
        different = {key: value for key, value in settings.items() if value != usual.get(key)}
        yield ", ".join(label for label, _ in combination).format(**usual), Cell(tuple(objectives), different)


class Work:
    """The jobs of one call.

    :param size: ``steps`` of PCN, as many as of all runs of a sweep together; episodes on which a policy is chosen
        (``choosing``) and judged (``fresh``); ``divisions`` of each weight of a sweep: 2 makes 0, 1/2 and 1
    :param preset: key of :data:`MEASUREMENTS`
    """

    def __init__(
        self, scenario: Mapping[str, Any], size: Mapping[str, int], seeds: Sequence[int], preset: str | None
    ) -> None:
        self.env, self.size, self.seeds = scenario["env"], size, seeds
        self.settings = {**scenario.get("settings", {}), **MEASUREMENTS[preset or "usual"]}
        own = scenario.get("learners", {})
        self.learners = {algo: {**each, **own.get(algo, {})} for algo, each in DATA["learners"].items()}
        """Hyperparameters by algorithm, over those of the zoo."""
        self.floors: dict[str, float] = default_settings(find_algorithm("pcn"), self.env)["scaling_floor"]
        """Smallest unit of each objective: those that PCN scales by."""
        self.judged = {name: size[name] for name in ("choosing", "fresh")}

    def told(self, cell: Cell) -> dict[str, Any]:
        """What all work on a cell is told."""
        return {
            "env": self.env,
            "settings": {"objectives": list(cell.objectives), **self.settings, **cell.settings},
        }

    def known(self, cells: Iterable[Cell]) -> Iterator[Job]:
        """What is known before anything is learned."""
        for cell in cells:
            yield Job(f"scales/{cell.name}", fmdp_runs.scales, self.told(cell))
        rules = {**self.told(Cell()), "fresh": self.size["fresh"]}
        yield Job(f"rules/{Cell().name}", fmdp_runs.play_rules, rules)

    def rows(self, experiment: Mapping[str, Any], known: Results) -> dict[str, tuple[Cell, list[list[Job]]]]:
        """Of each row, its cell, and seed by seed its trainings."""
        plain = Cell()
        rows = {
            label: (cell, [[self._pcn(cell, seed, known)] for seed in self.seeds])
            for label, cell in experiment["cells"].items()
        }
        sweep = fmdp_runs.weight_vectors(len(plain.objectives), self.size["divisions"])
        learners = {label: (algo, sweep) for label, algo in experiment.get("sweeps", {}).items()}
        if "best" in experiment:
            learners[experiment["best"]] = "dqn", [tuple(float(name == "R") for name in plain.objectives)]
        for label, (algo, weights) in learners.items():
            runs = [[self._scalar(algo, each, len(weights), seed, known) for each in weights] for seed in self.seeds]
            rows[label] = plain, runs
        return rows

    def _pcn(self, cell: Cell, seed: int, known: Results) -> Job:
        steps, reference = self.size["steps"], known[f"scales/{cell.name}"]["returns"]["reference"]
        over = {**self.learners["pcn"], "ref_point": dict(reference)}
        plan = fmdp_runs.plan_of("pcn", **self.told(cell), seed=seed, steps=steps, hyperparams=over)
        return Job(f"pcn/{cell.name}/{seed}", fmdp_runs.judge, self.judged, plan, fmdp_runs.Budget(steps))

    def _scalar(self, algo: str, weights: Sequence[float], runs: int, seed: int, known: Results) -> Job:
        cell = Cell()
        units = fmdp_results.units(known[f"scales/{cell.name}"]["returns"], self.floors, cell.objectives)
        scaled = [weight / unit for weight, unit in zip(weights, units, strict=True)]
        steps = fmdp_runs.share_of_budget(self.size["steps"], runs)
        told = {**self.told(cell), "weights": scaled, "hyperparams": self.learners[algo]}
        plan = fmdp_runs.plan_of(algo, **told, seed=seed, steps=steps)
        name = f"{algo.upper()} {':'.join(f'{weight:.2g}' for weight in weights)}"
        path = f"{algo}/{steps}/{'-'.join(f'{weight:.3g}' for weight in weights)}/{seed}"
        return Job(path, fmdp_runs.judge, {"name": name, **self.judged}, plan)


def study(
    experiments: Sequence[str] | None = None,
    *,
    env: str = "hiring-small",
    seeds: int = 5,
    quick: bool = False,
    preset: str | None = None,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/fmdp",
) -> dict[str, Any]:
    """As :class:`~sb3_fair.zoo.studies.study.Study`; experiments share the runs they have in common.

    :param experiments: names of :func:`matrix`; None: all of the scenario's
    :param env: key of :data:`SCENARIOS`
    :param preset: ``"paper"``: rewards as published
    :raises InputError: if a name is unknown
    """
    scenario = SCENARIOS[names.choose("env", env, SCENARIOS)]
    if preset is not None:
        names.choose("preset", preset, [name for name in MEASUREMENTS if name != "usual"])
    chosen = matrix(env, preset, experiments)
    work = Work(scenario, scenario[size(quick)], numbers(seeds, quick), preset)
    folder = Path(log_dir) / "-".join([env, size(quick), *([preset] if preset else [])])
    cells = {cell.name: cell for each in chosen.values() for cell in [Cell(), *each["cells"].values()]}
    known = run_grid([*work.known(cells.values())], folder, n_jobs)
    rows = {name: work.rows(each, known) for name, each in chosen.items()}
    rules = known[f"rules/{Cell().name}"]["policies"]

    def tell(name: str, results: Results) -> dict[str, Any]:
        each = {
            label: Row(
                cell.objectives,
                known[f"scales/{cell.name}"],
                work.floors,
                [[results[job.name] for job in some] for some in runs],
            )
            for label, (cell, runs) in rows[name].items()
        }
        found = fmdp_results.summaries(each, compete="sweeps" in chosen[name])
        beside = {rule["name"].replace("-", " "): fmdp_results.of_rule(rule) for rule in rules}
        columns = DATA["columns"][chosen[name].get("columns", "fronts")]
        sheet(chosen[name]["title"], columns, found, beside).publish(folder / f"{name}.md")
        fmdp_figures.draw(folder / name, each, rules)
        return found

    jobs = {name: [job for _, runs in of.values() for some in runs for job in some] for name, of in rows.items()}
    return conduct(jobs, tell, folder, n_jobs)
