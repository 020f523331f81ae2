"""Does a study find, judge and write down what it says?"""

import gc
import warnings
from pathlib import Path
from types import SimpleNamespace
from weakref import ref

import numpy as np
import optuna
import pytest
import yaml
from stable_baselines3 import PPO

from sb3_fair.common.means import VecMeans
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.lending import LendingWorld
from sb3_fair.zoo.envs.world import WorldVecEnv
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.train import build_model, training_env
from sb3_fair.zoo.tuning import results, scores
from sb3_fair.zoo.tuning import study as studies
from sb3_fair.zoo.tuning import trial as trials
from sb3_fair.zoo.tuning.sampler import MANY, NumberedSampler
from sb3_fair.zoo.tuning.scores import direction, measure
from sb3_fair.zoo.tuning.storage import Place
from sb3_fair.zoo.tuning.trial import FIGURES, SEEDS, SETTINGS, run_trial
from sb3_fair.zoo.tuning.tune import make_tuning, tune

SMALL = "sb3_fair/JobHiring-Small-v0"
FAST = {"n_steps": 16, "batch_size": 64, "n_epochs": 1, "n_eval_episodes": 2}


def tuning(*scores, **more):
    settings = {"n_timesteps": 128, "n_envs": 4, "only": ["learning_rate", "gamma"], "hyperparams": FAST, **more}
    return make_tuning("ppo", SMALL, scores=scores or ("R",), **settings)


def study_of(folder):
    place = Place(folder.name, folder)
    return optuna.load_study(study_name=place.study, storage=place.open())


@pytest.fixture
def command(command):
    return lambda text: command(*text.split())


TUNE = (
    f"tune --algo ppo --env {SMALL} --n-timesteps 128 --n-envs 4 --only learning_rate:gamma --study-name mine "
    "-P n_steps:16 -P batch_size:64 -P n_epochs:1 -P n_eval_episodes:2"
)


def test_a_study_of_two_scores_leaves_presets_that_can_be_trained_and_can_be_continued(command):
    code, out, err = command(f"{TUNE} --scores R:SP --n-trials 3")
    assert code == 0, err
    folder = Path("logs/tune/mine")
    assert out.strip().endswith(str(folder / "best.yml"))
    assert {path.name for path in folder.iterdir()} >= {
        "best.yml", "study.yml", "trials.csv", "command.txt", "versions.yml", "journal.log", "plotly.min.js",
        "pareto-front.html", "history-R.html", "history-SP.html",
    }  # fmt: skip
    study = study_of(folder)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3
    first, zoo = study.trials[0], make_plan("ppo", SMALL)
    falls_from = float(zoo.hyperparams["learning_rate"].removeprefix("lin_"))
    assert first.params == {"learning_rate": falls_from, "gamma": 0.99}
    best = yaml.safe_load((folder / "best.yml").read_text())
    presets = {f"{SMALL}: trial {trial.number}": trial.user_attrs[SETTINGS] for trial in study.best_trials}
    assert best == {**presets, SMALL: best[SMALL]} and best[SMALL] in presets.values()

    preset = f"trial {study.best_trials[-1].number}"
    plan = make_plan("ppo", SMALL, conf_file=folder / "best.yml", preset=preset)
    assert {"learning_rate": plan.hyperparams["learning_rate"], **FAST} == {
        "learning_rate": presets[f"{SMALL}: {preset}"]["learning_rate"],
        **{key: plan.hyperparams[key] for key in ("n_steps", "batch_size", "n_epochs")},
        "n_eval_episodes": plan.n_eval_episodes,
    }
    code, out, err = command(f"train --algo ppo --env {SMALL} --conf-file {folder / 'best.yml'} --no-progress")
    assert code == 0, err
    config = RunFolder.open(Path(out.strip().splitlines()[-1]).parent).config
    assert config["hyperparams"]["learning_rate"] == best[SMALL]["learning_rate"] and config["n_timesteps"] == 128

    assert command(f"{TUNE} --scores R:SP --n-trials 3")[0] == 0
    assert len(study_of(folder).trials) == 3
    assert command(f"{TUNE} --scores R:SP --n-trials 4")[0] == 0
    assert len(study_of(folder).trials) == 4
    assert command(f"{TUNE} --scores R:SP --n-trials 2")[0] == 0
    assert yaml.safe_load((folder / "study.yml").read_text())["trials"] == len(study_of(folder).trials) == 4
    code, _, err = command(f"{TUNE} --scores R:IF --n-trials 4")
    assert code == 2 and "study 'mine' was begun with other settings (scores: ['R', 'SP']), got ['R', 'IF']" in err


