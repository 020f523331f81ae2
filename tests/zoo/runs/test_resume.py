"""Does an interrupted training go on as if nothing had happened, even after a kill?"""

import csv
import io
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from stable_baselines3.common.callbacks import BaseCallback

from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs import checkpoint, stopping
from sb3_fair.zoo.runs.checkpoint import Checkpoints, thaw
from sb3_fair.zoo.runs.episode_log import EpisodeCallback
from sb3_fair.zoo.runs.train import build_model, resume, run_logger, train, training_env
from tests.zoo.conftest import interrupted


class Interrupted(Exception):
    pass


class InterruptAt(BaseCallback):
    """Breaks a training off in the middle of a rollout."""

    def __init__(self, timesteps):
        super().__init__()
        self.timesteps = timesteps

    def _on_step(self):
        if self.num_timesteps >= self.timesteps:
            raise Interrupted
        return True


class Once(Checkpoints):
    """At the first rollout after so many steps."""

    def _on_rollout_start(self):
        if self.model.num_timesteps >= 100 and not self.count:
            super()._on_rollout_start()


def learn(plan, folder, interrupt_at=np.inf, frozen=None):
    """Trains in ``folder`` with one checkpoint; the model."""
    model = build_model(plan, training_env(plan), "cpu") if frozen is None else frozen.model
    done = 0 if frozen is None else model.num_timesteps
    model.set_logger(run_logger(RunFolder(folder), rows="" if frozen is None else frozen.rows))
    episodes = EpisodeCallback()
    if frozen is not None:
        episodes.memory = frozen.beside
    checkpoints = Once(folder / "checkpoint.pkl", 0, episodes.memory, frozen)
    callbacks = [InterruptAt(interrupt_at), episodes, checkpoints]
    return model.learn(plan.n_timesteps - done, callback=callbacks, log_interval=1, reset_num_timesteps=frozen is None)


def learned(model):
    """Every number of what was learned."""
    if hasattr(model, "table"):
        return {"values": model.table.values, "visits": model.table.visits}
    numbers = {}

    def collect(name, value):
        if isinstance(value, dict):
            for key, entry in value.items():
                collect(f"{name}.{key}", entry)
        elif isinstance(value, torch.Tensor):
            numbers[name] = value.numpy()

    collect("", model.get_parameters())
    return numbers


def rows(folder):
    with (folder / "progress.csv").open(newline="") as lines:
        return [
            {key: text for key, text in row.items() if text and not _is_clock(key)} for row in csv.DictReader(lines)
        ]


def _is_clock(key):
    return key.startswith("time/") and key != "time/total_timesteps"


USUAL = ("pcn", "f_ppo", "tabular_fair_qcm", "recurrent_dqn", "ppo", "dqn")


@pytest.mark.parametrize(
    "algo", [algo if algo in USUAL else pytest.param(algo, marks=pytest.mark.slow) for algo in ALGORITHMS]
)
def test_a_training_that_goes_on_from_a_checkpoint_ends_exactly_like_one_that_was_not_interrupted(
    algo, quick_plan, tmp_path
):
    plan = quick_plan(algo, n_timesteps=300)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir(), parts.mkdir()
    expected = learn(plan, whole)
    states = checkpoint.random_states()
    with pytest.raises(Interrupted):
        learn(plan, parts, interrupt_at=200)
    np.random.seed(99), torch.manual_seed(99)  # noqa: NPY002
    frozen = thaw(parts / "checkpoint.pkl")
    assert 100 <= frozen.model.num_timesteps <= 200
    found = learn(plan, parts, frozen=frozen)
    assert found.num_timesteps == expected.num_timesteps
    for name, numbers in learned(expected).items():
        np.testing.assert_array_equal(learned(found)[name], numbers, err_msg=name)
    again = checkpoint.random_states()
    assert again["python"] == states["python"] and torch.equal(again["torch"], states["torch"])
    np.testing.assert_equal(again["numpy"], states["numpy"])
    assert rows(parts) == rows(whole) and len(rows(whole)) >= 2


def test_a_killed_training_is_resumed_from_its_last_whole_checkpoint(quick_plan, tmp_path):
    """The process kills itself with SIGKILL while it writes a checkpoint."""
    plan = quick_plan("ppo")
    deadly = (
        "import os, signal, sys, torch, yaml\n"
        "torch.set_num_threads(1)\n"
        "from sb3_fair.zoo import checkpoint\n"
        "from sb3_fair.zoo.runs.plan import Plan\n"
        "from sb3_fair.zoo.runs.train import train\n"
        "dump = checkpoint._Pickler.dump\n"
        "def dying(pickler, frozen):\n"
        "    dump(pickler, frozen) if frozen.model.num_timesteps < 300 else os.kill(os.getpid(), signal.SIGKILL)\n"
        "checkpoint._Pickler.dump = dying\n"
        "train(Plan.from_config(yaml.safe_load(sys.argv[1])), checkpoint_minutes=0, device='cpu', tensorboard=True)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", deadly, str(plan.config)],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    run = RunFolder.open(tmp_path / "logs" / "ppo" / "sb3_fair-JobHiring-Small-v0_1")
    assert list(run.path.glob("checkpoint.pkl.*.part")) and not run.finished
    assert 0 < thaw(run.checkpoint).model.num_timesteps < 300
    time.sleep(1)  # TensorBoard sorts its files by whole seconds
    assert resume(run.path).path == run.path
    expected = train(plan, log_dir=tmp_path / "other", device="cpu", checkpoint_minutes=np.inf)
    assert rows(run.path) == rows(expected.path)
    np.testing.assert_array_equal(run.front[0].returns, expected.front[0].returns)
    assert run.finished and not list(run.path.glob("checkpoint*")) and run.report.is_file()
    assert scalars(run.path, "returns/SP") == pytest.approx(run.curves["returns/SP"], abs=1e-6)


