"""Are runs trained once each, wherever it is done, and gone on with after an interruption?"""

import signal
import subprocess
import sys
import warnings
from dataclasses import replace

import pytest
from filelock import FileLock

from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.runs import seeds
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.seeds import train_all
from sb3_fair.zoo.runs.train import resume, train
from tests.zoo.conftest import interrupted
from tests.zoo.waiting import wait_until

SMALL = "sb3_fair/JobHiring-Small-v0"


def front(run):
    return (run.path / "front.json").read_text()


@pytest.fixture
def plans(quick_plan):
    return [replace(quick_plan("a2c", 200), seed=seed) for seed in (5, 6, 7)]


def test_every_plan_gets_its_run_and_finished_ones_are_taken_as_they_are(tmp_path, plans, monkeypatch):
    alone = train(plans[1], log_dir=tmp_path / "alone")
    broken = tmp_path / "all" / "ppo" / "other_1" / "config.yml"
    broken.parent.mkdir(parents=True)
    broken.write_text("a: [")
    first = train_all(plans[:2], log_dir=tmp_path / "all", n_jobs=1)
    assert [run.config for run in first] == [plan.config for plan in plans[:2]]
    assert front(first[1]) == front(alone)
    assert front(first[0]) != front(alone)
    monkeypatch.setattr(seeds, "train", None)
    again = train_all(plans[:2], log_dir=tmp_path / "all", n_jobs=1)
    assert [run.path for run in again] == [run.path for run in first]
    monkeypatch.undo()
    more = train_all(plans, log_dir=tmp_path / "all", n_jobs=1)
    assert [run.path for run in more[:2]] == [run.path for run in first] and more[2].finished


def test_a_finished_run_that_is_damaged_is_trained_again(tmp_path, plans):
    (run,) = train_all(plans[:1], log_dir=tmp_path, n_jobs=1)
    whole = front(run)
    (run.path / "front.json").write_text(whole[:-9])
    with pytest.warns(UserWarning, match="_1 is damaged: its plan is trained again, in a new folder"):
        (again,) = train_all(plans[:1], log_dir=tmp_path, n_jobs=1)
    assert again.path != run.path and front(again) == whole
    with warnings.catch_warnings(action="error"):
        assert train_all(plans[:1], log_dir=tmp_path, n_jobs=1)[0].path == again.path


def test_a_run_that_was_stopped_before_its_report_gets_one(tmp_path, plans):
    (run,) = train_all(plans[:1], log_dir=tmp_path, n_jobs=1)
    for go_on in (lambda: train_all(plans[:1], log_dir=tmp_path, n_jobs=1)[0], lambda: resume(run.path)):
        run.report.unlink()
        assert go_on().path == run.path and run.report.is_file()
    with pytest.raises(InputError, match="is finished"):
        resume(run.path)


def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path, plans, monkeypatch):
    halted = interrupted(plans[0], tmp_path / "all", (RunFolder, "save_results"))
    monkeypatch.setattr(seeds, "train", None)
    (run,) = train_all(plans[:1], log_dir=tmp_path / "all", n_jobs=1)
    assert run.path == halted.path and run.finished
    assert front(run) == front(train(plans[0], log_dir=tmp_path / "alone"))


def test_a_run_that_another_process_is_at_is_left_alone(tmp_path, plans):
    halted = interrupted(plans[0], tmp_path)
    busy = r"^a run must have been interrupted to go on, but '.*2c/.*' is in training$"
    for go_on in (lambda: train_all(plans[:1], log_dir=tmp_path, n_jobs=1), lambda: resume(halted.path)):
        with FileLock(halted.path / "training.lock"), pytest.raises(InputError, match=busy):
            go_on()
    resume(halted.path)
    assert not (halted.path / "training.lock").exists()


@pytest.mark.slow
def test_a_cluster_trains_what_this_machine_would_train_even_if_a_worker_is_killed(tmp_path, dask_cluster):
    places = tmp_path / "places"
    places.mkdir()
    with dask_cluster(tmp_path / "cluster", TMPDIR=str(places)) as (address, (_, first, _)):
        command = [
            sys.executable, "-m", "sb3_fair.zoo", "train", "--algo", "a2c", "--env", SMALL, "--seed", "5",
            "--seeds", "3", "--n-timesteps", "4000", "--n-envs", "2", "-P", "n_eval_episodes:2", "--audit", "SP",
            "-E", "team_size:5", "-E", "episode_length:20", "--cluster", "dask", "--scheduler", address,
        ]  # fmt: skip
        training = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: len(list(places.glob("*/a2c/*/progress.csv"))) == 2)
            first.send_signal(signal.SIGKILL)
            shown, _ = training.communicate(timeout=300)
        finally:
            training.kill()
    assert training.returncode == 0
    assert len(list(places.glob("*/a2c"))) == 1  # what the killed worker left
    runs = [RunFolder((tmp_path / line).parent) for line in shown.splitlines()[-3:]]
    assert [run.config["seed"] for run in runs] == [5, 6, 7]
    for run in runs:
        assert {"model.zip", "report.html", "progress.csv", "args.yml"} <= {file.name for file in run.path.iterdir()}
    here = train_all([Plan.from_config(run.config) for run in runs], log_dir=tmp_path / "here", n_jobs=2, device="cpu")
    assert [front(run) for run in runs] == [front(run) for run in here]
