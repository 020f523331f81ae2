"""Are the policies that ship what they are said to be?"""

from importlib.resources import files

import numpy as np
import pytest

from sb3_fair.zoo.evaluation.evaluate import COPIES, evaluate_again, evaluation_env, seed_of
from sb3_fair.zoo.evaluation.harvest_evaluation import evaluate_harvest
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.pretrained import SHIPPED, folder_name, load_pretrained, make_pretrained, pretrained


def test_all_that_ship_are_listed_and_small():
    folders = [path for path in (files("sb3_fair.zoo") / "policies").iterdir() if path.is_dir()]
    assert {path.name for path in folders} == {folder_name(algo) for algo in SHIPPED}
    assert sum(file.stat().st_size for path in folders for file in path.iterdir()) < 5e6


@pytest.mark.parametrize("algo", SHIPPED)
def test_they_were_trained_with_the_settings_of_the_zoo(algo):
    assert pretrained(algo).config == make_plan(algo, SHIPPED[algo]).config


@pytest.mark.slow
@pytest.mark.parametrize("algo", SHIPPED)
def test_they_reproduce_the_scores_that_ship_with_them(algo):
    run = pretrained(algo)
    plan, model = Plan.from_config(run.config), load_pretrained(algo, device="cpu")
    venv = evaluation_env(plan, min(COPIES, plan.n_eval_episodes))
    for documented in run.front.policies[:3]:
        found = evaluate_again(plan, model, documented, venv, plan.n_eval_episodes, seed_of(plan))
        # The same episodes, on which another version of torch may decide differently now and then.
        sure = 2 * np.std(documented.returns, axis=0) / np.sqrt(len(documented.returns)) + 0.01
        assert (np.abs(found.mean - documented.mean) <= sure).all()


@pytest.mark.slow
def test_the_agents_of_the_harvest_are_nearly_equal_together():
    rows = evaluate_harvest(load_pretrained("fair_ppo", device="cpu"), 10, 500, 20_000, obs_scale=True)
    assert rows.dp_norm.abs().mean() < 0.06  # with the same settings of PPO but no penalty: 0.37, random play: 0.33
    assert rows.mean_S.mean() > 600  # without a penalty: 805


@pytest.mark.parametrize("algo", SHIPPED)
def test_all_that_ship_can_be_loaded(algo):
    assert load_pretrained(algo, device="cpu").num_timesteps > 0


def test_a_shipped_model_acts_in_its_environment():
    model, plan = load_pretrained("fair_qcm", device="cpu"), Plan.from_config(pretrained("fair_qcm").config)
    venv = model.follow(evaluation_env(plan, 3))
    actions, _ = model.predict(venv.reset(), deterministic=True)
    assert actions.shape == (3,)


def test_a_policy_is_trained_and_evaluated_into_a_folder_of_its_own(tmp_path, monkeypatch):
    short = {"n_steps": 20, "batch_size": 40, "n_eval_episodes": 2}
    monkeypatch.setitem(SHIPPED, "f_ppo", "sb3_fair/EpidemicControl-Hub-v0")
    plan = make_plan("f_ppo", SHIPPED["f_ppo"], n_timesteps=80, n_envs=2, hyperparams=short)
    monkeypatch.setattr("sb3_fair.zoo.runs.pretrained.make_plan", lambda algo, env, seed: plan)
    run = make_pretrained("f_ppo", tmp_path)
    assert run.path == tmp_path / "f_ppo_EpidemicControl-Hub-v0" and run.finished
    assert run.config == plan.config and len(run.front) == 1 and len(run.baselines) > 1
    assert run.policy.is_file() and not run.model.exists()
    assert not run.front[0].deterministic  # as it was tuned


def test_what_does_not_ship_is_refused():
    with pytest.raises(InputError, match=r"unknown pretrained algorithm 'f_pp': did you mean 'f_ppo'\?"):
        pretrained("f_pp")