def scalars(folder, name):
    """A curve of TensorBoard, as TensorBoard shows it: what came after a checkpoint gone on from is forgotten."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return [event.value for event in EventAccumulator(str(folder)).Reload().Scalars(name)]


def test_a_training_killed_before_its_first_checkpoint_begins_anew(quick_plan, tmp_path):
    plan = quick_plan("ppo", n_timesteps=128)
    run = RunFolder.create(tmp_path, plan.algo, plan.env)
    run.start(config=plan.config, args={"device": "cpu", "num_threads": 2}, command="sb3-fair train")
    before = torch.get_num_threads()
    assert before != 2 and resume(run.path).finished and torch.get_num_threads() == before
    with pytest.raises(InputError, match="is finished"):
        resume(run.path)


def test_a_folder_is_that_of_a_run_only_with_its_manifest(quick_plan, tmp_path, monkeypatch):
    def seal(*arguments):
        assert not any(tmp_path.rglob("config.yml"))
        raise stopping.Interrupted(signal.SIGTERM)

    monkeypatch.setattr(RunFolder, "seal", seal)
    with pytest.raises(stopping.Interrupted) as stopped:
        train(quick_plan("a2c"), log_dir=tmp_path)
    assert stopped.value.message == "stopped, before anything could be saved"
    monkeypatch.undo()
    run = train(quick_plan("a2c"), log_dir=tmp_path)
    assert run.is_ours
    (run.path / "manifest.json").unlink()  # as with another user's key
    with pytest.raises(InputError, match="is finished"):
        resume(run.path)


def test_what_cannot_be_resumed_is_an_error_of_one_line(tmp_path, monkeypatch, quick_plan):
    with pytest.raises(InputError, match=r"resume must be the folder of a run, with a config\.yml in it"):
        resume(tmp_path)
    plan = quick_plan("ppo")
    with pytest.raises(InputError, match="checkpoint-minutes must not be negative"):
        train(plan, log_dir=tmp_path, checkpoint_minutes=-1)
    with pytest.raises(Interrupted):
        learn(plan, tmp_path, interrupt_at=200)
    monkeypatch.setattr(checkpoint, "versions", lambda: {"numpy": "1.0"})
    with pytest.raises(InputError, match=rf"with the packages that it was begun with, numpy {np.__version__}"):
        thaw(tmp_path / "checkpoint.pkl")


def test_the_checkpoint_of_another_run_is_refused(quick_plan, tmp_path):
    plan = quick_plan("ppo", n_timesteps=64)
    one, other = (interrupted(replace(plan, seed=seed), tmp_path / str(seed), device="cpu") for seed in (0, 1))
    one.checkpoint.replace(other.checkpoint)
    with pytest.raises(InputError, match=r"checkpoint\.pkl must be of this run, but is of one with other settings"):
        resume(other.path)


def test_checkpoints_are_as_far_apart_as_asked_for(quick_plan, tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    checkpoints = Checkpoints(tmp_path / "checkpoint.pkl", minutes=2)
    plan = quick_plan("ppo")
    model = build_model(plan, training_env(plan), "cpu")
    model.set_logger(run_logger(RunFolder(tmp_path)))

    class Clock(BaseCallback):
        def _on_step(self):
            now[0] += 60 / 32  # a minute per rollout
            return True

    model.learn(640, callback=[Clock(), checkpoints])
    # the fifth at the end
    assert checkpoints.count == 5 and model.num_timesteps == 640


def pickled(value):
    """The value, frozen and thawed."""
    with io.BytesIO() as file:
        checkpoint._Pickler(file).dump(value)
        return pickle.loads(file.getvalue())


@st.composite
def views(draw):
    """An array of any shape, zeros among its sizes, and a view of it with any strides."""
    shape = draw(array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    dtype = draw(st.sampled_from(["f8", "i4", "?", "M8[D]", "U2", [("a", "f4"), ("b", "i8")]]))
    whole = np.zeros(shape, dtype, order=draw(st.sampled_from("CF")))
    if draw(st.booleans()):
        whole = pickle.loads(pickle.dumps(whole))  # memory of another owner, and strange strides where it is empty
    index = tuple(draw(st.slices(size)) if size else slice(None) for size in shape)
    view = np.transpose(whole[index], draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        view = np.broadcast_to(view, (draw(st.integers(0, 2)), *view.shape))
    elif view.ndim > 1 and draw(st.booleans()):
        view = view[draw(st.integers(0, len(view) - 1))] if len(view) else view[0:]
    return whole, view


@given(views())
def test_arrays_and_their_views_are_thawed_as_they_were_however_often(arrays):
    for _ in range(3):
        whole, view = thawed = pickled(arrays)
        for before, after in zip(arrays, thawed, strict=True):
            np.testing.assert_array_equal(after, before)
            assert after.shape == before.shape and after.dtype == before.dtype
            if after.nbytes:  # strides of axes with one entry are nobody's
                wide = np.array(after.shape) > 1
                assert np.array_equal(np.array(after.strides)[wide], np.array(before.strides)[wide])
                assert after.flags.writeable == before.flags.writeable
        assert np.shares_memory(whole, view) == np.shares_memory(*arrays)
        arrays = thawed


def test_the_checkpoint_before_is_taken_where_the_last_one_is_damaged(quick_plan, tmp_path):
    plan = quick_plan("ppo", n_timesteps=200)
    model = build_model(plan, training_env(plan), "cpu")
    model.set_logger(run_logger(RunFolder(tmp_path)))
    path = tmp_path / "checkpoint.pkl"
    model.learn(200, callback=Checkpoints(path, 0))
    last = thaw(path).model.num_timesteps
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="is damaged, .*: the checkpoint before it is taken"):
        assert 0 < checkpoint.latest(path).model.num_timesteps < last
    checkpoint.before(path).write_bytes(b"")
    with pytest.raises(InputError, match="nor can one before it: delete it to begin the training anew"):
        checkpoint.latest(path)


@pytest.mark.parametrize("method", ["dump", "load"])
def test_a_checkpoint_that_cannot_be_written_or_read_back_leaves_the_last_good_one(
    method, quick_plan, tmp_path, monkeypatch
):
    def broken(*_):
        raise OSError(28, "No space left on device")

    plan = quick_plan("ppo", n_timesteps=300)
    expected = learn(plan, tmp_path)
    model = build_model(plan, training_env(plan), "cpu")
    model.set_logger(run_logger(RunFolder(tmp_path)))
    path = tmp_path / "checkpoint.pkl"
    good = path.read_bytes()
    monkeypatch.setattr(*{"dump": (checkpoint._Pickler, "dump"), "load": (pickle, "load")}[method], broken)
    with pytest.warns(UserWarning, match="no checkpoint could be written: OSError"):
        model.learn(300, callback=[EpisodeCallback(), Checkpoints(path, 0)])
    assert path.read_bytes() == good and not list(tmp_path.glob("*.part"))
    for name, numbers in learned(expected).items():
        np.testing.assert_array_equal(learned(model)[name], numbers, err_msg=name)


def test_rows_and_points_of_a_run_that_is_killed_several_times_are_each_there_once(tmp_path):
    """First before any checkpoint, then after a checkpoint that no row follows."""
    folder, csv_file = RunFolder(tmp_path), tmp_path / "progress.csv"
    frozen = ""
    for done in (0, 0, 3):
        logger = run_logger(folder, True, frozen if done else "", done)
        assert csv_file.read_text() == (frozen if done else "")  # a checkpoint may read it before a row follows
        for step in range(done + 1, 6):
            logger.record("x", step)
            logger.dump(step)
            if step == 3:
                frozen = csv_file.read_text()
        time.sleep(1)  # TensorBoard sorts its files by whole seconds
    assert scalars(tmp_path, "x") == [1, 2, 3, 4, 5]
    assert folder.curves["x"] == [1, 2, 3, 4, 5]


def test_curves_have_the_names_of_groups_in_any_language(tmp_path):
    folder, names = RunFolder(tmp_path), ("returns/White, non-Hispanic", "returns/Größe\n(cm)", 'the "others"')
    rows = ""
    for done, name in enumerate(names):
        logger = run_logger(folder, rows=rows)
        for number in range(done + 1):
            logger.record(names[number], number)
        logger.dump(done)
        rows = (tmp_path / "progress.csv").read_bytes().decode("utf-8")
        assert folder.curves[name] == [None] * done + [done]
    assert list(folder.curves) == list(names)


def test_rows_with_texts_stay_as_they_are_when_a_column_is_added(tmp_path):
    logger = run_logger(RunFolder(tmp_path))
    for number in range(9):
        logger.record("text", "long, or 'not'" if number else "a")
        logger.record("x", number)
        logger.dump(number)
    logger.record("y", 1.0)
    logger.dump(9)
    with (tmp_path / "progress.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["x"] for row in rows] == [*"012345678", ""] and [row["y"] for row in rows] == [""] * 9 + ["1.0"]
    assert rows[0]["text"] == "a" and {row["text"] for row in rows[1:9]} == {"long, or 'not'"}
