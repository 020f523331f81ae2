"""Which pairs of algorithm and environment make sense, and does each have settings of its own?"""

from importlib.resources import files

import pytest
import yaml

from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS, find_algorithm
from sb3_fair.zoo.registry.pairs import NEEDS, obstacles
from sb3_fair.zoo.registry.registration import TABLE, WORLDS
from sb3_fair.zoo.runs.plan import MARK, PLAN_KEYS, default_settings, make_plan, mark

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
def test_every_pair_that_makes_sense_has_an_entry_and_no_other(algo):
    entries = {key for key in table(algo) if key != "default" and ": " not in key}
    assert entries - {TABLE.id} == SENSIBLE[algo]
    for env in WORLDS:
        reason = next(obstacles(ALGORITHMS[algo], env, {}), None)
        assert (reason is None) == (env in SENSIBLE[algo]), (env, reason)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_entry_has_the_keys_of_its_algorithm(algo):
    algorithm = find_algorithm(algo)
    for env, entry in table(algo).items():
        assert set(entry) <= {MARK, *PLAN_KEYS, *algorithm.settings}, env
        if ": " not in env and env != "default":
            assert MARK not in default_settings(algorithm, env)


@pytest.mark.parametrize("algo", CHOSEN)
def test_every_entry_is_marked_as_tuned_or_inherited(algo):
    for env, entry in table(algo).items():
        if ": " in env:  # as published
            continue
        found = entry[MARK]
        if found == "inherited":
            assert mark(ALGORITHMS[algo], env) is None
            continue
        assert set(found) == {"tuned"}
        note = mark(ALGORITHMS[algo], env)
        assert {"trials", "seeds", "date", "by"} <= set(note)
        assert set(note) <= {"trials", "seeds", "date", "by", "sampled", "before", "after"}
        assert note["trials"] > 0 and len(note["seeds"]) > 0


def test_what_was_tuned_in_one_environment_is_inherited_by_its_variants():
    assert set(mark(ALGORITHMS["f_ppo"], "sb3_fair:sb3_fair/Lending-v0")) >= {"trials", "seeds", "date"}
    assert mark(ALGORITHMS["f_ppo"], "sb3_fair/Lending-Basic-v0") is None


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


def test_needs_are_known():
    assert {need for algorithm in ALGORITHMS.values() for need in algorithm.needs} == set(NEEDS)
