"""Do decisions on the people of a table bring what the table says, and are its mistakes named?"""

import time

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sb3_fair
from sb3_fair.zoo.envs.table import TableConfig, TableWorld
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.rules import RuleAgent
from tests.zoo.forms import PEOPLE, begun
from tests.zoo.forms import TABLE as ASKED

SHORT = {**ASKED, "episode_length": 12, "gain": 2, "loss": -3}


def played(steps=60, actions=None, seed=0, **config):
    """One copy: person (row of the table), action wanted, observation before, and what the step told, step by step."""
    world = TableWorld(1, detail=True, **{**SHORT, **config})
    obs = world.reset(np.arange(1), [np.random.default_rng(seed)])
    rng, path = np.random.default_rng(1), []
    for t in range(steps):
        action = rng.integers(0, 2) if actions is None else actions
        before, row = obs[0], int(world.part[world.person[0]])
        obs, reward, terminated, truncated, record = world.step(np.array([action]))
        path.append((row, action, before, float(reward[0]), record, bool(truncated[0])))
        assert not terminated[0] and truncated[0] == ((t + 1) % world.max_steps == 0)
        if truncated[0]:
            obs = world.reset(np.arange(1))
    return world, path


@pytest.mark.parametrize("feedback", ["all", "accepted"])
def test_rewards_and_outcomes_are_those_of_the_rows(feedback):
    jobs = ["cook", "clerk", "nurse"]
    for row, action, obs, reward, record, _ in played(feedback=feedback)[1]:
        good = PEOPLE["repaid"][row] == "yes"
        assert reward == (0 if not action else 2 if good else -3)
        person = record["individual"]
        assert person["action"][0] == action
        assert_array_equal(person["feedback"][0], float(good) if action or feedback == "all" else np.nan)
        assert person["group"][0] == "fm".index(PEOPLE["gender"][row])
        scaled = (PEOPLE["income"][row] - 10) / 50
        assert_allclose(person["features"][0], [scaled, jobs.index(PEOPLE["job"][row])], rtol=1e-6)
        assert_allclose(obs, [scaled, *(PEOPLE["job"][row] == job for job in jobs)], rtol=1e-6)
        assert record["detail"]["row"][0] == row


def test_everybody_of_a_part_is_drawn_equally_often():
    world = begun(TableWorld, 100, **ASKED, split="all")
    drawn = np.zeros(30)
    for _ in range(150):
        drawn += np.bincount(world.person, minlength=30)
        world.step(np.zeros(100, dtype=int))
    assert abs(drawn - 500).max() < 5 * np.sqrt(500)


def test_nobody_is_for_training_and_for_evaluation():
    by_person = {"person": "id", "test_share": 0.4}
    train, test, everybody = (TableWorld(1, **ASKED, **by_person, split=part).part for part in ("train", "test", "all"))
    assert sorted([*train, *test]) == everybody.tolist() == list(range(30))
    ids = np.array(PEOPLE["id"])
    assert not {*ids[train]} & {*ids[test]} and len(test) == 12  # two rows each
    assert_array_equal(test, TableWorld(1, **ASKED, **by_person, split="test").part)
    assert {*TableWorld(1, **ASKED, **by_person, split="test", split_seed=1).part} != {*test}


def test_a_capacity_holds_for_every_period():
    world, path = played(actions=1, capacity=2, period=5)
    for t, (_, _, obs, reward, record, _) in enumerate(path):
        place = t % 12 % 5
        accepted = place < 2
        assert record["individual"]["action"][0] == accepted and (reward != 0) == accepted
        assert_allclose(obs[-2:], [max(2 - place, 0) / 2, 1 - place / 5], rtol=1e-6)
    assert world.max_return == 2 * 6  # three periods in twelve steps


def test_features_move_for_the_rest_of_the_episode_within_their_range():
    moves = {"income": [15, -5]}
    incomes, moved = list(PEOPLE["income"]), 0
    for row, action, obs, _, record, over in played(400, moves=moves, episode_length=50)[1]:
        assert_allclose(10 + 50 * obs[0], incomes[row], rtol=1e-5)
        assert_allclose(record["individual"]["features"][0, 0], obs[0])
        moved += incomes[row] != PEOPLE["income"][row]
        if action:
            incomes[row] = min(max(incomes[row] + (15 if PEOPLE["repaid"][row] == "yes" else -5), 10), 60)
        if over:
            incomes = list(PEOPLE["income"])
    assert moved > 50


def test_features_that_tell_the_group_are_left_out_of_distances():
    spec = TableWorld(1, **{**ASKED, "nominal": ("job", "gender")}).fairness_spec
    assert spec.feature_names == ("income", "job", "gender")
    assert spec.nominal == (1, 2) and spec.sensitive == (2,)


