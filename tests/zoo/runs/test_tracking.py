"""Does Weights & Biases get what SB3's other logs get, and stay out of the way where nobody asked for it?"""

import json
import struct
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger

import sb3_fair
from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.zoo import EpisodeCallback, TrackingCallback
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs import tracking
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.stopping import Interrupted
from sb3_fair.zoo.runs.train import build_model, train, training_env
from sb3_fair.zoo.runs.weights import FiniteWeights
from tests.zoo.registry.test_pairs import SENSIBLE

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """W&B without an account, which writes nothing outside the test's folder."""
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb-home"))
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setattr(tracking, "_has_account", lambda: False)
    monkeypatch.chdir(tmp_path)


def records(folder):
    """What the only offline run in ``folder`` holds; W&B's own process writes it, a moment after ``finish``."""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    for _ in range(300):
        found = list(parsed(path.read_bytes()))
        if found and found[-1].WhichOneof("record_type") == "exit":
            return found
        time.sleep(0.1)
    raise AssertionError(f"{path} was never finished")


def parsed(data):
    from wandb.proto.wandb_internal_pb2 import Record

    position, part = 7, b""
    while position + 7 <= len(data):  # blocks of 32 KiB: checksum (4), size (2), kind (1), data
        if 32768 - position % 32768 < 7:
            position += 32768 - position % 32768
            continue
        size, kind = struct.unpack_from("<HB", data, position + 4)
        if position + 7 + size > len(data):  # still being written
            return
        part, position = part + data[position + 7 : position + 7 + size], position + 7 + size
        if kind in (1, 4):  # whole, or the last piece
            yield Record.FromString(part)
            part = b""


def test_a_file_still_being_written_is_read_as_far_as_it_goes():
    from wandb.proto.wandb_internal_pb2 import Record, RunExitRecord

    record = Record(exit=RunExitRecord(exit_code=1)).SerializeToString()
    piece = struct.pack("<IHB", 0, len(record), 1) + record
    data = bytes(7) + 3 * piece
    for end in range(7, len(data) + 1):
        assert len(list(parsed(data[:end]))) == (end - 7) // len(piece)


