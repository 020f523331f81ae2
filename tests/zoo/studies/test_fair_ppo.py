"""Does the study of fair-PPO train all arms on equal terms, play the same episodes, and report what it saw?"""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from sb3_fair.common.plain import plain
from sb3_fair.fairness import price_of_fairness
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.studies import fair_ppo, fair_ppo_results
from sb3_fair.zoo.studies.fair_ppo import Arm
from sb3_fair.zoo.studies.fair_ppo_results import compare, trend
from sb3_fair.zoo.studies.training import Watch, trained

DP = {"DP": "dp_norm"}
DEMOGRAPHIC = {"title": "Title", "disparities": DP, "over": "alpha", "seeds": None, "trend": True}
SMALL = {"n_steps": 10, "batch_size": 400, "n_epochs": 1}


@pytest.fixture
def small(monkeypatch):
    """The study with few steps and episodes; the settings of the zoo that are changed as well."""
    changed = {}
    entry = fair_ppo.make_plan

    def small_plan(*arguments, **wishes):
        plan = entry(*arguments, **wishes)
        return replace(
            plan,
            n_timesteps=1200,
            n_envs=1 if plan.env == fair_ppo.TWINS_ENV else 2,
            env_kwargs={**plan.env_kwargs, "horizon": 10, "backend": "numpy"},
            hyperparams={**plan.hyperparams, **SMALL, **changed},
        )

    monkeypatch.setattr(fair_ppo, "make_plan", small_plan)
    for name, value in {"EPISODES": 3, "LONG_EPISODES": 2, "LONG_HORIZON": 15}.items():
        monkeypatch.setattr(fair_ppo, name, value)
    return changed


def run(arm, seed=3, long_episodes=0):
    plan = arm.plan(seed)
    model = trained(plan, Watch())
    return plain(fair_ppo.evaluate(plan, model, twins=arm.twins, episodes=3, long_episodes=long_episodes))


def result(rng, scale, columns=("dp_norm",)):
    """A run as its file has it, of random numbers."""
    names = [
        f"{kind}_{group}_{a}" for kind in ("chosen", "executed") for group in "US" for a in fair_ppo_results.ACTIONS
    ]
    columns = [*columns, "mean_U", "mean_S", "obstructed_U", "obstructed_S", *names]
    draws = {name: scale * rng.uniform(1, 2, 5) for name in columns}
    return {
        "short": {
            "averages": {name: {"mean": x.mean(), "absolute": np.abs(x).mean()} for name, x in draws.items()},
            "episodes": {"dp_norm": draws["dp_norm"].tolist()},
        }
    }


@pytest.fixture
def curves():
    rng = np.random.default_rng(0)
    classic = [result(rng, 1.0) for _ in range(4)]
    arms = [((0.0, 0.0), classic)]
    arms += [((alpha, 0.0), [result(rng, 1 - alpha / 3) for _ in range(4)]) for alpha in (0.5, 1.0)]
    return {"linear": arms}


@pytest.mark.slow
def test_a_study_leaves_numbers_tables_and_figures(small, monkeypatch, tmp_path, capsys):
    arms = {"linear": [Arm(), Arm(0.5, retro="linear"), Arm(1.0, retro="linear")]}
    experiment = fair_ppo.EXPERIMENTS["alpha"] | {"arms": arms}
    grid = fair_ppo.EXPERIMENTS["grid"] | {"arms": {"beta 0": [Arm(), Arm(0.5, 0.5)]}}
    monkeypatch.setitem(fair_ppo.EXPERIMENTS, "alpha", experiment)
    monkeypatch.setitem(fair_ppo.EXPERIMENTS, "grid", grid)
    found = fair_ppo.study(["chosen", "alpha", "grid"], seeds=2, n_jobs=1, log_dir=tmp_path)
    folder = tmp_path / "full"
    assert json.loads((folder / "study.json").read_text()) == found
    assert {path.name for path in folder.glob("*.png")} == {
        "boxes.png", "boxes-by-alpha.png", "actions.png", "alpha-dp_norm.png",
    }  # fmt: skip
    assert {path.name for path in folder.glob("*.md")} == {
        "chosen-short.md", "chosen-long.md", "alpha-short.md", "grid-short.md",
    }  # fmt: skip
    lengths = {line.count(" | ") for line in (folder / "alpha-short.md").read_text().splitlines() if "|" in line[:1]}
    assert len(lengths) == 1
    assert list(found["alpha"]["linear"]["settings"]) == ["(0, 0)", "(0.5, 0)", "(1, 0)"]
    runs = [json.loads((folder / f"dp/linear/0.5-0/{seed}.json").read_text())["result"] for seed in (100, 101)]
    sizes = [each["short"]["averages"]["dp_norm"]["absolute"] for each in runs]
    figures = found["alpha"]["linear"]["settings"]["(0.5, 0)"]
    assert figures["short"]["disparities"]["DP"]["absolute"][0] == pytest.approx(np.mean(sizes))
    assert sizes[0] == pytest.approx(np.mean(runs[0]["short"]["episodes"]["dp_norm"]), abs=1e-5)
    assert "long" not in figures and all(
        "long" in each for curve in ("study", "tuned") for each in found["chosen"][curve]["settings"].values()
    )
    assert len(list((folder / "dp/telescoped/0.5-0.5").iterdir())) == 1
    shown = capsys.readouterr().out
    assert "Spearman(alpha, |DP|)" in shown and "random" in shown and "long episodes" in shown


