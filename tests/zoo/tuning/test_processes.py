"""Do several processes share a study, and does one that dies leave nothing behind that is in the way?"""

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import optuna
import pytest

from sb3_fair.zoo.names import InputError, WorkError
from sb3_fair.zoo.runs.stopping import Interrupted
from sb3_fair.zoo.tuning import storage as storages
from sb3_fair.zoo.tuning import study as studies
from sb3_fair.zoo.tuning.storage import ATTEMPT, ATTEMPTS, CLAIM, ORIGIN, Place
from sb3_fair.zoo.tuning.study import DEFAULTS, Search, begin, counts, finished, work, work_together
from sb3_fair.zoo.tuning.tune import make_tuning
from tests.zoo.waiting import wait_until

SMALL = "sb3_fair/JobHiring-Small-v0"
FAST = {"n_steps": 16, "batch_size": 64, "n_epochs": 1, "n_eval_episodes": 1}
spawn = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def tuning():
    return make_tuning(
        "ppo", SMALL, scores=("R", "SP"), n_timesteps=64, n_envs=4, only=["learning_rate"], hyperparams=FAST
    )


def search(n_trials):
    return Search(n_trials, "tpe", "none", 0, "cpu")


def forever(*_, **__):
    while True:
        time.sleep(1)


def killed_in_its_first_trial(place, tuning):
    """A study whose only process was killed while it was at work on a trial; what it tried."""
    begin(place, tuning, search(1))
    process = spawn.Process(target=_hang_in_its_first_trial, args=(place, tuning, storages.HEARTBEAT))
    process.start()
    study = begin(place, tuning, search(1))
    wait_until(lambda: any(trial.params for trial in study.trials if trial.state.name == "RUNNING"))
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    (running,) = (trial for trial in study.trials if trial.state.name == "RUNNING")
    return study, running


def _hang_in_its_first_trial(place, tuning, heartbeat):
    storages.HEARTBEAT = heartbeat
    studies.run_trial = _suggest_then_hang
    work(place, tuning, search(1))


def _suggest_then_hang(trial, tuning, **_):
    for name, values in tuning.space.items():
        values.suggest(trial, name)
    forever()


def test_a_killed_trial_does_not_count_and_its_values_are_tried_again(tmp_path, tuning):
    place = Place("killed", tmp_path)
    study, running = killed_in_its_first_trial(place, tuning)
    assert not finished(study)
    work(place, tuning, search(2))
    states = [trial.state.name for trial in study.trials]
    assert states.count("COMPLETE") == 2 and states[running.number] == "FAIL" and "RUNNING" not in states
    again = next(trial for trial in study.trials if ATTEMPT in trial.user_attrs)
    assert again.params == running.params and again.user_attrs[ORIGIN] == running.user_attrs[ORIGIN] == DEFAULTS


@pytest.mark.parametrize(("way", "n_trials"), [("minimize", 0), ("maximize", 1)])
def test_a_study_of_somebody_else_is_left_as_it_is(way, n_trials, tmp_path, tuning):
    place = Place("theirs", tmp_path, f"sqlite:///{tmp_path / 'theirs.db'}")
    theirs = optuna.create_study(storage=place.storage, study_name=place.study, direction=way)
    theirs.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials)
    with pytest.raises(InputError, match="study 'theirs' was not begun by sb3-fair tune: give another study-name"):
        begin(place, tuning, search(3))
    assert not theirs.user_attrs and len(theirs.trials) == n_trials


def test_values_that_kill_their_process_again_and_again_are_given_up(tmp_path, tuning):
    study = begin(Place("deadly", tmp_path), tuning, search(1))
    for _ in range(ATTEMPTS):
        trial = study.ask()
        trial.suggest_float("learning_rate", 1e-5, 1e-1)
        trial.set_user_attr(CLAIM, "somebody who is dead")
        Place("deadly", tmp_path).claims.fail_abandoned(study)
    assert [trial.state.name for trial in study.trials] == ["FAIL"] * ATTEMPTS


