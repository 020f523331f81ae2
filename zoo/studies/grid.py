"""Runs a grid of jobs on all cores or a cluster, resumably.

When a run is done, its result is written to a file of its own, by the process that asked for it: whoever does the run
need not see the folder. A run whose file is there, made with the same arguments, is not done again. On this machine, a
training that was interrupted goes on from its last checkpoint.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from sb3_fair.common.plain import plain
from sb3_fair.common.whole_file import write_whole
from sb3_fair.fairness.warning import warn
from sb3_fair.zoo.runs.parallel import elsewhere, in_parallel
from sb3_fair.zoo.runs.plan import Plan

if TYPE_CHECKING:
    from sb3_fair.zoo.studies.training import Watch

Result = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One run of a study.

    :param name: of its file, without ``.json``; may have folders
    :param work: a function that can be pickled; returns numbers, strings, lists and dicts
    :param arguments: its keyword arguments, of the same kinds
    :param plan: what is trained before; ``work`` is given the plan and the model in front of its arguments
    :param watch: what it notes of the training is in the result as well
    """

    name: str
    work: Callable[..., Result]
    arguments: dict[str, Any] = field(default_factory=dict)
    plan: Plan | None = None
    watch: "Watch | None" = None

    @property
    def key(self) -> Any:
        """What the result follows from."""
        return plain(self.arguments if self.plan is None else {"plan": self.plan.config, **self.arguments})


def run_grid(jobs: Sequence[Job], folder: str | Path, n_jobs: int = -1) -> dict[str, Result]:
    """The results of all jobs by name, from files where they are, else by doing the work.

    :param folder: where the files are
    :param n_jobs: processes, each with one thread of torch; -1: one per core; within
        :func:`~sb3_fair.zoo.runs.parallel.on_cluster` all that the cluster has
    """
    jobs = list({job.name: job for job in jobs}.values())
    missing = {job.name: job for job in jobs if _stored(job, folder) is None}
    console = Console()
    if missing:
        console.print(f"{len(jobs) - len(missing)} of {len(jobs)} runs are there already", style="dim")
    work = ((job, None if elsewhere() else _checkpoint(job, folder)) for job in missing.values())
    for number, (name, result) in enumerate(in_parallel(_work, work, n_jobs), start=1):
        _store(missing[name], result, folder)
        console.print(f"{number} of {len(missing)}: {name}", style="dim", highlight=False)
    results = {job.name: _stored(job, folder) for job in jobs}
    return {name: result for name, result in results.items() if result is not None}


def _work(job: Job, checkpoint: Path | None) -> tuple[str, Result]:
    if job.plan is None:
        return job.name, plain(job.work(**job.arguments))
    from sb3_fair.zoo.studies.training import Watch, trained

    watch = job.watch or Watch()
    model = trained(job.plan, watch, checkpoint)
    return job.name, plain({**watch.figures, **job.work(job.plan, model, **job.arguments)})


def _file(job: Job, folder: str | Path) -> Path:
    return Path(folder) / f"{job.name}.json"


def _checkpoint(job: Job, folder: str | Path) -> Path:
    return _file(job, folder).with_suffix(".checkpoint")


def _store(job: Job, result: Result, folder: str | Path) -> None:
    path = _file(job, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({"arguments": job.key, "result": result}, indent=1))
    if job.plan is not None:
        from sb3_fair.zoo.runs.checkpoint import forget

        forget(_checkpoint(job, folder))


def _stored(job: Job, folder: str | Path) -> Result | None:
    path = _file(job, folder)
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found: Result | None = content["result"] if content["arguments"] == job.key else None
    except (ValueError, LookupError, TypeError):
        warn(f"{path} is not the result of a run, or only a part of one: the run is done again")
        return None
    return found


def by_label(
    results: Mapping[str, Result], name: str, labels: Iterable[str], seeds: Sequence[int]
) -> dict[str, list[Result]]:
    """The runs ``name/label/seed``, seed by seed."""
    return {label: [results[f"{name}/{label}/{seed}"] for seed in seeds] for label in labels}