def test_figures_are_those_of_the_runs_seed_by_seed(curves):
    settings = compare(DEMOGRAPHIC, curves)["linear"]["settings"]
    figures = settings["(1, 0)"]["short"]
    (_, classic), _, (_, runs) = curves["linear"]

    def column(runs, name, kind="mean"):
        return np.array([run["short"]["averages"][name][kind] for run in runs])

    sizes, before = column(runs, "dp_norm", "absolute"), column(classic, "dp_norm", "absolute")
    assert figures["disparities"]["DP"]["cut"][0] == pytest.approx(np.mean(100 * (before - sizes) / before))
    price = price_of_fairness(column(runs, "mean_S"), column(classic, "mean_S"))
    assert figures["prices"]["S"] == pytest.approx([float(end) for end in price])
    assert settings["(0, 0)"]["short"]["disparities"]["DP"]["cut"] == [0, 0, 0]
    assert settings["(0, 0)"]["short"]["prices"] == {"U": [0, 0, 0], "S": [0, 0, 0]}
    chosen = settings["(1, 0)"]["actions"]["chosen"]["S"]
    assert chosen["ripen_eat"] == column(runs, "chosen_S_ripen_eat").mean()


def test_a_curve_is_compared_with_its_own_classic_ppo_or_that_of_the_curve_before():
    rng = np.random.default_rng(1)
    own, other = ([result(rng, scale) for _ in range(3)] for scale in (1.0, 0.5))
    arm = (0.5, 0.0), [result(rng, 0.4) for _ in range(3)]
    found = compare(
        DEMOGRAPHIC | {"trend": False},
        {"study": [((0.0, 0.0), own), arm], "more": [arm], "tuned": [((0.0, 0.0), other), arm]},
    )
    cuts = {
        curve: figures["settings"]["(0.5, 0)"]["short"]["disparities"]["DP"]["cut"][0]
        for curve, figures in found.items()
    }
    sizes = [[run["short"]["averages"]["dp_norm"]["absolute"] for run in runs] for runs in (own, other, arm[1])]
    before, tuned, after = np.array(sizes)
    assert cuts["study"] == cuts["more"] == pytest.approx(np.mean(100 * (1 - after / before)))
    assert cuts["tuned"] == pytest.approx(np.mean(100 * (1 - after / tuned)))


def test_the_trend_is_spearmans_over_means_and_forgives_rises_within_the_interval():
    intervals = [[0.5, 0.4, 0.6], [0.3, 0.2, 0.4], [0.35, 0.25, 0.45], [0.1, 0.0, 0.2]]
    found = trend([0, 0.25, 0.5, 1], intervals)
    assert found == {
        "spearman": pytest.approx(spearmanr([0, 1, 2, 3], [0.5, 0.3, 0.35, 0.1]).statistic),
        "monotone": True,
    }
    intervals[2] = [0.45, 0.35, 0.55]
    assert not trend([0, 0.25, 0.5, 1], intervals)["monotone"]


def test_a_panel_holds_all_curves_of_the_grid_and_one_of_others(curves):
    def titles(name):
        found = {name: compare(DEMOGRAPHIC, both)}
        return [panel[0] for panel in fair_ppo_results._panels({name: DEMOGRAPHIC}, {name: both}, found)]

    both = {"linear": curves["linear"], "terminal": curves["linear"]}
    assert titles("grid") == ["DP", "DP"] and titles("csp") == ["DP, linear", "DP, terminal"]
    assert titles("alpha") == []