def test_a_trial_of_a_living_process_is_left_alone(tmp_path, tuning):
    place = Place("alive", tmp_path)
    study = begin(place, tuning, search(1))
    ours, theirs = place.claims, place.claims
    with theirs.alive():
        study.ask().set_user_attr(CLAIM, theirs.name)
        study.ask()  # begun this moment, and not claimed yet
        ours.fail_abandoned(study)
        assert [trial.state.name for trial in study.trials] == ["RUNNING", "RUNNING"]
    ours.fail_abandoned(study)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "RUNNING"]


@pytest.mark.parametrize("storage", [None, "sqlite:///{folder}/study.db"])
def test_two_processes_share_the_trials_of_a_study_without_doing_any_twice(tmp_path, tuning, storage):
    place = Place("shared", tmp_path, storage and storage.format(folder=tmp_path))
    processes = [spawn.Process(target=work, args=(place, tuning, search(6))) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    study = optuna.load_study(study_name="shared", storage=place.open())
    done = [trial for trial in study.trials if counts(trial)]
    assert [trial.state.name for trial in done] == ["COMPLETE"] * 6
    assert len({trial.params["learning_rate"] for trial in done}) == 6
    assert len({trial.user_attrs[CLAIM] for trial in done}) == 2


def test_a_trial_in_a_database_without_a_sign_of_life_does_not_count(tmp_path, tuning, monkeypatch):
    monkeypatch.setattr(storages, "HEARTBEAT", 1)
    monkeypatch.setattr(storages, "GRACE", 1)
    place = Place("database", tmp_path, f"sqlite:///{tmp_path}/study.db")
    study, running = killed_in_its_first_trial(place, tuning)
    work(place, tuning, search(1))
    states = [trial.state.name for trial in study.trials]
    assert states[running.number] == "FAIL" and states.count("COMPLETE") == 1


@pytest.mark.parametrize("taken", [False, True])
def test_a_trial_whose_process_died_at_once_does_not_count(taken, tmp_path, tuning, monkeypatch):
    """Before its claim, or with it but before Optuna's own heartbeat."""
    for name, value in (("HEARTBEAT", 1), ("GRACE", 1), ("TAKING", timedelta(seconds=1))):
        monkeypatch.setattr(storages, name, value)
    place = Place("database", tmp_path, f"sqlite:///{tmp_path}/study.db")
    study = begin(place, tuning, search(1))
    trial = study.ask()
    if taken:
        place.claims.take(trial)
    wait_until(lambda: time.time() - trial.datetime_start.timestamp() > 3)
    place.claims.fail_abandoned(study)
    assert study.trials[trial.number].state.name == "FAIL"


def test_a_trial_too_many_is_not_done(tmp_path, tuning, monkeypatch):
    """Two processes may both see that one trial is missing, and both begin it."""
    place = Place("surplus", tmp_path)
    study = begin(place, tuning, search(1))
    study.ask()
    monkeypatch.setattr(studies, "run_trial", forever)
    with pytest.raises(studies.Surplus):
        studies._do(study.ask(), tuning, search(1), place.claims)


@pytest.mark.slow
def test_after_sigkill_the_same_command_goes_on_with_the_same_study(tmp_path):
    command = [
        sys.executable, "-m", "sb3_fair.zoo", "tune", "--algo", "ppo", "--env", SMALL, "--scores", "R:SP",
        "--n-trials", "6", "--n-jobs", "2", "--n-timesteps", "1000", "--only", "learning_rate",
        "-P", "n_steps:16", "-P", "n_epochs:1", "-P", "n_eval_episodes:1",
    ]  # fmt: skip
    name = "ppo_sb3_fair-JobHiring-Small-v0"
    place = Place(name, tmp_path / "logs" / "tune" / name)

    def trials():
        return optuna.load_study(study_name=name, storage=place.open()).trials

    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=tmp_path)
    try:
        ended = '"op_code":6'  # or begun, of the first trial, which was lined up
        wait_until(lambda: place.journal.is_file() and place.journal.read_text().count(ended) >= 2)
    finally:
        process.kill()
        process.wait()
    before = [trial for trial in trials() if trial.state.name == "COMPLETE"]
    assert 0 < len(before) < 6
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    after = [trial for trial in trials() if trial.state.name == "COMPLETE"]
    assert len(after) == 6 and all(trial in after for trial in before)  # the second may end before the first
    assert len({trial.params["learning_rate"] for trial in after}) == 6
    assert len({trial.user_attrs[CLAIM] for trial in after}) >= 3
    assert (place.folder / "best.yml").is_file()


