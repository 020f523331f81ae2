"""Does the study train every learner on equal terms and report what it reached?"""

import json

import numpy as np
import pytest

from sb3_fair.fairness import count_status
from sb3_fair.zoo.envs.vaccines import exact as vaccines_exact
from sb3_fair.zoo.registry.layers import copies
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.train import build_model, training_env
from sb3_fair.zoo.studies import fair_qcm, schemes
from sb3_fair.zoo.studies.grid import run_grid


@pytest.fixture
def short(monkeypatch):
    """All experiments, cut to a few steps."""
    for name, experiment in fair_qcm.EXPERIMENTS.items():
        few = {"n_timesteps": 1600, "n_eval_episodes": 10, "rules": experiment.get("rules", ["oracle"])[:1]}
        monkeypatch.setitem(fair_qcm.EXPERIMENTS, name, experiment | few)
    monkeypatch.setattr(fair_qcm, "OPTIMA", {})
    monkeypatch.setattr(fair_qcm, "POINTS", 2)
    monkeypatch.setattr(fair_qcm, "EPISODES", 10)
    monkeypatch.setattr(fair_qcm, "COPIES", 10)
    monkeypatch.setattr(schemes, "N_TIMESTEPS", 10_000)


def test_a_study_leaves_numbers_and_a_figure(short, tmp_path):
    found = fair_qcm.study(["tabular"], seeds=2, n_jobs=1, log_dir=tmp_path)
    assert found["tabular"].keys() == fair_qcm.EXPERIMENTS["tabular"]["arms"].keys()
    mean, low, high = found["tabular"]["FairQCM"]["return"]
    assert low <= mean <= high
    folder = tmp_path / "full"
    assert json.loads((folder / "study.json").read_text()) == found
    assert (folder / "tabular.png").stat().st_size > 5000
    runs = [json.loads(file.read_text())["result"] for file in folder.glob("tabular/FairQCM/*.json")]
    assert len(runs) == 2 and all(len(run["returns"]) == 2 for run in runs)
    assert mean == pytest.approx(np.mean([run["final"]["return"] for run in runs]))


@pytest.mark.parametrize("name", [name for name in fair_qcm.EXPERIMENTS if "doughnut" in name])
def test_wasted_doughnuts_are_drawn_below_the_returns(name):
    runs = {
        label: [{"steps": [1], "returns": [9.0], "final": {"wasted": wasted}} for wasted in (1.0, 3.0)]
        for label in ("FairQCM", "Full")
    }
    rules = {"optimum": {"return": 9.0}, "oracle": {"return": 8.0, "wasted": 0.5}}
    returns, wasted = fair_qcm._panels(fair_qcm.EXPERIMENTS[name], runs, rules)
    assert returns.lines == {"optimum": 9.0, "oracle": 8.0} and wasted.lines == {"oracle": 0.5}
    assert "wasted" in wasted.label and wasted.along == ""
    assert [(places.tolist(), values.tolist()) for places, values in wasted.curves.values()] == [
        ([0], [[1.0], [3.0]]), ([1], [[1.0], [3.0]]),
    ]  # fmt: skip


def built(name):
    """The learners of an experiment that have a replay buffer."""
    plans = {label: fair_qcm.plan_of(name, label, 0) for label in fair_qcm.learners(name)}
    return {
        label: build_model(plan, training_env(plan), "cpu")
        for label, plan in plans.items()
        if plan.algo in ("fair_qcm", "recurrent_dqn")
    }


PRINTED = ("doughnut-printed", "loans-printed")


@pytest.mark.parametrize("name", [name for name in fair_qcm.EXPERIMENTS if name not in ("doughnut-replay", *PRINTED)])
def test_learners_share_batch_history_and_updates(name):
    models = built(name).values()
    for key in ("batch_size", "buffer_size", "learning_starts", "gamma"):
        assert len({getattr(model, key) for model in models}) <= 1, key
    assert len({(model.train_freq, model.gradient_steps) for model in models}) <= 1


@pytest.mark.parametrize(("name", "printed"), [*zip(PRINTED, [(64, 400), (64, 1000)], strict=True)])
def test_as_printed_one_baseline_has_its_own_batch_and_buffer_and_one_has_those_of_fair_qcm(name, printed):
    fair, published, alike = built(name).values()
    assert (published.batch_size, published.buffer_size) == printed
    assert alike.batch_size == fair.batch_size
    for key in ("gamma", "train_freq", "gradient_steps"):
        assert getattr(published, key) == getattr(alike, key) == getattr(fair, key), key
    memory = fair.replay_buffer.memory
    candidates, _ = memory.rows(memory.initial((1,)))
    steps = round(fair.buffer_size / (1 + candidates.shape[1]))
    assert alike.buffer_size == steps == alike.learning_starts == fair.learning_starts


