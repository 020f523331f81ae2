"""The command `sb3-fair tune`."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from sb3_fair.fairness import NOTIONS
from sb3_fair.fairness.descriptions import MEAN
from sb3_fair.fairness.validation import integer, number
from sb3_fair.zoo import names
from sb3_fair.zoo.evaluation.evaluate import evaluation_env, most_probable
from sb3_fair.zoo.evaluation.tables import show
from sb3_fair.zoo.names import InputError, WorkError, input_errors
from sb3_fair.zoo.registry.reference import REFERENCE, reference_of
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.train import built
from sb3_fair.zoo.tuning.results import BEST, best, trial_table, write_results
from sb3_fair.zoo.tuning.sampler import AUTO, PRUNERS, SAMPLERS
from sb3_fair.zoo.tuning.scores import HYPERVOLUME, RETURN, check_figures
from sb3_fair.zoo.tuning.space import WEIGHTS, space_of
from sb3_fair.zoo.tuning.storage import Place
from sb3_fair.zoo.tuning.study import Search, begin, finished, quiet, work_together
from sb3_fair.zoo.tuning.trial import ERROR, Tuning


def tune(
    tuning: Tuning,
    *,
    n_trials: int = 50,
    study_name: str | None = None,
    storage: str | Path | None = None,
    sampler: str = AUTO,
    pruner: str | None = None,
    n_jobs: int = 1,
    log_dir: str | Path = "logs",
    device: str = "auto",
    command: str = "",
) -> Path:
    """Begins or continues a study, and writes its results.

    :param n_trials: trials of the study in all, those that are there included
    :param study_name: None: ``<algo>_<env>``
    :param storage: URL of a database, or path of a journal file; None: a journal file in the study's folder
    :param sampler: ``"tpe"``, ``"nsgaii"``, ``"random"``, or ``"auto"``: TPE, and NSGA-II after 250 trials with several
        scores
    :param pruner: ``"median"``, ``"halving"`` or ``"none"``; None: the median, but none where there are several
        scores or budgets, or where trials learn a front, as five evaluations of one take longer than its training
    :param n_jobs: processes
    :param command: the command line, for the record
    :return: the study's folder, ``<log_dir>/tune/<study_name>``
    :raises InputError: if an argument is not allowed, or the study is about something else
    :raises WorkError: if no trial could be completed
    """
    with input_errors():
        integer("n-trials", n_trials, 1)
        integer("n-jobs", n_jobs, 1)
    names.choose("sampler", sampler, [AUTO, *SAMPLERS])
    pruner = _pruner(tuning, pruner)
    name = study_name or f"{tuning.plan.algo}_{tuning.plan.env.rpartition(':')[2].replace('/', '-')}"
    if not name.strip() or names.NOT_IN_FILES.search(name) or name.startswith("."):
        raise InputError(f'study-name must be the name of a folder, without any of <>:"/\\|?*, got {name!r}')
    place = Place(name, Path(log_dir) / "tune" / name, storage)
    place.folder.mkdir(parents=True, exist_ok=True)
    search = Search(n_trials, sampler, pruner, tuning.plan.seed, device)
    with quiet():
        work_together(place, tuning, search, n_jobs)
        study = begin(place, tuning, search)
        write_results(study, tuning, search, place.folder, command)
    trials = finished(study)
    if not any(trial.values for trial in trials):
        errors = [trial.user_attrs[ERROR] for trial in trials if ERROR in trial.user_attrs]
        first = f"; the first error: {errors[0]}" if errors else ": all were pruned"
        raise WorkError(f"none of {len(trials)} trials was completed{first}")
    show(trial_table(study, tuning))
    if best(study):
        print(f"\n{place.folder / BEST}")
    else:
        print("\nno trial is within the budgets; these are nearest to them")
    return place.folder


def make_tuning(
    algo: str,
    env: str,
    *,
    scores: Sequence[str] | None = None,
    budgets: Mapping[str, float] | None = None,
    space: Mapping[str, Any] | None = None,
    only: Sequence[str] | None = None,
    n_seeds: int = 1,
    n_evaluations: int = 5,
    deterministic: bool | None = None,
    objectives: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    hyperparams: Mapping[str, Any] | None = None,
    **wishes: Any,
) -> Tuning:
    """What a study is about, checked by building what its first trial builds.

    :param scores: figures that trials are to be good at; None: the return, of PCN the hypervolume
    :param budgets: figure -> its largest size
    :param space: setting -> values to try, in the form of ``search_spaces.yml``, in place of what is there
    :param only: settings to try; None: all of the algorithm's space
    :param deterministic: see :func:`~sb3_fair.zoo.evaluation.evaluate.most_probable`
    :param weights: of the objectives; given ones are not tried
    :param hyperparams: fixed values, which are not tried
    :param wishes: further arguments of :func:`~sb3_fair.zoo.runs.plan.make_plan`
    :raises InputError: if an argument is not allowed
    """
    fixed = dict(hyperparams or {})
    plan = make_plan(algo, env, objectives=objectives, weights=weights, hyperparams=fixed, **wishes)
    vector = plan.algorithm.vector
    scores = tuple(map(str, () if scores is None else scores)) or (HYPERVOLUME if vector else RETURN,)
    budgets = dict(budgets or {})
    if vector and budgets:
        raise InputError(f"budget must be left out for {algo}, which learns all trade-offs, got {sorted(budgets)}")
    measured = [figure.removeprefix(MEAN) for figure in (*scores, *budgets)]
    audit = tuple(dict.fromkeys(figure for figure in measured if figure.partition("@")[0] in NOTIONS))
    with input_errors():
        for name, value in (("n-seeds", n_seeds), ("n-evaluations", n_evaluations)):
            integer(name, value, 1)
        for figure, budget in budgets.items():
            if number(f"budget of {figure}", budget) < 0:
                raise InputError(f"budget of {figure} must not be negative, got {budget}")
        check_figures(replace(plan, audit=(*plan.audit, *audit)), scores, budgets)
        held = [*fixed, *([WEIGHTS] if weights is not None else [])]
        values = space_of(plan, measured, held, space or {}, only)
        if vector:
            plan = replace(plan, hyperparams={**plan.hyperparams, REFERENCE: reference_of(plan)})
        with built(plan, "cpu"), closing(evaluation_env(plan, 1)) as venv:
            deterministic = most_probable(venv, deterministic)
    return Tuning(
        scores=scores,
        budgets=budgets,
        plan=replace(plan, audit=audit),
        space=values,
        n_seeds=n_seeds,
        n_evaluations=n_evaluations,
        deterministic=deterministic,
    )


def _pruner(tuning: Tuning, pruner: str | None) -> str:
    """The pruner of a study; by default none where its trials cannot be pruned, or learn a front."""
    reason = ""
    if len(tuning.scores) > 1:
        reason = f"{len(tuning.scores)} scores"
    elif tuning.budgets:
        reason = f"a budget for {', '.join(tuning.budgets)}"
    elif tuning.n_evaluations == 1:
        reason = "1 evaluation per trial"
    if pruner is None:
        return "none" if reason or tuning.plan.algorithm.vector else "median"
    names.choose("pruner", pruner, PRUNERS)
    if pruner != "none" and reason:
        raise InputError(
            f"pruner must be none with {reason}: it looks at a single score in mid-training, got {pruner!r}"
        )
    return pruner
