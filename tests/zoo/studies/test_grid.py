"""Does a study go on where it was interrupted, and never mix runs of different settings?"""

import json
from dataclasses import replace

import pytest

from sb3_fair.zoo.names import WorkError
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.studies import training
from sb3_fair.zoo.studies.grid import Job, run_grid
from sb3_fair.zoo.studies.training import Watch


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


@pytest.mark.parametrize("text", ["", '{"arguments": {"numb', "{}", "[]", "\xff"])
def test_a_file_that_is_no_result_is_told_of_and_its_run_is_done_again(text, tmp_path):
    run_grid(jobs(tmp_path, 1, 2), tmp_path, n_jobs=1)
    (tmp_path / "squares" / "1.json").write_bytes(text.encode("latin1"))
    with pytest.warns(UserWarning, match=r"squares.1\.json is not the result of a run"):
        again = run_grid(jobs(tmp_path, 1, 2), tmp_path, n_jobs=1)
    assert again == {"squares/1": {"square": 1}, "squares/2": {"square": 4}} and done(tmp_path) == ["1", "1", "2"]


class Kills(Watch):
    """Counts rollouts, and in the third of them dies once."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.figures = folder, {"rollouts": []}

    def _on_rollout_start(self):
        if len(self.figures["rollouts"]) == 3 and not (self.folder / "died").exists():
            (self.folder / "died").touch()
            raise RuntimeError("killed")

    def _on_rollout_end(self):
        self.figures["rollouts"].append(self.num_timesteps)


def short_plan():
    settings = {"n_steps": 8, "batch_size": 8, "n_epochs": 1}
    return make_plan("ppo", "sb3_fair/Doughnut-Small-v0", n_timesteps=64, n_envs=1, hyperparams=settings)


def weights(plan, model):
    return {"weights": [float(each.detach().sum()) for each in model.policy.parameters()]}


def test_a_training_goes_on_from_its_checkpoint_to_the_same_result(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "MINUTES", 0)
    plan = short_plan()
    whole = run_grid([Job("ppo/0", weights, {}, plan, Watch())], tmp_path / "whole", n_jobs=1)
    with pytest.raises(RuntimeError, match="killed"):
        run_grid([Job("ppo/0", weights, {}, plan, Kills(tmp_path))], tmp_path, n_jobs=1)
    assert (tmp_path / "ppo/0.checkpoint").is_file()
    found = run_grid([Job("ppo/0", weights, {}, plan, Kills(tmp_path))], tmp_path, n_jobs=1)["ppo/0"]
    assert found == {"rollouts": [8 * (k + 1) for k in range(8)], **whole["ppo/0"]}
    assert [path.name for path in (tmp_path / "ppo").iterdir()] == ["0.json"]


def test_a_checkpoint_of_another_plan_is_not_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "MINUTES", 0)
    plan = short_plan()
    with pytest.raises(RuntimeError, match="killed"):
        run_grid([Job("ppo/0", weights, {}, plan, Kills(tmp_path))], tmp_path, n_jobs=1)
    job = Job("ppo/0", weights, {}, replace(plan, n_timesteps=32), Kills(tmp_path))
    assert run_grid([job], tmp_path, n_jobs=1)["ppo/0"]["rollouts"] == [8, 16, 24, 32]


def test_a_damaged_checkpoint_is_told_of_and_the_training_begins_anew(tmp_path):
    checkpoint = tmp_path / "ppo" / "0.checkpoint"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"nothing of ours")
    with pytest.warns(UserWarning, match="is not gone on with: .* damaged"):
        run_grid([Job("ppo/0", weights, {}, short_plan())], tmp_path, n_jobs=1)
    assert not checkpoint.exists()


class Breaks(Watch):
    """Makes weights NaN."""

    def _on_rollout_end(self):
        for each in self.model.policy.parameters():
            each.data.fill_(float("nan"))


def test_weights_that_are_no_numbers_end_a_study(tmp_path):
    with pytest.raises(WorkError, match="not finite"):
        run_grid([Job("ppo/0", weights, {}, short_plan(), Breaks())], tmp_path, n_jobs=1)


def test_processes_share_the_work(tmp_path):
    found = run_grid(jobs(tmp_path, *range(4)), tmp_path, n_jobs=2)
    assert [found[f"squares/{number}"]["square"] for number in range(4)] == [0, 1, 4, 9]
