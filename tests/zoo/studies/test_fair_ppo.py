"""Does the study of fair-PPO train all arms on equal terms, play the same episodes, and report what it saw?"""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from sb3_fair.fairness import price_of_fairness
from sb3_fair.zoo.studies import fair_ppo, fair_ppo_results
from sb3_fair.zoo.studies.fair_ppo import Arm, Experiment
from sb3_fair.zoo.studies.fair_ppo_results import Curves, compare, trend

SMALL = {
    "n_timesteps": 1200,
    "n_envs": 2,
    "env_kwargs": {"objectives": ["R"], "horizon": 10, "obs_scale": True},
    "n_steps": 10,
    "batch_size": 400,
    "n_epochs": 1,
}


@pytest.fixture
def small(monkeypatch):
    """The study with few steps and episodes."""
    entry = fair_ppo.default_settings
    monkeypatch.setattr(fair_ppo, "default_settings", lambda algorithm, env: {**entry(algorithm, env), **SMALL})
    monkeypatch.setattr(fair_ppo, "BACKEND", {})
    for name, value in {"EPISODES": 3, "LONG_EPISODES": 2, "LONG_HORIZON": 15}.items():
        monkeypatch.setattr(fair_ppo, name, value)
    return monkeypatch


def run(arm, seed=3, long_episodes=0):
    settings, _ = fair_ppo.zoo_settings()
    return fair_ppo.run(fair_ppo.asdict(arm), seed, settings, 3, long_episodes)


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
    return Curves("alpha", {"DP": "dp_norm"}, True, {"linear": arms}, classic)


@pytest.mark.slow
def test_a_study_leaves_numbers_tables_and_figures(small, tmp_path, capsys):
    arms = {"linear": [Arm(), Arm(0.5, retro="linear"), Arm(1.0, retro="linear")]}
    experiment = replace(fair_ppo.EXPERIMENTS["alpha"], arms=arms)
    grid = Experiment("Grid", {"beta 0": [Arm(), Arm(0.5, 0.5)]}, fair_ppo.DP, seeds=1, trend=False)
    small.setattr(fair_ppo, "EXPERIMENTS", {"alpha": experiment, "grid": grid})
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
    assert "long" not in figures and all("long" in each for each in found["chosen"]["zoo"]["settings"].values())
    assert len(list((folder / "dp/telescoped/0.5-0.5").iterdir())) == 1
    shown = capsys.readouterr().out
    assert "Spearman(alpha, |DP|)" in shown and "random" in shown and "long episodes" in shown


def test_figures_are_those_of_the_runs_seed_by_seed(curves):
    settings = compare(curves)["linear"]["settings"]
    figures = settings["(1, 0)"]["short"]
    runs, classic = curves.runs["linear"][2][1], curves.classic

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


def test_the_trend_is_spearmans_over_means_and_forgives_rises_within_the_interval():
    intervals = [[0.5, 0.4, 0.6], [0.3, 0.2, 0.4], [0.35, 0.25, 0.45], [0.1, 0.0, 0.2]]
    found = trend([0, 0.25, 0.5, 1], intervals)
    assert found == {
        "spearman": pytest.approx(spearmanr([0, 1, 2, 3], [0.5, 0.3, 0.35, 0.1]).statistic),
        "monotone": True,
    }
    intervals[2] = [0.45, 0.35, 0.55]
    assert not trend([0, 0.25, 0.5, 1], intervals)["monotone"]


def test_panels_hold_all_curves_that_share_no_setting_but_classic(curves):
    assert [title for title, _, _ in fair_ppo_results._panels(curves)] == ["DP"]
    both = replace(curves, runs={"linear": curves.runs["linear"], "terminal": curves.runs["linear"]})
    assert [title for title, _, _ in fair_ppo_results._panels(both)] == ["DP, linear", "DP, terminal"]
    order = [setting for setting, _ in fair_ppo_results._fairest(curves.runs["linear"], "dp_norm")]
    assert order == [(0.0, 0.0), (1.0, 0.0), (0.5, 0.0)]


