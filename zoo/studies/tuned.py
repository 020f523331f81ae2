"""Tuned settings against defaults, on fresh seeds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.zoo.algorithms import find_algorithm
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.plan import AROUND, DEFAULT, Plan, make_plan, mark
from sb3_fair.zoo.reference import REFERENCE, reference_of
from sb3_fair.zoo.registration import WORLDS
from sb3_fair.zoo.studies.curves import mean_and_interval
from sb3_fair.zoo.studies.grid import Job, Result, run_grid
from sb3_fair.zoo.studies.overview import ALGORITHMS, shortened
from sb3_fair.zoo.studies.sheet import Sheet, interval_text, number_text
from sb3_fair.zoo.train import build_model, training_env
from sb3_fair.zoo.tuning.scores import HYPERVOLUME, RETURN, Figures, direction, measure

FIRST_SEED = 100
"""Settings were found with seeds below it."""
QUICK = 20
"""How many times fewer steps a quick study takes."""
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Pair:
    """An algorithm and an environment for which it was tuned.

    :param by: the figure by which its settings were chosen
    :param sampled: whether actions are sampled in evaluations
    """

    algo: str
    env: str
    by: str
    sampled: bool

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.algo}/{self.env.split('/')[1]}"

    @property
    def figures(self) -> tuple[str, ...]:
        """What is told of it: that figure, and the return beside it."""
        return (self.by,) if self.by in (RETURN, HYPERVOLUME) else (self.by, RETURN)


def tuned_pairs(algos: Sequence[str] = ALGORITHMS) -> list[Pair]:
    """All pairs whose settings are marked as tuned."""
    notes = {(algo, env): mark(find_algorithm(algo), env) for algo in algos for env in WORLDS}
    return [
        Pair(algo, env, note["by"], note.get("sampled", False))
        for (algo, env), note in notes.items()
        if note is not None
    ]


def study(
    pairs: Sequence[Pair],
    *,
    seeds: int = 5,
    quick: bool = False,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/tuned",
) -> dict[str, Any]:
    """Trains every pair as tuned and with the algorithm's own defaults, for the same steps and objectives; prints and
    writes down a table.

    :param seeds: runs per pair and way, from :data:`FIRST_SEED` on
    :param quick: at most two seeds, a twentieth of the steps, a fifth of the episodes: whether all runs
    :param n_jobs: processes; -1: one per core
    :param log_dir: for the results of the runs, which are not done again, ``study.json`` and ``tuned.md``
    :return: what ``study.json`` holds: pair -> ``better`` and, ``before`` and ``after`` the tuning, figure -> mean and
        ends of its 95 % confidence interval
    :raises InputError: if there are no pairs
    """
    if not pairs:
        raise InputError("there is nothing to train: these algorithms have no settings that are marked as tuned")
    numbers = range(FIRST_SEED, FIRST_SEED + (min(seeds, 2) if quick else seeds))
    results = run_grid([*_jobs(pairs, numbers, quick)], log_dir, n_jobs)
    found = {pair.name: compare(pair, results, numbers) for pair in pairs}
    sheet(pairs, found).publish(Path(log_dir, "tuned.md"))
    Path(log_dir, "study.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def _jobs(pairs: Sequence[Pair], seeds: Sequence[int], quick: bool) -> Iterator[Job]:
    for pair in pairs:
        for way, plan in ways(pair, quick).items():
            for seed in seeds:
                given = {"config": replace(plan, seed=seed).config, "figures": pair.figures, "sampled": pair.sampled}
                yield Job(_file(pair, way, seed), run, given)


def _file(pair: Pair, way: str, seed: int) -> str:
    return f"{pair.name}/{way}/{seed}"


def ways(pair: Pair, quick: bool = False) -> dict[str, Plan]:
    """The plan with the algorithm's defaults, and the tuned one."""
    tuned = make_plan(pair.algo, pair.env)
    if quick:
        tuned = shortened(tuned, QUICK)
    if tuned.algorithm.vector:
        tuned = replace(tuned, hyperparams={**tuned.hyperparams, REFERENCE: dict(reference_of(tuned))})
    return {BEFORE: untuned(tuned), AFTER: tuned}


def untuned(plan: Plan) -> Plan:
    """The same training with the defaults of the algorithm's constructor, in as many copies of the environment as the
    zoo has for environments it does not know."""
    default = make_plan(plan.algo, plan.env, preset=DEFAULT, env_kwargs=plan.env_kwargs)
    kept = {name: value for name, value in plan.hyperparams.items() if name == REFERENCE}
    around = {name: getattr(default, name) for name in ("n_envs", "policy", *AROUND)}
    return replace(plan, hyperparams=kept, **around)


def run(config: Mapping[str, Any], figures: Sequence[str], sampled: bool) -> Figures:
    """Trains a plan; the figures asked for."""
    plan = Plan.from_config(config)
    model = build_model(plan, training_env(plan), "cpu")
    model.learn(plan.n_timesteps)
    measured = measure(plan, model, figures, deterministic=not sampled)
    return {name: measured[name] for name in figures}


def compare(pair: Pair, results: Mapping[str, Result], seeds: Sequence[int]) -> dict[str, Any]:
    """Means and intervals of both ways, and whether the tuned one has the better mean."""
    found: dict[str, Any] = {
        way: {
            name: mean_and_interval([results[_file(pair, way, seed)][name] for seed in seeds]) for name in pair.figures
        }
        for way in (BEFORE, AFTER)
    }
    gain = found[AFTER][pair.by][0] - found[BEFORE][pair.by][0]
    return {"better": gain > 0 if direction(pair.by) == "maximize" else gain < 0, **found}


def sheet(pairs: Sequence[Pair], found: Mapping[str, Mapping[str, Any]]) -> Sheet:
    """A row per pair."""
    rows = []
    for pair in pairs:
        outcome = found[pair.name]
        cells = [interval_text(outcome[way][pair.by]) for way in (BEFORE, AFTER)]
        has_return = RETURN in pair.figures[1:]
        beside = [number_text(outcome[way][RETURN][0]) if has_return else "" for way in (BEFORE, AFTER)]
        rows.append([pair.name, pair.by, *cells, "yes" if outcome["better"] else "no", *beside])
    share = np.mean([outcome["better"] for outcome in found.values()])
    columns = ["", "by", BEFORE, AFTER, "better", f"R {BEFORE}", f"R {AFTER}"]
    return Sheet(f"Tuned settings beat the defaults in {100 * share:.0f} % of {len(pairs)} pairs", columns, rows)
