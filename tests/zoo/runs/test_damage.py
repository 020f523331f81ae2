"""Is every damaged file of a run either noticed in one line, or of no importance to the figures?"""

import pickle
import shutil

import numpy as np
import pytest
import yaml

from sb3_fair.common.run_folder import LISTED, MANIFEST, RunFolder
from sb3_fair.report import from_run
from sb3_fair.zoo.evaluation.enjoy import enjoy
from sb3_fair.zoo.evaluation.evaluate import evaluate_run
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.runs import train as training
from sb3_fair.zoo.runs.train import resume, train
from tests.zoo.conftest import interrupted, make_quick_plan

RANDOM = np.random.default_rng(0).bytes(300)
DAMAGE = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "short by a byte": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "empty": lambda file: file.write_bytes(b""),
    "random": lambda file: file.write_bytes(RANDOM),
    "list": lambda file: file.write_text("[1, 2]"),
    "text": lambda file: file.write_text("something else"),
    "missing": lambda file: file.unlink(),
    "folder": lambda file: (file.unlink(), file.mkdir()),
    "link": lambda file: (file.unlink(), file.symlink_to("/etc/passwd")),
}
KINDS = {"ppo": {"normalize": True}, "pcn": {}, "tabular_fair_qcm": {}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run of each kind, and under "halted" one that was interrupted."""
    folder = tmp_path_factory.mktemp("runs")
    made = {
        algo: train(make_quick_plan(algo, n_timesteps=96, **more), log_dir=folder, device="cpu").path
        for algo, more in KINDS.items()
    }
    halted = interrupted(make_quick_plan("ppo", n_timesteps=96), folder / "halted", device="cpu")
    return {**made, "halted": halted.path}


def evaluated(path, trust=False):
    return [policy.returns for policy in evaluate_run(RunFolder.open(path, trust=trust), 0, n_eval_episodes=1)]


def filmed(path, trust=False):
    film = path / "film.gif"
    return [enjoy(RunFolder.open(path, trust=trust), film, seed=5, every=1000, device="cpu").returns]


def reported(path, trust=False):
    return [np.frombuffer(from_run(path).read_bytes(), dtype=np.uint8)]


def resumed(path, trust=False):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "_finish", lambda run, plan, model, *_: model)
        model = resume(path, trust=trust)
    return [np.array(model.num_timesteps), *(value.numpy() for value in model.policy.state_dict().values())]


def damaged(whole, work, name, damage):
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(whole, work)
    DAMAGE[damage](work / name)
    return work


def outcome(command, path, trust=False):
    """Arrays, or the line that the command line prints; any other exception is a failure."""
    try:
        return command(path, trust)
    except (InputError, OSError) as error:
        return str(error)


READS = [("ppo", evaluated), ("ppo", filmed), ("ppo", reported), ("pcn", evaluated), ("tabular_fair_qcm", evaluated)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "command"), [*READS, ("halted", resumed)], ids=lambda value: getattr(value, "__name__", value)
)
def test_damage_is_noticed_or_changes_no_figure(kind, command, runs, tmp_path, monkeypatch):
    monkeypatch.setattr("sb3_fair.report.figures.save_all", lambda *_, **__: None)
    whole, work = runs[kind], tmp_path / "run"
    (whole / "untouched").touch()
    expected = outcome(command, damaged(whole, work, "untouched", "missing"))
    names = [name for name in (*LISTED, MANIFEST, "checkpoint.pkl") if (whole / name).exists()]
    assert len(names) >= 6 and isinstance(expected, list)
    for name in names:
        for damage in DAMAGE:
            if name == "checkpoint.pkl" and damage in ("missing", "folder"):
                continue  # the training begins anew, and comes to the same end
            found = outcome(command, damaged(whole, work, name, damage))
            if isinstance(found, str):
                assert name in found and "\n" not in found, (name, damage, found)
            else:
                assert len(found) == len(expected), (name, damage)
                assert all(map(np.array_equal, found, expected)), (name, damage)
                break  # it is not read
            if (work / MANIFEST).is_file():
                (work / MANIFEST).unlink()  # without checksums: no traceback at least
                outcome(command, work, trust=True)


def test_wrong_values_in_a_configuration_are_one_line(runs, tmp_path):
    run = RunFolder(damaged(runs["ppo"], tmp_path / "run", MANIFEST, "missing"))
    config = run.config
    entries = [(config, name) for name in config]
    entries += [(config[part], name) for part in ("env_kwargs", "hyperparams") for name in config[part]]
    for part, name in entries:
        right = part.pop(name)
        for wrong in (None, "x", -3, [1, 2], {"a": 1}, float("nan")):
            part[name] = wrong
            (run.path / "config.yml").write_text(yaml.safe_dump(config))
            outcome(evaluated, run.path)
        part[name] = right


def test_settings_that_no_run_has_are_refused(runs, tmp_path):
    run = RunFolder(damaged(runs["ppo"], tmp_path / "run", MANIFEST, "missing"))
    config = run.config
    config["hyperparams"]["_init_setup_model"] = False
    (run.path / "config.yml").write_text(yaml.safe_dump(config))
    with pytest.raises(InputError, match=r"config\.yml must hold .* unknown hyperparameter '_init_setup_model'"):
        evaluated(run.path)


def test_the_end_of_a_file_is_not_taken_for_an_abort(runs, monkeypatch, command):
    monkeypatch.setattr("sb3_fair.report.from_run", lambda _: pickle.loads(b""))
    code, _, err = command("report", "--run", runs["ppo"])
    assert code == 2 and "a file must not end" in err


@pytest.mark.parametrize(
    ("kind", "begun", "name"),
    [
        ("ppo", ["evaluate", "--run"], "policy.npz"),
        ("ppo", ["enjoy", "--run"], "front.json"),
        ("ppo", ["report", "--run"], "baselines.json"),
        ("halted", ["train", "--resume"], "checkpoint.pkl"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
@pytest.mark.parametrize("trust", [False, True], ids=["", "trust"])
@pytest.mark.parametrize("damage", ["truncated", "empty"])
def test_damage_is_one_line_of_the_command_line(kind, begun, name, trust, damage, runs, tmp_path, command):
    work = damaged(runs[kind], tmp_path / "run", name, damage)
    if trust:
        (work / MANIFEST).unlink()
    code, _, err = command(*begun, work, *(["--trust"] if trust and begun[0] != "report" else []))
    (line,) = err.strip().splitlines()
    assert code == 2 and line.startswith("sb3-fair: ") and name in line
