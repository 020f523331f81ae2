"""Does the study of fairness MDPs give learners equal budgets, judge them on fresh episodes, and resume?"""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.studies import fmdp, fmdp_figures, fmdp_results, fmdp_runs, training
from sb3_fair.zoo.studies.fmdp import SCENARIOS, Cell
from sb3_fair.zoo.studies.fmdp_results import Row

TINY = {"steps": 2560, "choosing": 2, "fresh": 3, "divisions": 1}


@pytest.fixture
def tiny(monkeypatch):
    """The small company, cut to a few steps and episodes."""
    monkeypatch.setitem(SCENARIOS["hiring-small"], "full", TINY)
    few = {"pcn": {"eval_freq": 0, "n_fill_episodes": 10, "n_updates": 1}, "dqn": {"batch_size": 8}, "ppo": {}}
    own = SCENARIOS["hiring-small"].get("learners", {})
    monkeypatch.setitem(SCENARIOS["hiring-small"], "learners", {algo: own.get(algo, {}) | few[algo] for algo in few})


def run(names, folder):
    return fmdp.study(names, seeds=1, n_jobs=1, log_dir=folder)


def test_learners_take_the_same_steps_and_a_second_call_takes_none(tiny, tmp_path, monkeypatch):
    found = run(["competitors"], tmp_path)["competitors"]
    assert list(found) == ["PCN", "DQN sweep", "PPO sweep", "DQN, R alone"]
    for label, runs in (("PCN", 1), ("DQN sweep", 3), ("PPO sweep", 3), ("DQN, R alone", 1)):
        assert 0 <= TINY["steps"] - found[label]["steps"][0] < runs * fmdp_runs.ROLLOUT
    assert found["PCN"]["lead"][0] == 0
    folder = tmp_path / "hiring-small-full"
    assert json.loads((folder / "study.json").read_text()).keys() == {"competitors"}
    assert "| PCN |" in (folder / "competitors.md").read_text()
    assert all(
        (folder / "competitors" / name).stat().st_size > 5000 for name in ("radar.png", "fronts.png", "curves.png")
    )
    runs = list((folder / "dqn").glob("*/*/*.json"))
    assert len(runs) == 4
    ranges = json.loads((folder / "scales/R-SP-IF/plain.json").read_text())["result"]["returns"]["range"]
    floors = make_plan("pcn", SCENARIOS["hiring-small"]["env"]).hyperparams["scaling_floor"]
    for path in runs:
        plan = json.loads(path.read_text())["arguments"]["plan"]
        scaled = [
            weight * max(ranges[name], floors[name]) for name, weight in zip(ranges, plan["weights"], strict=True)
        ]
        np.testing.assert_allclose(scaled, [float(weight) for weight in path.parent.name.split("-")], atol=1e-9)
        assert plan["hyperparams"]["buffer_size"] == 100 * 100  # episodes of 100 steps
    monkeypatch.setattr(training, "build_model", None)
    for work in ("scales", "play_rules"):
        monkeypatch.setattr(fmdp_runs, work, None)
    np.testing.assert_equal(run(["competitors"], tmp_path)["competitors"], found)


def test_the_course_of_a_training_is_noted_evenly_and_shown_as_a_share_of_its_end(tiny, tmp_path):
    run(["population"], tmp_path)
    found = [
        json.loads(file.read_text())["result"]
        for file in (tmp_path / "hiring-small-full/pcn/R-SP-IF/plain").glob("*.json")
    ]
    steps = found[0]["course"]["steps"]
    assert len(steps) == len(found[0]["course"]["hypervolume"]) >= fmdp_runs.POINTS - 1
    assert np.allclose(np.diff(steps), TINY["steps"] / fmdp_runs.POINTS, atol=10)
    rising = [
        [{"course": {"steps": [1, 2, 3], "hypervolume": [1.0, 2.0, 4.0]}}],
        [{"course": {"steps": [1, 2], "hypervolume": [3.0, 3.0]}}],
    ]
    row = Row(("R",), {}, {}, rising)
    at, shares = fmdp_figures.course(row)
    assert at.tolist() == [1, 2] and shares.tolist() == [[0.5, 1.0], [1.0, 1.0]]
    assert len(fmdp_figures.panels({"of an earlier version": row})) == 1


