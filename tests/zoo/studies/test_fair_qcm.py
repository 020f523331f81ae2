"""Does the study train every learner on equal terms and report what it reached?"""

import json
from dataclasses import replace

import numpy as np
import pytest

from sb3_fair.fairness import count_status
from sb3_fair.zoo.envs import vaccines_exact
from sb3_fair.zoo.studies import fair_qcm, schemes


@pytest.fixture
def short(monkeypatch):
    """All experiments, cut to a few steps."""
    tiny = {
        name: replace(experiment, n_timesteps=1600, points=2, optimum=None, rules=experiment.rules[:1])
        for name, experiment in fair_qcm.EXPERIMENTS.items()
    }
    monkeypatch.setattr(fair_qcm, "EXPERIMENTS", tiny)
    monkeypatch.setattr(fair_qcm, "EPISODES", 10)
    monkeypatch.setattr(fair_qcm, "FINAL_EPISODES", 10)
    monkeypatch.setattr(fair_qcm, "RULE_EPISODES", 10)
    monkeypatch.setattr(fair_qcm, "COPIES", 10)
    monkeypatch.setattr(schemes, "N_TIMESTEPS", 10_000)
    return tiny


def test_a_study_leaves_numbers_and_a_figure(short, tmp_path):
    found = fair_qcm.study(["tabular"], seeds=2, n_jobs=1, log_dir=tmp_path)
    assert found["tabular"].keys() == short["tabular"].learners.keys()
    mean, low, high = found["tabular"]["FairQCM"]["return"]
    assert low <= mean <= high
    folder = tmp_path / "full"
    assert json.loads((folder / "study.json").read_text()) == found
    assert (folder / "tabular.png").stat().st_size > 5000
    runs = [json.loads(file.read_text())["result"] for file in folder.glob("tabular/FairQCM/*.json")]
    assert len(runs) == 2 and all(len(run["returns"]) == 2 for run in runs)
    assert mean == pytest.approx(np.mean([run["final"]["return"] for run in runs]))


@pytest.mark.parametrize("name", fair_qcm.EXPERIMENTS)
def test_learners_share_batch_history_and_updates(name):
    experiment = fair_qcm.EXPERIMENTS[name]
    models = []
    for label, learner in experiment.learners.items():
        if label != "RecurrentPPO" and not learner.path.endswith("TabularFairQCM"):
            models.append(fair_qcm._model(experiment, learner, 0))
    for key in ("batch_size", "buffer_size", "learning_starts", "gamma"):
        assert len({getattr(model, key) for model in models}) <= 1, key
    assert len({(model.train_freq, model.gradient_steps) for model in models}) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["doughnut", "visits", "loans"])
def test_every_learner_of_an_experiment_runs(short, name):
    for label in short[name].learners:
        result = fair_qcm.run(name, label, 0, 1600)
        assert len(result["steps"]) == 2 and np.isfinite(result["final"]["return"])


def test_routes_are_scored_under_every_scheme(short, tmp_path):
    found = schemes.study(range(1), quick=False, n_jobs=1, folder=tmp_path)
    assert found.keys() == schemes.SCHEMES.keys() and (tmp_path / "schemes.png").is_file()


def test_scores_are_those_of_the_environment():
    """The best route if nothing is lost has no gap at any assessment and pays for four changes."""
    scheme = schemes.SCHEMES["periodic"]
    solution = vaccines_exact.solved(schemes.VaccinesConfig(), scheme)
    actions = np.array([solution.route()])
    status = count_status(actions, np.ones_like(actions), stakeholders=(0, 1))
    switches = np.count_nonzero(np.diff(actions[0]))
    assert scheme.score(status)[0] - 0.5 * switches == pytest.approx(-2.0)
