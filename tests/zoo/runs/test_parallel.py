"""Does work reach a Dask cluster, and what if a worker is killed, or all of them, or the scheduler?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest
import torch as th

from sb3_fair.common.extras import MissingExtra
from sb3_fair.common.threads import threads
from sb3_fair.zoo.names import InputError, WorkError
from sb3_fair.zoo.runs.parallel import elsewhere, in_parallel, on_cluster
from sb3_fair.zoo.runs.stopping import Interrupted, patience, stoppable
from sb3_fair.zoo.studies.grid import Job, run_grid
from tests.zoo.waiting import wait_until

ROOT = Path(__file__).parents[3]
ADDRESS = "tcp://127.0.0.1:1"


def process(number):
    return number, os.getpid()


def test_without_a_cluster_work_is_done_by_processes_of_this_machine():
    with on_cluster(None):
        assert not elsewhere()
        assert dict(in_parallel(process, [(1,), (2,)], n_jobs=1)) == {1: os.getpid(), 2: os.getpid()}
        assert os.getpid() not in dict(in_parallel(process, [(1,), (2,)], n_jobs=2)).values()


def test_work_in_this_process_has_one_thread_and_then_there_are_as_many_as_before():
    with threads(2):
        assert list(in_parallel(th.get_num_threads, [()], n_jobs=1)) == [1]
        assert th.get_num_threads() == 2


def dies(number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_is_told_in_one_line():
    with pytest.raises(WorkError, match=r"a process died, .* the same command goes on"):
        list(in_parallel(dies, [(1,), (2,)], n_jobs=2))
    assert len(dict(in_parallel(process, [(1,), (2,)], n_jobs=2))) == 2


def test_a_signal_ends_the_work_that_it_was_meant_for_and_no_other():
    list(in_parallel(process, [(1,), (2,)], n_jobs=2))
    with pytest.raises(Interrupted), stoppable(), patience():
        os.kill(os.getpid(), signal.SIGTERM)  # noted by the idle workers too
        raise Interrupted
    assert os.getpid() not in dict(in_parallel(process, [(1,), (2,)], n_jobs=2)).values()


@pytest.mark.parametrize(
    ("kind", "scheduler", "message"),
    [
        (None, ADDRESS, "scheduler must be left out without a cluster, got 'tcp://127.0.0.1:1'"),
        ("dask", None, "scheduler must be given with a cluster, as in tcp://host:8786"),
        ("dusk", ADDRESS, "unknown cluster 'dusk': did you mean 'dask'?"),
    ],
)
def test_a_cluster_has_a_kind_and_a_scheduler(kind, scheduler, message):
    with pytest.raises(InputError) as error, on_cluster(kind, scheduler):
        pass
    assert str(error.value) == message


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "sb3_fair.zoo.runs.dask_cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r'pip install "sb3-fair\[cluster\]"'), on_cluster("dask", ADDRESS):
        pass


def test_dask_is_not_imported_before_it_is_asked_for(tmp_path):
    code = "import sys, sb3_fair.zoo.cli.commands, sb3_fair.zoo.runs.seeds, sb3_fair.zoo.studies.grid as g; "
    code += "g.run_grid([g.Job('a', dict)], sys.argv[1], 1); print({'dask', 'distributed'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert shown.stdout.strip().endswith("set()"), shown.stderr


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    pytest.importorskip("distributed")
    from sb3_fair.zoo.runs import dask_cluster

    monkeypatch.setattr(dask_cluster, "PATIENCE", 1)
    message = f"scheduler must be the address of a Dask scheduler, got '{ADDRESS}'"
    with pytest.raises(InputError, match=message), on_cluster("dask", ADDRESS):
        pass


def tell_and_wait(number, folder):
    """Tells who does it; the first time it goes on for ever."""
    first = not any(folder.glob(f"{number}-*"))
    (folder / f"{number}-{os.getpid()}").touch()
    while first and number in (0, 1) and not (folder / "go").exists():
        time.sleep(0.05)
    return {"square": number**2, "process": os.getpid()}


@pytest.mark.slow
def test_when_a_worker_is_killed_in_mid_run_all_results_are_there(tmp_path, dask_cluster):
    marks, results = tmp_path / "marks", tmp_path / "results"
    marks.mkdir()
    jobs = [Job(f"squares/{number}", tell_and_wait, {"number": number, "folder": marks}) for number in range(8)]
    with dask_cluster(tmp_path / "cluster") as (address, (_, first, second)):

        def kill():
            wait_until(lambda: all(any(marks.glob(f"{number}-*")) for number in (0, 1)))
            first.send_signal(signal.SIGKILL)
            first.wait()
            (marks / "go").touch()

        Timer(0, kill).start()
        with on_cluster("dask", address):
            assert elsewhere()
            found = run_grid(jobs, results)
    assert {name: result["square"] for name, result in found.items()} == {f"squares/{n}": n**2 for n in range(8)}
    assert {result["process"] for result in found.values()} == {second.pid}
    halted = {number for number in range(8) if (marks / f"{number}-{first.pid}").exists()}
    assert halted & {0, 1}
    assert all((marks / f"{number}-{second.pid}").exists() for number in halted)  # done again
    assert len(list(results.glob("squares/*.json"))) == 8
    before = sorted(marks.iterdir())
    assert run_grid(jobs, results, n_jobs=1) == found
    assert sorted(marks.iterdir()) == before


def kill_yourself(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.slow
def test_work_that_kills_every_worker_is_an_error_and_not_waited_for_for_ever(tmp_path, dask_cluster):
    from distributed import KilledWorker

    with dask_cluster(tmp_path, workers=3) as (address, _):
        with on_cluster("dask", address), pytest.raises(KilledWorker):
            list(in_parallel(kill_yourself, [(2,)]))
        with on_cluster("dask", address):  # one is left, which works alone, and not this process
            assert os.getpid() not in dict(in_parallel(process, [(1,), (2,)])).values()
            with pytest.raises(ZeroDivisionError):
                list(in_parallel(divmod, [(1, 0)]))


def sleep(number):
    time.sleep(60)


@pytest.mark.slow
def test_work_waits_for_workers_that_are_busy(tmp_path, dask_cluster, monkeypatch):
    from distributed import Client

    from sb3_fair.zoo.runs import dask_cluster as ours

    monkeypatch.setattr(ours, "PATIENCE", 5)
    with dask_cluster(tmp_path, workers=1) as (address, _), Client(address, set_as_default=False) as other:
        busy = other.submit(time.sleep, 10)
        with on_cluster("dask", address):
            assert busy.status == "pending"
            assert list(in_parallel(divmod, [(7, 2)])) == [(3, 1)]


@pytest.mark.slow
def test_a_lost_scheduler_is_an_error(tmp_path, dask_cluster):
    lost = pytest.raises(ConnectionError, match="the scheduler of the Dask cluster was lost")
    with dask_cluster(tmp_path, workers=1) as (address, (scheduler, _)), on_cluster("dask", address), lost:
        Timer(1, scheduler.kill).start()
        list(in_parallel(sleep, [(1,)]))


@pytest.mark.slow
def test_workers_whose_runs_would_disturb_each_other_are_refused(tmp_path, dask_cluster):
    refused = pytest.raises(InputError, match=r"workers must have one thread \(--nthreads 1\), got 2")
    with dask_cluster(tmp_path, workers=1, threads=2) as (address, _), refused, on_cluster("dask", address):
        pass
