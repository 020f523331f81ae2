"""Do light infos on a shared record and plain dicts carry the same content?"""

import copy
import pickle

import numpy as np
import pytest

from sb3_fair.wrappers.events import FairEvent
from sb3_fair.wrappers.infos import Info, cut, infos_of, publish, record_of, stack


@pytest.fixture
def record():
    return {
        "individual": {"group": np.array([0, 1]), "feedback": np.array([np.nan, 1.0]), "features": np.eye(2)},
        "vector_reward": np.array([[1.0, -0.5], [0.0, 0.0]]),
    }


def test_an_info_cuts_out_the_entry_of_its_copy(record):
    first, second = infos_of(record, 2)
    assert first["individual"]["group"] == 0
    assert first["individual"]["feedback"] is None
    assert second["individual"]["feedback"] == 1.0
    np.testing.assert_array_equal(second["individual"]["features"], [0, 1])
    assert type(second["individual"]["group"]) is int


def test_what_nobody_published_is_missing(record):
    (info, _) = infos_of(record, 2)
    assert "fairness" not in info
    assert info.get("fairness", "none") == "none"
    with pytest.raises(KeyError):
        info["fairness"]


@pytest.mark.parametrize(
    "clone", [lambda info: info.copy(), copy.deepcopy, lambda info: pickle.loads(pickle.dumps(info))]
)
def test_copies_are_filled(record, clone):
    clone = clone(infos_of(record, 2)[1])
    assert set(clone.keys()) == {"individual", "vector_reward"}


def test_stack_reads_light_infos_and_plain_dicts_alike(record):
    light = infos_of(record, 2)
    plain = [dict(info.copy()) for info in light]
    assert record_of(plain) is None
    for infos in (light, plain):
        np.testing.assert_array_equal(stack(infos, "vector_reward"), record["vector_reward"])
        np.testing.assert_array_equal(stack(infos, "individual")["feedback"], [np.nan, 1.0])
        with pytest.raises(KeyError, match="fairness"):
            stack(infos, "fairness")


def test_stack_reads_infos_that_a_wrapper_copied(record):
    infos = infos_of(record, 2)
    infos[1] = infos[1].copy()
    publish(infos, "fairness", {"SP": np.array([np.nan, -1.0])})
    np.testing.assert_array_equal(stack(infos, "fairness")["SP"], [np.nan, -1.0])
    assert infos[0]["fairness"] == {"SP": None} and infos[1]["fairness"] == {"SP": -1.0}


def test_publish_replaces_what_was_cut_before(record):
    infos: list[Info] = infos_of(record, 2)
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
    infos = infos_of({"fair_event": event}, 2)
    assert infos[1]["fair_event"] == (False, -5.0, 0.0) and type(infos[1]["fair_event"]) is FairEvent
    plain = [dict(info) for info in infos]
    for found in (stack(infos, "fair_event"), stack(plain, "fair_event")):
        np.testing.assert_array_equal(found.base, [0, -5])


def test_copies_stay_light_until_they_are_read():
    (info, _) = infos_of({"a": np.arange(2), "b": np.arange(2)}, 2)
    assert info["a"] == 0
    clone = info.copy()
    assert dict.__len__(clone) == 1 and clone["b"] == 0
