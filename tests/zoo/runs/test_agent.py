"""Do agents decide outside of environments as their policies do inside, and do monitors see what they do?"""

import json
import math
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from stable_baselines3 import PPO

import sb3_fair
from sb3_fair import load_agent
from sb3_fair.audit import audit, audit_file
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.fairness import (
    FullHistory,
    SlidingWindow,
    consistency,
    group_notion,
    individual_fairness,
    lipschitz_violation,
)
from sb3_fair.wrappers.choices import Choices
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.runs.agent import Agent
from sb3_fair.zoo.runs.monitor import Monitor
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.train import train

SMALL = "sb3_fair/JobHiring-Small-v0"
SHORT = {"n_steps": 32, "batch_size": 32, "n_epochs": 1}
PEOPLE = {
    "gender": ["f", "m"] * 20,
    "age": np.arange(40).tolist(),
    "job": ["clerk", "cook", "nurse", "cook"] * 10,
    "repaid": [1, 0, 1, 1] * 10,
}


def trained(tmp_path, algo, env, **wishes):
    plan = make_plan(algo, env, n_timesteps=128, **wishes)
    return train(plan, log_dir=tmp_path, progress=False).path


def small(algo):
    wishes = {"objectives": ("R", "SP")} if algo == "pcn" else {"objectives": ("R",)}
    if algo in ("ppo", "a2c", "f_ppo"):
        wishes["hyperparams"] = {"n_steps": 16} if algo == "a2c" else SHORT
    if algo == "pcn":
        wishes["hyperparams"] = {"n_fill_episodes": 4, "n_episodes": 2, "eval_freq": 0.0}
    return wishes


@pytest.mark.parametrize("algo", ["ppo", "a2c", "dqn", "f_ppo", "pcn"])
def test_an_agent_acts_as_its_model(algo, tmp_path):
    agent = load_agent(trained(tmp_path, algo, SMALL, **small(algo)), 0)
    venv = sb3_fair.make_vec(SMALL, 5, seed=3)
    observations = venv.reset()
    decided = agent.act(observations, deterministic=True)
    assert decided.action.shape == (5,) and decided.probabilities.shape == (5, 2)
    assert decided.names == ("not hired", "hired")
    seen = observations
    if algo == "pcn":
        agent.model.set_command(agent.policy)
        commanded = sb3_fair.make_vec(SMALL, 5, seed=3, objectives=("R", "SP"), emit="difference")
        seen = agent.model.follow(commanded).reset()
    np.testing.assert_array_equal(decided.action, agent.model.predict(seen, deterministic=True)[0])
    one = agent.act(observations[2], deterministic=True)
    assert one.action == decided.action[2] and isinstance(one.action, int)
    np.testing.assert_allclose(one.probabilities, decided.probabilities[2], atol=1e-6)
    assert decided.probabilities.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(("algo", "first"), [("ppo", None), ("dqn", 0.25)])
def test_probabilities_are_those_with_which_it_acts(algo, first, tmp_path):
    agent = load_agent(trained(tmp_path, algo, SMALL, **small(algo)))
    row = sb3_fair.make_vec(SMALL, 1, seed=3).reset()[0]
    sure = agent.act(row, deterministic=True)
    assert sure.probabilities[sure.action] == 1
    if algo == "dqn":
        agent.model.exploration_rate = 0.5
    rows = np.repeat(row[None], 4000, axis=0) if algo == "ppo" else row
    decisions = [agent.act(rows, deterministic=False) for _ in range(1 if algo == "ppo" else 1000)]
    drawn = np.concatenate([np.atleast_1d(each.action) for each in decisions])
    told = np.reshape(decisions[0].probabilities, (-1, 2))[0]
    assert 0 < told[1] < 1 and drawn.mean() == pytest.approx(told[1], abs=0.06)
    assert first is None or told.min() == first