def test_classic_ppo_comes_before_the_fairest_settings():
    sizes = {(0.0, 0.0): 0.5, (0.5, 0.0): 0.3, (1.0, 0.0): 0.1, (0.0, 1.0): 0.2, (0.0, 2.0): 0.4, (2.0, 2.0): 0.6}
    assert fair_ppo_results.fairest(sizes) == [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.5, 0.0), (0.0, 2.0)]


def test_arms_without_a_penalty_are_one_classic_ppo():
    assert Arm().name == "classic"
    assert Arm(fairness="csp", retro="linear").name == "classic"
    assert Arm(fairness="csp", retro="linear").plan(0) == Arm().plan(0)  # or one experiment would redo another's runs
    assert Arm(fairness="cf", twins=True).plan(0) == Arm(twins=True).plan(0)
    assert Arm(0.5, 0.25, "csp", "linear").name == "csp/linear/0.5-0.25"
    for name, each in fair_ppo.EXPERIMENTS.items():
        for arms in each["arms"].values():
            assert len(arms) > 1
            weights = [arm.setting(each["over"])[fair_ppo_results.WEIGHTS.index(each["over"])] for arm in arms]
            assert weights == sorted(set(weights), reverse=each["over"] == "tolerance"), name
            assert all(arm.name.startswith("classic") for arm in arms if arm.alpha == arm.beta == 0)
            assert {arm.twins for arm in arms} == {name == "cf"}


def test_arms_are_told_apart_and_differ_by_their_penalty_alone():
    arm = Arm(0.5, retro="linear", aggregate="group_mean", tolerance=0.2, standing=True)
    assert arm.name == "dp/linear/0.5-0-group_mean-tolerance-0.2-standing"
    assert Arm(standing=True).name == arm.classic == "classic-standing"
    assert Arm(standing=True, twins=True).name == "classic-twins-standing"
    assert Arm(0.5, standing=True).name == "dp/telescoped/0.5-0-standing"
    assert arm.plan(0).vec_env_wrapper and not Arm(0.5).plan(0).vec_env_wrapper
    arms = [arm for each in fair_ppo.EXPERIMENTS.values() for arms in each["arms"].values() for arm in arms]
    plans = {arm.name: arm.plan(3) for arm in arms}
    assert len(plans) == len({json.dumps(plan.config) for plan in plans.values()})
    zoo, study = (make_plan("fair_ppo", fair_ppo.ENV, preset=preset) for preset in (None, "study"))
    penalty = {"alpha", "beta", "fairness", "retro", "tolerance", "aggregate"}
    for name, plan in plans.items():
        rest = {name: value for name, value in plan.hyperparams.items() if name not in penalty}
        given = zoo if "tuned" in name else study
        assert rest == {name: value for name, value in given.hyperparams.items() if name not in penalty}
        assert penalty <= plan.hyperparams.keys()
    assert {plan.n_timesteps for name, plan in plans.items() if "scale" not in name} == {zoo.n_timesteps}
    assert fair_ppo.zoo_arm().plan(0).hyperparams == {**Arm(tuned=True).plan(0).hyperparams, **zoo.hyperparams}


def test_at_the_papers_scale_trainings_and_episodes_are_longer_and_there_are_fewer_of_these():
    jobs = {job.name: job for job in fair_ppo.study.jobs("scale", range(100, 105), False)}
    assert [name for name in jobs if "random" not in name] == [
        f"{arm}/{seed}"
        for arm in ("classic-scale", "dp/own_reweight/0.7-0-scale", "dp/own_reweight/0.9-0-scale")
        for seed in (100, 101, 102)
    ]
    job, chosen = jobs["dp/own_reweight/0.9-0-scale/100"], Arm(0.9, retro="own_reweight").plan(100)
    assert job.plan.n_timesteps == 10 * chosen.n_timesteps and job.plan.env_kwargs["horizon"] == 3000
    assert job.plan.hyperparams == chosen.hyperparams
    assert job.arguments == {"twins": False, "episodes": 50, "long_episodes": 0}