@pytest.mark.filterwarnings("ignore:EO")
@pytest.mark.parametrize("feedback", ["all", "accepted"])
def test_notions_that_need_unknown_outcomes_are_undefined(feedback):
    env = sb3_fair.make_vec("sb3_fair/Table-v0", 1, seed=0, **SHORT, feedback=feedback, audit=("SP", "EO", "PP"))
    env.reset()
    for step in range(12):
        figures = env.step([min(step % 3, 1)])[3][0]["fairness"]
    assert figures["SP"] is not None
    assert (figures["EO"] is None or np.isnan(figures["EO"])) == (feedback == "accepted")


@pytest.mark.parametrize(("group", "name"), [("gender", "[fm]"), (("gender", "job"), r"[fm]\+(cook|clerk|nurse)")])
def test_groups_whose_outcomes_never_come_are_named_as_in_the_table(group, name):
    env = sb3_fair.make_vec("sb3_fair/Table-v0", 1, **{**ASKED, "group": group}, feedback="accepted", audit=("EO",))
    env.reset()
    with pytest.warns(UserWarning, match=rf"EO is undefined: .* unfavourable decisions on group '{name}' has a known"):
        for step in range(300):
            env.step([step % 2])


def test_rules_decide_by_outcome_and_score():
    asked = {**ASKED, "score": "score", "loss": -3, "split": "all"}
    venv = sb3_fair.make_vec("sb3_fair/Table-v0", 30, seed=0, **asked)
    venv.reset()
    world = venv.get_attr("world")[0]
    score, good = (np.array(PEOPLE[name])[world.part[world.person]] for name in ("score", "repaid"))
    wanted = {
        "accept-all": score > 0,
        "reject-all": score < 0,
        "oracle": good == "yes",
        "score-best": score >= 5,  # pays 10, everybody from 2 on 5
        "score-top-half": score >= 3.5,
    }
    assert world.rules.keys() == wanted.keys() | {"random", "score-top-quarter"}
    quarter = world.rules["score-top-quarter"](world)[:, 1]
    assert_allclose(quarter, np.select([score > 5, score == 5], [1, 0.6]))  # 8 of 30
    for name, accepted in wanted.items():
        assert_array_equal(RuleAgent(name, venv, 0).predict(None)[0], accepted, name)


@pytest.mark.parametrize(
    ("scores", "half", "quarter"),
    [
        ([0] * 18 + [1] * 12, [1 / 6] * 18 + [1] * 12, [0] * 18 + [2 / 3] * 12),
        (range(30), [0] * 15 + [1] * 15, [0] * 22 + [1] * 8),
        ([3] * 30, [0.5] * 30, [8 / 30] * 30),
    ],
)
def test_rules_that_accept_a_share_do_so_whatever_scores_are_the_same(scores, half, quarter):
    asked = {**ASKED, "table": {**PEOPLE, "score": scores}}
    world = begun(TableWorld, 300, **asked, score="score", split="all")
    for name, chances in {"score-top-half": half, "score-top-quarter": quarter}.items():
        assert_allclose(world.rules[name](world)[:, 1], np.array(chances)[world.person])


def test_rules_by_score_are_chosen_among_people_for_training():
    score = np.arange(30)
    score[TableWorld(1, **ASKED, split="test").part] += 100  # all of them above those for training
    world = begun(TableWorld, 50, **{**ASKED, "table": {**PEOPLE, "score": score}}, score="score", split="test")
    for name in ("score-top-half", "score-top-quarter"):
        assert_array_equal(world.rules[name](world)[:, 1], np.ones(50))