def test_a_study_along_a_number_trains_every_learner_at_every_level(short, tmp_path, monkeypatch):
    chosen = fair_qcm.EXPERIMENTS["clients"]
    two = {level: chosen["levels"][level] for level in (3, 5)}
    monkeypatch.setitem(fair_qcm.EXPERIMENTS, "clients", chosen | {"levels": two})
    found = fair_qcm.study(["clients"], seeds=2, n_jobs=1, log_dir=tmp_path)["clients"]
    labels = [f"{arm}, {level} clients" for arm in ("FairQCM", "Full") for level in (3, 5)]
    assert list(found) == labels == list(fair_qcm.learners("clients"))
    assert [len(fair_qcm.plan_of("clients", label, 0).env_kwargs["at_home"]) for label in labels] == [3, 5, 3, 5]
    runs = [
        json.loads(file.read_text())["result"] for file in (tmp_path / "full/clients/Full, 5 clients").glob("*.json")
    ]
    each = {"Full, 5 clients": runs, **dict.fromkeys(labels[:3], runs)}
    returns, missed = fair_qcm._panels(fair_qcm.EXPERIMENTS["clients"], {label: each[label] for label in labels}, {})
    for panel, key in ((returns, "return"), (missed, "missed")):
        levels, values = panel.curves["Full"]
        assert levels.tolist() == [3, 5] and sorted(values[:, 1]) == sorted(run["final"][key] for run in runs)
    assert (tmp_path / "full/clients.png").stat().st_size > 5000


def test_presets_and_encoders_are_those_of_the_plan():
    printed = fair_qcm.plan_of("doughnut-printed", "FairQCM", 0)
    assert (printed.n_envs, printed.n_timesteps, printed.hyperparams["storage"]) == (1, 100_000, "rows")
    encoded = fair_qcm.plan_of("doughnut-encoders", "Full, binary digits", 0)
    assert (encoded.env_kwargs["encoder"], encoded.hyperparams["n_counterfactual"]) == ("binary", 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["doughnut", "visits", "loans"])
def test_every_learner_of_an_experiment_runs(short, tmp_path, name):
    for result in run_grid(list(fair_qcm.study.jobs(name, [0], False)), tmp_path, n_jobs=1).values():
        assert len(result["steps"]) == 2 and np.isfinite(result["final"]["return"])


def test_routes_are_scored_under_every_scheme(short, tmp_path):
    found = fair_qcm.study(["schemes"], seeds=1, n_jobs=1, log_dir=tmp_path)["schemes"]
    assert found.keys() == schemes.SCHEMES.keys() and (tmp_path / "full" / "schemes.png").is_file()


@pytest.mark.parametrize("name", schemes.SCHEMES)
def test_routes_score_what_the_environment_pays(name, monkeypatch):
    class Wanderer:
        rng = np.random.default_rng(0)

        def follow(self, venv):
            return venv

        def predict(self, observations, deterministic):
            return self.rng.integers(2, size=3), None

    monkeypatch.setattr(schemes, "EPISODES", schemes.SHOWN)
    plan = make_plan("tabular_fair_qcm", schemes.ENV, preset="default", env_kwargs={"scheme": schemes.SCHEMES[name]})
    found, venv = schemes.judge(plan, Wanderer()), copies(plan, schemes.SHOWN, seed=schemes.SEED)
    venv.reset()
    paid = np.sum([venv.step(actions)[1] for actions in found["routes"].T], axis=0)
    assert found["scores"][name] == pytest.approx(paid.mean())
    assert not found["arrived"].all()


def test_scores_are_those_of_the_environment():
    """The best route if nothing is lost has no gap at any assessment and pays for four changes."""
    scheme = schemes.SCHEMES["periodic"]
    solution = vaccines_exact.solved(schemes.VaccinesConfig(), scheme)
    actions = np.array([solution.route()])
    status = count_status(actions, np.ones_like(actions), stakeholders=(0, 1))
    switches = np.count_nonzero(np.diff(actions[0]))
    assert scheme.score(status)[0] - 0.5 * switches == pytest.approx(-2.0)