def told(folder):
    """Config, history as name -> list of (step, value), and the names of artifacts by type."""
    config, curves, artifacts = {}, {}, {}
    for record in records(folder):
        kind = record.WhichOneof("record_type")
        if kind in ("run", "config"):
            updates = record.run.config.update if kind == "run" else record.config.update
            config |= {item.key or item.nested_key[0]: json.loads(item.value_json) for item in updates}
        elif kind == "history":
            row = {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            for name, value in row.items():
                curves.setdefault(name, []).append((row["_step"], value))
        elif kind == "request" and record.request.HasField("log_artifact"):
            artifact = record.request.log_artifact.artifact
            artifacts[artifact.type] = [entry.path for entry in artifact.manifest.contents]
        elif kind == "artifact":
            artifacts[record.artifact.type] = [entry.path for entry in record.artifact.manifest.contents]
    return config, curves, artifacts


def test_a_tracked_run_holds_settings_curves_front_report_and_versions(quick_plan, tmp_path):
    plan = quick_plan("pcn")
    run = train(plan, log_dir=tmp_path / "logs", command="sb3-fair train --track", device="cpu", track=True)
    (folder,) = run.path.glob("wandb/offline-run-*")
    assert folder.name.endswith(f"-{run.args['track']}")  # the ID under which it would be resumed
    config, curves, artifacts = told(run.path)
    assert config["algo"] == "pcn" and config["seed"] == 3 and config["command"] == "sb3-fair train --track"
    assert config["env"] == "sb3_fair:sb3_fair/JobHiring-Small-v0" and config["hyperparams"]["n_updates"] == 2
    assert config["versions"]["sb3-fair"] == sb3_fair.__version__
    logged = {"train/loss", "pcn/hypervolume", "rollout/ep_rew_mean", "returns/R", "returns/SP", "fairness/SP"}
    assert logged <= curves.keys()
    steps, values = zip(*curves["returns/SP"], strict=True)
    assert list(steps) == [int(step) for step in run.curves["time/total_timesteps"]]
    np.testing.assert_allclose(values, run.curves["returns/SP"])
    ((_, table),) = curves["front.path"]
    content = json.loads(next(run.path.glob(f"wandb/offline-run-*/files/{table}")).read_text())
    rows = [dict(zip(content["columns"], row, strict=True)) for row in content["data"]]
    assert [row["policy"] for row in rows] == [policy.name for policy in (*run.front, *run.baselines)]
    assert {row["kind"] for row in rows} == {"learned", "rule"}
    assert rows[0]["R"] == pytest.approx(run.front[0].mean[0])
    assert [rows[0]["SP low"], rows[0]["SP high"]] == pytest.approx(run.front[0].ci[1])
    assert artifacts["report"] == ["report.html"]


@pytest.mark.parametrize(
    ("stop", "match", "exit_code"), [(Interrupted(), "go on with", 130), (RuntimeError("broken"), "broken", 1)]
)
@pytest.mark.parametrize("where", ["learning", "evaluation"])
def test_a_run_that_ends_early_is_ended_in_wandb_too(where, stop, match, exit_code, quick_plan, tmp_path, monkeypatch):
    """And that before the line on how to go on."""
    import wandb

    def stopping(*_):
        raise stop

    name = "sb3_fair.zoo.runs.train.evaluate_rules"
    monkeypatch.setattr(*{"learning": (FiniteWeights, "_on_rollout_end"), "evaluation": (name,)}[where], stopping)
    with pytest.raises(type(stop), match=match):
        train(quick_plan("ppo"), log_dir=tmp_path / "logs", device="cpu", track=True)
    assert wandb.run is None
    (folder,) = tmp_path.glob("logs/*/*")
    assert records(folder)[-1].exit.exit_code == exit_code


def curves_of(plan, folder):
    model = build_model(plan, training_env(plan), "cpu")
    model.set_logger(Logger(None, []))
    callback = TrackingCallback(dir=str(folder), settings={"console": "off"})
    model.learn(plan.n_timesteps, callback=callback, log_interval=1)
    callback.finish()
    return told(folder)[1]


ROLLOUTS = {"n_steps": 8, "batch_size": 16, "n_epochs": 1}
REPLAY = {"learning_starts": 16, "buffer_size": 200, "batch_size": 16}
TINY = {
    "ppo": ROLLOUTS,
    "dqn": REPLAY,
    "fair_ppo": ROLLOUTS,
    "f_ppo": {**ROLLOUTS, "massage_start": 0.0},
    "fair_qcm": REPLAY,
    "pcn": {"n_fill_episodes": 2, "n_episodes": 2, "n_updates": 1, "updates_per_step": None, "eval_freq": 0.0,
            "n_eval_episodes": 1, "n_eval_commands": 1, "eval_optimism": [], "buffer_size": 4},
}  # fmt: skip
SHORT = {
    "sb3_fair/JobHiring-Small-v0": {"team_size": 5, "episode_length": 20},
    "sb3_fair/FraudDetection-v0": {"max_transactions": 20, "num_customers": 50, "num_fraudsters": 5},
    "sb3_fair/Lending-v0": {"episode_length": 20},
    "sb3_fair/AttentionAllocation-v0": {"episode_length": 20},
    "sb3_fair/AttentionAllocation-Discrete-v0": {"episode_length": 20},
    "sb3_fair/EpidemicControl-v0": {},
    "sb3_fair/AllelopathicHarvest-v0": {"horizon": 20},
    "sb3_fair/AllelopathicHarvest-All-v0": {"horizon": 2},
    "sb3_fair/Doughnut-Small-v0": {},
    "sb3_fair/LoanAllocation-v0": {},
    "sb3_fair/HomeVisits-v0": {},
    "sb3_fair/VaccineDelivery-v0": {},
}
"""An ID of every scenario, and what makes its episodes short."""
PAIRS = [(algo, env) for algo in TINY for env in SHORT if env in SENSIBLE[algo]]
FEW = {pair for part in (0, 1) for pair in {pair[part]: pair for pair in PAIRS}.values()}
"""Pairs with every algorithm and every scenario."""
OTHERS = [algo for algo in ALGORITHMS if algo not in TINY]


@pytest.mark.parametrize(
    ("algo", "env"),
    [pytest.param(*pair, marks=() if pair in FEW else pytest.mark.slow, id="-".join(pair)) for pair in PAIRS],
)
def test_every_pair_is_trained_and_tracked(algo, env, tmp_path):
    game = "Harvest" in env  # one agent of each stands for its group, and has nobody to be compared with in an episode
    n_envs, fairness = (8, "fair/" if algo == "fair_ppo" else "returns/") if game else (2, "fairness/")
    settings = {**TINY[algo], "n_eval_episodes": 1}
    plan = make_plan(
        algo,
        env,
        n_timesteps=100 * n_envs * (40 if "-All" in env else 1),
        n_envs=n_envs,
        audit=(),
        hyperparams=settings,
        env_kwargs=SHORT[env],
    )
    run = train(plan, log_dir=tmp_path, device="cpu", track=True)
    _, curves, artifacts = told(run.path)
    assert {f"returns/{name}" for name in plan.objectives} <= curves.keys()
    assert any(name.startswith(fairness) for name in curves)
    assert {"rollout/ep_rew_mean", "time/total_timesteps", "front.path"} <= curves.keys()
    assert any(name.startswith("train/") for name in curves)
    assert artifacts["report"] == ["report.html"]


@pytest.mark.parametrize(
    "algo", [pytest.param(algo, marks=() if "tabular" in algo else pytest.mark.slow) for algo in OTHERS]
)
def test_every_other_algorithm_is_tracked_with_vector_returns(algo, quick_plan, tmp_path):
    plan = quick_plan(algo, n_timesteps=300)
    curves = curves_of(plan, tmp_path)
    assert {f"returns/{name}" for name in plan.objectives} <= curves.keys()
    assert any(name.startswith("fairness/") for name in curves)
    assert {"rollout/ep_rew_mean", "time/total_timesteps"} <= curves.keys()


def test_tracking_changes_nothing_that_is_learned(quick_plan, tmp_path):
    weights = []
    for callback in (None, TrackingCallback(dir=str(tmp_path), settings={"console": "off"})):
        plan = quick_plan("dqn", n_timesteps=200)
        model = build_model(plan, training_env(plan), "cpu")
        model.set_logger(Logger(None, []))
        model.learn(200, callback=callback)
        weights.append(model.policy.state_dict())
    callback.finish()
    for name, tensor in weights[0].items():
        np.testing.assert_array_equal(tensor, weights[1][name])


class Random(gym.Env):
    """Not fair, not ours."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action), bool(self.np_random.random() < 0.2), False, {}


def test_any_script_is_tracked_whatever_the_environment(tmp_path):
    callback = TrackingCallback("mine", config={"note": "first try"}, dir=str(tmp_path), settings={"console": "off"})
    PPO("MlpPolicy", Random(), n_steps=16, batch_size=16, gamma=0.9).learn(32, callback=callback)
    policy = EvaluatedPolicy("PPO", ("R",), np.array([[1.0], [3.0]]), np.array([5.0, 5.0]))
    callback.log_front(Front((policy,)))
    callback.finish()
    config, curves, _ = told(tmp_path)
    assert config["algo"] == "PPO" and config["gamma"] == 0.9 and config["note"] == "first try"
    assert [step for step, _ in curves["time/total_timesteps"]] == [16, 32]
    assert "front.path" in curves


def test_a_run_of_the_users_own_is_used_and_left_open(tmp_path):
    import wandb

    own = wandb.init(project="own", mode="offline", dir=str(tmp_path), settings={"console": "off"})
    callback = TrackingCallback()
    PPO("MlpPolicy", Random(), n_steps=16, batch_size=16).learn(16, callback=callback)
    callback.finish()
    assert callback.run is own and wandb.run is own
    own.log({"later": 1})
    own.finish()
    assert {"later", "time/total_timesteps"} <= told(tmp_path)[1].keys()


OFFLINE = {"mode": "offline", "settings": {"console": "off"}}


def steps_in(folder):
    return [step for step, _ in told(folder)[1]["time/total_timesteps"]]


@pytest.mark.parametrize("logger", [None, Logger(None, [])], ids=["SB3's logger", "the user's logger"])
def test_trainings_with_one_callback_share_a_run_until_it_is_finished(logger, tmp_path):
    import wandb

    model = PPO("MlpPolicy", Random(), n_steps=16, batch_size=16)
    if logger is not None:
        model.set_logger(logger)
    callback = TrackingCallback(dir=str(tmp_path / "a"), **OFFLINE)
    for anew in (True, True, False):
        model.learn(32, callback=callback, reset_num_timesteps=anew)
    other = PPO("MlpPolicy", Random(), n_steps=128, batch_size=128)
    other.learn(128, callback=callback)
    callback.finish()
    assert steps_in(tmp_path / "a") == [16, 32, 48, 64, 80, 96, 224]
    model.learn(16)
    callback.settings["dir"] = str(tmp_path / "b")
    model.learn(16, callback=callback)
    other = TrackingCallback(dir=str(tmp_path / "c"), **OFFLINE)
    model.learn(16, callback=other)  # which has a run of its own although the first callback's is left open
    other.finish()
    assert steps_in(tmp_path / "b") == steps_in(tmp_path / "c") == [16] and wandb.run is None


def test_trainings_in_a_run_of_the_users_own_follow_one_another(tmp_path):
    import wandb

    with wandb.init(project="own", dir=str(tmp_path), **OFFLINE):
        for _ in range(2):
            PPO("MlpPolicy", Random(), n_steps=16, batch_size=16).learn(32, callback=TrackingCallback())
    assert steps_in(tmp_path) == [16, 32, 48, 64]


@pytest.mark.parametrize("make", [sb3_fair.make_vec, gym.make])
def test_a_model_tells_the_id_of_its_environment(make):
    env = make("sb3_fair/JobHiring-Small-v0", objectives=("R", "SP"), scalarise=(1, 1))
    assert tracking.settings_of(PPO("MlpPolicy", env))["env"] == "sb3_fair/JobHiring-Small-v0"


@pytest.mark.parametrize(
    ("account", "variable", "given", "expected"),
    [
        (False, None, None, "offline"),
        (True, None, None, "online"),
        (True, None, "offline", "offline"),
        (False, "disabled", None, None),  # wandb reads the variable itself
    ],
)
def test_a_run_is_online_where_there_is_an_account(account, variable, given, expected, monkeypatch):
    monkeypatch.setattr(tracking, "_has_account", lambda: account)
    if variable is not None:
        monkeypatch.setenv("WANDB_MODE", variable)
    assert TrackingCallback(mode=given)._mode() == expected


def test_vector_returns_and_notions_are_those_of_the_episodes(tmp_path):
    """By hand: the returns and the last notions of the episodes that ended, two copies at a time."""
    env = sb3_fair.make_vec("sb3_fair/JobHiring-Small-v0", 2, seed=0, objectives=("R", "SP"), scalarise=(1, 1),
                            team_size=5, episode_length=20)  # fmt: skip
    returns, notions, sums = [], [], np.zeros((2, 2))

    class Spy(EpisodeCallback):
        def _on_step(self):
            nonlocal sums
            sums = sums + np.array([info["vector_reward"] for info in self.locals["infos"]])
            for copy in np.flatnonzero(self.locals["dones"]):
                returns.append(sums[copy].copy())
                notions.append(self.locals["infos"][copy]["fairness"]["SP"])
                sums[copy] = 0
            return super()._on_step()

    logged = {}
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, seed=0)
    model.set_logger(Logger(None, []))
    model.logger.dump = lambda step=0: logged.update(model.logger.name_to_value)
    model.learn(128, callback=Spy(window=3))
    assert len(returns) > 3
    np.testing.assert_allclose([logged["returns/R"], logged["returns/SP"]], np.mean(returns[-3:], axis=0))
    assert logged["fairness/SP"] == pytest.approx(np.mean([value for value in notions if value is not None][-3:]))


def test_episodes_that_were_broken_off_are_not_added_to_later_ones():
    env = sb3_fair.make_vec("sb3_fair/JobHiring-Small-v0", 2, seed=0, objectives=("R", "SP"), scalarise=(1, 0),
                            team_size=5, episode_length=20)  # fmt: skip
    callback, model = EpisodeCallback(), PPO("MlpPolicy", env, n_steps=8, batch_size=16, n_epochs=1, seed=0)
    for _ in range(2):
        model.learn(32, callback=callback, reset_num_timesteps=False)
        model.set_env(env)
    told = [episode["r"] for episode in model.ep_info_buffer]
    np.testing.assert_allclose([performance for performance, _ in callback.memory.returns], told, atol=1e-5)


def test_another_training_with_the_same_callback_is_logged_without_the_episodes_of_the_one_before():
    callback = EpisodeCallback()
    for objectives in (("R", "SP"), ("R",)):
        env = sb3_fair.make_vec("sb3_fair/JobHiring-Small-v0", 2, seed=0, objectives=objectives, team_size=5)
        model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, seed=0).learn(128, callback=callback)
        assert len(callback.memory.returns) == len(model.ep_info_buffer) > 0
        assert {len(vector) for vector in callback.memory.returns} == {len(objectives)}


def test_wandb_is_imported_only_when_a_tracked_training_begins():
    code = (
        "import sys\nfrom sb3_fair.zoo import TrackingCallback, train\nTrackingCallback()\n"
        "print('wandb' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="mode must be None or one of"):
        TrackingCallback(mode="offlin")
    with pytest.raises(ValueError, match="window must be a positive integer, got 0"):
        EpisodeCallback(window=0)
    with pytest.raises(ValueError, match="there is no W&B run yet"):
        TrackingCallback().log_front(Front(()))