@contextmanager
def disk_full_at(size):
    """No file of this process grows beyond ``size`` bytes: what does not fit is cut off, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 20, 200, 2000])
def test_a_disk_that_is_full_loses_only_what_was_being_written(room, tmp_path, tuning, monkeypatch):
    monkeypatch.setattr(storages, "TAKING", timedelta(seconds=1))
    place = Place("full", tmp_path)
    if room != 20:  # else the first line is cut off
        work(place, tuning, search(1))
    before = place.journal.stat().st_size if place.journal.is_file() else 0
    with disk_full_at(before + room), pytest.raises(OSError, match="File too large"):
        work(place, tuning, search(3))
    assert place.journal.stat().st_size == before + room
    work(place, tuning, search(3))
    study = begin(place, tuning, search(3))
    assert [trial.state.name for trial in finished(study)] == ["COMPLETE"] * 3
    assert all(json.loads(line) for line in place.journal.read_text().splitlines())


def test_what_stops_all_processes_is_told_in_lines(tmp_path, tuning, monkeypatch, capfd):
    place = Place("full", tmp_path)
    work(place, tuning, search(1))
    monkeypatch.setattr(studies, "begin", lambda *_: None)  # which would fail alone
    early = pytest.raises(WorkError, match="all processes of the study ended early")
    with disk_full_at(place.journal.stat().st_size), early:
        work_together(place, tuning, search(3), 2)
    assert capfd.readouterr().err.splitlines()[-2:] == ["sb3-fair: [Errno 27] File too large"] * 2


@pytest.mark.parametrize("storage", [None, "sqlite:///{folder}/study.db"])
@pytest.mark.parametrize("stop", [Interrupted, KeyboardInterrupt])
def test_a_trial_that_is_stopped_is_over_and_its_values_are_tried_again_once(
    tmp_path, tuning, storage, stop, monkeypatch
):
    place = Place("stopped", tmp_path, storage and storage.format(folder=tmp_path))

    def run_trial(trial, *_, **__):
        tuning.space["learning_rate"].suggest(trial, "learning_rate")
        raise stop

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(studies, "run_trial", run_trial)
        work(place, tuning, search(2))
    study = begin(place, tuning, search(2))
    assert [trial.state.name for trial in study.trials] == ["FAIL", "WAITING"]
    work(place, tuning, search(2))
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE", "COMPLETE"]
    stopped, again, other = (trial.params for trial in study.trials)
    assert stopped == again != other


def test_a_trial_that_another_process_has_ended_meanwhile_stops_nothing(tmp_path, tuning, monkeypatch):
    """As happens if both took up the same waiting trial of a database."""
    run = studies.run_trial

    def run_trial(trial, *args, **kwargs):
        scores = run(trial, *args, **kwargs)
        if trial.number == 0:
            trial.study.tell(trial.number, scores)
        return scores

    monkeypatch.setattr(studies, "run_trial", run_trial)
    place = Place("both", tmp_path)
    work(place, tuning, search(2))
    assert [trial.state.name for trial in finished(begin(place, tuning, search(2)))] == ["COMPLETE"] * 2


def test_locks_of_dead_processes_do_not_stay(tmp_path, tuning):
    place = Place("locks", tmp_path)
    study, _ = killed_in_its_first_trial(place, tuning)
    assert len(list(tmp_path.glob("*.processes/*.lock"))) == 1
    with place.claims.alive() as _, place.claims.alive() as _:
        assert len(list(tmp_path.glob("*.processes/*.lock"))) == 2
    assert not list(tmp_path.glob("*.processes/*.lock"))
    place.claims.fail_abandoned(study)
    assert study.trials[0].state.name == "FAIL"


def test_a_lock_that_cannot_be_deleted_stops_nothing(tmp_path, monkeypatch):
    """As on Windows, while another process tries it."""

    def unlink(*_, **__):
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", unlink)
    with Place("locks", tmp_path).claims.alive():
        pass