def test_a_curve_over_the_tolerance_begins_where_everything_is_tolerated(monkeypatch, tmp_path):
    experiment = fair_ppo.EXPERIMENTS["tolerance"]
    rng = np.random.default_rng(0)
    arms = experiment["arms"]["telescoped"]
    results = {
        f"{arm.name}/{seed}": result(rng, 1 - 0.2 * place) for place, arm in enumerate(arms) for seed in (100, 101, 102)
    }
    curves = fair_ppo._runs("tolerance", results, range(100, 105))
    found = compare(experiment, curves)
    assert list(found["telescoped"]["settings"]) == [
        "(0, 0, inf)", "(2, 0, 0.45)", "(2, 0, 0.3)", "(2, 0, 0.2)", "(2, 0, 0.1)",
    ]  # fmt: skip
    assert found["telescoped"]["trend"]["DP"] == {"spearman": pytest.approx(1), "monotone": True}
    assert len(curves["telescoped"][0][1]) == 3
    lines = []
    plain = fair_ppo_results.plot_tradeoff
    monkeypatch.setattr(
        fair_ppo_results, "plot_tradeoff", lambda given, **more: lines.append(given) or plain(given, **more)
    )
    fair_ppo_results.draw({"tolerance": experiment}, {"tolerance": curves}, {"tolerance": found}, tmp_path)
    assert (tmp_path / "tolerance-dp_norm.png").is_file()
    np.testing.assert_array_equal(lines[0]["telescoped"].alphas, [np.nan, 0.45, 0.3, 0.2, 0.1])
    sheet = fair_ppo_results.table(experiment, found, {})
    assert sheet.columns[1] == "(alpha, beta, tolerance)"
    assert "Spearman(tolerance, |DP|) = 1.00, never rises" in sheet.notes[0]


def test_agents_of_an_arm_with_standing_see_it(small):
    plan = Arm(2.0, aggregate="group_mean", tolerance=0.1, standing=True).plan(3)
    model = trained(plan, Watch())
    assert model.observation_space.shape == (11,)
    assert (model.tolerance, model.aggregate) == (0.1, "group_mean")
    found = fair_ppo.evaluate(plan, model, twins=False, episodes=3, long_episodes=0)
    assert np.isfinite(found["short"]["averages"]["dp_norm"]["mean"])


def test_the_paper_grid_is_complete():
    arms = [arm for arms in fair_ppo.EXPERIMENTS["grid"]["arms"].values() for arm in arms]
    assert {(arm.alpha, arm.beta) for arm in arms} == {(a / 4, b / 4) for a in range(5) for b in range(5)}


def test_quick_jobs_are_short_and_some_experiments_have_fewer_seeds():
    experiment = fair_ppo.EXPERIMENTS["csp"]
    jobs = [job for job in fair_ppo.study.jobs("csp", range(100, 105), False) if job.plan]
    assert len(jobs) == 3 * sum(map(len, experiment["arms"].values()))
    assert all(job.plan.hyperparams["fairness"] == "csp" or job.name.startswith("classic") for job in jobs)
    quick = [job for job in fair_ppo.study.jobs("csp", range(100, 102), True) if job.plan]
    assert quick[0].plan.n_timesteps * 10 == jobs[0].plan.n_timesteps


def test_the_same_seed_gives_the_same_run_and_another_one_another(small):
    arm = Arm(1.0, 0.5)
    first, second, other = run(arm), run(arm), run(arm, seed=4)
    assert json.dumps(first) == json.dumps(second) != json.dumps(other)


def test_the_loss_as_printed_is_classic_ppo(small):
    assert run(Arm(1.0, retro="constant"))["short"] == run(Arm())["short"]


def test_runs_of_other_settings_are_not_taken(small, monkeypatch, tmp_path):
    monkeypatch.setitem(fair_ppo.EXPERIMENTS, "alpha", DEMOGRAPHIC | {"arms": {"linear": [Arm()]}, "trend": False})
    first = fair_ppo.study(["alpha"], seeds=1, n_jobs=1, log_dir=tmp_path)
    assert fair_ppo.study(["alpha"], seeds=1, n_jobs=1, log_dir=tmp_path) == first
    small["learning_rate"] = 0.05
    assert fair_ppo.study(["alpha"], seeds=1, n_jobs=1, log_dir=tmp_path) != first
    fair_ppo.study(["alpha"], seeds=1, first_seed=7, n_jobs=1, log_dir=tmp_path)
    assert (tmp_path / "full-7" / "classic" / "7.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", fair_ppo.EXPERIMENTS)
def test_every_arm_of_an_experiment_runs(small, name):
    for arm in {arm for arms in fair_ppo.EXPERIMENTS[name]["arms"].values() for arm in arms}:
        found = run(arm, long_episodes=1)
        for length in ("short", "long"):
            assert np.isfinite(found[length]["averages"]["dp_norm"]["mean"])
        assert ("cf_norm" in found["short"]["averages"]) == arm.twins
