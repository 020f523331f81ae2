"""Does a spec find the individual in what an environment shows, and say clearly what it misses?"""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sb3_fair.fairness import FairnessSpec, FullHistory, SlidingWindow
from sb3_fair.fairness.spec import is_labelled

OBS = np.array([0.1, 0.2, 0.3, 1.0, 5.0])


def gender(obs, info):
    return int(obs[3])


def nationality(obs, info):
    return info["country"]


def right_action(obs, action, info):
    return info.get("true_action")


def test_everything_comes_from_the_published_individual_by_default():
    info = {"individual": {"group": 1, "features": np.array([0.5, 0.25]), "action": 0, "feedback": None}}
    individual = FairnessSpec().individual(OBS, 0, info)
    assert individual.group == 1 and individual.feedback is None
    np.testing.assert_array_equal(individual.features, [0.5, 0.25])
    assert FairnessSpec().individual(OBS, 0, {}) == (None, None, None)


def test_several_individuals_in_a_step_stay_arrays():
    info = {
        "individual": {
            "group": np.array([0, 1]),
            "features": np.array([[0.1, 0.2], [0.3, 0.4]]),
            "feedback": np.array([1, None], dtype=object),
        }
    }
    individual = FairnessSpec(sensitive=[0]).individual(OBS, None, info)
    np.testing.assert_array_equal(individual.group, [0, 1])
    np.testing.assert_array_equal(individual.features, [[0.2], [0.4]])
    np.testing.assert_array_equal(individual.feedback, [1, np.nan])


def test_callables_and_columns():
    spec = FairnessSpec(group=gender, features=slice(0, 4), feedback=right_action)
    individual = spec.individual(OBS, 1, {"true_action": 0})
    assert individual.group == 1 and individual.feedback == 0
    np.testing.assert_array_equal(individual.features, [0.1, 0.2, 0.3, 1.0])
    picked = FairnessSpec(group=gender, features=[4, 0]).individual(OBS, 1, {})
    np.testing.assert_array_equal(picked.features, [5.0, 0.1])


def test_keys_of_info():
    spec = FairnessSpec(group="country", features="who", feedback="right")
    individual = spec.individual(OBS, 1, {"country": "b", "who": [0.5], "right": 1})
    assert (individual.group, individual.feedback) == ("b", 1)
    np.testing.assert_array_equal(individual.features, [0.5])
    assert spec.individual(OBS, 1, {"country": "b", "who": [0.5], "right": None}).feedback is None
    with pytest.raises(ValueError, match="feedback asks for 'right', but info has only"):
        spec.individual(OBS, 1, {"country": "b", "who": [0.5]})


def test_missing_keys_of_labels_mean_nobody_where_they_are_not_misspelled():
    several = FairnessSpec(group=("country", "gender"))
    for info in ({}, {"individual": None}, {"individual": {"group": None}}):
        assert several.individual(OBS, 1, info).group == {"country": None, "gender": None}
    assert FairnessSpec(group="country").individual(OBS, 1, {"individual": {"group": None}}).group is None
    for info in ({"country": "b"}, {"individual": {"features": [0.5]}}, {"individual": {"group": {"country": "b"}}}):
        with pytest.raises(ValueError, match=r"FairnessSpec.group asks for '(country|gender)', but info has only"):
            several.individual(OBS, 1, info)


def test_a_key_may_be_an_attribute_of_the_published_individual():
    spec = FairnessSpec(group="country")
    assert spec.individual(OBS, 1, {"individual": {"group": {"country": 2, "gender": 0}}}).group == 2


@pytest.mark.parametrize(
    "group, attributes, names, labels",
    [
        (gender, (), ("SP",), 1),
        ((gender, nationality), (("gender", "nationality"),), ("SP",), {"gender": 1, "nationality": "b"}),
        ([gender, "country"], ("gender", "country"), ("SP@gender", "SP@country"), {"gender": 1, "country": "b"}),
        (
            [gender, "country", (gender, "country")],
            ("gender", "country", ("gender", "country")),
            ("SP@gender", "SP@country", "SP@gender+country"),
            {"gender": 1, "country": "b"},
        ),
        (
            {"sex": lambda obs, info: 7, "land": "country"},
            ("sex", "land"),
            ("SP@sex", "SP@land"),
            {"sex": 7, "land": "b"},
        ),
    ],
)
def test_attributes(group, attributes, names, labels):
    spec = FairnessSpec(group=group)
    assert spec.attributes == attributes
    tracker = spec.tracker(1)
    assert tracker.names == names
    individual = spec.individual(OBS, 1, {"country": "b"})
    assert individual.group == labels
    group = individual.group
    tracker.add({name: [label] for name, label in group.items()} if isinstance(group, dict) else [group], [1])


def test_groups_are_called_by_the_names_of_their_numbers():
    spec = FairnessSpec(group=(gender, nationality), group_names={"gender": ("man", "woman")})
    assert [spec.group_name("gender", label) for label in (0, 1, 1.0, 2)] == ["man", "woman", "woman", "2"]
    called = [spec.group_name("gender+nationality", (1, label)) for label in ("b", "b+c")]
    assert called == ["woman+b", "woman+'b+c'"]
    assert FairnessSpec(group=gender, group_names=("man", "woman")).group_name("", 1) == "woman"