def test_missing_values_are_refused_filled_in_or_dropped_and_counted():
    table = {**PEOPLE, "income": [np.nan, None, *PEOPLE["income"][2:]], "job": ["", *PEOPLE["job"][1:]]}
    with pytest.raises(InputError, match=r"'job' is missing in row 1: .*|'income' is missing in rows 1, 2: fill it in"):
        TableWorld(1, **{**ASKED, "table": table})
    with pytest.warns(UserWarning, match="filled in"):
        people = TableWorld(1, **{**ASKED, "table": table}, missing="impute", split="all").people
    assert people.names["job"] == ["clerk", "cook", "nurse", "unknown"] and people.features[0, 1] == 3
    assert people.features[0, 0] == pytest.approx((np.median(PEOPLE["income"][2:]) - 10) / 50)
    table["job"] = ["", "unknown", *PEOPLE["job"][2:]]
    with pytest.warns(UserWarning, match="filled in"):
        world = TableWorld(1, **{**ASKED, "table": table}, missing="impute", split="all")
    assert world.people.names["job"] == ["unknown", "cook", "nurse", "clerk"] and len({*world.observation_names}) == 5
    assert_array_equal(world.people.features[:3, 1], [0, 0, 1])
    with pytest.warns(UserWarning, match=r"'(income|job)' is missing in rows? 1.*: dropped"):
        assert len(TableWorld(1, **{**ASKED, "table": table}, missing="drop", split="all").part) == 28
    table = {**PEOPLE, "repaid": ["", *PEOPLE["repaid"][1:]]}
    with pytest.raises(InputError, match="'repaid' is missing in row 1, where it cannot be imputed"):
        TableWorld(1, **{**ASKED, "table": table}, missing="impute")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome": "repayed"}, "has no column 'repayed' (did you mean 'repaid'?)"),
        (
            {"outcome": "id"},
            "outcome must have two different values, but 'id' has 15: 'p0', 'p1', 'p2', 'p3', 'p4', ...",
        ),
        ({"outcome": "score"}, "outcome must have two different values, but 'score' has 6"),
        ({"good": "maybe"}, "good must be one or more of the values of 'repaid', 'no', 'yes', got 'maybe'"),
        ({"group": ()}, "group must name at least one column"),
        ({"group": "repaid"}, "group must not be the column of the outcome, got 'repaid'"),
        ({"features": ("repaid",)}, "features must not have the outcome, which is not known yet, got 'repaid'"),
        ({"features": (), "nominal": ()}, "features must name at least one column, got none"),
        (
            {"features": ("gender",)},
            "'gender' must hold finite numbers, got 'f' in rows 1, 2, 3 and 27 others; if its ",
        ),
        (
            {"features": (), "nominal": ("gender",)},
            "features must tell more of people than their groups, got ('gender',)",
        ),
        ({"features": ("income", "income")}, "features must be different columns, got ('income', 'income')"),
        ({"features": "income"}, "features must be a sequence (each entry a string), got 'income'"),
        ({"loss": 3}, "loss must be in (-inf, 0], got 3"),
        ({"gain": -1}, "gain must be a non-negative number, got -1"),
        ({"capacity": 0}, "capacity must be a positive integer or None, got 0"),
        ({"period": 5}, "period must be left out without a capacity, got 5"),
        ({"moves": {"job": 1}}, "moves must be of features that are numbers, got 'job'"),
        ({"moves": {"income": [1, 2, 3]}}, "moves must be a number per feature, or one after each outcome"),
        ({"moves": {"income": 1}, "table": {**PEOPLE, "income": [5] * 30}}, "moves must be of features that differ"),
        (
            {"moves": 3},
            "moves must be a dict (each value a finite number or a sequence (each entry a finite number)) or",
        ),
        ({"feedback": "none"}, "feedback must be one of 'all', 'accepted', got 'none'"),
        ({"table": None}, "table must be given for a table of people"),
        (
            {"table": 3},
            "table must be a DataFrame of pandas or polars, a table of pyarrow, or a dict of arrays, got int",
        ),
        ({"table": {**PEOPLE, "gender": ["f"] * 30}}, "group must have at least two different values to compare, but"),
        ({"table": {**PEOPLE, "income": [np.inf] * 30}}, "'income' must hold finite numbers, got inf in rows 1, 2"),
        ({"table": {**PEOPLE, "income": [1.7e308, -1.7e308] * 15}}, "'income' must hold numbers with a range that can"),
        ({"table": {**PEOPLE, "gender": ["f"] * 29 + ["x"]}}, "every group must have people for training and for eval"),
        ({"table": {name: [] for name in PEOPLE}}, "table must have at least one row, got none"),
        ({"tabel": 3}, "unknown setting 'tabel' (did you mean 'table'?)"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(changes, message):
    with pytest.raises(InputError) as error:
        [TableWorld(1, **{**ASKED, **changes, "split": part}) for part in ("train", "test")]
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("role", ["group", "outcome", "person", "nominal"])
def test_columns_of_lists_are_refused(role):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({**PEOPLE, "list": [[1]] * 30})
    with pytest.raises(InputError, match="'list' must hold single values, got list<item: int64>"):
        TableWorld(1, **{**ASKED, "table": table, role: ("list",) if role == "nominal" else "list"})


def test_files_and_frames_hold_the_same_people(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PEOPLE)
    frame.to_csv(tmp_path / "people.csv", index=False, sep=";")
    one, two = (TableWorld(1, **{**ASKED, "table": table}).people for table in (frame, tmp_path / "people.csv"))
    assert_array_equal(one.features, two.features)
    assert one.labels == two.labels and one.names == two.names
    with pytest.raises(InputError, match=r"'people.csv'.* has changed since|people.csv' has changed since"):
        TableWorld(1, **{**ASKED, "table": tmp_path / "people.csv"}, sha256="0" * 64)
    with pytest.raises(FileNotFoundError, match="table must be a file, but there is none at"):
        TableWorld(1, **{**ASKED, "table": tmp_path / "nowhere.csv"})


@pytest.mark.parametrize("good", [None, True, "True", "true"])
def test_truth_values_are_the_same_in_all_files(tmp_path, good):
    frame = pd.DataFrame({**PEOPLE, "repaid": np.tile([True, False, True], 10), "owner": np.arange(30) % 2 == 1})
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    frame.to_json(tmp_path / "people.jsonl", orient="records", lines=True)
    for nominal in ((), ("owner",)):
        settings = {**ASKED, "features": ("income", "owner"), "nominal": nominal, "good": good, "split": "all"}
        expected = TableWorld(1, **{**settings, "table": frame})
        for kind in ("csv", "parquet", "jsonl"):
            world = TableWorld(1, **{**settings, "table": str(tmp_path / f"people.{kind}")})
            assert_array_equal(world.features, expected.features)
            assert_array_equal(world.good, frame["repaid"])
            values = [True, np.True_] + ["True", "true"] * bool(nominal)
            for owner in values:
                columns = {"income": np.array([10]), "owner": np.array([owner])}
                assert world.encode(columns)[0, -1] == expected.encode(columns)[0, -1]


def test_a_table_is_registered_like_any_world(registries):
    sb3_fair.register("MyLoans-v0", TableWorld, **SHORT)
    env = gym.make("MyLoans-v0", objectives=("R", "SP"), render_mode="rgb_array")
    obs, _ = env.reset(seed=0)
    assert obs.shape == (4,) and env.render().shape == (360, 720, 3)
    assert env.unwrapped.config.split == "train"
    known = sb3_fair.evaluate("oracle", "MyLoans-v0", 5, split="all").table()
    held_out = sb3_fair.evaluate("oracle", "MyLoans-v0", 5).table()
    assert_array_equal(
        held_out["return R"], sb3_fair.evaluate("oracle", "MyLoans-v0", 5, split="test").table()["return R"]
    )
    assert (known["return R"] != held_out["return R"]).any()


def test_columns_may_have_several_meanings():
    table = {**PEOPLE, "gender": [int(each == "m") for each in PEOPLE["gender"]]}
    asked = {**ASKED, "table": table, "features": ("income", "gender", "score"), "score": "score", "split": "all"}
    people = TableWorld(1, **asked).people
    assert_array_equal(people.features[:6, 1], [0, 1] * 3)
    assert_array_equal(people.groups["gender"][:6], [0, 1] * 3)
    assert_array_equal(people.score, PEOPLE["score"])


def test_labels_that_were_dropped_are_gone():
    table = {**PEOPLE, "gender": ["x", *PEOPLE["gender"][1:]], "income": [None, *PEOPLE["income"][1:]]}
    with pytest.warns(UserWarning, match="dropped"):
        assert TableWorld(1, **{**ASKED, "table": table}, missing="drop").people.labels == {"gender": ["m", "f"]}


def test_reports_say_how_many_people_their_figures_are_from():
    words = sb3_fair.make_vec("sb3_fair/Table-v0", **ASKED, split="test").get_attr("words")[0]
    assert "drawn from 9 of the table" in words["R"]["sentence"] and words["favourable"] == "accepted"
    assert "Left out" not in words["R"]["sentence"] and words["deserving"] == "repaid: yes"
    table = {**PEOPLE, "income": [None, *PEOPLE["income"][1:]], "repaid": ["", "", *PEOPLE["repaid"][2:]]}
    with pytest.warns(UserWarning, match="dropped"):
        sentence = TableWorld(1, **{**ASKED, "table": table}, missing="drop").words["R"]["sentence"]
    left_out = "Left out: 2 of 30 rows, where a value is missing ('repaid', 'income'). All figures are about people"
    assert left_out in sentence


@pytest.mark.slow
def test_256_copies_take_500_000_steps_per_second():
    rng = np.random.default_rng(0)
    table = {"g": rng.choice(["a", "b"], 5000), "x": rng.random(5000), "y": rng.integers(0, 2, 5000)}
    settings = {"capacity": 10, "period": 50, "moves": {"x": [0.1, -0.1]}, "feedback": "accepted"}
    world = begun(TableWorld, 256, table=table, group="g", outcome="y", features=["x"], **settings)
    actions, seconds = rng.integers(0, 2, (500, 256)), []
    for _ in range(3):
        start = time.perf_counter()
        for chosen in actions:
            over = world.step(chosen)[3]
            if over.any():
                world.reset(np.flatnonzero(over))
        seconds.append(time.perf_counter() - start)
    assert actions.size / min(seconds) > 500_000


def test_every_setting_has_a_word_of_help():
    from sb3_fair.zoo.cli.plan_options import _ABOUT

    assert _ABOUT.keys() == TableConfig.__dataclass_fields__.keys()
