"""Do windows, discounts, distances and whole episodes change figures as their definitions say, person by person?"""

import numpy as np
import pytest

from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.fairness.distances import DISTANCES
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.registry.reference import Fixed, shipped_reference
from sb3_fair.zoo.studies import fmdp_runs
from sb3_fair.zoo.studies.fmdp import MEASUREMENTS, SCENARIOS, Cell, matrix
from sb3_fair.zoo.studies.fmdp_runs import DELAY, env_kwargs
from sb3_fair.zoo.studies.whole_episode import VecWholeEpisode

ENV = "sb3_fair/JobHiring-Small-v0"
OBJECTIVES = ("R", "SP", "IF")
NUMERICAL, NOMINAL = [2, 3, 6], [7, 8, 9, 10]  # degree, extra degree, experience; languages: the rest is sensitive
COPIES, STEPS = 3, 70


def played(venv, steps=STEPS):
    """Per copy, the decisions of its episodes: (features, group, action, R, vector reward, done, figures)."""
    rng = np.random.default_rng(0)
    venv.seed(5)
    venv.reset()
    rows = [[] for _ in range(venv.num_envs)]
    for _ in range(steps):
        actions = (rng.random(venv.num_envs) < 0.3).astype(int)
        _, rewards, dones, infos = venv.step(actions)
        people = stack(infos, "individual")
        for copy, row in enumerate(rows):
            figures = {name: values[copy] for name, values in stack(infos, "fairness").items()}
            person = people["features"][copy], people["group"][copy], actions[copy]
            row.append((*person, rewards[copy], stack(infos, "vector_reward")[copy], dones[copy], figures))
    return rows


def parity(decisions, factor=1.0):
    """Minus the gap between the groups' shares of hired; newest last."""
    weights = factor ** np.arange(len(decisions))[::-1]
    rates = []
    for group in (0, 1):
        mine = np.array([each[1] == group for each in decisions])
        hired = np.array([each[2] for each in decisions])
        if mine.any():
            rates.append((weights * mine * hired).sum() / (weights * mine).sum())
    return -abs(rates[0] - rates[1]) if len(rates) == 2 else 0.0


def gaps(people):
    """Of every pair, in the numerical features; and in how many nominal ones they differ."""
    between = people[:, None] - people[None]
    return between[..., NUMERICAL], (between[..., NOMINAL] != 0).sum(axis=2)


def hmom(people):
    numerical, nominal = gaps(people)
    return (np.abs(numerical).sum(axis=2) + nominal) / 7


def heom(people):
    numerical, nominal = gaps(people)
    return np.sqrt(((numerical**2).sum(axis=2) + nominal) / 7)


def braycurtis(people):
    kept = people[:, NUMERICAL + NOMINAL]
    difference, total = (np.abs(kept[:, None] + sign * kept[None]).sum(axis=2) for sign in (-1, 1))
    return difference / np.where(total > 0, total, 1)


def unlike(decisions, factor=1.0, distance=hmom):
    """IF without the 0 for few people: pairs weigh as much as the older of the two."""
    people, actions = np.array([each[0] for each in decisions]), np.array([each[2] for each in decisions])
    terms = distance(people) - (actions[:, None] != actions[None])
    older, younger = np.triu_indices(len(decisions), 1)
    weights = factor ** (len(decisions) - 1.0 - older)
    return -1 + (weights * terms[older, younger]).sum() / weights.sum()


def individual(decisions, factor=1.0, distance=hmom):
    return unlike(decisions, factor, distance) if len(decisions) > 2 else 0.0


def truncated(decisions, factor, threshold, min_window):
    """What is left once IF of the latest decisions has settled."""
    settled, before = 0, None
    for m in range(max(3, min_window - DELAY + 1) - 1, len(decisions) + 1):
        value = unlike(decisions[-m:], factor) if m > 1 else 0.0
        if before is not None:
            settled = settled + 1 if abs(value - before) <= threshold else 0
            if settled == DELAY:
                return decisions[-m:]
        before = value
    return decisions


def rewards(row, kept, parity, individual):
    """(SP, IF) rewarded at each step: what each of the two has gained since the last one."""
    found, past, before = [], [], (0.0, 0.0)
    for decision in row:
        past = kept([*past, decision])
        now = parity(past), individual(past)
        found.append(np.subtract(now, before))
        before = now
        if decision[5]:
            past, before = [], (0.0, 0.0)
    return np.array(found)


def cells(name):
    return matrix("hiring-small")[name]["cells"]


def steps_of(cell, steps=STEPS):
    given = env_kwargs({**MEASUREMENTS["usual"], **cell.settings})
    return played(make_vec(ENV, n_envs=COPIES, monitor=False, objectives=OBJECTIVES, **given), steps)


@pytest.mark.parametrize("label", cells("history"))
def test_the_window_of_a_cell_changes_the_reward_as_people_are_counted(label):
    window = int(label.split()[1])
    for row in steps_of(cells("history")[label], 40):
        expected = rewards(row, lambda past: past[-window:], parity, individual)
        np.testing.assert_allclose(np.array([each[4] for each in row])[:, 1:], expected, atol=1e-9)