def test_sensitive_columns_stay_out_of_the_distance():
    spec = FairnessSpec(group=gender, features=slice(0, 5), nominal=[0, 3, 4], sensitive=[1, 3], notions=("CSC",))
    np.testing.assert_array_equal(spec.individual(OBS, 1, {}).features, [0.1, 0.3, 5.0])
    np.testing.assert_array_equal(spec.select(np.tile(OBS, (2, 1))), [[0.1, 0.3, 5.0]] * 2)
    metric = next(iter(spec.tracker(1)._metrics))
    assert metric._nominal == (0, 2)
    kept = replace(spec, exclude_sensitive=False)
    np.testing.assert_array_equal(kept.individual(OBS, 1, {}).features, OBS)
    assert next(iter(kept.tracker(1)._metrics))._nominal == (0, 3, 4)


def test_features_are_scaled():
    spec = FairnessSpec(features=slice(0, 2), low=[0, -1], high=[0.2, 1], feature_names=["age", "income"])
    np.testing.assert_allclose(spec.individual(OBS, 0, {}).features, [0.5, 0.6])
    with pytest.raises(ValueError, match=r"within \[low, high\] = \[-1.0, 1.0\] in column 1 \(income\), got 3.0"):
        spec.select([0.1, 3.0])
    with pytest.raises(ValueError, match=r"in column 0 \(age\), got nan"):
        spec.select([np.nan, 0.0])
    with pytest.raises(ValueError, match="features must have 2 columns, as low and high, got 3"):
        spec.select([0, 0, 0])
    np.testing.assert_array_equal(FairnessSpec(low=0, high=10).select([10 + 1e-12, 0]), [1, 0])


def test_a_callable_that_raises_is_named():
    def broken(*arguments):
        raise KeyError("nothing")

    for field in ("group", "features", "feedback"):
        with pytest.raises(ValueError, match=f"FairnessSpec.{field} raised KeyError") as caught:
            FairnessSpec(**{field: broken}).individual(OBS, 0, {})
        assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ValueError, match=r"FairnessSpec.group asks for 'gendr', but info has only \['gender'\]"):
        FairnessSpec(group="gendr").individual(OBS, 0, {"gender": 1})
    with pytest.raises(ValueError, match=r"FairnessSpec.features raised IndexError"):
        FairnessSpec(features=[9]).individual(OBS, 0, {})


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"notions": ("SPQ",)}, "each name in notions must be one of .* got 'SPQ'"),
        ({"notions": "SP"}, "notions must be a sequence"),
        ({"notions": ("SP@age",), "group": [gender, "country"]}, "each name in notions must be one of .* got 'SP@age'"),
        ({"group": 3}, "group must be a callable, a key in info, a tuple, a list or a dict of them, got 3"),
        ({"group": [lambda obs, info: 1, gender]}, "group must consist of keys in info and named functions"),
        ({"group": []}, "group must hold different attributes"),
        ({"group": [gender, gender]}, "group must hold different attributes"),
        ({"group": [gender, "gender"]}, "group must not name two attributes 'gender'"),
        ({"groups": ("m",)}, "groups must hold at least two different labels"),
        ({"features": "abc", "nominal": [0.5]}, "nominal must be a sequence .*, got \\[0.5\\]"),
        ({"sensitive": 3}, "sensitive must be a sequence .*, got 3"),
        ({"features": 3}, "features must be .* a sequence .*, got 3"),
        ({"feedback": 3}, "feedback must be a string or a callable or None, got 3"),
        ({"low": 0}, "low and high must be given together, got low=0, high=None"),
        ({"low": 1, "high": 1}, "low must be finite and below high"),
        ({"low": [0, 0], "high": [1, 1, 1]}, "low and high must have one number per feature"),
        ({"favourable": "a"}, "favourable must be a sequence .*, got 'a'"),
        ({"k": -1}, "k must be a positive integer, got -1"),
        ({"distance": "euclid"}, "distance name must be a callable or one of"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        FairnessSpec(**settings)


def test_a_wrong_history_is_refused():
    with pytest.raises(TypeError, match="history must be a SlidingWindow, FullHistory or DiscountedHistory, got 100"):
        FairnessSpec(history=100)


def test_missing_sensitive_columns_are_named():
    with pytest.raises(ValueError, match="sensitive has column 4, but features have 2 columns"):
        FairnessSpec(sensitive=[4]).select([0, 0])


def test_specs_of_named_functions_pickle_and_can_be_changed():
    spec = FairnessSpec(group=[gender, nationality], features=slice(0, 3), low=0, high=1, notions=("SP", "IF"))
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec and again.attributes == spec.attributes
    changed = replace(again, notions=("EO",), history=FullHistory(), distance=["heom", "hmom"])
    assert changed.tracker(2).names == ("EO@gender", "EO@nationality")
    assert spec.history == SlidingWindow(500) and spec.notions == ("SP", "IF")


@pytest.mark.parametrize("missing", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, {"a": None, "b": pd.NA}])
def test_labels_that_are_missing(missing):
    assert not is_labelled({"group": missing}) and not is_labelled({})


@pytest.mark.parametrize("column", [list, np.array, pd.Series, pd.array, pl.Series, pd.Index])
@pytest.mark.parametrize("labels", [[0, 1], ["m", "f"]])
def test_columns_of_labels_are_labels(column, labels):
    assert is_labelled({"group": column(labels)})
