"""Does a study try what its file and its user say, and is what it tries a plan?"""

import numpy as np
import optuna
import pytest

from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.train import build_model, training_env
from sb3_fair.zoo.tuning.space import Values, current, parameters, planned, space_of

SMALL = "sb3_fair/JobHiring-Small-v0"
ENVS = {"fair_qcm": "sb3_fair/Doughnut-v0", "tabular_fair_qcm": "sb3_fair/Doughnut-Small-v0"}


def drawn(plan, space, seed=0):
    """The plan of a trial with random values."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    trial = study.ask()
    return planned(plan, {name: values.suggest(trial, name) for name, values in space.items()})


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_random_values_of_every_algorithm_build_it(algo):
    plan = make_plan(algo, ENVS.get(algo, SMALL), n_envs=2)
    space = space_of(plan, ["R", "SP"], [], {}, None)
    tried = drawn(plan, space)
    assert tried != plan and len(space) >= 5
    build_model(tried, training_env(tried), "cpu")


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_ends_of_every_range_build_it_in_random_combinations(algo):
    plan = make_plan(algo, ENVS.get(algo, SMALL), n_envs=2)
    space = space_of(plan, ["R", "SP"], [], {}, None)
    ends = {name: [*(list(each.choices.values()) or [each.low, each.high])] for name, each in space.items()}
    rng = np.random.default_rng(0)
    for _ in range(12):
        tried = planned(plan, {name: values[rng.choice([0, -1])] for name, values in ends.items()})
        build_model(tried, training_env(tried), "cpu")


@pytest.mark.parametrize(
    ("algo", "env"),
    [
        ("ppo", "sb3_fair/EpidemicControl-v0"),
        ("f_ppo", "sb3_fair/AttentionAllocation-v0"),
        ("fair_ppo", "sb3_fair/AllelopathicHarvest-v0"),
        ("fair_qcm", "sb3_fair/LoanAllocation-v0"),
        ("pcn", SMALL),
    ],
)
def test_the_values_of_the_zoo_are_among_those_that_are_tried(algo, env):
    plan = make_plan(algo, env)
    space = space_of(plan, ["R"], [], {}, None)
    study = optuna.create_study()
    study.enqueue_trial(parameters(plan, space))
    trial = study.ask()
    same = planned(plan, {name: values.suggest(trial, name) for name, values in space.items()})
    before = {**ALGORITHMS[algo].settings, **plan.hyperparams}
    assert {**before, **same.hyperparams} == before and same.weights == plan.weights


def test_what_is_fixed_or_switched_off_is_not_tried():
    plan = make_plan("f_ppo", "sb3_fair/AttentionAllocation-v0", hyperparams={"gamma": 0.5, "massage_threshold": None})
    space = space_of(plan, ["R"], ["gamma", "policy_kwargs"], {}, None)
    assert not space.keys() & {"gamma", "policy_kwargs.net_arch", "massage_threshold"} and "reg_lambda" in space
    assert drawn(plan, space).hyperparams["gamma"] == 0.5


def test_only_some_settings_are_tried_and_within_the_users_own_values():
    plan = make_plan("ppo", SMALL)
    space = space_of(
        plan, ["R"], [], {"gamma": {"choice": [0.1, 0.2]}, "max_grad_norm": {"range": [0.1, 0.9]}}, ["gamma"]
    )
    assert set(space) == {"gamma"} and set(space["gamma"].choices.values()) == {0.1, 0.2, 0.99}
    assert "max_grad_norm" in space_of(plan, ["R"], [], {"max_grad_norm": {"range": ["1e-1", 0.9]}}, None)


@pytest.mark.parametrize("choices", [["1e-3", "1e-2", "2", True, "word"], {"a": "1e-3", "b": "1e-2", "c": [8]}])
def test_numbers_that_yaml_takes_for_text_are_numbers_among_choices_too(choices):
    values = list(Values.parse("ent_coef", {"choice": choices}).choices.values())
    assert values[:2] == [0.001, 0.01] and values[2:] in ([2.0, True, "word"], [[8]])


def test_weights_are_tried_of_the_fairness_that_is_judged_only():
    plan = make_plan("ppo", SMALL)
    assert {name for name in space_of(plan, ["R", "IF"], [], {}, None) if "." in name} == {
        "weights.IF", "policy_kwargs.net_arch",
    }  # fmt: skip
    space = {"weights.IF": Values(choices={30: 30})}
    assert drawn(plan, space).weights == (1.0, 0.0, 30.0)


def test_a_learning_rate_that_falls_still_falls():
    plan = make_plan("ppo", "sb3_fair/Lending-v0")
    assert planned(plan, {"learning_rate": 0.0004}).hyperparams["learning_rate"] == "lin_0.0004"
    plan = make_plan("ppo", SMALL, hyperparams={"learning_rate": "lin_0.02_0.01"})
    assert current(plan, "learning_rate") == 0.02
    assert planned(plan, {"learning_rate": 0.03}).hyperparams["learning_rate"] == "lin_0.03_0.01"


def test_a_choice_of_the_users_may_have_the_name_of_the_zoos():
    plan = make_plan("ppo", SMALL)
    own = {"policy_kwargs.net_arch": {"choice": {"default": [32]}}}
    space = space_of(plan, ["R"], [], own, ["policy_kwargs.net_arch"])
    assert list(space["policy_kwargs.net_arch"].choices.values()) == [None, [32]]
    assert parameters(plan, space) == {"policy_kwargs.net_arch": "default (zoo)"}


def test_a_setting_within_a_setting_leaves_its_neighbours_alone():
    plan = make_plan("fair_ppo", "sb3_fair/AllelopathicHarvest-v0")
    networks = planned(plan, {"policy_kwargs.net_arch": [8]}).hyperparams["policy_kwargs"]
    assert networks == {**plan.hyperparams["policy_kwargs"], "net_arch": [8]}
    assert plan.hyperparams["policy_kwargs"]["net_arch"] != [8]


def test_a_minibatch_is_not_larger_than_what_was_collected():
    plan = make_plan("ppo", SMALL, n_envs=4)
    assert planned(plan, {"n_steps": 32, "batch_size": 1024}).hyperparams["batch_size"] == 128
    dqn = make_plan("dqn", SMALL, hyperparams={"n_steps": 3})
    assert planned(dqn, {"batch_size": 512}).hyperparams["batch_size"] == 512


def test_numbers_are_rounded_so_that_a_file_says_what_was_trained():
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1)).ask()
    value = Values(1e-5, 1e-2, log=True).suggest(trial, "x")
    assert value == float(f"{value:.3g}") and trial.params["x"] == pytest.approx(value, rel=5e-3)
    assert Values(0.9, 0.9999).suggest(optuna.trial.FixedTrial({"x": 0.99987}), "x") == 0.9999  # still within its ends


@pytest.mark.parametrize(
    ("own", "only", "message"),
    [
        ({"gama": {"range": [0, 1]}}, None, "unknown setting 'gama': did you mean 'gamma'"),
        ({}, ["gama"], "unknown setting to try 'gama': did you mean 'gamma'"),
        ({"gamma": [0, 1]}, None, "space of 'gamma' must be"),
        ({"gamma": {"between": [0, 1]}}, None, "space of 'gamma' must be"),
        ({"gamma": {"range": [1, 0]}}, None, "two growing numbers"),
        ({"gamma": {"log": [0, 1]}}, None, "two growing numbers above 0"),
        ({"gamma": {"choice": []}}, None, "choices for 'gamma' must be"),
        ({"gamma": {"choice": {}}}, None, "choices for 'gamma' must be"),
        ({"ent_coef": {"log": [0.01, 0.1]}}, None, "'ent_coef' must be a choice, as its value here is 0.0"),
        ({"target_kl": {"log": [0.01, 0.1]}}, None, "'target_kl' must have a value"),
        ({"weights.EO": {"choice": [0, 1]}}, None, "unknown objective 'EO'"),
        ({"gamma": {"choice": [0.9, 1.2]}}, None, "a value to try of 'gamma' must be in [0, 1], got 1.2"),
        ({"n_epochs": {"range": [1.5, 3.5]}}, None, "a value to try of 'n_epochs' must be"),
        ({"weights": {"choice": [0, 1]}}, None, "'weights' has values to try, but is fixed, or of nothing that is"),
    ],
)
def test_a_wrong_space_is_an_error_that_says_what_is_right(own, only, message):
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        space_of(make_plan("ppo", SMALL, preset="default"), ["R"], [], own, only)


def test_whole_numbers_may_be_written_as_powers():
    space = space_of(make_plan("ppo", SMALL), ["R"], [], {"n_epochs": {"log": ["1e0", "1e1"]}}, ["n_epochs"])
    assert space["n_epochs"].whole and (space["n_epochs"].low, space["n_epochs"].high) == (1, 10)


def test_values_of_what_is_not_tried_are_refused():
    with pytest.raises(InputError, match=r"weights must be left out: pcn has none to try, got 'weights\.SP'"):
        space_of(make_plan("pcn", SMALL), ["hypervolume"], [], {"weights.SP": {"choice": [0, 5]}}, None)
    with pytest.raises(InputError, match="'gamma' has values to try, but is fixed"):
        space_of(make_plan("ppo", SMALL), ["R"], ["gamma"], {"gamma": {"choice": [0.9, 0.99]}}, None)


def test_a_study_needs_something_to_try():
    with pytest.raises(InputError, match="all are fixed"):
        space_of(make_plan("ppo", SMALL), ["R"], ["gamma"], {}, ["gamma"])