@pytest.mark.parametrize("label", [label for label in cells("discount") if label.startswith("factor")])
def test_the_discount_of_a_cell_changes_the_reward_as_defined(label):
    cell = cells("discount")[label]
    factor, threshold, least = (cell.settings[name] for name in ("factor", "threshold", "min_window"))
    row = steps_of(cell)[0]
    expected = rewards(
        row,
        lambda past: truncated(past, factor, threshold, least),
        lambda past: parity(past, factor),
        lambda past: individual(past, factor),
    )
    np.testing.assert_allclose(np.array([each[4] for each in row])[:, 1:], expected, atol=1e-9)


def test_the_size_of_a_history_is_the_number_of_decisions_that_are_left():
    factor, threshold, least = 0.9, 0.01, 10
    discount = {"factor": factor, "threshold": threshold, "min_window": least}
    given = env_kwargs({**MEASUREMENTS["usual"], **discount})
    venv = make_vec(ENV, n_envs=1, monitor=False, objectives=OBJECTIVES, **given)
    venv.reset()
    rng, past = np.random.default_rng(0), []
    for _ in range(40):
        actions = (rng.random(1) < 0.3).astype(int)
        people = stack(venv.step(actions)[3], "individual")
        past = truncated([*past, (people["features"][0], people["group"][0], actions[0])], factor, threshold, least)
        assert venv.get_attr("decisions_kept")[0].tolist() == [len(past)]
    assert len(past) < 40


@pytest.mark.parametrize("distance", [hmom, heom, braycurtis])
def test_the_distance_of_a_cell_changes_the_reward(distance):
    row = steps_of(cells("distance")[f"R:SP:IF, {distance.__name__}"], 40)[0]
    expected = rewards(row, list, parity, lambda past: individual(past, distance=distance))
    np.testing.assert_allclose(np.array([each[4] for each in row])[:, 1:], expected, atol=1e-9)


def test_figures_of_a_whole_episode_know_no_window():
    venv = make_vec(ENV, n_envs=COPIES, monitor=False, objectives=OBJECTIVES, window=5, distance="heom")
    ended = 0
    for row in played(VecWholeEpisode(venv, ("SP", "IF")), 130):
        past = []
        for decision in row:
            past.append(decision)
            if not decision[5]:
                continue
            figures = decision[6]
            assert figures["R"] == pytest.approx(sum(each[3] for each in past))
            assert figures["SP"] == pytest.approx(parity(past))
            for name, distance in (("IF", hmom), ("IF@heom", heom), ("IF@braycurtis", braycurtis)):
                assert figures[name] == pytest.approx(individual(past, distance=distance))
            past, ended = [], ended + 1
    assert ended >= COPIES


def test_the_chance_level_is_of_the_whole_episode_also_where_rewards_carry_over():
    settings = {"objectives": OBJECTIVES, "window": 5, "episode_length": 20, "team_size": 5}
    levels = []
    for carried_over in (True, False):
        venv = fmdp_runs._judging_env(ENV, {**settings, "reset_on_episode": not carried_over}, 2)
        levels.append(evaluate_vector(Fixed(np.full(2, 0.5)), venv, 4).chance["SP"])
    assert levels[0] == levels[1] > 0


def test_reference_points_are_those_that_ship():
    settings = MEASUREMENTS["usual"]
    found = fmdp_runs.scales(ENV, {"objectives": OBJECTIVES, **settings})["returns"]["reference"]
    shipped = shipped_reference(ENV, {"objectives": OBJECTIVES, **settings})
    assert found == pytest.approx(shipped, abs=1e-4)


def test_rewards_as_published_are_levels_by_a_similarity_that_carry_over():
    given = env_kwargs(MEASUREMENTS["paper"])
    assert given["emit"] == "level" and given["reset_on_episode"] is False
    assert (given["distance"].name, given["distance"].kernel, given["distance"].lam) == ("heom", "exp", 0.1)
    names = {cell.name for cell in matrix("hiring", "paper")["distance"]["cells"].values()}
    assert "R-SP-IF/plain" in names and "R-SP-IF/distance-hmom" in names


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_cell_can_be_built(scenario):
    chosen = SCENARIOS[scenario]
    for experiment in matrix(scenario).values():
        for cell in experiment["cells"].values():
            settings = env_kwargs({**chosen.get("settings", {}), **MEASUREMENTS["usual"], **cell.settings})
            venv = make_vec(chosen["env"], monitor=False, objectives=cell.objectives, **settings)
            assert venv.get_attr("objective_names")[0] == cell.objectives


def test_a_cell_is_named_by_what_is_different():
    assert Cell().name == "R-SP-IF/plain"
    assert Cell(("R", "EO"), {"window": 50, "bias": 1}).name == "R-EO/bias-1_window-50"
    assert cells("history")["window 100"] == cells("discount")["window 100"] == Cell()


@pytest.mark.parametrize("notion", ["IF", "CSC"])
def test_every_distance_is_tried(notion):
    tried = {
        cell.settings.get("distance", "hmom")
        for cell in cells("distance").values()
        if cell.objectives == ("R", "SP", notion)
    }
    assert tried == set(DISTANCES)


def test_experiments_without_values_are_left_out_and_labels_join_what_varies():
    assert "population" not in matrix("fraud")
    assert list(matrix("fraud")["bias"]["cells"]) == ["no bias", "EU", "EU, merchant 0"]
    assert "more men, Belgian men" in cells("bias") and len(cells("bias")) == 9
    assert "R:EO:CSC, window 50" in cells("multi")
