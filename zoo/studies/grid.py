"""How does a study of many runs use all cores, and go on where it was interrupted?

Every run writes its result to a file of its own when it is done. A run whose file is there, made with the same
arguments, is not done again.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch as th
from joblib import Parallel, delayed
from rich.console import Console

from sb3_fair.common.run_folder import plain

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
    :param n_jobs: processes, each with one thread of torch; -1: one per core
    """
    paths = {job.name: Path(folder) / f"{job.name}.json" for job in jobs}
    missing = [job for job in jobs if _stored(job, paths[job.name]) is None]
    console = Console()
    if missing:
        console.print(f"{len(jobs) - len(missing)} of {len(jobs)} runs are there already", style="dim")
    working = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_work)(job, paths[job.name]) for job in missing
    )
    for number, name in enumerate(working, start=1):
        console.print(f"{number} of {len(missing)}: {name}", style="dim", highlight=False)
    results = {job.name: _stored(job, paths[job.name]) for job in jobs}
    return {name: result for name, result in results.items() if result is not None}


def _work(job: Job, path: Path) -> str:
    th.set_num_threads(1)
    content = {"arguments": plain(job.arguments), "result": plain(job.work(**job.arguments))}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(content, indent=1), encoding="utf-8")
    part.replace(path)  # whole or not at all
    return job.name


def _stored(job: Job, path: Path) -> Result | None:
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    found: Result | None = content["result"] if content["arguments"] == plain(job.arguments) else None
    return found
