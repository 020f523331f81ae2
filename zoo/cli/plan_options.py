"""Options of `train` and `tune`: the plan of a training, a table of people instead of an environment, a study."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from sb3_fair.zoo import names
from sb3_fair.zoo.cli.options import REPEATABLE, EnvParam, Seed, Steps, expanded, numbers, option, row, settings
from sb3_fair.zoo.envs.table.settings import TableConfig
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.registration import TABLE

PANEL = "A table of people instead of --env"
_ABOUT = dict(re.findall(r":param (\w+): (.+?)(?=\n:|\Z)", cleandoc(TableConfig.__doc__ or ""), re.DOTALL))
_KINDS = {name: kind for name, kind in get_type_hints(TableConfig).items() if name != "sha256"}
PLAN = (
    option("fairness", str, "module:name of a fairness spec, for an ID that has none or instead of its own."),
    option("objectives", str, "R, notions, and disparities of the environment, as in R:SP:d_s."),
    option("audit", str, "Notions to measure in the final evaluation, as in SP:EO:CSC."),
    option("weights", str, "Of the objectives, for algorithms that learn from one number, as in 1:0.5:0."),
    option("window", int, "Number of latest decisions that notions look at."),
    option("emit", str, "level, difference or terminal."),
    option("preset", str, "Other settings than the tuned ones, as in: paper."),
    option("conf_file", Path, "YAML file with settings instead of the zoo's, as `sb3-fair tune` writes them."),
    option("own_code", bool, "Let settings name wrappers in any module, whose code runs.", "--own-code"),
    row("n_timesteps", Steps),
    option("n_envs", int, "Copies of the environment."),
    option(
        "param", REPEATABLE, "key:value for the algorithm; value in YAML; tune keeps it. Repeatable.", "--param", "-P"
    ),
    row("env_param", EnvParam),
    row("seed", Seed, 0),
)
"""Arguments of :func:`~sb3_fair.zoo.runs.plan.make_plan`."""
RUN = (
    option("track", bool, "Follow in Weights & Biases; without an account, offline.", "--track"),
    option("tensorboard", bool, "Write event files for TensorBoard.", "--tensorboard"),
    option("checkpoint_minutes", float, "Between two checkpoints; 0: at every rollout, inf: never.", default=5.0),
)
"""Arguments of :func:`~sb3_fair.zoo.runs.train.train`."""
TRIALS = (
    option("scores", str, "What trials are to be good at, as in R:SP; by default R, of PCN the hypervolume."),
    option("budgets", REPEATABLE, "Largest size of a figure, as in SP:0.05. Repeatable.", "--budget"),
    option("n_seeds", int, "Runs per trial; figures are their means.", default=1),
    option("n_evaluations", int, "Evaluations of a trial that may be pruned.", default=5),
    option("space", REPEATABLE, "setting:values to try, as in gamma:{range: [0.9, 1.0]}. Repeatable.", "--space", "-S"),
    option("only", str, "Try only these settings, as in learning_rate:gamma."),
    option(
        "deterministic", bool | None, "Actions in evaluations: most probable, or drawn.", "--deterministic/--sampled"
    ),
)
"""Arguments of :func:`~sb3_fair.zoo.tuning.tune.make_tuning`."""
STUDY = (
    option("n_trials", int, "Of the study in all, earlier ones included.", default=50),
    option("study_name", str, "A study of this name is continued."),
    option(
        "storage",
        str,
        "Database URL or journal file; by default a journal file in the study's folder.",
        callback=expanded,
    ),
    option("n_jobs", int, "Processes.", default=1),
    option("sampler", str, "auto, tpe, nsgaii or random.", default="auto"),
    option("pruner", str, "median, halving or none; by default median; none with several scores, a budget or PCN."),
)
"""Arguments of :func:`~sb3_fair.zoo.tuning.tune.tune`."""
READ: dict[str, Callable[[Any], Any]] = {
    "audit": names.notions,
    "objectives": names.objectives,
    "weights": partial(numbers, "weights"),
    "scores": partial(names.listed, "scores"),
    "only": partial(names.listed, "only"),
    "space": partial(settings, "--space"),
    "budgets": partial(settings, "--budget", example="SP:0.05"),
}
"""What options mean that are not taken as they are."""


def _about(name: str, kind: Any) -> dict[str, Any]:
    """What the documentation of a setting says, as arguments of an option."""
    parts = (kind, *get_args(kind))
    several = any(get_origin(part) in (Sequence, Mapping) for part in parts)
    about = _ABOUT[name] if _ABOUT else name  # python -OO leaves out docstrings
    text = f"{about[:1].upper()}{about[1:]}.{' Repeatable.' if several else ''}".replace("[", r"\[")
    found = REPEATABLE if several else next((number for number in (int, float) if number in parts), str)
    return {"kind": found, "help": " ".join(text.split())}


PEOPLE = (
    option("group", REPEATABLE, "Column whose groups are compared. Repeatable.", rich_help_panel=PANEL),
    *(option(name, **_about(name, kind), rich_help_panel=PANEL) for name, kind in _KINDS.items()),
)
"""Settings of the table."""


def arguments(env: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``make_plan`` or ``make_tuning``, but the algorithm, from the options that were given."""
    people = {row.name: given[row.name] for row in PEOPLE if row.name in given}
    if people and "table" not in people:
        raise InputError(f"--{next(iter(people)).replace('_', '-')} must be left out without --table")
    if people and env is not None:
        raise InputError(f"--env must be left out with --table, got {env!r}")
    if env is None and not people:
        raise InputError("--env or --table must be given")
    asked = {name: READ.get(name, lambda value: value)(given[name]) for name in given if name not in people}
    chosen = {name: asked.pop(name) for name in ("window", "emit") if name in asked}
    own = settings("--env-param", asked.pop("env_param", None))
    asked["hyperparams"] = settings("--param", asked.pop("param", None))
    asked["env_kwargs"] = {**(_as_settings(people) if people else {}), **own, **chosen}
    return {"env": TABLE.name if people else env, **asked}


def _as_settings(people: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the environment; the file as whoever goes on with the run can find it and knows it again."""
    from sb3_fair.zoo.envs.table.people import checksum

    path = Path(expanded(people["table"]))
    if not path.is_file():
        raise InputError(f"--table must be a file, got {str(path)!r}")
    group = people.get("group", [])
    if "moves" in people:
        people["moves"] = settings("--moves", people["moves"], "income:1.5")
    return {
        **people,
        "table": str(path.resolve()),
        "sha256": checksum(path),
        "group": group[0] if len(group) == 1 else group,
    }