def test_arms_without_a_penalty_are_one_classic_ppo():
    assert Arm().name == "classic"
    assert Arm(fairness="csp", retro="linear").name == "classic"
    assert Arm(fairness="csp", retro="linear").fields == Arm().fields  # or one experiment would redo another's runs
    assert Arm(fairness="cf", counterfactual="none_vs_all").fields == Arm(counterfactual="none_vs_all").fields
    assert Arm(0.5, 0.25, "csp", "linear").name == "csp/linear/0.5-0.25"
    for name, each in fair_ppo.EXPERIMENTS.items():
        for arms in each.arms.values():
            weights = [arm.setting(each.over)[fair_ppo_results.WEIGHTS.index(each.over)] for arm in arms]
            assert weights == sorted(set(weights), reverse=each.over == "tolerance"), name
            assert all(arm.name.startswith("classic") for arm in arms if arm.alpha == arm.beta == 0)
            assert {arm.counterfactual for arm in arms} == {"none_vs_all" if name == "cf" else None}


def test_names_and_arguments_of_older_runs_stay_and_others_are_told_apart():
    older = {"alpha": 0.5, "beta": 0.0, "fairness": "dp", "retro": "linear", "counterfactual": None}
    assert Arm(0.5, retro="linear").fields == older
    arm = Arm(0.5, retro="linear", aggregate="group_mean", tolerance=0.2, standing=True)
    assert arm.name == "dp/linear/0.5-0-group_mean-tolerance-0.2-standing"
    assert arm.fields == {**older, "aggregate": "group_mean", "tolerance": 0.2, "standing": True}
    assert Arm(standing=True).name == arm.classic == "classic-standing"
    assert Arm(standing=True, counterfactual="swap").name == "classic-twins-standing"
    assert Arm(0.5, standing=True).name == "dp/telescoped/0.5-0-standing"
    assert not {"standing", "counterfactual"} & arm.penalty.keys() and arm.penalty["tolerance"] == 0.2
    arms = [arm for each in fair_ppo.EXPERIMENTS.values() for arms in each.arms.values() for arm in arms]
    names = {arm.name: arm.fields for arm in arms if arm.alpha or arm.beta}
    assert len(names) == len({json.dumps(fields) for fields in names.values()})


def test_a_curve_over_the_tolerance_begins_where_everything_is_tolerated(monkeypatch, tmp_path):
    experiment = fair_ppo.EXPERIMENTS["tolerance"]
    rng = np.random.default_rng(0)
    arms = experiment.arms["telescoped"]
    results = {
        f"{arm.name}/{seed}": result(rng, 1 - 0.2 * place) for place, arm in enumerate(arms) for seed in (100, 101, 102)
    }
    curves = fair_ppo._curves(experiment, results, range(100, 105))
    found = compare(curves)
    assert list(found["telescoped"]["settings"]) == [
        "(0, 0, inf)", "(2, 0, 0.45)", "(2, 0, 0.3)", "(2, 0, 0.2)", "(2, 0, 0.1)",
    ]  # fmt: skip
    assert found["telescoped"]["trend"]["DP"] == {"spearman": pytest.approx(1), "monotone": True}
    assert len(curves.classic) == 3
    lines = []
    plain = fair_ppo_results.plot_tradeoff
    monkeypatch.setattr(
        fair_ppo_results, "plot_tradeoff", lambda given, **more: lines.append(given) or plain(given, **more)
    )
    fair_ppo_results.draw({"tolerance": curves}, {"tolerance": found}, tmp_path)
    assert (tmp_path / "tolerance-dp_norm.png").is_file()
    np.testing.assert_array_equal(lines[0]["telescoped"].alphas, [np.nan, 0.45, 0.3, 0.2, 0.1])
    sheet = fair_ppo_results.sheet("", curves, found, {})
    assert sheet.columns[1] == "(alpha, beta, tolerance)"
    assert "Spearman(tolerance, |DP|) = 1.00, never rises" in sheet.notes[0]