def test_trials_above_a_budget_are_not_among_the_best(tmp_path, capsys):
    found = {}
    for name, budget in (("wide", 1.0), ("none", 0.0)):
        search = {"n_trials": 2, "study_name": name, "sampler": "random", "log_dir": tmp_path, "device": "cpu"}
        folder = tune(tuning("R", budgets={"SP": budget}), **search)
        found[name] = study_of(folder)
        for trial in found[name].trials:
            assert trial.constraints == {"SP": pytest.approx(abs(trial.user_attrs[FIGURES]["SP"]) - budget)}
    wide = found["wide"].trials
    assert (
        yaml.safe_load((tmp_path / "tune/wide/best.yml").read_text())[SMALL]
        == (max(wide, key=lambda trial: trial.values[0]).user_attrs[SETTINGS])
    )
    assert not (tmp_path / "tune/none/best.yml").exists()
    assert "no trial is within the budgets" in capsys.readouterr().out


def test_of_the_best_trials_the_most_balanced_comes_first():
    study = optuna.create_study(directions=["maximize", "minimize"])
    for values in ((0, 0), (10, 8), (5, 5), (8, 2)):
        study.add_trial(optuna.create_trial(values=values))
    assert [trial.number for trial in results.best(study)] == [3, 0, 1]


def test_a_study_leaves_what_optuna_and_warnings_tell_as_it_was(tmp_path):
    given = tuning()  # imports what has filters of its own
    with warnings.catch_warnings():
        warnings.simplefilter("error", optuna.exceptions.ExperimentalWarning)
        before = optuna.logging.get_verbosity(), list(warnings.filters)
        tune(given, n_trials=1, log_dir=tmp_path)
        assert (optuna.logging.get_verbosity(), warnings.filters) == before


def test_a_trial_without_prospects_is_ended_before_its_last_step():
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.ThresholdPruner(lower=1e9))
    given = tuning(n_timesteps=256, n_evaluations=4)
    study.optimize(lambda trial: run_trial(trial, given, prunes=True), n_trials=1)
    (trial,) = study.trials
    assert trial.state.name == "PRUNED" and list(trial.intermediate_values) == [1] and FIGURES not in trial.user_attrs


def test_a_trial_is_judged_by_the_mean_of_its_seeds_and_tells_how_it_is_doing(monkeypatch):
    judged = []
    monkeypatch.setattr(trials, "measure", lambda *given: judged.append(measure(*given)) or judged[-1])
    study = optuna.create_study(direction="maximize")
    given = tuning(n_timesteps=256, n_evaluations=4, n_seeds=2)
    study.optimize(lambda trial: run_trial(trial, given, prunes=True), n_trials=1)
    (trial,) = study.trials
    first, second = trial.user_attrs[SEEDS]
    assert first["R"] != second["R"] and trial.value == pytest.approx((first["R"] + second["R"]) / 2)
    told = [figures["R"] for figures in judged]
    means = [*told[:3], *((told[3] + each) / 2 for each in told[4:7])]
    assert trial.intermediate_values == pytest.approx(dict(zip([1, 2, 3, 5, 6, 7], means, strict=True)))


def test_a_trial_closes_its_environments(monkeypatch):
    closed, given = [], tuning(n_seeds=2)
    monkeypatch.setattr(WorldVecEnv, "close", lambda venv: closed.append(venv.num_envs))
    optuna.create_study().optimize(lambda trial: run_trial(trial, given), n_trials=1)
    assert closed.count(4) == 2


def test_being_watched_changes_nothing_of_a_training():
    given = tuning(n_timesteps=256, n_evaluations=4)
    values = []
    for prunes in (False, True):
        study = optuna.create_study(direction="maximize")
        study.enqueue_trial({"learning_rate": 0.001, "gamma": 0.99})
        study.optimize(lambda trial: run_trial(trial, given, prunes=prunes), n_trials=1)  # noqa: B023
        values.append(study.trials[0].value)
    assert values[0] == values[1]


