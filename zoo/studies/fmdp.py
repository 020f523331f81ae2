"""The study of fairness MDPs.

The experiment matrix of Cimpean et al., "Fairness-Aware Reinforcement Learning (FAReL)", with what it lacks: evaluated
policies, several seeds with confidence intervals, and competitors of PCN that take as many steps.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sb3_fair.zoo import names
from sb3_fair.zoo.algorithms import find_algorithm
from sb3_fair.zoo.plan import default_settings
from sb3_fair.zoo.studies import fmdp_figures, fmdp_results, fmdp_runs
from sb3_fair.zoo.studies.fmdp_matrix import MEASUREMENTS, SCENARIOS, Cell, Experiment, Scenario, Size, choose
from sb3_fair.zoo.studies.fmdp_results import Row
from sb3_fair.zoo.studies.grid import Job, Result, run_grid

FIRST_SEED = 100
"""Of the runs that count; settings were chosen on smaller ones."""
SWEEPS = {"DQN sweep": "dqn", "PPO sweep": "ppo"}
BEST_R = "DQN, R alone"
"""The upper bound of performance: all the steps for one objective."""


@dataclass(frozen=True)
class Study:
    """Everything that the runs of one call have in common.

    :param preset: key of :data:`~sb3_fair.zoo.studies.fmdp_matrix.MEASUREMENTS`
    """

    scenario: Scenario
    size: Size
    seeds: Sequence[int]
    preset: str | None = None

    def settings(self, cell: Cell) -> dict[str, Any]:
        """Of the environment."""
        return {**self.scenario.settings, **MEASUREMENTS[self.preset], **cell.settings}

    def arguments(self, cell: Cell) -> dict[str, Any]:
        """What all work on a cell is told."""
        return {"env": self.scenario.env, "objectives": list(cell.objectives), "settings": self.settings(cell)}

    @property
    def floors(self) -> dict[str, float]:
        """Smallest unit of each objective: those that PCN scales by."""
        found: dict[str, float] = default_settings(find_algorithm("pcn"), self.scenario.env)["scaling_floor"]
        return found


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
    """Trains what the experiments need, judges it on fresh episodes, prints tables and draws figures.

    Runs that are in ``log_dir`` are taken from there; experiments share the runs they have in common.

    :param experiments: names of :func:`~sb3_fair.zoo.studies.fmdp_matrix.experiments`; None: all of the scenario's
    :param env: key of :data:`~sb3_fair.zoo.studies.fmdp_matrix.SCENARIOS`
    :param seeds: runs per setting
    :param quick: at most two seeds, a tenth to a fifth of the steps, fewer episodes and weights
    :param preset: ``"paper"``: rewards as published
    :param n_jobs: processes; -1: one per core
    :return: what ``study.json`` holds: per experiment and row, mean and 95 % interval over seeds
    :raises InputError: if a name is unknown
    """
    scenario = SCENARIOS[names.choose("env", env, SCENARIOS)]
    if preset is not None:
        names.choose("preset", preset, [name for name in MEASUREMENTS if name])
    chosen = choose(env, experiments, preset)
    numbers = range(FIRST_SEED, FIRST_SEED + (min(seeds, 2) if quick else seeds))
    common = Study(scenario, scenario.quick if quick else scenario.full, numbers, preset)
    folder = Path(log_dir) / "-".join([env, "quick" if quick else "full", *([preset] if preset else [])])
    cells = {cell.name: cell for experiment in chosen.values() for cell in experiment.cells.values()}
    cells.setdefault(Cell().name, Cell())
    known = run_grid([job for cell in cells.values() for job in _knowledge(common, cell)], folder, n_jobs)
    jobs = {job.name: job for name in chosen for job in _jobs(common, name, chosen[name], known)}
    results = {**known, **run_grid(list(jobs.values()), folder, n_jobs)}
    found = {}
    for name, experiment in chosen.items():
        rows = _rows(common, name, experiment, results)
        found[name] = fmdp_results.summaries(rows, compete=name == "competitors")
        _write(folder / name, name, experiment, rows, found[name], results[f"rules/{Cell().name}"]["policies"])
    (folder / "study.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def _knowledge(common: Study, cell: Cell) -> Iterator[Job]:
    """What is known of a cell before anything is learned."""
    given = common.arguments(cell)
    yield Job(f"scales/{cell.name}", fmdp_runs.scales, given)
    if cell == Cell():
        yield Job(f"rules/{cell.name}", fmdp_runs.play_rules, {**given, "fresh": common.size.fresh})


def _jobs(common: Study, name: str, experiment: Experiment, known: Mapping[str, Result]) -> Iterator[Job]:
    for seed in common.seeds:
        for cell in experiment.cells.values():
            yield _pcn(common, cell, seed, known)
        yield from (job for make in _learners(common, name).values() for job in make(common, seed, known))


def _learners(common: Study, name: str) -> dict[str, Callable[..., list[Job]]]:
    """What learns in an experiment besides PCN: name of its row -> its jobs for a seed."""
    best = {BEST_R: _best_performance}
    if name == "competitors":
        return {**{label: _sweep_of(algo) for label, algo in SWEEPS.items()}, **best}
    return best if name == "single" else {}


def _pcn(common: Study, cell: Cell, seed: int, known: Mapping[str, Result]) -> Job:
    reference = known[f"scales/{cell.name}"]["returns"]["reference"]
    size = common.size
    given = {"seed": seed, "steps": size.steps, "choosing": size.choosing, "fresh": size.fresh, "ref_point": reference}
    return Job(f"pcn/{cell.name}/{seed}", fmdp_runs.run_pcn, {**common.arguments(cell), **given})


def _sweep_of(algo: str) -> Callable[..., list[Job]]:
    def sweep(common: Study, seed: int, known: Mapping[str, Result]) -> list[Job]:
        """One run per weight vector; together they take the steps of PCN's run."""
        weights = fmdp_runs.weight_vectors(len(Cell().objectives), common.size.divisions)
        steps = fmdp_runs.share_of_budget(common.size.steps, len(weights))
        return [_scalar(common, algo, each, steps, seed, known) for each in weights]

    return sweep


