"""Do trainings in several processes end with the one that began them, saved where there is time for it?"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo.runs import stopping
from sb3_fair.zoo.runs.stopping import Interrupted, patience, received, stoppable
from tests.zoo.waiting import wait_until

TRAIN = (
    "train --algo a2c --env sb3_fair/JobHiring-Small-v0 --seeds 3 --jobs 2 --n-timesteps 2000000 --n-envs 2 --audit SP"
)
TUNE = (
    "tune --algo a2c --env sb3_fair/JobHiring-Small-v0 --scores R:SP --n-trials 3 --n-jobs {} --n-timesteps 2000000 "
    "--only learning_rate"
)


def begin(command, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "sb3_fair.zoo", *command.split()],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def alive(children):
    return [pid for pid in children if (Path("/proc") / pid / "stat").is_file()]


def children_of(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_runs_side_by_side_end_with_their_parent_and_are_saved_if_it_has_time(number, tmp_path):
    process = begin(TRAIN, tmp_path)
    try:
        wait_until(lambda: len([file for file in tmp_path.glob("logs/*/*/progress.csv") if file.stat().st_size]) == 2)
        children = children_of(process.pid)
        process.send_signal(number)
        errors = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    wait_until(lambda: not alive(children), 60)
    saved = [RunFolder(file.parent).checkpoint.is_file() for file in tmp_path.glob("logs/*/*/config.yml")]
    if number == signal.SIGKILL:
        assert saved == [False, False]
    else:
        assert process.returncode == 128 + number
        assert errors.splitlines()[-1] == "sb3-fair: stopped; what is done is kept, and the same command goes on"
        assert saved == [True, True]


@pytest.mark.parametrize(("n_jobs", "number"), [(1, signal.SIGTERM), (2, signal.SIGINT)])
def test_a_study_that_is_stopped_says_how_to_go_on(n_jobs, number, tmp_path):
    process = begin(TUNE.format(n_jobs), tmp_path)
    try:
        wait_until(lambda: any('"op_code":5' in file.read_text() for file in tmp_path.glob("logs/tune/*/journal.log")))
        process.send_signal(number)
        errors = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert errors.splitlines()[-1].startswith(
        "sb3-fair: stopped; the study goes on with the same command: sb3-fair tune"
    )
    assert "Traceback" not in errors


def test_a_first_signal_is_noted_where_there_is_patience_and_a_second_one_is_not(capfd):
    first = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background have it ignored
    with pytest.raises(Interrupted, match="kept") as stopped, stoppable("kept"), patience():
        os.kill(os.getpid(), signal.SIGINT)
        assert received() == signal.SIGINT
        with stoppable("another"):
            assert signal.getsignal(signal.SIGTERM) == stopping._handle
            os.kill(os.getpid(), signal.SIGTERM)
    assert stopped.value.exit_code == 130 and received() is None
    assert signal.signal(signal.SIGINT, first) == signal.default_int_handler
    assert capfd.readouterr().err.encode() == stopping.NOTED