def test_what_does_not_fit_an_observation_of_whole_numbers_is_refused(tmp_path):
    agent = load_agent(trained(tmp_path, "ppo", SMALL, **small("ppo")))
    agent.space = gym.spaces.Discrete(5)
    assert agent._rows(3)[1]
    for wrong in (99, -1, 2.5, float("nan"), "x"):
        with pytest.raises(ValueError, match=r"whole number between 0 and 4|must be numbers"):
            agent._rows(wrong)
    agent.space = gym.spaces.Box(0, 100, (2,), np.uint8)
    for wrong in ([13.7, 0], [300, 0], [float("nan"), 0]):
        with pytest.raises(ValueError, match=r"^person\[0\] must be a whole number between 0 and 100"):
            agent._rows(wrong)


def test_the_ends_of_an_observation_are_told_as_they_are_written(tmp_path):
    agent = load_agent(trained(tmp_path, "ppo", SMALL, **small("ppo")))
    agent.space = gym.spaces.Box(0.1, 0.7, (2,))  # float32, in which 0.1 is a little more, and 0.7 a little less
    assert agent._rows([0.1, 0.7])[0].dtype == np.float32
    for wrong in ([0.09, 0.7], [0.1, 0.71], [0.1, 1e300], [0.1, np.inf]):
        with pytest.raises(ValueError, match=r"must be between 0.1 and 0.7"):
            agent._rows(wrong)


def test_observations_are_scaled_as_in_training(tmp_path):
    conf = tmp_path / "conf.yml"
    conf.write_text(f"{SMALL}: {{n_timesteps: 128, normalize: true, n_steps: 32, batch_size: 32}}")
    agent = load_agent(trained(tmp_path, "ppo", SMALL, conf_file=conf, objectives=("R",)))
    row = sb3_fair.make_vec(SMALL, 1, seed=3).reset()
    scaled = agent.model.get_vec_normalize_env().normalize_obs(row)
    assert not np.allclose(scaled, row)
    assert agent.act(row, deterministic=True).action == agent.model.predict(scaled, deterministic=True)[0]


@pytest.fixture(scope="module")
def clerk_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    table = folder / "people.csv"
    rows = zip(*PEOPLE.values(), strict=True)
    table.write_text("\n".join([",".join(PEOPLE), *(",".join(map(str, row)) for row in rows)]))
    settings = {"table": str(table), "group": "gender", "outcome": "repaid", "features": ["age"], "nominal": ["job"]}
    wishes = {"env_kwargs": settings, "objectives": ("R",), "hyperparams": SHORT}
    return trained(folder, "ppo", "sb3_fair/Table-v0", **wishes)


@pytest.fixture(scope="module")
def clerk(clerk_run):
    return load_agent(clerk_run)


def test_a_monitor_has_the_notions_of_the_environment_by_default(tmp_path):
    run = trained(tmp_path, "ppo", SMALL, objectives=("R", "EO"), hyperparams=SHORT)
    assert {"EO", "PE", "IF"} <= RunFolder.open(run).front[0].final.keys()  # which its evaluation audited
    assert load_agent(run).spec.notions == ("EO",) and set(load_agent(run).monitor().values) == {"EO"}


def test_a_run_that_is_not_finished_has_no_agent(tmp_path):
    run = RunFolder.create(tmp_path, "ppo", SMALL)
    run.start(config=make_plan("ppo", SMALL).config, args={}, command="sb3-fair train")
    with pytest.raises(InputError, match="run must be finished"):
        load_agent(run.path)


def test_people_of_a_table_are_given_by_its_columns(clerk):
    one = clerk.act({"age": 13, "job": "cook"}, deterministic=True)
    several = clerk.act({"age": [13, 39], "job": ["cook", "clerk"]}, deterministic=True)
    listed = clerk.act([{"age": 13, "job": "cook"}, {"age": 39, "job": "clerk"}], deterministic=True)
    row = np.array([13 / 39, 0, 1, 0], dtype=np.float32)
    assert one.action == several.action[0] == clerk.act(row, deterministic=True).action
    np.testing.assert_array_equal(several.action, listed.action)
    assert one.names == ("not accepted", "accepted")


