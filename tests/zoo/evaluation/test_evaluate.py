"""Does an evaluation measure what it says, whichever way the episodes are shared out?"""

from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import sb3_fair
from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.common.front import Front
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.fairness import FairnessSpec
from sb3_fair.zoo.evaluation.evaluate import (
    AGAIN,
    FILMED,
    FINAL,
    evaluate_rules,
    evaluate_run,
    evaluation_env,
    measurable,
    seed_of,
)
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.rules import RuleAgent
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.train import train
from tests.wrappers.bank import Bank, Counting

SHORT = {
    "sb3_fair/JobHiring-Small-v0": {"team_size": 5, "episode_length": 20},
    "sb3_fair/Lending-v0": {"episode_length": 20},
    "sb3_fair/EpidemicControl-v0": {},
    "sb3_fair/LoanAllocation-v0": {},
    "sb3_fair/AllelopathicHarvest-All-v0": {"horizon": 20},
}


@pytest.mark.parametrize("env", SHORT)
def test_rules_side_by_side_play_the_episodes_that_each_plays_alone(env):
    plan = make_plan("ppo", env, env_kwargs=SHORT[env], hyperparams={"n_eval_episodes": 4})
    together = evaluate_rules(plan)
    venv = evaluation_env(plan, 4)
    rules = venv.get_attr("world")[0].rules
    assert [policy.name for policy in together] == [rule.replace("-", " ") for rule in rules]
    for policy, rule in zip(together, rules, strict=True):
        alone = evaluate_vector(RuleAgent(rule, venv, FINAL), venv, 4, seed=FINAL)
        np.testing.assert_array_equal(policy.returns, alone.returns)
        np.testing.assert_array_equal(policy.lengths, alone.lengths)
        assert policy.chance == alone.chance and policy.final.keys() == alone.final.keys()
        for name, values in policy.final.items():
            np.testing.assert_array_equal(values, alone.final[name])


@pytest.mark.parametrize(
    ("wrapper", "given", "length"), [("TimeLimit", {"max_episode_steps": 20}, 20), ("FlattenObservation", {}, 100)]
)
def test_rules_play_episodes_as_long_as_those_of_policies(wrapper, given, length):
    around = {"env_wrapper": {f"gymnasium.wrappers.{wrapper}": given}}
    rules = evaluate_rules(make_plan("ppo", "sb3_fair/JobHiring-Small-v0", hyperparams=around), 2)
    assert len(rules) == 6 and max(rule.length for rule in rules) == length


def test_runs_of_other_seeds_are_judged_on_episodes_of_their_own():
    """Else intervals over seeds would leave out that another policy may be lucky with them."""
    plan = make_plan("ppo", "sb3_fair/JobHiring-Small-v0", hyperparams={"n_eval_episodes": 30})
    plans = [replace(plan, seed=seed) for seed in (0, 1, 2, 10)]
    returns = [evaluate_rules(plan)[0].returns[:, 0] for plan in plans]
    assert len(np.unique(returns)) == 120
    firsts = [seed_of(plan, purpose) for plan in plans for purpose in (FINAL, AGAIN, FILMED)]
    assert np.diff(sorted(firsts)).min() >= 10_000


def test_a_panel_needs_as_many_copies_for_each_rule():
    venv = evaluation_env(make_plan("ppo", "sb3_fair/JobHiring-Small-v0"), 3)
    with pytest.raises(ValueError, match="as many copies for each"):
        RuleAgent(["hire-all", "reject-all"], venv)


def test_an_evaluation_has_no_more_copies_than_episodes(monkeypatch):
    """Copies that have nothing to play cost as much as the others."""
    asked = []

    def noting(plan, n_envs=25):
        asked.append(n_envs)
        return evaluation_env(plan, n_envs)

    monkeypatch.setattr("sb3_fair.zoo.evaluation.evaluate.evaluation_env", noting)
    plan = make_plan("ppo", "sb3_fair/JobHiring-Small-v0", hyperparams={"n_eval_episodes": 3})
    assert [len(rule.returns) for rule in evaluate_rules(plan)] == [3] * 6
    assert asked == [1, 18]


def test_episodes_that_never_end_are_refused_before_the_training():
    plan = make_plan("ppo", "sb3_fair/AttentionAllocation-Discrete-v0", env_kwargs={"episode_length": None})
    with pytest.raises(InputError, match="episode_length must be a number of steps"):
        train(plan, log_dir="nowhere")
    assert not Path("nowhere").exists()


def test_a_run_without_policies_is_refused(tmp_path):
    run = RunFolder(tmp_path)
    run.save_results(Front(()))
    with pytest.raises(InputError, match=r"run must be finished, with policies in front\.json"):
        evaluate_run(run)


class Ward(Bank):
    """People of two groups in turn, as the observation says."""

    def step(self, action):
        return np.full(2, (self.t + 1) % 2, np.float32), *super().step(action)[1:]


@pytest.fixture
def ward(registries):
    """Registers one with an action space."""

    def register(action_space, favourable):
        spec = FairnessSpec(group=lambda obs, info: int(obs[0]), favourable=favourable)
        rules = {"even": lambda obs: 1, "uneven": lambda obs: int(obs[0])}
        sb3_fair.register("test/Ward-v0", Ward, spec, max_episode_steps=8, rules=rules, action_space=action_space)

    return register


def test_rules_have_the_disparity_that_the_algorithm_limits(ward):
    ward(gym.spaces.Discrete(2), (1,))
    plan = make_plan("ppo_lagrangian", "test/Ward-v0", hyperparams={"n_eval_episodes": 2})
    assert [rule.final["d_s"].tolist() for rule in evaluate_rules(plan)] == [[0.0, 0.0], [1.0, 1.0]]


def test_actions_of_any_space_are_audited_where_performance_alone_is_optimised(ward):
    ward(gym.spaces.MultiDiscrete([2, 3]), lambda actions: actions[:, 0] > 0)
    assert measurable(("SP", "EO"), "test/Ward-v0", {"objectives": ["R"]}) == ["SP", "EO"]


def test_a_rule_that_fails_after_the_training_is_left_out(tmp_path, registries):
    strength = [0] * 4
    spec = FairnessSpec(group=lambda obs, info: int(obs[2] > 0))
    rules = {"left": lambda obs: 0, "tires": lambda obs: strength.pop(), "right": lambda obs: 1}
    sb3_fair.register("test/Carts-v0", "CartPole-v1", spec, rules=rules)
    plan = make_plan("ppo", "test/Carts-v0", n_timesteps=64, hyperparams={"n_steps": 32, "n_eval_episodes": 2})
    with pytest.warns(UserWarning, match="^rule 'tires' of .*Carts-v0 is left out: it fails: IndexError"):
        run = train(plan, log_dir=tmp_path)
    assert run.finished and len(run.front) == 1 and run.report.is_file()
    assert [rule.name for rule in run.baselines] == ["left", "right"]


def test_what_fails_beside_a_rule_is_no_fault_of_the_rule(registries):
    class Full(Counting):
        def step(self, action):
            raise OSError("no space left")

    rules = {"left": lambda obs: 0}
    sb3_fair.register("test/Full-v0", Full, FairnessSpec(group=lambda obs, info: 0), rules=rules)
    with pytest.raises(OSError, match="no space left"):
        evaluate_rules(make_plan("ppo", "test/Full-v0"), 1)
