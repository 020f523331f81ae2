"""Which pairs of algorithm and environment make sense, and does each have settings of its own?"""

from importlib.resources import files

import pytest
import yaml

from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS, find_algorithm
from sb3_fair.zoo.registry.pairs import NEEDS, obstacles
from sb3_fair.zoo.registry.registration import TABLE, WORLDS, find
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.settings import PLAN_KEYS, TASK, TUNED, default_settings, tuning

CHOSEN = ("ppo", "dqn", "fair_ppo", "f_ppo", "fair_qcm", "pcn")
COUNTABLE = [env for env in WORLDS if not env.startswith("sb3_fair/AttentionAllocation") or "Discrete" in env]


def of(*scenarios):
    return {env for env in WORLDS if env.startswith(tuple(f"sb3_fair/{name}" for name in scenarios))}


SENSIBLE = {
    "ppo": set(WORLDS),
    "dqn": set(COUNTABLE),
    "fair_ppo": of("JobHiring", "Fraud", "Lending", "Allelopathic"),
    "f_ppo": of("JobHiring", "Fraud", "Lending", "Attention", "Epidemic"),
    "fair_qcm": of("Doughnut", "LoanAllocation", "HomeVisits", "VaccineDelivery"),
    "pcn": {*COUNTABLE, *of("Attention")}
    - {"sb3_fair/FraudDetection-MultiMAuS-v0", "sb3_fair/Lending-Long-v0", *of("Allelopathic")},
}


def table(algo):
    return yaml.safe_load(files("sb3_fair.zoo.hyperparams").joinpath(f"{algo}.yml").read_text())


@pytest.mark.parametrize("algo", CHOSEN)
def test_entries_are_of_pairs_that_make_sense(algo):
    entries = {key for key in table(algo) if key != "default" and ": " not in key}
    scenarios = {find(env).scenario for env in SENSIBLE[algo]}
    assert entries <= {*SENSIBLE[algo], *scenarios, TABLE.id}
    for env in WORLDS:
        reason = next(obstacles(ALGORITHMS[algo], env, {}), None)
        assert (reason is None) == (env in SENSIBLE[algo]), (env, reason)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_entry_has_the_keys_of_its_algorithm(algo):
    algorithm = find_algorithm(algo)
    for env, entry in table(algo).items():
        assert set(entry) <= {TUNED, *PLAN_KEYS, *algorithm.settings}, env
        if ": " not in env and env != "default":
            assert TUNED not in default_settings(algorithm, env)


@pytest.mark.parametrize("algo", CHOSEN)
def test_what_was_tuned_says_how(algo):
    for entry in table(algo).values():
        note = entry.get(TUNED)
        if note is not None:
            assert {"trials", "seeds", "date", "by"} <= set(note)
            assert set(note) <= {"trials", "seeds", "date", "by", "sampled", "before", "after"}
            assert note["trials"] > 0 and len(note["seeds"]) > 0


def test_variants_have_the_settings_of_their_scenario_and_those_of_their_own():
    f_ppo, lending = ALGORITHMS["f_ppo"], "sb3_fair/Lending-v0"
    settings = default_settings(f_ppo, f"sb3_fair:{lending}")
    for variant in of("Lending"):
        own = find(variant).defaults  # which make the variant, whatever settings its scenario has
        env_kwargs = {key: value for key, value in settings["env_kwargs"].items() if key not in own}
        assert default_settings(f_ppo, variant) == {**settings, "env_kwargs": env_kwargs}, variant
    pcn = ALGORITHMS["pcn"]
    assert default_settings(pcn, lending)["env_kwargs"]["episode_length"] == 500
    assert "episode_length" not in default_settings(pcn, "sb3_fair/Lending-Long-v0")["env_kwargs"]
    assert set(tuning(f_ppo, f"sb3_fair:{lending}")) >= {"trials", "seeds", "date"}
    assert tuning(f_ppo, "sb3_fair/Lending-Basic-v0") is None
    fraud, weeks = (
        default_settings(ALGORITHMS["ppo"], f"sb3_fair/FraudDetection{name}-v0") for name in ("", "-MultiMAuS")
    )
    assert weeks["env_kwargs"].pop("n_hours") == 168
    assert weeks == fraud


def test_an_algorithm_is_trained_on_the_tasks_of_those_that_it_is_like():
    for env in of("Doughnut", "Lending", "Allelopathic"):
        ppo, trpo = (default_settings(ALGORITHMS[algo], env) for algo in ("ppo", "trpo"))
        assert {key: ppo[key] for key in TASK if key in ppo} == {key: trpo[key] for key in TASK if key in trpo}
        assert trpo["learning_rate"] == 0.001 != ppo["learning_rate"] or "-All" in env
    assert "memory" not in default_settings(ALGORITHMS["ppo_lstm"], "sb3_fair/Doughnut-Small-v0")["env_kwargs"]


@pytest.mark.parametrize("algo", CHOSEN)
def test_all_entries_make_plans(algo):
    scenarios = {env.partition("-")[0]: env for env in SENSIBLE[algo]}
    for env in scenarios.values():
        assert make_plan(algo, env).objectives[0] == "R"


@pytest.mark.parametrize(
    ("algo", "env", "message"),
    [
        ("dqn", "AttentionAllocation-v0", "dqn needs Discrete actions, but in sb3_fair/AttentionAllocation-v0 actions"),
        ("fair_qcm", "JobHiring-v0", "fair_qcm needs a fairness scheme.* the reward follows none"),
        ("fair_ppo", "LoanAllocation-v0", "fair_ppo needs one individual per step.* a step is about 4"),
        ("f_ppo", "HomeVisits-v0", "f_ppo needs measures of disparity.* must be known before the decision"),
        ("pcn", "Lending-Long-v0", "pcn needs whole episodes of at most 2,000 steps.* they have 10,000"),
        ("pcn", "FraudDetection-MultiMAuS-v0", "pcn needs whole episodes.* has no limit"),
        ("pcn", "AllelopathicHarvest-v0", "pcn needs episodes in which groups can be compared.* about one individual"),
    ],
)
def test_a_pair_that_makes_no_sense_says_why(algo, env, message):
    with pytest.raises(InputError, match=message):
        make_plan(algo, f"sb3_fair/{env}")


def test_settings_may_supply_what_an_environment_lacks():
    assert make_plan("pcn", "sb3_fair/Lending-Long-v0", env_kwargs={"episode_length": 500}).algo == "pcn"
    with pytest.raises(InputError, match="they have 3,000"):
        make_plan("pcn", "sb3_fair/Lending-v0", env_kwargs={"episode_length": 3_000})


def test_several_attributes_are_refused_where_one_is_compared():
    attributes = {"env_kwargs": {"group": ["gender", "nationality"]}}
    with pytest.raises(InputError, match=r"fair_ppo needs one .* label .* attributes: gender, nationality"):
        make_plan("fair_ppo", "sb3_fair/JobHiring-v0", **attributes)


def test_needs_are_known():
    assert {need for algorithm in ALGORITHMS.values() for need in algorithm.needs} == set(NEEDS)
