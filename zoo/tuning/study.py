"""Runs a tuning study in several processes."""

import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from time import sleep

import optuna
from optuna.exceptions import DuplicatedStudyError
from optuna.trial import FrozenTrial, TrialState

from sb3_fair.zoo.names import ERRORS, InputError, WorkError, line_of, why
from sb3_fair.zoo.registry.sending import receive, to_send
from sb3_fair.zoo.runs.stopping import Interrupted, end_with
from sb3_fair.zoo.tuning.sampler import PRUNERS, NumberedSampler
from sb3_fair.zoo.tuning.space import parameters
from sb3_fair.zoo.tuning.storage import ORIGIN, Claims, Place, try_again
from sb3_fair.zoo.tuning.trial import ERROR, FIGURES, Tuning, run_trial

CONFIG = "config"
"""Under this name, a study keeps what it is about."""
DEFAULTS = "defaults"
"""Origin of the trial that tries what is trained without a study."""
PATIENCE = 1.0
"""Seconds between two looks at the trials of other processes."""


@dataclass(frozen=True)
class Search:
    """How a study goes about it; this may change when it is continued."""

    n_trials: int
    sampler: str
    pruner: str
    seed: int
    device: str = "auto"


class Surplus(Exception):
    """Another process has begun the last trial in the same moment."""


@contextmanager
def quiet() -> Iterator[None]:
    """Within it, Optuna tells errors only."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def begin(place: Place, tuning: Tuning, search: Search) -> optuna.Study:
    """The study, a new one with the zoo's own values as its first trial, or the one that is there."""
    storage = place.open()
    name, sampler = place.study, NumberedSampler(search.sampler, search.seed)
    pruner, directions = PRUNERS[search.pruner], tuning.directions
    try:
        study = optuna.create_study(
            storage=storage, study_name=name, directions=directions, sampler=sampler, pruner=pruner
        )
        study.set_metric_names(list(tuning.scores))
        study.enqueue_trial(parameters(tuning.plan, tuning.space), user_attrs={ORIGIN: DEFAULTS})
    except DuplicatedStudyError:
        study = optuna.load_study(study_name=name, storage=storage, sampler=sampler, pruner=pruner)
        if CONFIG not in study.user_attrs:  # of somebody else, unless a process of ours is just beginning it
            own = all(ORIGIN in trial.user_attrs for trial in study.get_trials(deepcopy=False))
            if not own or [each.name.lower() for each in study.directions] != directions:
                raise InputError(f"study {name!r} was not begun by sb3-fair tune: give another study-name") from None
    known = study.user_attrs.get(CONFIG)
    if known is None:
        study.set_user_attr(CONFIG, tuning.config)
    elif known != tuning.config:
        raise InputError(_differs(place.study, known, tuning.config))
    return study


def _differs(name: str, known: dict[str, object], config: dict[str, object]) -> str:
    key = next(key for key in config if known.get(key) != config[key])
    before, now = known.get(key), config[key]
    if isinstance(before, dict) and isinstance(now, dict):
        inner = next(inner for inner in {**before, **now} if before.get(inner) != now.get(inner))
        key, before, now = f"{key}: {inner}", before.get(inner), now.get(inner)
    return f"study {name!r} was begun with other settings ({key}: {before}), got {now}: give another study-name"


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial is one of those that were asked for: it is not if its process died, or it was one too many."""
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING) or ERROR in trial.user_attrs


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that count and are over."""
    return [trial for trial in study.get_trials(deepcopy=False) if counts(trial) and trial.state.is_finished()]


def work(place: Place, tuning: Tuning, search: Search) -> None:
    """Does trials until the study has as many as it is to have.

    Where all that are missing are at work in other processes, it waits for them, and does them should those die.
    """
    study = begin(place, tuning, search)
    claims = place.claims
    with claims.alive():
        while len(finished(study)) < search.n_trials:
            claims.fail_abandoned(study)
            if sum(map(counts, study.get_trials(deepcopy=False))) < search.n_trials:
                try:
                    study.optimize(
                        lambda trial: _do(trial, tuning, search, claims),
                        n_trials=1,
                        catch=(Exception,),
                        gc_after_trial=True,
                    )
                except AssertionError as error:  # what Optuna makes of a trial whose end cannot be written
                    raise error.__context__ or error from None
                except ValueError as error:  # two processes took up a waiting trial at once, and the other was first
                    if not str(error).startswith("Cannot tell"):
                        raise
            else:
                sleep(PATIENCE)


def _do(trial: optuna.Trial, tuning: Tuning, search: Search, claims: Claims) -> list[float]:
    """A trial, with a line on what came out."""
    claims.take(trial)
    before = [other for other in trial.study.get_trials(deepcopy=False) if other.number < trial.number]
    if sum(map(counts, before)) >= search.n_trials:
        raise Surplus
    try:
        scores = run_trial(trial, tuning, prunes=search.pruner != "none", device=search.device)
    except optuna.TrialPruned:
        _say(trial, "pruned")
        raise
    except (Interrupted, KeyboardInterrupt) as stop:
        try_again(trial.study, trial)
        raise KeyboardInterrupt from stop  # after which Optuna ends the trial, as it does not after an Interrupted
    except Exception as error:
        trial.set_user_attr(ERROR, why(error))
        _say(trial, f"failed: {error}")
        traceback.print_exc()
        raise
    figures = trial.user_attrs[FIGURES]
    _say(trial, ", ".join(f"{name} {figures[name]:.4g}" for name in tuning.wanted))
    return scores


def _say(trial: optuna.Trial, what: str) -> None:
    print(f"trial {trial.number}: {what}", file=sys.stderr, flush=True)


def work_together(place: Place, tuning: Tuning, search: Search, n_jobs: int) -> None:
    """Does trials in so many processes, each with one thread of torch; one that is killed leaves its work to the
    others.
    """
    if n_jobs == 1:
        work(place, tuning, search)
        return
    begin(place, tuning, search)  # what is wrong with it is said once
    spawned = get_context("spawn")
    given = (place, tuning, search, to_send())
    processes = [spawned.Process(target=_work_alone, args=given) for _ in range(n_jobs)]
    try:
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    if all(process.exitcode for process in processes):
        codes: Sequence[int | None] = [process.exitcode for process in processes]
        raise WorkError(f"all processes of the study ended early, with exit codes {codes}")


def _work_alone(place: Place, tuning: Tuning, search: Search, sent: dict[str, bytes]) -> None:
    """In a process of its own, which ends with the one that began it."""
    from sb3_fair.common.threads import use_threads

    use_threads(1)
    parent = parent_process()
    assert parent is not None and parent.pid is not None
    end_with(parent.pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends its processes on Ctrl-C
    receive(sent)
    try:
        with quiet():
            work(place, tuning, search)
    except (*ERRORS, WorkError) as error:
        sys.exit(line_of(error))