def test_people_of_a_frame_are_given_by_the_names_of_its_columns(clerk):
    people = {"age": [13, 39, 7], "job": ["cook", "clerk", "nurse"]}
    decided = clerk.act(people, deterministic=False).probabilities
    frame = pd.DataFrame(people)
    for given in (
        frame,
        frame[["job", "age"]],
        frame.convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame(people),
        pa.table(people),
        [row for _, row in frame.iterrows()],
        [*frame.itertuples(index=False)],
    ):
        np.testing.assert_allclose(clerk.act(given, deterministic=False).probabilities, decided, atol=1e-6)
    one = clerk.act(frame.iloc[1], deterministic=False)
    assert isinstance(one.action, int) and one.probabilities == pytest.approx(decided[1], abs=1e-6)
    numbers = pd.DataFrame(np.eye(4), columns=["age", "job", "a", "b"])
    for wrong, message in (
        (numbers, "got 'a'"),
        (numbers["age"], "got 0"),
        (pd.DataFrame([[1, "cook", 2]], columns=["age", "job", "age"]), "unique column names"),
    ):
        with pytest.raises(ValueError, match=message):
            clerk.act(wrong)


@pytest.mark.parametrize(
    ("person", "message"),
    [
        ({"age": 13}, "column 'job' too"),
        ({"age": 13, "jobb": "cook"}, "got 'jobb'.*did you mean 'job'"),
        ({"age": 13, 1: "cook"}, "the columns that the policy knows, got 1"),
        ({"age": 400, "job": "cook"}, "column 'age' must be between 0 and 39, got 400"),
        ({"age": float("nan"), "job": "cook"}, "column 'age' must be between 0 and 39, got nan"),
        ({"age": "old", "job": "cook"}, "column 'age' must have numbers, got 'old'"),
        ({"age": 10**400, "job": "cook"}, "column 'age' must be between 0 and 39, got 1000"),
        ({"age": 13, "job": "king"}, "column 'job' must be one of clerk, cook, nurse, got 'king'"),
        ({"age": [[13]], "job": [["cook"]]}, "one value, or as many values, in all columns"),
        ({"age": [13, 14], "job": "cook"}, "one value, or as many values, in all columns"),
        ({"age": [], "job": []}, "at least one, got none"),
        (np.zeros((0, 4)), "at least one, got none"),
        ([{"age": 13, "job": "cook"}, 3], r"array of shape \(4,\)"),
        (np.zeros(7), r"array of shape \(4,\) or \(n, ...\) of them, got \(1, 7\)"),
        (np.array([0, 0, 2.0, 0]), "column 'job=cook' must be between 0 and 1, got 2"),
    ],
)  # fmt: skip
def test_what_the_policy_has_not_seen_is_refused_by_name(clerk, person, message):
    with pytest.raises(ValueError, match=message):
        clerk.act(person)


def test_the_parts_of_an_observation_are_checked_like_columns(clerk):
    agent = copy(clerk)
    parts = {"age": gym.spaces.Box(0, 1, (1,)), "job": gym.spaces.Discrete(3), "has": gym.spaces.MultiBinary(2)}
    agent.space = gym.spaces.Dict(parts)
    rows, single = agent._rows({"age": [0.5], "job": 2, "has": [0, 1]})
    assert single and rows["age"].shape == (1, 1) and rows["job"].tolist() == [2]
    people = [{"age": [age], "job": job, "has": [0, 1]} for age, job in ((0.5, 2), (0.25, 0))]
    rows, single = agent._rows(people)
    assert not single and rows["age"].tolist() == [[0.5], [0.25]] and rows["job"].tolist() == [2, 0]
    for wrong, message in (
        ({"age": [0.5], "job": 2}, "column 'has' too"),
        ({"age": [0.5], "job": 2, "has": [0, 1], "agee": 3}, "got 'agee'.*did you mean 'age'"),
        ([0.5], "a dict of age, has, job, or a list of them, got <class 'list'>"),
        ([people[0], {"age": [0.5], "job": 2}], "column 'has' too"),
        ({"age": [2.0], "job": 2, "has": [0, 1]}, r"person\['age'\]\[0\] must be between 0 and 1, got 2"),
        ({"age": ["x"], "job": 2, "has": [0, 1]}, r"person\['age'\] must be numbers, got"),
        ({"age": [0.5], "job": 3, "has": [0, 1]}, r"person\['job'\] must be a whole number between 0 and 2, got 3"),
        ({"age": [0.5], "job": 2, "has": [0, 2]}, "whole number between 0 and 1, got 2"),
        ({"age": [[0.5], [0.5]], "job": [2], "has": [0, 1]}, "as many values in all parts"),
    ):
        with pytest.raises(ValueError, match=message):
            agent._rows(wrong)


