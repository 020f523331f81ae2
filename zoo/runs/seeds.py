"""Trains several seeds side by side."""

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from sb3_fair.common.run_folder import DamagedError, RunFolder
from sb3_fair.fairness.warning import warn
from sb3_fair.zoo.runs.parallel import elsewhere, in_parallel
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.train import reported, resume, train

FINISHED = "front.json"
"""The file that tells that a run is finished."""


def train_all(
    plans: Sequence[Plan], *, log_dir: str | Path = "logs", n_jobs: int = -1, **options: Any
) -> list[RunFolder]:
    """The finished run of each plan: those that are in ``log_dir`` are taken as they are, others are trained.

    Interrupted ones of this user go on from their checkpoints. On a cluster, a run is trained in a folder of the
    machine that trains it, which comes here when it is finished; an interrupted one begins anew.

    :param n_jobs: processes, each with one thread of torch; -1: one per core; within
        :func:`~sb3_fair.zoo.runs.parallel.on_cluster` all that the cluster has
    :param options: further arguments of :func:`~sb3_fair.zoo.runs.train.train`
    """
    begun = list(_runs(log_dir, plans))
    finished = [(number, run) for number, run in begun if run.finished]
    runs = {number: reported(run) for number, run in finished if not _is_damaged(run)}
    for number, run in finished:
        if number not in runs:
            warn(f"{run.path} is damaged: its plan is trained again, in a new folder")
    unfinished = [] if elsewhere() else [(number, run) for number, run in begun if not run.finished and run.is_ours]
    halted = {number: run for number, run in unfinished if number not in runs}
    missing = [number for number in range(len(plans)) if number not in runs]
    console = Console()
    if runs:
        console.print(f"{len(runs)} of {len(plans)} runs are there already", style="dim")
    work: Callable[..., tuple[int, RunFolder | bytes]] = _train_and_send if elsewhere() else _train
    arguments = ((number, plans[number], halted.get(number), log_dir, options) for number in missing)
    for done, (number, trained) in enumerate(in_parallel(work, arguments, n_jobs), start=1):
        runs[number] = trained if isinstance(trained, RunFolder) else _received(trained, plans[number], log_dir)
        console.print(f"{done} of {len(missing)}: {runs[number].path}", style="dim", highlight=False, soft_wrap=True)
    return [runs[number] for number in range(len(plans))]


def _runs(log_dir: str | Path, plans: Sequence[Plan]) -> Iterator[tuple[int, RunFolder]]:
    """The runs of the plans that were begun, each with its plan's number."""
    numbers = [(plan.config, number) for number, plan in enumerate(plans)]
    for path in sorted(Path(log_dir).glob("*/*/config.yml")):
        run = RunFolder(path.parent)
        try:
            config = run.config
        except OSError:  # somebody else's broken run
            continue
        yield from ((number, run) for known, number in numbers if known == config)


def _is_damaged(run: RunFolder) -> bool:
    try:
        run.check()
    except DamagedError:
        return True
    return False


def _train(
    number: int, plan: Plan, halted: RunFolder | None, log_dir: str | Path, options: dict[str, Any]
) -> tuple[int, RunFolder]:
    return number, train(plan, log_dir=log_dir, **options) if halted is None else resume(halted.path)


def _train_and_send(
    number: int, plan: Plan, halted: None, log_dir: str | Path, options: dict[str, Any]
) -> tuple[int, bytes]:
    packed = io.BytesIO()
    with TemporaryDirectory() as place, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        run = train(plan, log_dir=place, **options)
        for file in sorted(run.path.rglob("*")):
            archive.write(file, file.relative_to(run.path))
    return number, packed.getvalue()


def _received(packed: bytes, plan: Plan, log_dir: str | Path) -> RunFolder:
    run = RunFolder.create(log_dir, plan.algo, plan.env)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for name in sorted(archive.namelist(), key=lambda name: name == FINISHED):  # last: it is finished now
            archive.extract(name, run.path)
    run.seal()  # the key of the other machine is not this user's
    return run
