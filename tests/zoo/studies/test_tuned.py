"""Is a tuned pair compared with the defaults, on seeds of its own, and by the figure that it was tuned for?"""

import json
from dataclasses import replace

import numpy as np
import pytest

from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.settings import default_settings, tuning
from sb3_fair.zoo.studies import tuned
from sb3_fair.zoo.studies.tuned import AFTER, BEFORE, DIFFERENCE, Pair
from sb3_fair.zoo.tuning.tune import make_tuning

DOUGHNUTS, EPIDEMIC = "sb3_fair/Doughnut-Small-v0", "sb3_fair/EpidemicControl-v0"


def test_pairs_are_those_that_are_marked():
    pairs = tuned.tuned_pairs()
    assert {("f_ppo", "sb3_fair/Lending-v0"), ("f_ppo", "sb3_fair/AttentionAllocation-v0")} <= {
        (pair.algo, pair.env) for pair in pairs
    }
    for pair in pairs:
        note = tuning(make_plan(pair.algo, pair.env).algorithm, pair.env)
        assert (pair.by, pair.sampled) == (note["by"], note.get("sampled", False))
        assert pair.sampled or make_tuning(pair.algo, pair.env).deterministic, "games are judged as they are tuned"


def test_untuned_is_the_same_question_with_other_settings():
    plan = make_plan("f_ppo", "sb3_fair/Lending-v0")
    default = tuned.untuned(plan)
    assert default.hyperparams == {} and default.policy == "MlpPolicy"
    assert default.n_envs == default_settings(plan.algorithm, plan.env, "default")["n_envs"]
    same = ("n_timesteps", "env_kwargs", "weights", "n_eval_episodes", "audit", "seed")
    assert all(getattr(default, name) == getattr(plan, name) for name in same)
    assert tuned.untuned(default) == default


def test_fronts_of_both_ways_are_measured_against_one_point():
    plans = tuned.ways(Pair("pcn", "sb3_fair/JobHiring-Small-v0", "hypervolume", False), quick=True)
    points = [plan.hyperparams["ref_point"] for plan in plans.values()]
    assert points[0] == points[1] and set(points[0]) == {"R", "SP", "IF"}
    assert set(plans[BEFORE].hyperparams) == {"ref_point"} < set(plans[AFTER].hyperparams)
    assert {plan.n_timesteps for plan in plans.values()} == {10_000}


@pytest.fixture
def tiny(monkeypatch):
    """Trainings of 40 steps, whose learning rate tells the ways apart."""
    done = []
    judge = tuned.judge

    def ways(pair, quick):
        short = {"n_steps": 10, "batch_size": 20, "n_eval_episodes": 4}
        plan = make_plan(pair.algo, pair.env, n_timesteps=40, n_envs=2, hyperparams=short)
        return {BEFORE: replace(plan, hyperparams={**plan.hyperparams, "learning_rate": 0.0}), AFTER: plan}

    def counted(plan, model, **given):
        done.append((plan.algo, plan.hyperparams["learning_rate"] == 0.0, plan.seed))
        return judge(plan, model, **given)

    monkeypatch.setattr(tuned, "ways", ways)
    monkeypatch.setattr(tuned, "judge", counted)
    return done


def test_returns_stand_beside_other_figures_but_not_beside_hypervolumes():
    pairs = [Pair("pcn", DOUGHNUTS, "hypervolume", False), Pair("f_ppo", EPIDEMIC, "d_l", True)]
    figures = {pair.name: dict.fromkeys(pair.figures, (2.0, 1.0, 3.0)) for pair in pairs}
    found = {name: {"better": True, BEFORE: each, AFTER: each, DIFFERENCE: each} for name, each in figures.items()}
    names = [f"{pairs[0].name}: hypervolume", f"{pairs[1].name}: d_l", f"{pairs[1].name}: R"]
    assert tuned.summary(pairs, found).rows == [[name, *["2 [1, 3]"] * 3] for name in names]


def test_both_ways_are_trained_once_over_seeds_and_told_side_by_side(tiny, tmp_path, monkeypatch, capsys):
    pairs = [Pair("ppo", DOUGHNUTS, "R", False), Pair("f_ppo", EPIDEMIC, "mean_d_s", True)]
    monkeypatch.setattr(tuned, "tuned_pairs", lambda algos: pairs)
    for _ in range(2):
        found = tuned.study(seeds=2, n_jobs=1, log_dir=tmp_path)
    assert sorted(tiny) == sorted(
        (algo, before, seed) for algo in ("ppo", "f_ppo") for before in (False, True) for seed in (100, 101)
    )
    assert json.loads((tmp_path / "study.json").read_text()) == found
    for pair in pairs:
        runs = [
            json.loads((tmp_path / pair.name / AFTER / f"{seed}.json").read_text())["result"] for seed in (100, 101)
        ]
        assert found[pair.name][AFTER][pair.by][0] == pytest.approx(np.mean([figures[pair.by] for figures in runs]))
    assert set(found[pairs[0].name][BEFORE]) == {"R"} and set(found[pairs[1].name][BEFORE]) == {"mean_d_s", "R"}
    table = json.loads((tmp_path / "tuned.table.json").read_text())
    assert table["columns"][1:] == [BEFORE, AFTER, DIFFERENCE]
    assert f"{pairs[1].name}: mean_d_s" in [row[0] for row in table["rows"]]
    assert "% of 2 pairs" in capsys.readouterr().out


def test_a_quick_study_replaces_no_results(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(tuned, "tuned_pairs", lambda algos: [Pair("ppo", DOUGHNUTS, "R", False)])
    tuned.study(seeds=1, n_jobs=1, log_dir=tmp_path)
    full = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    tuned.study(seeds=1, quick=True, n_jobs=1, log_dir=tmp_path)
    assert len(tiny) == 4 and (tmp_path / "quick" / "tuned.md").is_file()
    assert all(path.read_bytes() == content for path, content in full.items())


@pytest.mark.parametrize("sampled", [False, True])
def test_actions_are_sampled_where_they_were_in_the_tuning(sampled, monkeypatch):
    monkeypatch.setattr(tuned, "measure", lambda *_, deterministic: {"R": deterministic, "more": 0.0})
    assert tuned.judge(make_plan("ppo", DOUGHNUTS), None, ("R",), sampled) == {"R": not sampled}


@pytest.mark.parametrize(
    ("by", "after", "better"), [("R", 2.0, True), ("R", 0.5, False), ("d_l", 0.5, True), ("SP", -0.5, True)]
)
def test_better_is_a_larger_return_or_a_smaller_disparity(by, after, better):
    pair = Pair("ppo", DOUGHNUTS, by, False)
    before = -1.0 if by == "SP" else 1.0
    results = {f"{pair.name}/{BEFORE}/{seed}": {"R": 1.0, by: before} for seed in (100, 101)}
    results |= {f"{pair.name}/{AFTER}/{seed}": {"R": 1.0, by: after} for seed in (100, 101)}
    assert tuned.compare(pair, results, [100, 101])["better"] is better


def test_the_difference_is_taken_seed_by_seed():
    pair, returns = Pair("ppo", DOUGHNUTS, "R", False), {BEFORE: (10.0, 30.0, 20.0), AFTER: (11.0, 32.0, 23.0)}
    results = {f"{pair.name}/{way}/{seed}": {"R": each[seed]} for way, each in returns.items() for seed in range(3)}
    found = tuned.compare(pair, results, range(3))[DIFFERENCE]["R"]
    np.testing.assert_allclose(found, [2, 2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5], rtol=1e-6)