def test_threads_get_the_probabilities_of_their_own_decisions(clerk, monkeypatch):
    predict, people = clerk.model.predict, [{"age": age, "job": "cook"} for age in range(0, 40, 4)]
    alone = [clerk.act(person, deterministic=False).probabilities for person in people]

    def slow(*seen, **mode):
        found = predict(*seen, **mode)
        time.sleep(0.002)
        return found

    monkeypatch.setattr(clerk.model, "predict", slow)
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda person: clerk.act(person, deterministic=False).probabilities, people))
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize(
    "wrapper",
    [
        {"env_wrapper": {"gymnasium.wrappers.RescaleObservation": {"min_obs": -1.0, "max_obs": 1.0}}},
        {"vec_env_wrapper": {"stable_baselines3.common.vec_env.VecFrameStack": {"n_stack": 2}}},
    ],
)
def test_policies_that_see_through_wrappers_are_refused(tmp_path, wrapper):
    run = trained(tmp_path, "ppo", SMALL, objectives=("R",), hyperparams=SHORT | wrapper)
    with pytest.raises(InputError, match=f"as the environment has them.* but {next(iter(wrapper))} has "):
        load_agent(run)


def test_wrappers_of_rewards_leave_an_agent_its_columns(clerk_run, tmp_path):
    settings = RunFolder(clerk_run).config["env_kwargs"]
    hyperparams = SHORT | {"env_wrapper": "gymnasium.wrappers.NormalizeReward"}
    run = trained(tmp_path, "ppo", "sb3_fair/Table-v0", env_kwargs=settings, hyperparams=hyperparams)
    agent = load_agent(run)
    assert agent.act({"age": 13, "job": "cook"}).action in (0, 1)


def test_policies_that_act_by_more_than_the_present_are_refused(tmp_path):
    with pytest.raises(InputError, match="present alone, but FairQCM remembers more"):
        load_agent(trained(tmp_path, "fair_qcm", "sb3_fair/Doughnut-Small-v0"))


def test_a_model_without_its_run_is_no_agent(clerk):
    with pytest.raises(TypeError, match=r"run must be the folder of a run.* knows the environment too, got <stable"):
        load_agent(clerk.model)


def test_a_policy_of_several_must_be_named(tmp_path, monkeypatch):
    run = trained(tmp_path, "pcn", SMALL, **small("pcn"))
    first = load_agent(run, 0)
    assert isinstance(load_agent(run, first.policy.name), Agent)
    for wrong in (99, "best"):
        with pytest.raises(InputError, match="policy must be a number from 0"):
            load_agent(run, wrong)


def test_a_monitor_has_the_notions_of_its_window_and_tells_who_leaves(clerk):
    left = []
    monitor = Monitor({"SP": -0.3}, ("SP", "EO"), lambda *told: left.append(told), history=SlidingWindow(8))
    rng = np.random.default_rng(0)
    groups, actions, outcomes = rng.choice(["f", "m"], 60), rng.integers(2, size=60), rng.integers(2, size=60)
    expected, outside = [], False
    for step, (group, action, outcome) in enumerate(zip(groups, actions, outcomes, strict=True)):
        monitor.feedback(monitor.record(action, group), outcome)
        latest = slice(max(0, step - 7), step + 1)
        whole = group_notion("SP", actions=actions[latest], groups=groups[latest])
        assert monitor.values["SP"] == pytest.approx(whole, nan_ok=True)
        whole_eo = group_notion("EO", actions=actions[latest], groups=groups[latest], feedback=outcomes[latest])
        assert monitor.values["EO"] == pytest.approx(whole_eo, nan_ok=True)
        outside, before = step >= 7 and (whole < -0.3 or (np.isnan(whole) and outside)), outside
        if outside and not before:
            expected.append(("SP", whole))
        assert monitor.left == ({"SP"} if outside else set())
    assert len(expected) > 3
    assert [told[:2] for told in left] == [(name, pytest.approx(value)) for name, value in expected]
    assert clerk.monitor({"SP": -0.1}).values.keys() == {"SP"}
    assert clerk.monitor(notions=np.array(["SP", "EO"])).values.keys() == {"SP", "EO"}
    for unknown in (60, -1, 1.5):
        with pytest.raises(ValueError, match="one of the 60 recorded"):
            monitor.feedback(unknown, 1)
    with pytest.raises(ValueError, match="limits must be of SP, got 'PP'"):
        Monitor({"PP": 0.0}, ("SP",))
    for name in ("SP", "SP@sex"):
        with pytest.raises(ValueError, match=rf"limit of {name} must be in \[-1, 0\], got 0.1"):
            Monitor({name: 0.1}, (name,), attributes=("sex",))


