"""Tuned settings against defaults, on fresh seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.zoo import names
from sb3_fair.zoo.registry.algorithms import find_algorithm
from sb3_fair.zoo.registry.reference import REFERENCE, reference_of
from sb3_fair.zoo.registry.registration import WORLDS, bare
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.settings import AROUND, DEFAULT, tuning
from sb3_fair.zoo.studies.grid import Job, Result, by_label
from sb3_fair.zoo.studies.overview import ALGORITHMS, planned
from sb3_fair.zoo.studies.sheet import Sheet, sheet
from sb3_fair.zoo.studies.study import conduct, numbers, over
from sb3_fair.zoo.tuning.scores import HYPERVOLUME, RETURN, Figures, direction, measure

QUICK = 20
"""How many times fewer steps a quick study takes."""
BEFORE, AFTER, DIFFERENCE = "before", "after", "difference"


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
    """All pairs whose settings were tuned."""
    return [
        Pair(algo, env, note["by"], note.get("sampled", False))
        for algo in algos
        for env in WORLDS
        if (note := tuning(find_algorithm(algo), env)) is not None
    ]


def study(
    algos: Sequence[str] | None = None,
    envs: Sequence[str] | None = None,
    *,
    seeds: int = 5,
    quick: bool = False,
    n_jobs: int = -1,
    log_dir: str | Path = "logs/tuned",
) -> dict[str, Any]:
    """As :class:`~sb3_fair.zoo.studies.study.Study`: every pair as tuned and with the algorithm's own defaults, for the
    same steps and objectives.

    :param algos: some algorithms; None: all
    :param envs: IDs of tuned environments; None: all
    :return: pair -> ``better`` and, ``before`` and ``after`` the tuning and for the ``difference`` of the two, figure
        -> mean and ends of its 95 % confidence interval
    :raises InputError: if a name is unknown, or of an environment for which the algorithms are not tuned
    """
    pairs = tuned_pairs(names.choose_all("algorithm", algos, ALGORITHMS))
    chosen = names.choose_all("tuned environment", [*map(bare, envs or ())], dict.fromkeys(pair.env for pair in pairs))
    pairs = [pair for pair in pairs if pair.env in chosen]
    some, known = numbers(seeds, quick), {pair.name: pair for pair in pairs}
    log_dir = Path(log_dir, "quick" if quick else "")
    return conduct(
        {name: _jobs(pair, some, quick) for name, pair in known.items()},
        lambda name, results: compare(known[name], results, some),
        log_dir,
        n_jobs,
        lambda found, _: summary(pairs, found).publish(Path(log_dir, "tuned.md")),
    )


def _jobs(pair: Pair, seeds: Sequence[int], quick: bool) -> Iterator[Job]:
    for way, plan in ways(pair, quick).items():
        for seed in seeds:
            given = {"figures": pair.figures, "sampled": pair.sampled}
            yield Job(f"{pair.name}/{way}/{seed}", judge, given, replace(plan, seed=seed))


def ways(pair: Pair, quick: bool = False) -> dict[str, Plan]:
    """The plan with the algorithm's defaults, and the tuned one."""
    tuned = planned(pair.algo, pair.env, QUICK if quick else 1)
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


def judge(plan: Plan, model: Any, figures: Sequence[str], sampled: bool) -> Figures:
    """The figures asked for."""
    measured = measure(plan, model, figures, deterministic=not sampled)
    return {name: measured[name] for name in figures}


def compare(pair: Pair, results: Mapping[str, Result], seeds: Sequence[int]) -> dict[str, Any]:
    """Means and intervals of both ways, and of their difference, seed by seed, as both ways of a seed are judged on the
    same episodes; and whether the tuned one has the better mean."""
    runs = by_label(results, pair.name, (BEFORE, AFTER), seeds)
    both = zip(runs[BEFORE], runs[AFTER], strict=True)
    runs[DIFFERENCE] = [{name: after[name] - before[name] for name in pair.figures} for before, after in both]
    found: dict[str, Any] = {way: over(each) for way, each in runs.items()}
    gain = found[DIFFERENCE][pair.by][0]
    return {"better": gain > 0 if direction(pair.by) == "maximize" else gain < 0, **found}


def summary(pairs: Sequence[Pair], found: Mapping[str, Mapping[str, Any]]) -> Sheet:
    """A row per pair and figure."""
    share = np.mean([outcome["better"] for outcome in found.values()])
    columns = {way: way for way in (BEFORE, AFTER, DIFFERENCE)}
    rows = {
        f"{pair.name}: {figure}": {way: found[pair.name][way][figure] for way in columns}
        for pair in pairs
        for figure in pair.figures
    }
    return sheet(f"Tuned settings beat the defaults in {100 * share:.0f} % of {len(pairs)} pairs", columns, rows)
