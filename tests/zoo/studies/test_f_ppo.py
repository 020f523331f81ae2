"""Does the study of F-PPO train its learners on equal terms, play the same episodes, and report what it saw?"""

import json
from dataclasses import replace

import numpy as np
import pytest

from sb3_fair.zoo.registry.algorithms import find_algorithm
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.studies import f_ppo
from sb3_fair.zoo.studies.grid import run_grid

SMALL = {"n_steps": 32, "batch_size": 64, "n_epochs": 1}


@pytest.fixture
def short(monkeypatch):
    """All experiments, cut to a few steps; the settings of the zoo that are changed as well."""
    changed = {}
    entry = f_ppo.make_plan

    def short_plan(*arguments, **wishes):
        plan = entry(*arguments, **wishes)
        return replace(plan, n_timesteps=512, n_envs=4, hyperparams={**plan.hyperparams, **SMALL, **changed})

    for name, each in f_ppo.EXPERIMENTS.items():
        tiny = {"episodes": 5, "steps": min(each["steps"], 30), "after": 0}
        monkeypatch.setitem(f_ppo.EXPERIMENTS, name, each | tiny)
    monkeypatch.setattr(f_ppo, "make_plan", short_plan)
    return changed


def only(monkeypatch, arms, rules=()):
    """The epidemic with some of its learners and rules."""
    chosen = f_ppo.EXPERIMENTS["epidemic"]
    some = {key: {name: chosen[key][name] for name in kept} for key, kept in (("arms", arms), ("rules", rules))}
    monkeypatch.setitem(f_ppo.EXPERIMENTS, "epidemic", chosen | some)


def test_a_study_leaves_numbers_and_figures(short, tmp_path, monkeypatch):
    only(monkeypatch, ["PPO", "F-PPO-L", "F-PPO"], ["Max", "random"])
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
    only(monkeypatch, ["PPO"])
    first = f_ppo.study(["epidemic"], seeds=1, n_jobs=1, log_dir=tmp_path)
    short["learning_rate"] = 0.01
    assert f_ppo.study(["epidemic"], seeds=1, n_jobs=1, log_dir=tmp_path) != first


def test_another_weight_of_f_ppo_leaves_the_runs_of_other_learners_alone(short):
    def keys():
        return {job.name: job.key for job in f_ppo.study.jobs("attention", [100], False)}

    before = keys()
    short["reg_lambda"] = 123.0
    changed = {name for name, key in keys().items() if key != before[name]}
    expected = ("F-PPO-L", "F-PPO")  # A-PPO has its own
    assert changed == {f"attention/{label}/100" for label in expected}


@pytest.mark.parametrize("name", f_ppo.EXPERIMENTS)
def test_learners_share_ppo_settings_and_steps(name):
    experiment = f_ppo.EXPERIMENTS[name]
    env, arms = experiment["env"], experiment["arms"]
    plans = {label: f_ppo.plan_of(env, arm, 0) for label, arm in arms.items()}
    if "printed" in name:
        assert plans["F-PPO"] == replace(make_plan("f_ppo", env, preset="published"), n_eval_episodes=100)
        return
    zoo = make_plan("f_ppo", env)
    shared = zoo.hyperparams.keys() & find_algorithm("ppo").settings.keys()
    assert {"n_steps", "learning_rate"} <= shared and zoo.n_timesteps >= 500_000
    for label, plan in plans.items():
        assert (plan.n_timesteps, plan.n_envs) == (zoo.n_timesteps, zoo.n_envs)
        assert {**plan.env_kwargs, "objectives": ["R"]} == zoo.env_kwargs and plan.weights[0] == 1
        assert dict(zip(plan.objectives, plan.weights, strict=True)) == arms[label].get("weights", {"R": 1})
        source = make_plan("f_ppo", arms[label].get("settings_in", env))
        known = source.hyperparams.keys() & find_algorithm("ppo").settings.keys()
        for key in known - ({"ent_coef"} if label == "PPO without entropy" else set()):
            assert plan.hyperparams[key] == source.hyperparams[key]
        assert plan.hyperparams.keys() <= plan.algorithm.settings.keys()
    if "limits" not in name:  # their arms differ from the zoo's F-PPO, which is in the scenario's own experiment
        assert plans["F-PPO"].hyperparams == zoo.hyperparams


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lending", "attention", "epidemic"])
def test_every_learner_and_rule_of_an_experiment_runs(short, tmp_path, name):
    jobs = list(f_ppo.study.jobs(name, [0], False))
    results = run_grid(jobs, tmp_path, n_jobs=1)
    for job in jobs:
        evaluations = results[job.name]["evaluations"] if job.plan else [results[job.name]]
        assert len(evaluations) == 1 + any(f"/{label}/" in job.name for label in ("F-PPO", "F-PPO, λ 2500"))
        assert np.isfinite(evaluations[0]["curves"]["long_term"]).all()