@pytest.mark.parametrize("settings", [{"history": SlidingWindow(500)}, {"history": FullHistory()}, {}])
def test_a_limit_applies_from_the_first_full_window_on(settings):
    """Two decisions on people of two groups, one of them favourable, have an SP of -1."""
    told = []
    monitor = Monitor({"SP": -0.25}, ("SP",), lambda *news: told.append(news), **settings)
    for number in range(499):
        monitor.feedback(monitor.record(number % 2, number % 2), 1)
    assert monitor.values["SP"] == -1 and not told and not monitor.left
    monitor.record(1, 1)
    assert told == [("SP", -1.0, -0.25)] and monitor.left == {"SP"}


@pytest.mark.parametrize("wrong", [7, -1, 1.7, float("nan"), "x"])
@pytest.mark.parametrize("favourable", [(1,), lambda actions: actions[:, None] > 0])
def test_a_monitor_refuses_what_is_no_action(clerk, favourable, wrong):
    agent = copy(clerk)
    agent.spec = replace(clerk.spec, favourable=favourable)
    monitor = agent.monitor(notions=("SP",))
    number = monitor.record(1, "f", feedback=1)
    for refused in (
        lambda: monitor.record(wrong, "f"),
        lambda: monitor.record(1, "f", feedback=wrong),
        lambda: monitor.feedback(number, wrong),
    ):
        with pytest.raises(ValueError, match=f"must be one of the actions 0, 1, got {wrong!r}"):
            refused()
    assert monitor.record(1, "m") == 1


@pytest.mark.parametrize("wrong", [1.7, None, math.inf, math.nan, "x"])
def test_a_monitor_that_knows_no_actions_takes_whole_numbers(wrong):
    monitor = Monitor({}, ("SP",))
    assert monitor.record(7, "f") == 0
    with pytest.raises(ValueError, match=f"action must be a whole number, got {wrong!r}"):
        monitor.record(wrong, "f")


def test_threads_record_one_after_the_other():
    def told(notion, value, limit):
        with ThreadPoolExecutor(1) as other:  # nobody waits for who is told
            assert notion in other.submit(lambda: monitor.values).result(timeout=10)

    monitor = Monitor({"SP": -0.1}, ("SP", "EO"), told, history=SlidingWindow(10))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            numbers = list(threads.map(lambda person: monitor.record(person % 2, person % 3, feedback=1), range(400)))
    finally:
        sys.setswitchinterval(interval)
    assert sorted(numbers) == list(range(400))
    for person in range(10):
        monitor.record(1, person % 2, feedback=1)
    assert monitor.values == {"SP": 0.0, "EO": 0.0}
    monitor.told = None
    assert pickle.loads(pickle.dumps(monitor)).record(0, 1) == monitor.record(0, 1) == 410


@pytest.mark.parametrize(
    ("spec", "people"),
    [
        ({"groups": ("m", "f")}, [("m", 1), ("f", 1), ("other", 0)]),
        ({"groups": (0, 1), "group_names": ("m", "f", "other")}, [("m", 1), ("f", 1), ("other", 0)]),
        ({"group": {"sex": "gender"}, "groups": {"sex": ("m", "f")}}, [("m", 1), ("f", 1), ("other", 0)]),
        ({"group": ["age", "sex"]}, [({"age": 1, "sex": "m"}, 1), ({"age": 2, "sex": "f"}, 1)]),
        ({"favourable": lambda actions: actions < 1}, [("m", 0), ("f", 0)]),
    ],
)
def test_a_monitor_compares_as_the_environment_does(clerk, spec, people):
    agent = copy(clerk)
    agent.spec = replace(clerk.spec, **spec)
    name = "SP@sex" if isinstance(agent.spec.group, list) else "SP"
    monitor = agent.monitor({name: -0.5})
    for group, action in people:
        monitor.record(action, group)
    assert monitor.values[name] == 0.0


