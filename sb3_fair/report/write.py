"""Writes a report: HTML, figures, JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.common.whole_file import write_whole
from sb3_fair.fairness.descriptions import NO_WORDS, Words
from sb3_fair.report import figures
from sb3_fair.report.content import Curves, content
from sb3_fair.report.html import page


def write_report(
    folder: str | Path,
    front: Front,
    *,
    baselines: Sequence[EvaluatedPolicy] = (),
    curves: Curves | None = None,
    made: Mapping[str, Any] | None = None,
    title: str | None = None,
    words: Words = NO_WORDS,
) -> Path:
    """Writes ``report.html`` and ``figures/*.png`` into the folder and returns the path of the page.

    :param folder: is made if need be; if it is the folder of a run, the page shows how to run each policy
    :param front: the evaluated policies
    :param baselines: rules to show beside them
    :param curves: columns of the training log, name -> one number per row (None: no number), with one whose name ends
        in ``total_timesteps``
    :param made: what to say about how this was made, in this order
    :param title: heading of the page; by default it names ``made["environment"]``
    :param words: what the environment calls its measures, groups and decisions, as for :func:`sb3_fair.register`
    :raises ValueError: if the front is empty
    :raises DamagedError: if ``figures`` is a link to a place outside the folder
    """
    if not len(front):
        raise ValueError("front must hold at least one policy, got an empty one")
    run = RunFolder(folder)
    run.path.mkdir(parents=True, exist_ok=True)
    found = run if run.is_run else None
    about = content(front, baselines=baselines, curves=curves, made=made, title=title, run=found, words=words)
    write_whole(run.report, page(about), errors="xmlcharrefreplace")
    figures.save_all(run.inside("figures"), front, baselines=baselines, curves=curves, words=words)
    return run.report


def from_run(folder: str | Path) -> Path:
    """Writes the report of a run from what the run left in its folder, and returns the path of the page.

    :raises FileNotFoundError: if the folder holds no run, or the run no evaluated policies
    """
    run = RunFolder.open(folder)
    front = run.front
    if not len(front):
        raise FileNotFoundError(f"run must hold evaluated policies in front.json, but {str(folder)!r} has none")
    held = run.config.get("hyperparams", {}).get("held")  # their commands are not in the units of what was reached
    without = {f"pcn/desired_{name}" for name in held} if isinstance(held, Mapping) else ()
    curves = {key: values for key, values in run.curves.items() if key not in without}
    return write_report(folder, front, baselines=run.baselines, curves=curves, made=made_by(run), words=run.words)


def made_by(run: RunFolder) -> dict[str, Any]:
    """How a run was made, in the words of the report."""
    config = run.config
    versions = run.versions
    settings = {**config.get("env_kwargs", {}), **config.get("hyperparams", {})}
    end = "...\n"  # of YAML
    known = {key: value for key, value in settings.items() if value is not None}
    flow = {key: yaml.safe_dump(value, default_flow_style=True, width=10_000) for key, value in known.items()}
    return {
        "environment": config.get("env", "unknown"),
        "algorithm": config.get("algo", "unknown"),
        "command": run.command,
        "seed": config.get("seed"),
        "training steps": _steps(run),
        "date": versions.pop("date", "unknown"),
        "settings": ", ".join(f"{key}: {text.removesuffix(end).strip()}" for key, text in flow.items()),
        "versions": ", ".join(f"{package} {number}" for package, number in versions.items()),
    }


def _steps(run: RunFolder) -> int | None:
    """The steps of the training, which ends with a whole rollout; some of the last ones may not have been logged."""
    known = (run.config.get("n_timesteps"), *run.curves.get("time/total_timesteps", ()))
    return max((int(steps) for steps in known if isinstance(steps, int | float)), default=None)