def test_the_size_of_the_window_in_training_is_noted_and_drawn_below_the_learning_curve(tiny):
    settings = fmdp.MEASUREMENTS["usual"] | {"objectives": ["R", "SP", "IF"]}
    discount = {"factor": 0.9, "threshold": 0.0001, "min_window": 10}
    runs = {}
    for label, more in {"window 10": {"window": 10}, "window 100": {"window": 100}, "factor 0.9": discount}.items():
        few = SCENARIOS["hiring-small"]["learners"]["pcn"]
        wishes = {"seed": 0, "hyperparams": {**few, "ref_point": {"R": -5, "SP": -1, "IF": -2}}}
        plan = fmdp_runs.plan_of("pcn", SCENARIOS["hiring-small"]["env"], settings | more, 2500, **wishes)
        watch = fmdp_runs.Budget(2500)
        training.trained(plan, watch)
        runs[label] = watch.figures
    sizes = {label: run["window"]["size"] for label, run in runs.items()}
    assert all(sizes.values()) and max(sizes["window 10"]) < 10
    # the first rollout is that of a random policy, the same of all
    assert sizes["window 10"][0] < sizes["factor 0.9"][0] < sizes["window 100"][0]
    _, window = fmdp_figures.panels({label: Row(("R",), {}, {}, [[run]]) for label, run in runs.items()})
    steps, drawn = window.curves["factor 0.9"]
    assert steps.tolist() == runs["factor 0.9"]["window"]["steps"] and drawn.tolist() == [sizes["factor 0.9"]]


def test_policies_are_judged_on_other_episodes_than_they_are_chosen_on(monkeypatch):
    asked = []
    found = EvaluatedPolicy("x", ("R", "SP"), np.zeros((3, 2)), np.ones(3))

    def noted(plan, model, *given):
        *_, venv, episodes, seed = (each for each in given if not isinstance(each, bool | EvaluatedPolicy))
        asked.append((venv.num_envs, episodes, seed))
        return found

    for work in ("evaluate_model", "evaluate_again"):
        monkeypatch.setattr(fmdp_runs, work, noted)
    settings = {"objectives": ["R", "SP"]}
    plan = fmdp_runs.plan_of("dqn", SCENARIOS["hiring-small"]["env"], settings, steps=512, weights=[1, 0])
    fmdp_runs.judge(plan, SimpleNamespace(num_timesteps=512), choosing=2, fresh=3)
    assert asked == [(2, 2, fmdp_runs.CHOOSING)] * 2 + [(3, 3, fmdp_runs.FRESH)] * 2


def test_sweeps_learn_with_the_defaults_even_where_the_zoo_has_tuned_ones():
    env = SCENARIOS["hiring"]["env"]
    assert make_plan("ppo", env).hyperparams["learning_rate"] != 0.001
    plan = fmdp_runs.plan_of("ppo", env, {"objectives": ["R", "SP"]}, steps=512, weights=[1, 0])
    assert plan.hyperparams["learning_rate"] == 0.001 and "n_epochs" not in plan.hyperparams


@pytest.mark.slow
def test_a_run_of_an_experiment_that_another_has_done_is_taken_from_there(tiny, tmp_path, monkeypatch):
    usual = fmdp.matrix

    def two(*arguments):
        return {
            name: experiment | {"cells": dict(list(experiment["cells"].items())[-2:])}
            for name, experiment in usual(*arguments).items()
        }

    monkeypatch.setattr(fmdp, "matrix", two)
    first = run(["history"], tmp_path)["history"]
    build = training.build_model
    done = []
    monkeypatch.setattr(training, "build_model", lambda plan, *rest: done.append(plan) or build(plan, *rest))
    found = run(["population", "history"], tmp_path)
    assert [plan.env_kwargs.get("population") for plan in done] == ["gender", "nationality-gender"]
    np.testing.assert_equal(found["history"], first)
    assert {row["policies"][0] >= 1 for row in found["population"].values()} == {True}


@pytest.mark.slow
@pytest.mark.parametrize("name", fmdp.matrix("hiring-small"))
def test_every_experiment_leaves_a_table_and_figures(tiny, tmp_path, name):
    found = run([name], tmp_path)[name]
    cells = fmdp.matrix("hiring-small")[name]["cells"]
    assert list(found)[: len(cells)] == list(cells)
    for row in found.values():
        assert np.isfinite([row[figure][0] for figure in ("R", "hypervolume", "hypervolume, whole")]).all()
    folder = tmp_path / "hiring-small-full"
    table = (folder / f"{name}.md").read_text()
    assert all(f"| {label} |" in table for label in found)
    assert (folder / name / "radar.png").stat().st_size > 5000


def test_weights_of_a_sweep_cover_the_simplex():
    assert fmdp_runs.weight_vectors(2, 2) == [(1, 0), (0.5, 0.5), (0, 1)]
    ten = np.array(fmdp_runs.weight_vectors(3, 3))
    assert len({tuple(row) for row in ten}) == 10
    np.testing.assert_allclose(ten.sum(axis=1), 1)


