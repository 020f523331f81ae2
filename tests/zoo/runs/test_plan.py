"""Do defaults and wishes add up to a run that can be repeated?"""

from dataclasses import replace
from importlib.resources import files

import pytest
import yaml
from stable_baselines3 import PPO

import sb3_fair
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo import names
from sb3_fair.zoo.evaluation.evaluate import evaluation_env
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.settings import default_settings
from sb3_fair.zoo.runs.train import build_model, training_env

SMALL = "sb3_fair/JobHiring-Small-v0"


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_settings_of_every_algorithm_build_it(algo):
    needs_a_scheme = "scheme" in ALGORITHMS[algo].needs
    needs_an_individual = "individual" in ALGORITHMS[algo].needs
    scenario = "VaccineDelivery" if needs_a_scheme else "Lending" if needs_an_individual else "EpidemicControl"
    plan = make_plan(algo, f"sb3_fair/{scenario}-v0")
    build_model(plan, training_env(plan), "cpu")


@pytest.mark.parametrize("algo", ["pcn", "ppo"])
def test_a_plan_is_rebuilt_from_what_it_wrote_down(algo):
    plan = make_plan(algo, SMALL, seed=3, objectives=("R", "EO"), audit=("SP",), hyperparams={"gamma": 0.5})
    assert Plan.from_config(plan.config) == plan


def test_files_of_the_package_are_read_once_and_nobody_changes_them(monkeypatch):
    first = default_settings(ALGORITHMS["ppo"], SMALL)
    first["env_kwargs"]["objectives"].append("EO")
    monkeypatch.setattr(yaml, "safe_load", lambda content: pytest.fail("a file is read again"))
    assert "EO" not in default_settings(ALGORITHMS["ppo"], SMALL)["env_kwargs"]["objectives"]


def test_a_class_in_place_of_the_name_of_an_algorithm_is_refused():
    with pytest.raises(InputError, match=r"unknown algorithm <class .*PPO'>: choose one of pcn, f_ppo"):
        make_plan(PPO, SMALL)


def test_former_names_of_algorithms_mean_the_new_ones():
    plan = make_plan("ppo_lagrangian", "sb3_fair/Lending-v0")
    assert make_plan("cpo", "sb3_fair/Lending-v0") == plan == Plan.from_config({**plan.config, "algo": "cpo"})
    assert plan.algo == "ppo_lagrangian"
    assert plan.algorithm.cls is sb3_fair.ConstrainedPPO is sb3_fair.f_ppo.CPOAgent


def test_wishes_take_the_place_of_defaults():
    plan = make_plan("pcn", SMALL, hyperparams={"gamma": 0.5, "n_eval_episodes": 7}, env_kwargs={"window": 9}, n_envs=2)
    assert (plan.hyperparams["gamma"], plan.n_eval_episodes, plan.env_kwargs["window"], plan.n_envs) == (0.5, 7, 9, 2)
    assert plan.env_kwargs["emit"] == "difference"


def test_settings_of_objectives_that_are_not_optimised_are_left_out():
    plan = make_plan("pcn", SMALL, objectives=("SP", "IF"))
    assert plan.hyperparams["held"] is None
    assert plan.hyperparams["scaling_floor"].keys() == {"SP", "IF"}


def test_without_weights_performance_alone_counts():
    assert make_plan("ppo", SMALL).weights == (1, 0, 0)
    assert make_plan("ppo", SMALL, objectives=("SP", "R")).weights == (0, 1)
    assert make_plan("pcn", SMALL).weights is None


def test_an_unknown_key_in_a_yaml_file_is_an_error(monkeypatch):
    monkeypatch.setattr("sb3_fair.zoo.runs.settings.packaged", lambda *_: {"default": {"gama": 1}})
    with pytest.raises(InputError, match="'gama': did you mean 'gamma'"):
        default_settings(ALGORITHMS["pcn"], SMALL)


def test_ids_are_accepted_bare_and_prefixed():
    assert make_plan("pcn", SMALL) == make_plan("pcn", "sb3_fair:" + SMALL)


def test_a_preset_has_settings_of_its_own():
    plan = make_plan("fair_qcm", "sb3_fair/Doughnut-v0", preset="paper")
    assert plan.hyperparams["storage"] == "rows" and plan.hyperparams["batch_size"] == 2048
    with pytest.raises(InputError, match="preset must be one of paper"):
        make_plan("fair_qcm", "sb3_fair/Doughnut-v0", preset="papers")
    with pytest.raises(InputError, match="preset must be left out"):
        make_plan("ppo", "sb3_fair/Doughnut-v0", preset="paper")


@pytest.mark.parametrize("env", ["sb3_fair/Doughnut-v0", "sb3_fair/LoanAllocation-Code-v0"])
def test_presets_build(env):
    plan = make_plan("fair_qcm", env, preset="paper")
    model = build_model(plan, training_env(plan), "cpu")
    assert model.storage == "rows" and model.learn(300).num_timesteps == 300


@pytest.mark.parametrize(("rate", "rates"), [("lin_0.01", (0.01, 0.005, 0)), ("lin_0.01_0.002", (0.01, 0.006, 0.002))])
def test_a_learning_rate_may_fall_linearly(rate, rates):
    plan = make_plan("dqn", "sb3_fair/JobHiring-Small-v0", hyperparams={"learning_rate": rate})
    model = build_model(plan, training_env(plan), "cpu")
    assert [model.lr_schedule(left) for left in (1.0, 0.5, 0.0)] == pytest.approx(rates)


