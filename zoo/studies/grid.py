"""Runs a grid of jobs on all cores or a cluster, resumably.

When a run is done, its result is written to a file of its own, by the process that asked for it: whoever does the run
need not see the folder. A run whose file is there, made with the same arguments, is not done again.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from sb3_fair.common.run_folder import plain
from sb3_fair.common.whole_file import whole
from sb3_fair.zoo.parallel import in_parallel

Result = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One run of a study.

    :param name: of its file, without ``.json``; may have folders
    :param work: a function that can be pickled; returns numbers, strings, lists and dicts
    :param arguments: its keyword arguments, of the same kinds
    """

    name: str
    work: Callable[..., Result]
    arguments: dict[str, Any] = field(default_factory=dict)


def run_grid(jobs: Sequence[Job], folder: str | Path, n_jobs: int = -1) -> dict[str, Result]:
    """The results of all jobs by name, from files where they are, else by doing the work.

    :param folder: where the files are
    :param n_jobs: processes, each with one thread of torch; -1: one per core; within
        :func:`~sb3_fair.zoo.parallel.on_cluster` all that the cluster has
    """
    paths = {job.name: Path(folder) / f"{job.name}.json" for job in jobs}
    missing = {job.name: job for job in jobs if _stored(job, paths[job.name]) is None}
    console = Console()
    if missing:
        console.print(f"{len(jobs) - len(missing)} of {len(jobs)} runs are there already", style="dim")
    working = in_parallel(_work, ((job,) for job in missing.values()), n_jobs)
    for number, (name, result) in enumerate(working, start=1):
        _store(missing[name], result, paths[name])
        console.print(f"{number} of {len(missing)}: {name}", style="dim", highlight=False)
    results = {job.name: _stored(job, paths[job.name]) for job in jobs}
    return {name: result for name, result in results.items() if result is not None}


def _work(job: Job) -> tuple[str, Result]:
    return job.name, plain(job.work(**job.arguments))


def _store(job: Job, result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write_text(json.dumps({"arguments": plain(job.arguments), "result": result}, indent=1), encoding="utf-8")


def _stored(job: Job, path: Path) -> Result | None:
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    found: Result | None = content["result"] if content["arguments"] == plain(job.arguments) else None
    return found
