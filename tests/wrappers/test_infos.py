"""Do light infos on a shared record and plain dicts carry the same content?"""

import copy
import pickle
from enum import Enum

import numpy as np
import pytest

from sb3_fair.wrappers.events import FairEvent
from sb3_fair.wrappers.infos import Infos, cut, publish, record_of, stack


@pytest.fixture
def record():
    return {
        "individual": {"group": np.array([0, 1]), "feedback": np.array([np.nan, 1.0]), "features": np.eye(2)},
        "vector_reward": np.array([[1.0, -0.5], [0.0, 0.0]]),
    }


def test_an_info_cuts_out_the_entry_of_its_copy(record):
    first, second = Infos(record, 2)
    assert first["individual"]["group"] == 0
    assert first["individual"]["feedback"] is None
    assert second["individual"]["feedback"] == 1.0
    np.testing.assert_array_equal(second["individual"]["features"], [0, 1])
    assert type(second["individual"]["group"]) is int


def test_what_nobody_published_is_missing(record):
    (info, _) = Infos(record, 2)
    assert "fairness" not in info
    assert info.get("fairness", "none") == "none"
    with pytest.raises(KeyError):
        info["fairness"]


@pytest.mark.parametrize(
    "clone", [lambda info: info.copy(), copy.deepcopy, lambda info: pickle.loads(pickle.dumps(info))]
)
def test_copies_are_filled(record, clone):
    clone = clone(Infos(record, 2)[1])
    assert set(clone.keys()) == {"individual", "vector_reward"}


def test_stack_reads_light_infos_and_plain_dicts_alike(record):
    light = Infos(record, 2)
    plain = [dict(info.copy()) for info in light]
    assert record_of(plain) is None
    for infos in (light, plain):
        np.testing.assert_array_equal(stack(infos, "vector_reward"), record["vector_reward"])
        np.testing.assert_array_equal(stack(infos, "individual")["feedback"], [np.nan, 1.0])
        with pytest.raises(KeyError, match="fairness"):
            stack(infos, "fairness")


def test_stack_reads_infos_that_a_wrapper_copied(record):
    infos = Infos(record, 2)
    infos[1] = infos[1].copy()
    publish(infos, "fairness", {"SP": np.array([np.nan, -1.0])})
    np.testing.assert_array_equal(stack(infos, "fairness")["SP"], [np.nan, -1.0])
    assert infos[0]["fairness"] == {"SP": None} and infos[1]["fairness"] == {"SP": -1.0}


def test_publish_replaces_what_was_cut_before(record):
    infos = Infos(record, 2)
    assert infos[0]["individual"]["group"] == 0
    publish(infos, "individual", {"group": np.array([5, 6])})
    assert infos[0]["individual"] == {"group": 5}


def test_publish_fills_plain_dicts():
    infos = [{}, {}]
    publish(infos, "fairness", {"SP": np.array([np.nan, -1.0])})
    assert infos == [{"fairness": {"SP": None}}, {"fairness": {"SP": -1.0}}]


def test_present_selects_the_individuals_of_a_copy():
    people = {
        "group": np.array([[0, 1, 1], [1, 0, 0]]),
        "feedback": np.array([[np.nan, 1, 0], [1, 1, 1.0]]),
        "present": np.array([[True, False, True], [False, False, True]]),
    }
    first, second = cut(people, 0), cut(people, 1)
    np.testing.assert_array_equal(first["group"], [0, 1])
    assert list(first["feedback"]) == [None, 0.0]
    np.testing.assert_array_equal(second["feedback"], [1.0])


def test_rows_that_are_not_present_are_left_out_at_any_depth():
    record = {
        "group": {"gender": np.array([[0, 1], [1, 1]])},
        "action": np.array([[1, 0], [0, 1]]),
        "present": np.array([[True, False], [True, True]]),
    }
    assert cut(record, 0)["group"]["gender"].tolist() == [0]
    assert cut(record, 1)["action"].tolist() == [0, 1]


def test_named_tuples_are_cut_and_stacked_entry_by_entry():
    event = FairEvent(np.array([True, False]), np.array([0.0, -5.0]), np.array([1.0, 0.0]))
    infos = Infos({"fair_event": event}, 2)
    assert infos[1]["fair_event"] == (False, -5.0, 0.0) and type(infos[1]["fair_event"]) is FairEvent
    plain = [dict(info) for info in infos]
    for found in (stack(infos, "fair_event"), stack(plain, "fair_event")):
        np.testing.assert_array_equal(found.base, [0, -5])


def test_copies_stay_light_until_they_are_read():
    (info, _) = Infos({"a": np.arange(2), "b": np.arange(2)}, 2)
    assert info["a"] == 0
    clone = info.copy()
    assert dict.__len__(clone) == 1 and clone["b"] == 0


def test_the_infos_of_a_step_are_made_when_they_are_asked_for(record):
    infos = Infos(record, 2)
    assert len(infos) == 2 and list(infos.made()) == []
    assert infos[-1] is infos[1] and list(infos.made()) == [infos[1]]
    assert infos[-1]["individual"]["group"] == 1
    with pytest.raises(IndexError):
        infos[2]


@pytest.mark.parametrize(
    "look",
    [
        list,
        tuple,
        repr,
        copy.copy,
        copy.deepcopy,
        lambda infos: pickle.loads(pickle.dumps(infos)),
        lambda infos: infos.copy(),
        lambda infos: infos[:1] + infos[1:],
        lambda infos: infos + [{}],
        lambda infos: [{}] + infos,
        lambda infos: [{}, *infos],
        lambda infos: infos * 2,
        lambda infos: [*infos],
        lambda infos: list(reversed(infos)),
        lambda infos: [info["group"] for _, info in zip(range(2), infos, strict=True)],
        lambda infos: infos.index({"group": 1}),
        lambda infos: infos.count({"group": 1}),
        lambda infos: {"group": 1} in infos,
        lambda infos: infos == [{"group": 0}, {"group": 1}],
        lambda infos: infos != [{"group": 0}, {"group": 1}],
        lambda infos: infos.pop(),
        lambda infos: infos.sort(key=lambda info: -info["group"]) or [*infos],
    ],
)
def test_they_look_like_any_list(look):
    assert look(Infos({"group": np.arange(2)}, 2)) == look([{"group": 0}, {"group": 1}])


def test_labels_of_several_copies_stay_what_they_are():
    class Colour(Enum):
        RED = 1

    for labels in (["m", None], [None, "m"], [0, "other"], [Colour.RED, None], [frozenset("a")] * 2, [(1, 2), (3, 4)]):
        stacked = stack([{"label": label} for label in labels], "label")
        assert stacked.dtype == object and stacked.tolist() == labels
    numbers = stack([{"label": 1}, {"label": None}], "label")
    assert numbers.dtype == float and np.isnan(numbers[1])


def test_an_entry_can_be_set_where_there_is_none(record):
    (info, _) = Infos(record, 2)
    assert info.setdefault("individual", None) == info["individual"]
    assert info.setdefault("new", 3) == info["new"] == 3