def test_weights_belong_to_objectives_by_name():
    assert make_plan("ppo", SMALL, objectives=("SP", "R", "IF")).weights == (0, 1, 0)
    assert make_plan("ppo", SMALL, objectives=("EO", "R")).weights == (0, 1)
    with pytest.raises(InputError, match="weights must be given for objectives without R, got SP:IF alone"):
        make_plan("ppo", SMALL, objectives=("SP", "IF"))
    with pytest.raises(InputError, match="weights must be left out for pcn"):
        make_plan("pcn", SMALL, weights=(1, 0, 0))
    with pytest.raises(InputError, match="scalarise must be left out"):
        make_plan("ppo", SMALL, env_kwargs={"scalarise": [0, 0, 1]})
    with pytest.raises(InputError, match="objectives must be a list of names"):
        make_plan("ppo", SMALL, env_kwargs={"objectives": None})


def test_disparities_of_the_environment_may_be_objectives():
    plan = make_plan("ppo", "sb3_fair/Lending-v0", objectives=names.objectives("R:d_s:SP"), weights=(1, 2, 3))
    assert plan.objectives == ("R", "d_s", "SP") and plan.weights == (1, 2, 3)


def test_what_is_said_of_a_notion_holds_for_each_attribute():
    both = {"env_kwargs": {"group": ["gender", "nationality"]}}
    chosen = ["R", "SP@gender", "SP@nationality"]
    plan = make_plan("pcn", SMALL, objectives=("R", "SP"), **both)
    assert plan.env_kwargs["objectives"] == chosen
    assert plan.hyperparams["scaling_floor"] == {"R": 0.001, "SP@gender": 0.2, "SP@nationality": 0.2}
    assert make_plan("ppo", SMALL, **both).weights == (1, 0, 0, 0)
    for objectives, weights, meant in ((("R", "SP"), (1, 5), (1, 5, 5)), (("R", "SP"), (1, 5, 7), (1, 5, 7)),
                                       (chosen, (1, 5, 7), (1, 5, 7))):  # fmt: skip
        plan = make_plan("ppo", SMALL, objectives=objectives, weights=weights, **both)
        assert plan.weights == meant and list(plan.objectives) == chosen
    with pytest.raises(InputError, match=r"one number per objective R:SP@gender:SP@nationality, got \[1\]"):
        make_plan("ppo", SMALL, objectives=("R", "SP"), weights=(1,), **both)


def test_one_of_several_distances_is_optimised():
    plan = make_plan("ppo", SMALL, objectives=("R", "IF@heom"), env_kwargs={"distance": ["heom", "hmom"]})
    assert attribute(evaluation_env(plan, 1), "fairness_names")[:1] == ("IF@heom",)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("{gamma: 0.9}", {"n_envs": 8, "hyperparams": {"gamma": 0.9}}),
        ("{env_kwargs: {objectives: [R]}}", {"weights": (1.0,)}),
        ("{env_kwargs: null}", "env_kwargs must be settings by name, got None"),
        ("{weights: 1}", "weights must be one number per objective R:SP:IF, got 1"),
        ("\xff", "conf-file must be a YAML file"),
    ],
)
def test_a_file_of_settings_may_say_little_but_nothing_wrong(entry, found, tmp_path):
    file = tmp_path / "settings.yml"
    file.write_bytes(
        f"{SMALL.removeprefix('sb3_fair/')}: {entry}\nsb3_fair/JobHiring-Small-v0: {entry}".encode("latin1")
    )
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            make_plan("ppo", SMALL, conf_file=file)
    else:
        plan = make_plan("ppo", SMALL, conf_file=file)
        assert {name: getattr(plan, name) for name in found} == found


@pytest.mark.parametrize("algo", [name for name, algorithm in ALGORITHMS.items() if algorithm.like is None])
def test_a_file_of_settings_is_read_as_those_of_the_zoo(algo, tmp_path):
    file = tmp_path / "own.yml"
    file.write_text(files("sb3_fair.zoo").joinpath(f"hyperparams/{algo}.yml").read_text())
    for env in ("JobHiring-v0", "JobHiring-Gender-v0", "Lending-v0", "VaccineDelivery-v0"):
        shipped = default_settings(ALGORITHMS[algo], f"sb3_fair/{env}")
        assert default_settings(ALGORITHMS[algo], f"sb3_fair/{env}", conf_file=file) == shipped
    file.write_text(f"default: {{n_timesteps: 256, env_wrapper: own.Skip}}\n{SMALL}: {{gamma: 0.9}}")
    settings = default_settings(ALGORITHMS[algo], SMALL, conf_file=file)
    assert (settings["n_timesteps"], settings["env_wrapper"], settings["gamma"]) == (256, "own.Skip", 0.9)


def test_training_may_follow_every_episode():
    plan = make_plan("dqn", SMALL, hyperparams={"train_freq": [1, "episode"], "buffer_size": 100}, n_envs=1)
    model = build_model(plan, training_env(plan), "cpu")
    assert model.train_freq.unit.value == "episode" and model.train_freq.frequency == 1
    several = replace(plan, n_envs=2)
    with pytest.raises(InputError, match=r"train_freq must count steps with 2 environments, got \[1, 'episode'\]"):
        build_model(several, training_env(several), "cpu")


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_logs_of_a_run_are_no_hyperparameter(algo):
    with pytest.raises(InputError, match="unknown hyperparameter 'tensorboard_log'"):
        make_plan(algo, "sb3_fair/VaccineDelivery-v0", hyperparams={"tensorboard_log": "logs"})


@pytest.mark.parametrize(
    ("given", "words"), [({"gamma": "x"}, "'gamma' must be in"), ({"clip_obs": 0}, "'clip_obs' must")]
)
def test_arguments_of_normalize_are_of_their_kind(given, words):
    with pytest.raises(InputError, match=f"argument of normalize {words}"):
        make_plan("ppo", "sb3_fair/JobHiring-Small-v0", hyperparams={"normalize": given})