def test_pcn_is_judged_by_its_hypervolume_above_the_shipped_point_and_not_pruned(tmp_path):
    settings = {"n_fill_episodes": 4, "n_episodes": 2, "n_updates": 2, "n_eval_episodes": 1, "eval_freq": 0}
    given = make_tuning(
        "pcn", SMALL, objectives=("R", "SP"), hyperparams=settings, only=["learning_rate"], n_timesteps=1000, n_envs=2
    )
    assert given.scores == ("hypervolume",) and given.plan.hyperparams["ref_point"].keys() == {"R", "SP"}
    folder = tune(given, n_trials=1, log_dir=tmp_path)
    [trial] = study_of(folder).trials
    assert trial.value > 0 and "ref_point" not in trial.user_attrs[SETTINGS]
    assert yaml.safe_load((folder / "study.yml").read_text())["pruner"] == "none"


def test_scores_and_settings_may_be_arrays():
    given = make_tuning("ppo", SMALL, scores=np.array(["R", "SP"]), only=np.array(["learning_rate", "gamma"]))
    assert given == make_tuning("ppo", SMALL, scores=("R", "SP"), only=["learning_rate", "gamma"])


def test_without_a_shipped_point_all_trials_of_pcn_have_the_same_one():
    given = make_tuning("pcn", SMALL, objectives=("R", "EO"), env_kwargs={"window": 20}, n_envs=1)
    again = make_tuning("pcn", SMALL, objectives=("R", "EO"), env_kwargs={"window": 20}, n_envs=1)
    assert given.plan.hyperparams["ref_point"].keys() == {"R", "EO"} and given == again


def test_before_its_first_episodes_pcn_has_reached_nothing():
    given = make_tuning("pcn", SMALL, n_envs=1)
    model = build_model(given.plan, training_env(given.plan), "cpu")
    assert measure(given.plan, model, given.scores) == {"hypervolume": 0.0}


@pytest.mark.slow
def test_a_game_of_all_agents_is_judged_by_their_disparity_with_sampled_actions():
    given = make_tuning(
        "fair_ppo", "sb3_fair/AllelopathicHarvest-All-v0", scores=("R", "dp_norm"), only=["alpha", "retro"], n_envs=1,
        n_timesteps=800, hyperparams={"n_steps": 10, "batch_size": 400, "n_eval_episodes": 2},
        env_kwargs={"horizon": 10},
    )  # fmt: skip
    assert given.directions == ["maximize", "minimize"] and not given.deterministic
    study = optuna.create_study(directions=given.directions)
    study.optimize(lambda trial: run_trial(trial, given), n_trials=1)
    assert 0 < study.trials[0].user_attrs[FIGURES]["dp_norm"] < 1


def test_the_mean_of_a_disparity_is_over_the_steps_of_its_episode():
    venv = VecMeans(make_vec("sb3_fair/EpidemicControl-v0", n_envs=3, seed=1), ["d_s", "d_l"])
    venv.reset()
    rng, steps, seen = np.random.default_rng(0), [[] for _ in range(3)], 0
    for _ in range(45):
        _, _, dones, infos = venv.step(rng.integers(venv.action_space.n, size=3))
        disparities = stack([dict(info) for info in infos], "fairness")
        for copy in range(3):
            steps[copy].append(disparities["d_s"][copy])
            if dones[copy]:
                assert infos[copy]["fairness"]["mean_d_s"] == pytest.approx(np.mean(steps[copy]))
                steps[copy], seen = [], seen + 1
    assert seen >= 3


def test_a_score_is_of_one_attribute(tmp_path):
    both = {"group": ["gender", "nationality"]}
    folder = tune(tuning("R", "SP@gender", env_kwargs=both, only=["weights"]), n_trials=2, log_dir=tmp_path)
    assert all(trial.values for trial in study_of(folder).trials)
    assert set(study_of(folder).trials[0].params) == {"weights.SP@gender"}
    with pytest.raises(InputError, match="unknown figure 'SP': choose one of R, SP@gender"):
        tuning("R", "SP", env_kwargs=both)


def test_figures_of_all_scores_are_in_files_that_every_system_can_have(tmp_path, monkeypatch):
    names = ("history-SP@age<25", "history-SP@age>25", "history-R")
    monkeypatch.setattr(
        results, "_figures", lambda *_: ((name, SimpleNamespace(to_html=lambda text=name, **_: text)) for name in names)
    )
    folder = tune(tuning(), n_trials=1, log_dir=tmp_path)
    assert {path.name: path.read_text() for path in folder.glob("*.html")} == dict(
        zip(("history-SP@age-25.html", "history-SP@age-25-2.html", "history-R.html"), names, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "way"),
    [("R", "maximize"), ("hypervolume", "maximize"), ("SP", "maximize"), ("mean_SP@gender", "maximize"),
     ("d_s", "minimize"), ("mean_d_s", "minimize"), ("d_l_raw", "minimize"), ("dp_norm", "minimize"),
     ("jain", "maximize"), ("cash", "maximize")],
)  # fmt: skip
def test_fairness_grows_and_disparity_falls(name, way):
    assert direction(name, LendingWorld.words) == way


