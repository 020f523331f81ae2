"""Does a run's folder give back what the run wrote into it?"""

import pickle
from pathlib import Path

import numpy as np
import pytest

from sb3_fair.common.front import Command, EvaluatedPolicy, Front
from sb3_fair.common.plain import plain
from sb3_fair.common.run_folder import DamagedError, RunFolder, differing


def test_folders_are_numbered_per_environment_and_algorithm(tmp_path):
    names = [RunFolder.create(tmp_path, algo, env).path for algo, env in [
        ("pcn", "sb3_fair:sb3_fair/A-v0"), ("pcn", "sb3_fair/A-v0"), ("pcn", "sb3_fair/B-v0"), ("ppo", "sb3_fair/A-v0")
    ]]  # fmt: skip
    assert [str(path.relative_to(tmp_path)) for path in names] == [
        "pcn/sb3_fair-A-v0_1", "pcn/sb3_fair-A-v0_2", "pcn/sb3_fair-B-v0_1", "ppo/sb3_fair-A-v0_1",
    ]  # fmt: skip


def test_what_a_run_wrote_is_read_back(tmp_path):
    run = RunFolder.create(tmp_path, "pcn", "A-v0")
    assert not run.is_run
    config = {"env": "A-v0", "env_kwargs": {"objectives": ("R", "SP")}, "ref_point": np.array([-1.0, 0.5])}
    run.start(config=config, args={"seed": None}, command="sb3-fair train --algo pcn")
    again = RunFolder.open(run.path)
    assert again.config == {"env": "A-v0", "env_kwargs": {"objectives": ["R", "SP"]}, "ref_point": [-1.0, 0.5]}
    assert again.args == {"seed": None}
    assert again.command == "sb3-fair train --algo pcn"
    assert again.versions["numpy"] == np.__version__ and "date" in again.versions


def test_policies_and_rules_are_read_back_exactly(tmp_path):
    run = RunFolder(tmp_path)
    policy = EvaluatedPolicy("PCN 0", ("R", "SP"), np.array([[1 / 3, -0.1], [2.0, np.pi]]), np.array([3.0, 4.0]))
    run.save_results(Front((policy,)), [policy, policy])
    np.testing.assert_array_equal(run.front[0].returns, policy.returns)
    assert len(run.baselines) == 2


@pytest.mark.parametrize("name", ["front.json", "baselines.json"])
def test_results_are_not_written_through_links(name, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "precious")
    RunFolder(tmp_path / "run").save_results(Front(()))
    assert not (tmp_path / "precious").exists() and (tmp_path / "run" / name).is_file()


def test_commands_may_have_bytes_that_are_no_text(tmp_path):
    run = RunFolder(tmp_path)
    run.start(config={}, args={}, command="sb3-fair train --log-dir l\udce9")  # as Python reads a byte that is no UTF-8
    assert run.command == r"sb3-fair train --log-dir l\udce9"


def test_curves_are_numbers_with_none_where_a_row_has_none(tmp_path):
    (tmp_path / "progress.csv").write_text("time/total_timesteps,train/loss\n100,\n200,0.5\n")
    assert RunFolder(tmp_path).curves == {"time/total_timesteps": [100.0, 200.0], "train/loss": [None, 0.5]}


@pytest.mark.parametrize("words", ["R: 5", "{groups: 5}"])
def test_words_that_no_run_wrote_are_damaged(words, tmp_path):
    (tmp_path / "words.yml").write_text(words)
    with pytest.raises(DamagedError, match=r"words\.yml is damaged: .* words must be a dict of texts by name"):
        _ = RunFolder(tmp_path).words


def test_a_short_text_cannot_make_a_long_list(tmp_path):
    (tmp_path / "args.yml").write_text("a: &a [x, x]\nb: [*a, *a]\n")
    with pytest.raises(DamagedError, match=r"args\.yml is damaged: .* no aliases"):
        _ = RunFolder(tmp_path).args


def test_damage_is_told_across_processes():
    error = pickle.loads(pickle.dumps(DamagedError(Path("a"), "it is missing")))
    assert type(error) is DamagedError and str(error).startswith("a is damaged: it is missing; take the file")


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="run must be the folder of a run"):
        RunFolder.open(tmp_path)


def test_plain_knows_what_yaml_knows_and_writes_the_rest_as_text():
    assert plain({"a": (1, np.int64(2)), "b": np.array([0.5]), "c": len, "d": True, "e": Command((1,), 2)}) == {
        "a": [1, 2],
        "b": [0.5],
        "c": "<built-in function len>",
        "d": True,
        "e": {"desired_return": [1], "desired_horizon": 2},
    }


def test_versions_differ_also_where_a_package_is_on_one_side_only():
    here = {"python": "3.12", "numpy": "2.0"}
    assert differing(here, here) == ""
    assert differing({"python": "3.11", "torch": "2.3"}, here) == "python 3.11, numpy None, torch 2.3"
