"""Does a study go on where it was interrupted, and never mix runs of different settings?"""

import json

import pytest

from sb3_fair.zoo.studies.grid import Job, run_grid


def square(number, folder):
    """Leaves a mark every time it is done."""
    with (folder / "done").open("a") as marks:
        marks.write(f"{number}\n")
    if number < 0:
        raise ValueError("number must not be negative")
    return {"square": number**2}


def jobs(folder, *numbers):
    return [Job(f"squares/{number}", square, {"number": number, "folder": folder}) for number in numbers]


def done(folder):
    return sorted((folder / "done").read_text().split())


def test_results_come_by_name_and_are_not_computed_again(tmp_path):
    first = run_grid(jobs(tmp_path, 1, 2), tmp_path, n_jobs=1)
    assert first == {"squares/1": {"square": 1}, "squares/2": {"square": 4}}
    assert run_grid(jobs(tmp_path, 1, 2, 3), tmp_path, n_jobs=1)["squares/3"] == {"square": 9}
    assert done(tmp_path) == ["1", "2", "3"]


def test_other_arguments_are_other_runs(tmp_path):
    run_grid([Job("a", square, {"number": 2, "folder": tmp_path})], tmp_path, n_jobs=1)
    again = run_grid([Job("a", square, {"number": 3, "folder": tmp_path})], tmp_path, n_jobs=1)
    assert again == {"a": {"square": 9}}


def test_what_was_finished_before_an_error_stays(tmp_path):
    with pytest.raises(ValueError, match="must not be negative"):
        run_grid(jobs(tmp_path, 5, -1), tmp_path, n_jobs=1)
    run_grid(jobs(tmp_path, 5), tmp_path, n_jobs=1)
    assert done(tmp_path) == ["-1", "5"]
    assert json.loads((tmp_path / "squares" / "5.json").read_text())["result"] == {"square": 25}
    assert not list(tmp_path.rglob("*.part"))


def test_processes_share_the_work(tmp_path):
    found = run_grid(jobs(tmp_path, *range(4)), tmp_path, n_jobs=2)
    assert [found[f"squares/{number}"]["square"] for number in range(4)] == [0, 1, 4, 9]