@pytest.mark.filterwarnings("ignore:EO is undefined")
@pytest.mark.parametrize("missing", ["undefined", "ignore"])
def test_a_monitor_counts_unknown_outcomes_as_the_environment_does(clerk, missing):
    agent = copy(clerk)
    agent.spec = replace(clerk.spec, feedback_missing=missing)
    monitor = agent.monitor({"EO": -0.5})
    for group in "fm":
        monitor.record(1, group, feedback=1)
        monitor.record(0, group)
    assert np.isnan(monitor.values["EO"]) == (missing == "undefined")


def test_a_monitor_compares_the_features_that_the_environment_compares(clerk):
    agent, rng = copy(clerk), np.random.default_rng(0)
    settings = {"sensitive": (0,), "nominal": (0, 2), "low": (0, 18, 0), "high": (1, 68, 2), "feature_names": None}
    agent.spec = replace(clerk.spec, notions=("IF", "LIP", "CSC"), k=3, **settings)
    monitor = agent.monitor()
    people, actions = rng.integers([0, 18, 0], [2, 69, 3], (30, 3)), rng.integers(2, size=30)
    for person, action in zip(people, actions, strict=True):
        monitor.record(action, "f", features=person, probabilities=np.eye(2)[action])
    seen = np.column_stack([(people[:, 1] - 18) / 50, people[:, 2]])
    assert monitor.values == {
        "IF": pytest.approx(individual_fairness(seen, np.eye(2)[actions], nominal=[1])),
        "LIP": pytest.approx(lipschitz_violation(seen, np.eye(2)[actions], nominal=[1])),
        "CSC": pytest.approx(consistency(seen, actions, nominal=[1], k=3)),
    }


def test_a_monitor_refuses_to_compare_what_it_does_not_record(clerk):
    agent = copy(clerk)
    agent.spec = replace(clerk.spec, notions=("SP", "IF"), treatment=np.atleast_2d)
    agent.monitor({"SP": -0.1})
    with pytest.raises(ValueError, match=r"notions must not compare what FairnessSpec.treatment says .* got 'IF'"):
        agent.monitor()


@pytest.mark.parametrize("favourable", [(2,), lambda actions: actions > 1])
def test_actions_may_start_at_another_number_than_0(clerk, favourable):
    agent, drawn = copy(clerk), np.array([[0.75, 0.25], [0.5, 0.5]])
    agent.spec = replace(clerk.spec, favourable=favourable)
    choices = Choices([1, 2], drawn)
    space = gym.spaces.Discrete(2, start=1)
    agent.model = SimpleNamespace(action_space=space, predict=lambda *_, **__: (choices, None))
    people = {"age": [13, 39], "job": ["cook", "clerk"]}
    sure = agent.act(people, deterministic=True)
    assert sure.names == ("not accepted", "accepted") and sure.probabilities.tolist() == [[1, 0], [0, 1]]
    agent.policy = SimpleNamespace(deterministic=False)
    assert agent.other_policy("agent").favourable(people).tolist() == [0.25, 0.5]
    monitor = agent.monitor(notions=("EO",))
    monitor.record(1, "f", feedback=2)
    monitor.record(2, "m", feedback=2)
    assert monitor.values["EO"] == -1


def test_actions_that_are_about_several_people_are_not_favourable_as_a_whole(clerk):
    agent = copy(clerk)
    agent.spec = replace(clerk.spec, favourable=lambda actions: np.column_stack([actions > 0, actions > 1]))
    assert agent.names == ("0", "1")


