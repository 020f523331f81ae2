"""Does the study of F-PPO train its learners on equal terms, play the same episodes, and report what it saw?"""

import json
from dataclasses import replace

import numpy as np
import pytest

from sb3_fair.zoo.studies import f_ppo
from sb3_fair.zoo.studies.learners import Learner

SMALL = {"n_timesteps": 512, "n_envs": 4, "n_steps": 32, "batch_size": 64, "n_epochs": 1}


@pytest.fixture
def short(monkeypatch):
    """All experiments, cut to a few steps."""
    tiny = {
        name: replace(each, episodes=5, steps=min(each.steps, 30), after=0) for name, each in f_ppo.EXPERIMENTS.items()
    }
    monkeypatch.setattr(f_ppo, "EXPERIMENTS", tiny)
    entry = f_ppo.default_settings
    monkeypatch.setattr(f_ppo, "default_settings", lambda algorithm, env: {**entry(algorithm, env), **SMALL})
    return tiny


def test_a_study_leaves_numbers_and_figures(short, tmp_path, monkeypatch):
    learners = {name: short["epidemic"].learners[name] for name in ("PPO", "F-PPO-L", "F-PPO")}
    monkeypatch.setitem(short, "epidemic", replace(short["epidemic"], learners=learners, agents=("Max", "random")))
    found = f_ppo.study(["epidemic"], seeds=2, n_jobs=1, log_dir=tmp_path)
    assert list(found["epidemic"]) == ["PPO", "F-PPO-L", "F-PPO, policy alone", "F-PPO", "Max", "random"]
    folder = tmp_path / "full"
    assert json.loads((folder / "study.json").read_text()) == found
    assert all(f"| {label} |" in (folder / "epidemic.md").read_text() for label in found["epidemic"])
    assert (folder / "epidemic.png").stat().st_size > 5000
    assert (folder / "epidemic-training.png").stat().st_size > 5000
    runs = [json.loads(file.read_text())["result"] for file in sorted(folder.glob("epidemic/F-PPO/*.json"))]
    each = [run["evaluations"][1]["summary"]["utility"]["final"][0] for run in runs]
    assert found["epidemic"]["F-PPO"]["utility"]["final"][0] == pytest.approx(np.mean(each))
    assert len(runs[0]["training"]["steps"]) == len(runs[0]["training"]["short_term"]) == 4


def test_runs_of_other_settings_are_not_taken(short, tmp_path, monkeypatch):
    monkeypatch.setitem(
        short, "epidemic", replace(short["epidemic"], learners={"PPO": Learner(f_ppo.SB3_PPO)}, agents=())
    )
    first = f_ppo.study(["epidemic"], seeds=1, n_jobs=1, log_dir=tmp_path)
    entry = f_ppo.default_settings
    monkeypatch.setattr(f_ppo, "default_settings", lambda *which: {**entry(*which), "learning_rate": 0.01})
    assert f_ppo.study(["epidemic"], seeds=1, n_jobs=1, log_dir=tmp_path) != first


def test_another_weight_of_f_ppo_leaves_the_runs_of_other_learners_alone(monkeypatch):
    def settings():
        return {job.name: job.arguments.get("settings") for job in f_ppo._jobs("attention", [100], False)}

    before = settings()
    entry = f_ppo.default_settings
    monkeypatch.setattr(f_ppo, "default_settings", lambda *which: {**entry(*which), "reg_lambda": 123.0})
    changed = {name for name, given in settings().items() if given != before[name]}
    assert changed == {f"attention/{label}/100" for label in ("A-PPO", "F-PPO-L", "F-PPO")}


@pytest.mark.parametrize("name", f_ppo.EXPERIMENTS)
def test_learners_share_ppo_settings_and_steps(name):
    experiment = f_ppo.EXPERIMENTS[name]
    ours, shared, fairness = f_ppo._parts(settings_of(name))
    assert not shared.keys() & fairness.keys() and {"n_steps", "learning_rate"} <= shared.keys()
    assert {"reg_lambda", "massage_threshold"} <= fairness.keys()
    assert ours["n_timesteps"] >= 500_000
    for label, learner in experiment.learners.items():
        assert not learner.settings.keys() & shared.keys() or label == "PPO without entropy"


def settings_of(name):
    return {**f_ppo.OURS, **f_ppo.default_settings(f_ppo.find_algorithm("f_ppo"), f_ppo.EXPERIMENTS[name].env)}


def test_the_same_seed_gives_the_same_run(short):
    first, second = (f_ppo.run("lending", "F-PPO", 3, 5, settings_of("lending")) for _ in range(2))
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lending", "attention", "epidemic"])
def test_every_learner_and_rule_of_an_experiment_runs(short, name):
    for label, learner in short[name].learners.items():
        assert isinstance(learner, Learner)
        result = f_ppo.run(name, label, 0, 5, settings_of(name))
        assert len(result["evaluations"]) == 1 + (label == "F-PPO")
        assert np.isfinite(result["evaluations"][0]["curves"]["long_term"]).all()
    for label in short[name].agents:
        assert np.isfinite(f_ppo.play(name, label, 5)["curves"]["utility"]).all()