def _best_performance(common: Study, seed: int, known: Mapping[str, Result]) -> list[Job]:
    weights = tuple(float(name == "R") for name in Cell().objectives)
    return [_scalar(common, "dqn", weights, fmdp_runs.share_of_budget(common.size.steps, 1), seed, known)]


def _scalar(
    common: Study, algo: str, weights: Sequence[float], steps: int, seed: int, known: Mapping[str, Result]
) -> Job:
    cell, size = Cell(), common.size
    scale = known[f"scales/{cell.name}"]["returns"]
    given = {
        "algo": algo,
        "weights": list(weights),
        "units": fmdp_results.units(scale, common.floors, cell.objectives),
        "seed": seed,
        "steps": steps,
        "choosing": size.choosing,
        "fresh": size.fresh,
    }
    name = "-".join(f"{weight:.3g}" for weight in weights)
    return Job(f"{algo}/{steps}/{name}/{seed}", fmdp_runs.run_scalar, {**common.arguments(cell), **given})


def _rows(common: Study, name: str, experiment: Experiment, results: Mapping[str, Result]) -> dict[str, Row]:
    def row(cell: Cell, jobs: Sequence[Sequence[Job]]) -> Row:
        runs = [[results[job.name] for job in each] for each in jobs]
        return Row(
            cell.objectives,
            results[f"scales/{cell.name}"],
            common.floors,
            [[policy for run in each for policy in run["policies"]] for each in runs],
            [sum(run["steps"] for run in each) for each in runs],
        )

    learned = {
        label: row(cell, [[_pcn(common, cell, seed, results)] for seed in common.seeds])
        for label, cell in experiment.cells.items()
    }
    others = {
        label: row(Cell(), [make(common, seed, results) for seed in common.seeds])
        for label, make in _learners(common, name).items()
    }
    return {**learned, **others}


def _write(
    folder: Path,
    name: str,
    experiment: Experiment,
    rows: Mapping[str, Row],
    found: Mapping[str, fmdp_results.Summary],
    rules: fmdp_results.Policies,
) -> None:
    columns = {"single": fmdp_results.SINGLE, "competitors": fmdp_results.COMPETITORS}.get(name, fmdp_results.FRONTS)
    fmdp_results.sheet(experiment.title, columns, found, rules).publish(folder.with_suffix(".md"))
    fmdp_figures.draw(folder, rows, rules)
