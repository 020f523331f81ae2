"""Files and tables of a tuning study."""

import csv
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import yaml
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table

from sb3_fair.common.run_folder import versions
from sb3_fair.common.whole_file import write_whole
from sb3_fair.zoo.evaluation.tables import blank_table
from sb3_fair.zoo.names import NOT_IN_FILES
from sb3_fair.zoo.tuning.storage import ORIGIN
from sb3_fair.zoo.tuning.study import DEFAULTS, Search, finished
from sb3_fair.zoo.tuning.trial import FIGURES, SETTINGS, Tuning

BEST, TRIALS, STUDY = "best.yml", "trials.csv", "study.yml"
MOST = 12
"""Rows of the table in the terminal."""


def write_results(study: optuna.Study, tuning: Tuning, search: Search, folder: Path, command: str) -> None:
    """Writes down what the study is about and what came out: see ``docs/tuning.md``."""
    how = {"trials": len(finished(study)), "sampler": search.sampler, "pruner": search.pruner}
    about = {"study": study.study_name, **how}
    date = {"date": datetime.now().isoformat(" ", "seconds"), **versions()}
    write_whole(folder / STUDY, _yaml({**about, **tuning.config}))
    write_whole(folder / "versions.yml", _yaml(date))
    write_whole(folder / "command.txt", command + "\n")
    write_whole(folder / TRIALS, _csv(study, tuning.scores))
    if study.best_trials:
        write_whole(folder / BEST, _entries(study, tuning, search))
    figures = dict(_figures(study, tuning))
    if figures:
        from plotly.offline import get_plotlyjs

        write_whole(folder / "plotly.min.js", get_plotlyjs())
    written = set()
    for name, figure in figures.items():
        file = NOT_IN_FILES.sub("-", name)
        while file in written:  # the names of two scores may differ in such letters alone
            file += "-2"
        written.add(file)
        write_whole(folder / f"{file}.html", figure.to_html(include_plotlyjs="directory"))


def _csv(study: optuna.Study, scores: Sequence[str]) -> str:
    """A row per trial, with the columns of Optuna's own ``trials_dataframe``, which needs pandas."""
    rows = [dict(_columns(trial, scores)) for trial in study.get_trials(deepcopy=False)]
    text = io.StringIO()
    table = csv.DictWriter(text, dict.fromkeys(name for row in rows for name in row), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _columns(trial: FrozenTrial, scores: Sequence[str]) -> Iterator[tuple[str, Any]]:
    yield from {"number": trial.number, "state": trial.state.name, "duration": trial.duration}.items()
    yield from zip((f"values_{name}" for name in scores), trial.values or [None] * len(scores), strict=True)
    for kind, entries in (("params", trial.params), ("user_attrs", trial.user_attrs)):
        yield from ((f"{kind}_{name}", value) for name, value in entries.items())


def best(study: optuna.Study) -> list[FrozenTrial]:
    """The trials within all budgets that no other one excels, the most balanced first.

    The most balanced one is nearest to the best of all scores, each score scaled to [0, 1] over these trials.
    """
    trials = study.best_trials
    if not trials:
        return []
    signs = [1 if direction == optuna.study.StudyDirection.MAXIMIZE else -1 for direction in study.directions]
    scores = np.array([trial.values for trial in trials]) * signs
    width = np.ptp(scores, axis=0)
    missing = (scores.max(axis=0) - scores) / np.where(width > 0, width, 1.0)
    order = np.argsort((missing**2).sum(axis=1), kind="stable")
    return [trials[index] for index in order]


def _entries(study: optuna.Study, tuning: Tuning, search: Search) -> str:
    """YAML in the form of ``zoo/hyperparams``: the most balanced trial, and each of the best ones as a preset."""
    trials = best(study)
    bare = tuning.plan.env.rpartition(":")[2]
    pruned = sum(trial.state == TrialState.PRUNED for trial in study.trials)
    seeds = f"{tuning.n_seeds} seed{'s' * (tuning.n_seeds > 1)} each, from {tuning.plan.seed} on"
    head = [
        f"tuned: {tuning.plan.algo}, {len(finished(study))} trials ({pruned} pruned), sampler {search.sampler}",
        f"{datetime.now():%Y-%m-%d}, {seeds}, {tuning.plan.n_eval_episodes} episodes per evaluation",
    ]
    before = defaults(study)
    if before is not None:
        head.append(f"before: {scores(before, tuning)}")
    text = "".join(f"# {line}\n" for line in head)
    for number, trial in enumerate((trials[0], *sorted(trials, key=lambda trial: trial.number))):
        name = f"{bare}: trial {trial.number}" if number else bare
        text += f"\n# trial {trial.number}: {scores(trial, tuning)}\n{_yaml({name: trial.user_attrs[SETTINGS]})}"
    return text


def defaults(study: optuna.Study) -> FrozenTrial | None:
    """The trial with the zoo's own values, None if it was not completed."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return next((trial for trial in complete if trial.user_attrs.get(ORIGIN) == DEFAULTS), None)


def scores(trial: FrozenTrial, tuning: Tuning) -> str:
    return ", ".join(f"{name} {value}" for name, value in _cells(trial, tuning).items())


def _figures(study: optuna.Study, tuning: Tuning) -> Iterator[tuple[str, Any]]:
    """Optuna's pictures of the study, those that it has enough trials for."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if not complete:
        return
    from optuna import visualization

    names = list(tuning.scores)
    if len(names) in (2, 3):
        yield "pareto-front", visualization.plot_pareto_front(study, target_names=names)
    for index, (name, way) in enumerate(zip(names, tuning.directions, strict=True)):
        score = _score(index)
        target = score if len(names) > 1 else None
        yield f"history-{name}", visualization.plot_optimization_history(study, target=target, target_name=name)
        if len(complete) > 2 and len({score(trial) for trial in complete}) > 1:
            low_is_good = _score(index, -1 if way == "maximize" else 1)
            with warnings.catch_warnings():  # of PED-ANOVA, that it takes low values for good ones
                warnings.simplefilter("ignore", UserWarning)
                found = visualization.plot_param_importances(study, target=low_is_good, target_name=name)
            yield f"importances-{name}", found
    if any(trial.intermediate_values for trial in study.trials):
        yield "learning", visualization.plot_intermediate_values(study)


def _score(index: int, sign: int = 1) -> Callable[[FrozenTrial], float]:
    return lambda trial: sign * float(trial.values[index])


def trial_table(study: optuna.Study, tuning: Tuning) -> Table:
    """The best trials beside the one with the zoo's own values; if none keeps the budgets, those nearest to it."""
    limits = {name: f"{name} (at most {budget:g})" for name, budget in tuning.budgets.items()}
    table = blank_table("trial", *(limits.get(name, name) for name in tuning.wanted))
    rows: Sequence[FrozenTrial] = best(study)
    if not rows:
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        rows = sorted(complete, key=lambda trial: sum(max(over, 0) for over in trial.constraints.values()))[:3]
    for trial in rows[:MOST]:
        table.add_row(str(trial.number), *_cells(trial, tuning).values())
    before = defaults(study)
    if before is not None:
        table.add_section()
        table.add_row(f"{before.number}, the zoo's", *_cells(before, tuning).values(), style="dim")
    return table


def _cells(trial: FrozenTrial, tuning: Tuning) -> dict[str, str]:
    """The figures by which a trial is judged."""
    return {name: f"{trial.user_attrs[FIGURES][name]:.4g}" for name in tuning.wanted}


def _yaml(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