def test_gaps_of_opposite_signs_are_not_small_on_average(monkeypatch):
    final = {"dp": np.array([-1.0, 0.5]), "SP": np.array([-0.5, -0.1])}
    found = SimpleNamespace(objectives=("R",), mean=[3.0], final=final)
    monkeypatch.setattr(scores, "evaluate_model", lambda *_: found)
    plan = make_plan("ppo", SMALL)
    assert measure(plan, PPO("MlpPolicy", "CartPole-v1"), ["R"]) == pytest.approx({"R": 3, "dp": 0.75, "SP": -0.3})


def test_unknown_figures_have_no_direction():
    with pytest.raises(InputError, match=r"better and worse are known .* got 'luck'"):
        direction("luck")


def test_what_is_tried_depends_on_the_number_of_the_trial_and_not_on_who_asks():
    def asked(number, seed):
        """The values of trial ``number``, asked by a process that has asked for nothing else."""
        study = optuna.create_study(sampler=NumberedSampler("tpe", seed))
        for _ in range(number):
            study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.FAIL))
        return study.ask().suggest_float("x", 0, 1)

    assert asked(2, seed=0) == asked(2, seed=0)
    assert len({asked(number, seed) for number in range(3) for seed in range(2)}) == 6


def test_auto_leaves_many_trials_of_several_scores_to_evolution():
    def chosen(number, *directions):
        sampler = NumberedSampler("auto", 0)
        study = optuna.create_study(directions=directions)
        frozen = optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL)
        frozen.number = number
        sampler.before_trial(study, frozen)
        return type(sampler._sampler).__name__

    assert chosen(0, "maximize", "minimize") == chosen(MANY, "maximize") == "TPESampler"
    assert chosen(MANY, "maximize", "minimize") == "NSGAIISampler"


