"""Does partial and late feedback reach the notions of the fraud scenario as it should?"""

import gymnasium as gym
import numpy as np
import pytest

import sb3_fair
from sb3_fair.fairness import group_notion
from sb3_fair.zoo.envs.fraud.tables import EU, NORTH_AMERICA

ID = "sb3_fair:sb3_fair/FraudDetection-v0"
FRAUDULENT = {"fraud_proportion": 0.9, "start": "2016-08-01", "detail": True}
NOTIONS = ("SP", "EO", "PE", "PP", "OAE")


def brute_force(name, actions, feedback, continents):
    """The formula on what is compared, None where it is undefined."""
    compared = np.isin(continents, (EU, NORTH_AMERICA))
    told = {"actions": actions[compared], "feedback": feedback[compared], "groups": continents[compared]}
    value = group_notion(name, **told, feedback_missing="ignore")
    return None if np.isnan(value) else pytest.approx(value)


def columns(history, window):
    actions, fraud, continents, known = (np.array(column) for column in zip(*history[-window:], strict=True))
    return actions, np.where(known, fraud, np.nan), continents


@pytest.mark.parametrize("feedback", ["authenticated", "all"])
@pytest.mark.parametrize("window", [20, 60])
def test_figures_are_those_of_the_formula_on_what_is_known(feedback, window):
    env = gym.make(ID, audit=NOTIONS, window=window, feedback=feedback, **FRAUDULENT)
    env.reset(seed=0)
    history = []
    for action in np.random.default_rng(0).integers(2, size=150).tolist():
        *_, info = env.step(action)
        detail, told = info["detail"], info["individual"]["feedback"]
        assert told == (detail["fraud"] if action or feedback == "all" else None)
        history.append((action, detail["fraud"], detail["continent"], told is not None))
        for name in NOTIONS:
            assert info["fairness"][name] == brute_force(name, *columns(history, window)), name


def test_what_only_authentication_tells_leaves_nothing_but_predictive_parity():
    """Every fraud that is known was authenticated, as was every genuine transaction: rates of 1 in all groups."""
    figures = {}
    for feedback in ("authenticated", "all"):
        env = gym.make(ID, audit=NOTIONS, feedback=feedback, **FRAUDULENT)
        env.reset(seed=3)
        for action in np.random.default_rng(3).integers(2, size=300).tolist():
            figures[feedback] = env.step(action)[4]["fairness"]
    partial, full = figures["authenticated"], figures["all"]
    assert partial["EO"] == partial["PE"] == 0 and full["EO"] < 0 and full["PE"] < 0
    assert partial["PP"] == full["PP"] < 0, "of those who were authenticated everything is known anyway"
    assert partial["SP"] == full["SP"]


def test_who_is_never_authenticated_leaves_predictive_parity_undefined():
    env = gym.make(ID, audit=NOTIONS, **FRAUDULENT)
    env.reset(seed=0)
    for _ in range(50):
        fairness = env.step(0)[4]["fairness"]
    assert fairness["SP"] == 0
    assert [fairness[name] for name in ("EO", "PE", "PP")] == [None] * 3


@pytest.mark.parametrize("batched", [False, True])
def test_labels_that_come_late_change_the_history_as_the_formula_says(batched):
    """Half of the ignored frauds are reported some transactions later; in a window some reports come too late."""
    window, n, rng = 40, 3 if batched else 1, np.random.default_rng(1)
    settings = {"audit": NOTIONS, "window": window, **FRAUDULENT}
    env = sb3_fair.make_vec(ID, n, seed=7, monitor=False, **settings) if batched else gym.make(ID, **settings)
    env.reset(**({} if batched else {"seed": 7}))
    update = env.update_feedback if batched else env.get_wrapper_attr("update_feedback")
    histories, due, changed, late = [[] for _ in range(n)], [], 0, 0
    for step in range(200):
        actions = rng.integers(2, size=n)
        infos = env.step(actions)[3] if batched else [env.step(int(actions[0]))[4]]
        for copy, info in enumerate(infos):
            detail = info["detail"]
            histories[copy].append([actions[copy], detail["fraud"], detail["continent"], bool(actions[copy])])
            for name in NOTIONS:
                assert info["fairness"][name] == brute_force(name, *columns(histories[copy], window)), name
            if not actions[copy] and detail["fraud"] and rng.random() < 0.5:
                due.append((step + int(rng.integers(1, 60)), copy, info["individual"]["id"]))
        for when, copy, id_ in due:
            if when == step:
                held = update(*([copy] if batched else []), id_, 1.0)
                assert held == (id_ >= len(histories[copy]) - window)
                histories[copy][id_][3] = True
                changed, late = changed + held, late + (not held)
    assert changed > 10 and late > 2


def test_late_labels_make_equal_opportunity_measurable():
    env = gym.make(ID, audit=("EO",), window=200, **FRAUDULENT)
    env.reset(seed=0)
    rng, reports = np.random.default_rng(0), []
    for _ in range(250):
        action = int(rng.random() < 0.5)
        info = env.step(action)[4]
        if not action and info["detail"]["fraud"]:
            reports.append(info["individual"]["id"])
    assert info["fairness"]["EO"] == 0, "nothing is known of what was ignored"
    for report in reports:
        env.get_wrapper_attr("update_feedback")(report, 1.0)
    assert env.step(0)[4]["fairness"]["EO"] < 0