def test_an_audit_says_what_the_agent_would_have_decided(clerk, clerk_run, tmp_path, command):
    log = {
        **PEOPLE,
        "hired": [1, 0, 0, 1] * 10,
        "age": [*PEOPLE["age"][:-2], None, 39],
        "job": [*PEOPLE["job"][:-1], ""],
    }
    found = audit(log, action="hired", group="gender", target=clerk.other_policy("the clerk"), n_boot=2)
    there = slice(0, 38)
    decided = clerk.act({name: log[name][there] for name in ("age", "job")}).action
    rates = {rate.group: rate for rate in found.other_rates if rate.among == "everybody"}
    for group in "fm":
        members = np.array(log["gender"][there]) == group
        assert rates[group].other == pytest.approx(decided[members].mean())
    assert any("'the clerk'" in warning and "2 rows" in warning for warning in found.warnings)
    table = tmp_path / "log.csv"
    lines = zip(*(PEOPLE | {"hired": log["hired"]}).values(), strict=True)
    table.write_text("\n".join(["gender,age,job,repaid,hired", *(",".join(map(str, line)) for line in lines)]))
    options = ["audit", table, "--action", "hired", "--group", "gender", "--n-boot", 2]
    code, _, err = command(*options, "--model", clerk_run, "--json", "found.json")
    assert code == 0, err
    assert json.loads((tmp_path / "found.json").read_text())["other_rates"]
    code, _, err = command(*options, "--model", "x", "--target", "age")
    assert code == 2 and "model must be left out" in err


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_an_audit_takes_names_of_a_table_as_they_are_written(tmp_path, delimiter):
    named = {
        "job": ["none", "n/a", "cook", "?"] * 10,
        "branch": ["01", "02", "10", "10"] * 10,
        "owner": ["true", "false"] * 20,
        "level": ["1.0", "2.0", "2.0", "1.0"] * 10,
    }
    people = {**PEOPLE, **named, "hired": [1, 0, 0, 1] * 10}
    table = tmp_path / "people.csv"
    table.write_text("\n".join(delimiter.join(map(str, row)) for row in [people, *zip(*people.values(), strict=True)]))
    settings = {"table": str(table), "group": "gender", "outcome": "repaid", "features": ["age"], "nominal": [*named]}
    run = trained(tmp_path, "ppo", "sb3_fair/Table-v0", env_kwargs=settings, objectives=("R",), hyperparams=SHORT)
    agent = load_agent(run)
    decided = agent.act({name: people[name] for name in ("age", *named)}).action
    asked = {"action": "hired", "group": "gender", "target": agent.other_policy("agent"), "n_boot": 2}
    written = {**people, "owner": [owner == "true" for owner in named["owner"]]}
    for found in (audit_file(table, **asked), audit(written, **asked)):
        rates = {rate.group: rate for rate in found.other_rates if rate.among == "everybody"}
        for group in "fm":
            assert rates[group].other == pytest.approx(decided[np.array(people["gender"]) == group].mean())
        assert not any("'agent'" in warning for warning in found.warnings)
    people["job"] = [*people["job"][:-2], "", None]
    assert any("2 rows without 'agent'" in warning for warning in audit(people, **asked).warnings)
    people["age"] = [*people["age"][:-1], "old"]
    with pytest.raises(ValueError, match="'age' must hold finite numbers, got 'old' in row 40"):
        audit(people, **asked)


@pytest.mark.parametrize(
    ("env_id", "names"),
    [
        ("FraudDetection", ("not held for a second authentication", "held for a second authentication")),
        ("VaccineDelivery", ("0", "1")),
    ],
)
def test_actions_are_called_by_the_word_of_their_environment(env_id, names):
    venv = sb3_fair.make_vec(f"sb3_fair/{env_id}-v0", 1)
    assert Agent(PPO("MlpPolicy", venv, device="cpu"), None, venv).names == names


def test_an_agent_without_names_of_columns_cannot_be_compared(tmp_path):
    agent = load_agent(trained(tmp_path, "ppo", SMALL, **small("ppo")))
    with pytest.raises(ValueError, match="names its columns"):
        agent.other_policy("x")
    people = np.array([agent.space.sample() for _ in range(3)])
    given = [agent.act(each).action for each in (people, pd.DataFrame(people))]  # whose columns are in order
    np.testing.assert_array_equal(*given)
