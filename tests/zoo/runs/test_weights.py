"""Does a training whose weights become NaN end with an error, with what was good left?"""

import numpy as np
import pytest
import torch

from sb3_fair.zoo.evaluation import evaluate
from sb3_fair.zoo.evaluation.evaluate import policies_of
from sb3_fair.zoo.names import WorkError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs.checkpoint import thaw
from sb3_fair.zoo.runs.episode_log import EpisodeCallback
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.train import build_model, resume, train, training_env
from sb3_fair.zoo.runs.weights import check_weights

WRONG = "weights of .* are not finite after [\\d,]+ steps"


def spoil(model, value=np.nan):
    if hasattr(model, "table"):
        model.table.values[...] = value
    else:
        with torch.no_grad():
            list(model.policy.parameters())[-1].fill_(value)


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_weights_that_are_not_finite_are_an_error(algo, value, quick_plan):
    plan = quick_plan(algo)
    model = build_model(plan, training_env(plan), "cpu")
    check_weights(model)
    spoil(model, value)
    with pytest.raises(WorkError, match=WRONG):
        check_weights(model)
    with pytest.raises(WorkError, match=WRONG):
        policies_of(plan, model)


@pytest.mark.parametrize(("algo", "at"), [("ppo", 200), ("tabular_fair_qcm", 20), ("pcn", 300)])
def test_a_training_whose_weights_become_nan_leaves_its_last_good_checkpoint_and_no_results(
    algo, at, quick_plan, tmp_path, monkeypatch
):
    def step(callback):
        if callback.num_timesteps >= at:
            spoil(callback.model)
        return True

    monkeypatch.setattr(EpisodeCallback, "_on_step", step)
    with pytest.raises(WorkError, match=WRONG):
        train(quick_plan(algo, 2 * at), log_dir=tmp_path, checkpoint_minutes=0, device="cpu")
    (folder,) = tmp_path.glob("*/*")
    assert {file.name for file in folder.iterdir()} & {"model.zip", "front.json", "report.html"} == set()
    check_weights(thaw(folder / "checkpoint.pkl").model)
    monkeypatch.undo()
    run = resume(folder)
    assert run.finished
    model = evaluate.load_policy(Plan.of_run(run), run, "cpu")
    spoil(model)
    monkeypatch.setattr(evaluate, "load_policy", lambda *_: model)
    with pytest.raises(WorkError, match=WRONG):
        evaluate.evaluate_run(run)
