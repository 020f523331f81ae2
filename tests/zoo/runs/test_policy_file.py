"""Does a file that cannot run code bring back the policy of every algorithm?"""

import numpy as np
import pytest

from sb3_fair.common.connection import connected
from sb3_fair.common.run_folder import DamagedError, RunFolder
from sb3_fair.zoo.evaluation.evaluate import evaluation_env
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs import policy_file
from sb3_fair.zoo.runs.policy_file import load_policy, save_policy
from sb3_fair.zoo.runs.train import build_model, training_env

NORMALISED = {"ppo", "dqn", "trpo"}


def played(plan, model, deterministic):
    """Actions of 30 steps, in environments as evaluations have them."""
    venv = connected(model, evaluation_env(plan, 3))
    model.set_random_seed(5)
    venv.seed(7)
    observations, state, begins, actions = venv.reset(), None, np.ones(3, dtype=bool), []
    for _ in range(30):
        action, state = model.predict(observations, state=state, episode_start=begins, deterministic=deterministic)
        observations, _, begins, _ = venv.step(action)
        actions.append(np.array(action))
    return np.array(actions)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_policy_acts_as_it_did(algo, quick_plan, tmp_path):
    plan = quick_plan(algo, n_timesteps=200, **({"normalize": True} if algo in NORMALISED else {}))
    model = build_model(plan, training_env(plan), "cpu").learn(plan.n_timesteps)
    if plan.algorithm.vector:
        model.set_command(model.coverage_set(1, eval_env=evaluation_env(plan))[0])
    run = RunFolder(tmp_path)
    save_policy(model, run.policy)
    loaded = load_policy(plan, run, "cpu")
    if plan.algorithm.vector:
        loaded.set_command(model.command)
    assert loaded.num_timesteps == model.num_timesteps >= 200
    for deterministic in (True, False):
        np.testing.assert_array_equal(played(plan, loaded, deterministic), played(plan, model, deterministic))


def test_a_small_file_that_unpacks_to_more_than_a_policy_is_refused_unread(quick_plan, tmp_path, monkeypatch):
    run = RunFolder(tmp_path)
    np.savez_compressed(run.policy, state=np.array("{}"), bomb=np.zeros(10**6))
    assert run.policy.stat().st_size < 10_000
    monkeypatch.setattr(policy_file, "LARGEST", 10**6)
    with pytest.raises(DamagedError, match=r"it unpacks to 8\d* bytes"):
        load_policy(quick_plan("ppo"), run, "cpu")