def test_agents_of_an_arm_with_standing_see_it(small):
    arm = Arm(2.0, aggregate="group_mean", tolerance=0.1, standing=True)
    seen = []
    evaluate = fair_ppo.harvest_figures
    small.setattr(
        fair_ppo,
        "harvest_figures",
        lambda model, *rest, **given: seen.append(model) or evaluate(model, *rest, **given),
    )
    found = run(arm)
    assert seen[0].observation_space.shape == (11,)
    assert (seen[0].tolerance, seen[0].aggregate) == (0.1, "group_mean")
    assert np.isfinite(found["short"]["averages"]["dp_norm"]["mean"])


def test_the_paper_grid_is_complete():
    arms = [arm for arms in fair_ppo.EXPERIMENTS["grid"].arms.values() for arm in arms]
    assert {(arm.alpha, arm.beta) for arm in arms} == {(a / 4, b / 4) for a in range(5) for b in range(5)}


def test_every_job_holds_all_settings_but_the_zoos_penalty(small):
    settings, chosen = fair_ppo.zoo_settings()
    assert not settings.keys() & fair_ppo.asdict(chosen).keys()
    experiment = fair_ppo.EXPERIMENTS["csp"]
    jobs = list(fair_ppo._jobs(experiment, range(100, 105), settings, chosen, quick=False))
    assert len(jobs) == 3 * sum(map(len, experiment.arms.values()))
    for job in jobs:
        assert job.arguments["settings"] == {**settings, "n_timesteps": 1200}
        assert job.arguments["arm"]["fairness"] == "csp" or job.name.startswith("classic")
    quick = next(fair_ppo._jobs(experiment, range(100, 102), settings, chosen, quick=True))
    assert quick.arguments["settings"]["n_timesteps"] == 120


def test_the_same_seed_gives_the_same_run_and_another_one_another(small):
    arm = Arm(1.0, 0.5)
    first, second, other = run(arm), run(arm), run(arm, seed=4)
    assert json.dumps(first) == json.dumps(second) != json.dumps(other)
    assert {"fair/D_retro", "fair/return_0", "steps"} <= first["training"].keys()
    assert {len(values) for values in first["training"].values()} == {2}


def test_the_loss_as_printed_is_classic_ppo(small):
    assert run(Arm(1.0, retro="constant"))["short"] == run(Arm())["short"]


def test_runs_of_other_settings_are_not_taken(small, tmp_path):
    experiment = Experiment("Classic", {"linear": [Arm()]}, fair_ppo.DP, trend=False)
    small.setattr(fair_ppo, "EXPERIMENTS", {"alpha": experiment})
    first = fair_ppo.study(["alpha"], seeds=1, n_jobs=1, log_dir=tmp_path)
    assert fair_ppo.study(["alpha"], seeds=1, n_jobs=1, log_dir=tmp_path) == first
    entry = fair_ppo.default_settings
    small.setattr(fair_ppo, "default_settings", lambda *which: {**entry(*which), "learning_rate": 0.05})
    assert fair_ppo.study(["alpha"], seeds=1, n_jobs=1, log_dir=tmp_path) != first
    fair_ppo.study(["alpha"], seeds=1, first_seed=7, n_jobs=1, log_dir=tmp_path)
    assert (tmp_path / "full-7" / "classic" / "7.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", fair_ppo.EXPERIMENTS)
def test_every_arm_of_an_experiment_runs(small, name):
    for arm in {arm for arms in fair_ppo.EXPERIMENTS[name].arms.values() for arm in arms}:
        found = run(arm, long_episodes=1)
        for length in ("short", "long"):
            assert np.isfinite(found[length]["averages"]["dp_norm"]["mean"])
        assert ("cf_norm" in found["short"]["averages"]) == (arm.counterfactual is not None)