def test_a_trial_that_fails_says_why_and_counts_and_a_study_of_such_trials_is_an_error(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise ValueError("weights are NaN")

    monkeypatch.setattr(studies, "run_trial", fails)
    with pytest.raises(RuntimeError, match="none of 2 trials was completed; the first error: ValueError: weights are"):
        tune(tuning(), n_trials=2, study_name="a", log_dir=tmp_path)
    assert [trial.state.name for trial in study_of(tmp_path / "tune" / "a").trials] == ["FAIL", "FAIL"]


def test_the_command_of_a_study_without_a_completed_trial_ends_with_one_line_and_exit_code_1(command, monkeypatch):
    def fails(*_, **__):
        raise ValueError("weights\nare NaN")

    monkeypatch.setattr(studies, "run_trial", fails)
    code, out, err = command(f"{TUNE} --n-trials 1")
    message = "none of 1 trials was completed; the first error: ValueError: weights are NaN"
    assert code == 1 and out == "" and err.splitlines()[-1] == f"sb3-fair: {message}"


@pytest.mark.parametrize(
    "content", [b"gamma: 0.9\n", b"{}\n", b"[1]\n", b'"op_code"\n', b"\n", b"\xff\x00", b"[" * 9999]
)
def test_a_storage_that_is_another_file_is_an_error_and_stays_as_it_is(tmp_path, content):
    file = tmp_path / "c1.yml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"storage must be a new file or a journal of trials, got '.*c1\.yml'"):
        tune(tuning(), n_trials=1, study_name="a", storage=str(file), log_dir=tmp_path / "logs")
    assert file.read_bytes() == content and {path.name for path in tmp_path.iterdir()} == {"c1.yml", "logs"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sampler": optuna.samplers.TPESampler()}, "unknown sampler <optuna.*>: choose one of auto, tpe"),
        ({"pruner": optuna.pruners.NopPruner()}, "unknown pruner <optuna.*>: choose one of"),
        ({"storage": optuna.storages.InMemoryStorage()}, "storage must be the URL of a database, or the path of"),
    ],
)
def test_objects_in_place_of_names_are_refused(tmp_path, given, message):
    with pytest.raises(InputError, match=message):
        tune(tuning(), n_trials=1, study_name="a", log_dir=tmp_path, **given)


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_storage_that_is_new_empty_or_a_journal_can_be_opened(tmp_path, exists, kind):
    file = tmp_path / "journal.log"
    if exists:
        file.touch()
    place = Place("a", tmp_path, kind(file))
    assert place.journal == file
    optuna.create_study(study_name="a", storage=place.open())
    assert optuna.load_study(study_name="a", storage=place.open()).trials == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--sampler tpr", "unknown sampler 'tpr': did you mean 'tpe'?"),
        ("--pruner medium", "unknown pruner 'medium': did you mean 'median'?"),
        ("--pruner median --scores R:SP", "pruner must be none with 2 scores"),
        ("--pruner median --budget SP:0.1", "pruner must be none with a budget for SP"),
        ("--pruner median --n-evaluations 1", "pruner must be none with 1 evaluation per trial"),
        ("--n-trials 0", "n-trials must be a positive integer, got 0"),
        ("--n-jobs 0", "n-jobs must be a positive integer, got 0"),
        ("--n-seeds 0", "n-seeds must be a positive integer, got 0"),
        ("--n-timesteps 0", "n_timesteps must be a positive integer, got 0"),
        ("--scores R:SPP", "unknown figure 'SPP': did you mean 'SP'?"),
        ("--scores R:R", "scores must name a figure once"),
        ("--scores hypervolume", "unknown figure 'hypervolume'"),
        ("--budget SP", "--budget must be key:value"),
        ("--budget SP:-1", "budget of SP must not be negative"),
        ("--budget SP:much", "budget of SP must be a finite number"),
        ("--only gama", "unknown setting to try 'gama': did you mean 'gamma'?"),
        ("-S gamma:3", "space of 'gamma' must be"),
        ("-P gama:1", "unknown hyperparameter 'gama'"),
        ("--study-name a/b", "study-name must be the name of a folder"),
        ("--study-name a:b", "study-name must be the name of a folder"),
        ("--storage nosuch://x", "storage must be a database that can be opened"),
        ("--conf-file nowhere.yml", "conf-file must be a YAML file"),
    ],
)
def test_wrong_input_is_one_line_that_says_what_is_right(command, arguments, message):
    code, out, err = command(f"tune --algo ppo --env {SMALL} {arguments}")
    assert code == 2 and out == "" and err.count("\n") == 1
    assert message in err


def test_pcn_has_no_budget(command):
    code, _, err = command(f"tune --algo pcn --env {SMALL} --budget SP:0.1")
    assert code == 2 and "budget must be left out for pcn" in err


def test_a_file_of_settings_without_the_environment_is_an_error(tmp_path):
    file = tmp_path / "other.yml"
    file.write_text("sb3_fair/Lending-v0: {gamma: 0.9}")
    with pytest.raises(InputError, match="conf-file must have an entry for sb3_fair/JobHiring-Small-v0"):
        make_plan("ppo", SMALL, conf_file=file)
    file.write_text(f"{SMALL}: {{n_epochs: 4}}")
    with pytest.raises(InputError, match=r"unknown setting in other.yml 'n_epochs'"):
        make_plan("dqn", SMALL, conf_file=file)
    file.write_text("[1, 2]")
    with pytest.raises(InputError, match="conf-file must have settings by environment ID"):
        make_plan("ppo", SMALL, conf_file=file)


def test_models_of_earlier_trials_are_freed(tmp_path, monkeypatch):
    models = []

    def measured(plan, model, *given):
        assert not any(earlier() for earlier in models)
        models.append(ref(model))
        return measure(plan, model, *given)

    monkeypatch.setattr(trials, "measure", measured)
    gc.disable()
    try:
        tune(tuning(), n_trials=2, pruner="none", log_dir=tmp_path)
    finally:
        gc.enable()
    assert len(models) == 2


def test_a_study_trains_what_its_entry_says(tmp_path):
    given = tuning("R", weights=(1, 2, 0))
    study = optuna.create_study(direction="maximize")
    study.optimize(lambda trial: run_trial(trial, given), n_trials=1)
    file = tmp_path / "entry.yml"
    file.write_text(yaml.safe_dump({SMALL: study.trials[0].user_attrs[SETTINGS]}))
    plan = make_plan("ppo", SMALL, conf_file=file)
    model = build_model(plan, training_env(plan), "cpu")
    assert plan.weights == (1.0, 2.0, 0.0) and model.gamma == study.trials[0].params["gamma"]