@pytest.mark.parametrize("size", [each[size] for each in SCENARIOS.values() for size in ("full", "quick")])
def test_a_sweep_takes_hardly_fewer_steps_than_pcn_and_never_more(size):
    runs = len(fmdp_runs.weight_vectors(3, size["divisions"]))
    each = fmdp_runs.share_of_budget(size["steps"], runs)
    assert 0.8 * size["steps"] < runs * each <= size["steps"]
    assert each % fmdp_runs.ROLLOUT == 0


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match=r"experiment must be one of .*bias.* with env fraud, got 'population'"):
        fmdp.study(["population"], env="fraud")
    with pytest.raises(InputError, match="did you mean 'hiring'"):
        fmdp.study(env="hirin")
    with pytest.raises(InputError, match="did you mean 'paper'"):
        fmdp.study(preset="papers")


def policy(choosing, fresh=None, **whole):
    """A policy in R and SP that is on fresh episodes what it was on the choosing ones, unless told otherwise."""
    returns = dict(zip(("R", "SP"), fresh or choosing, strict=True))
    known = {**returns, "IF": -1.0, **whole}
    return {
        "name": "x",
        "choosing": list(choosing),
        "returns": returns,
        "whole": known,
        "chance": {"SP": 0.1},
        "length": 9,
    }


def row(*seeds, steps=100):
    scale = {"reference": {"R": 0.0, "SP": -1.0, "IF": -2.0}, "range": {"R": 10.0, "SP": 0.1, "IF": 0.5}}
    runs = [[{"policies": policies, "steps": steps}] for policies in seeds]
    return Row(("R", "SP"), {"returns": scale, "whole": scale}, {"SP": 0.5, "IF": 0.3}, runs)


def test_choices_are_made_on_choosing_episodes_and_figures_are_fresh():
    front = [
        policy((10, -0.8), (6, -0.7)),
        policy((8, -0.4), (9, -0.5)),
        policy((6, -0.1), IF=-0.4),
        policy((7, -0.6), (20, 0)),  # dominated when policies were chosen
    ]
    found = fmdp_results.summaries({"PCN": row(front)})["PCN"]
    assert found["policies"][0] == 3 and found["R"][0] == 6
    assert found["group notion"][0] == -0.7 and found["group notion, fairer"][0] == -0.5
    assert found["individual notion"] == found["individual notion, fairer"] == [-1.0] * 3
    assert found["individual notion, mean"][0] == pytest.approx(-0.8)
    assert found["|SP|"][0] == pytest.approx((0.7 + 0.5 + 0.1) / 3) and found["|SP| by chance"][0] == pytest.approx(0.1)
    # units 10 and 0.5 (a floor), reference (0, -1): (0.6, 0.6), (0.9, 1), (0.6, 1.8)
    assert found["hypervolume"][0] == pytest.approx(0.6 * 1.8 + 0.3 * 1.0)


def test_the_lead_is_taken_seed_by_seed_and_distances_are_to_the_best_of_all():
    ours = row([policy((10, -1.0)), policy((0, 0.0))], [policy((10, -0.5))])
    theirs = row([policy((5, -0.5))], [policy((5, -1.0))], steps=90)
    found = fmdp_results.summaries({"PCN": ours, "sweep": theirs}, compete=True)
    volumes = {label: [fmdp_results.volume(each, front, "returns", ("R", "SP")) for front in each.fronts]
               for label, each in (("PCN", ours), ("sweep", theirs))}  # fmt: skip
    assert volumes == {"PCN": [0.0, 1.0], "sweep": [0.5, 0.0]}
    assert found["sweep"]["lead"][0] == pytest.approx(np.mean([0 - 0.5, 1.0 - 0]))
    # the best of all: (10, -0.5) and (0, 0), scaled to (1, 0) and (0, 1)
    assert found["PCN"]["distance"][0] == pytest.approx(np.mean([(1 + 0) / 2, (0 + np.sqrt(2)) / 2]))
    assert found["sweep"]["steps"] == [90.0] * 3


def test_a_policy_without_a_figure_adds_no_volume():
    empty = policy((10, -0.5), SP=float("nan"))
    assert fmdp_results.volume(row([empty]), [empty], "whole", ("R", "SP", "IF")) == 0


def test_a_cell_without_performance_is_judged_by_what_it_optimises():
    assert Row(("SP",), {}, {}, []).notion("group") == "SP"
    assert Row(("R", "EO", "CSC"), {}, {}, []).notion("individual") == "CSC"
    assert Cell(("SP",)).name == "SP/plain"
