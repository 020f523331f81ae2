"""Do files and settings of strangers run no code, unless the user asks for it?"""

import os
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from stable_baselines3 import PPO

from sb3_fair import make_vec
from sb3_fair.common.run_folder import DamagedError, RunFolder
from sb3_fair.report import from_run
from sb3_fair.zoo.cli.commands import main
from sb3_fair.zoo.evaluation.evaluate import evaluate_run
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.runs.model_file import evaluate_file
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.seeds import train_all
from sb3_fair.zoo.runs.train import resume, train
from tests.zoo.conftest import interrupted, make_quick_plan

SMALL = "sb3_fair/JobHiring-Small-v0"


class Evil:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs of another user: a finished one and one that was interrupted."""
    folder = tmp_path_factory.mktemp("made")
    plan = make_quick_plan("ppo", n_timesteps=128, normalize=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(folder))
        finished = train(plan, log_dir=folder / "finished", device="cpu").path
        halted = interrupted(plan, folder / "halted", device="cpu").path
    return finished, halted


@pytest.fixture
def strangers(made, tmp_path):
    """Copies of them, with pickles that run code."""
    for name, path in zip(("finished", "halted"), made, strict=True):
        shutil.copytree(path, tmp_path / "logs" / "ppo" / name)
    finished, halted = (RunFolder(tmp_path / "logs" / "ppo" / name) for name in ("finished", "halted"))
    for file in (finished.model, finished.normaliser, halted.checkpoint):
        assert file.is_file()
        file.write_bytes(pickle.dumps(Evil(tmp_path / "mark")))
    return finished, halted


def said(capsys, *command):
    """Exit code and the one line on stderr of a command."""
    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit) as ended:
        patched.setattr(sys, "argv", ["sb3-fair", *map(str, command)])
        main()
    lines = capsys.readouterr().err.strip().splitlines()
    return ended.value.code, lines[-1] if lines else ""


def test_a_strangers_run_is_evaluated_without_its_pickles(made, strangers, tmp_path):
    again = [evaluate_run(RunFolder(path), n_eval_episodes=2)[0].returns for path in (made[0], strangers[0].path)]
    np.testing.assert_array_equal(*again)
    assert not (tmp_path / "mark").exists()


def test_pickles_are_refused_in_one_line_unless_they_are_trusted(strangers, tmp_path, capsys):
    _, halted = strangers
    PPO("MlpPolicy", make_vec(SMALL, 1), n_steps=8, batch_size=8).save(tmp_path / "mine.zip")
    model = ["evaluate", "--model", tmp_path / "mine.zip", "--algo", "ppo", "--env", SMALL, "--n-eval-episodes", 1]
    for command in (["train", "--resume", halted.path], model):
        code, line = said(capsys, *command)
        assert code == 2 and "can run code" in line and "--trust" in line, line
    assert not (tmp_path / "mark").exists()
    assert said(capsys, *model, "--trust")[0] == 0
    resumed = said(capsys, "train", "--resume", halted.path, "--trust", "--no-progress")
    assert resumed[0] == 2 and (tmp_path / "mark").exists()


def test_ones_own_models_are_trusted_as_long_as_they_are_as_they_were(quick_plan, tmp_path):
    run = train(quick_plan("ppo", n_timesteps=64, normalize=True), log_dir=tmp_path, device="cpu")

    def returns():
        short = {"team_size": 5, "episode_length": 20}
        return evaluate_file(run.model, "ppo", SMALL, env_kwargs=short, n_eval_episodes=2, trust=False)[0][0].returns

    (policy,) = evaluate_run(run, n_eval_episodes=2, seed=10_000)
    np.testing.assert_array_equal(returns(), policy.returns[:, :1])
    run.normaliser.unlink()
    with pytest.raises(DamagedError, match=r"vecnormalize\.pkl is damaged: it is missing"):
        returns()
    run.seal()
    with pytest.raises(InputError, match=r"vecnormalize\.pkl must be beside a model that was trained with normalize"):
        returns()
    run.model.write_bytes(run.model.read_bytes() + b" ")
    with pytest.raises(DamagedError, match="checksum"):
        returns()


def test_a_run_without_its_policy_is_damaged_whoever_is_trusted(made, tmp_path):
    run = RunFolder(tmp_path / "run", trust=True)
    shutil.copytree(made[0], run.path)
    for name in ("manifest.json", "policy.npz"):
        (run.path / name).unlink()
    with pytest.raises(DamagedError, match=r"policy\.npz is damaged: it is missing"):
        evaluate_run(run, n_eval_episodes=2)


def test_several_seeds_do_not_go_on_from_checkpoints_of_others(strangers, tmp_path):
    finished, halted = strangers
    shutil.rmtree(finished.path)
    (broken := tmp_path / "logs" / "ppo" / "broken").mkdir()
    (broken / "config.yml").write_bytes(b"algo: \xff\xfe")
    plan = make_quick_plan("ppo", n_timesteps=128, normalize=True)
    (run,) = train_all([plan], log_dir=tmp_path / "logs", n_jobs=1, device="cpu")
    assert run.finished and run.path not in (halted.path, broken)
    assert not (tmp_path / "mark").exists()


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that makes a file when it is imported; the file."""
    (tmp_path / "evil_module.py").write_text(f"import pathlib\npathlib.Path({str(tmp_path / 'mark')!r}).touch()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "mark"
    sys.modules.pop("evil_module", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-E", "world:evil_module:X"], "world"),
        (["-E", "spec:evil_module:X"], "spec must be left out of the environment's settings: give --fairness"),
        (["-E", "env_id:evil_module:X"], "env_id must be left out"),
        (["-P", "env_wrapper:evil_module.X"], "env_wrapper must name a wrapper of gymnasium.wrappers"),
        (["-P", "vec_env_wrapper:[{evil_module.X: {}}]"], "vec_env_wrapper must name a wrapper"),
        (["--conf-file", "evil.yml"], "env_wrapper must name a wrapper"),
        (["-P", "env_wrapper:{gymnasium.wrappers.RecordVideo: {video_folder: mark}}"], "that writes no files"),
        (["-P", "env_wrapper:gymnasium.wrappers.rendering:RecordVideo"], "must be the dotted name of a class"),
        (["-P", "policy_kwargs:{activation_fn: evil_module}"], "activation_fn must be the name of a class in torch.nn"),
    ],
)
@pytest.mark.parametrize("command", ["train", "tune"])
def test_settings_name_no_code_of_others(command, options, message, evil, capsys):
    Path("evil.yml").write_text("default: {env_wrapper: evil_module.X}")
    code, line = said(capsys, command, "--algo", "ppo", "--env", SMALL, *options)
    assert code == 2 and message in line and not evil.exists()


def test_ones_own_code_has_a_flag(evil, capsys):
    given = ["train", "--algo", "ppo", "--env", SMALL, "-P", "env_wrapper:evil_module.X", "--own-code"]
    code, line = said(capsys, *given)
    assert code == 2 and evil.exists() and "class that can be imported" in line


@pytest.mark.parametrize(
    "change",
    [
        {"env_wrapper": "evil_module.X"},
        {"env": "evil_module:X-v0"},
        {"env_kwargs": {"objectives": ["R"], "env_id": "evil_module:X"}},
        {"env_kwargs": {"objectives": ["R"], "spec": "evil_module:X"}},
        {"algo": "evil_module:X"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_settings_of_a_strangers_run_name_no_code(change, strangers, evil, capsys):
    run = strangers[0]
    config = {**run.config, **change}
    (run.path / "manifest.json").unlink()
    (run.path / "config.yml").write_text(yaml.safe_dump(config))
    for command in ("evaluate", "enjoy"):
        assert said(capsys, command, "--run", run.path)[0] == 2
    with pytest.raises(InputError):
        Plan.of_run(run)
    assert not evil.exists()


def test_the_id_alone_says_which_world_it_is():
    with pytest.raises(TypeError, match="world"):
        make_vec(SMALL, world="sb3_fair.zoo.envs.hiring.world:HiringWorld")
    with pytest.raises(InputError, match="env_id must be left out"):
        make_plan("ppo", SMALL, env_kwargs={"env_id": "sb3_fair/Lending-v0"})


PART = f"report.html.{os.getpid()}.part"


@pytest.mark.parametrize("name", ["report.html", pytest.param(PART, id="part"), "figures/bars.png", "figures"])
def test_reports_are_not_written_through_links(name, made, tmp_path):
    run, other = RunFolder(tmp_path / "run"), tmp_path / "other"
    shutil.copytree(made[0], run.path)
    shutil.rmtree(run.path / "figures")
    other.mkdir()
    target = other if name == "figures" else other / "precious"
    (run.path / name).parent.mkdir(exist_ok=True)
    (run.path / name).unlink(missing_ok=True)
    (run.path / name).symlink_to(target)
    (other / "precious").write_text("mine")
    if name == "figures":
        with pytest.raises(DamagedError, match="link to a place outside"):
            from_run(run.path)
    else:
        from_run(run.path)
    assert [file.name for file in other.iterdir()] == ["precious"] and (other / "precious").read_text() == "mine"


def test_what_a_run_reads_is_not_behind_links(made, tmp_path, capsys):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(made[0], run.path)
    for name in ("manifest.json", "progress.csv"):
        (run.path / name).unlink()
    (tmp_path / "secret").write_text("a,b\n1,2\n")
    (run.path / "progress.csv").symlink_to(tmp_path / "secret")
    code, line = said(capsys, "report", "--run", run.path)
    assert code == 2 and "progress.csv" in line and "link" in line


@pytest.mark.parametrize("name", ["progress.csv", "model.zip", "vecnormalize.pkl", "training.lock", "figures"])
def test_a_run_is_not_resumed_through_links(name, made, tmp_path):
    shutil.copytree(made[1], tmp_path / "run")
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(DamagedError, match=f"{name} is damaged: it is a link to a place outside"):
        resume(tmp_path / "run", trust=True)
    assert (tmp_path / "precious").read_text() == "mine"


def test_another_user_cannot_resume_but_the_owner_can(made, tmp_path, monkeypatch):
    shutil.copytree(made[1], tmp_path / "run")
    with pytest.raises(PermissionError, match=r"no manifest\.json of yours"):
        resume(tmp_path / "run")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(made[1].parents[2]))
    assert resume(tmp_path / "run").finished
