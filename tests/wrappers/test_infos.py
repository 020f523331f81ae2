"""Do light infos on a shared record and plain dicts carry the same content?"""

import copy
import json
import pickle
from enum import Enum

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sb3_fair.wrappers.events import FairEvent
from sb3_fair.wrappers.infos import Infos, cut, figures_of, publish, record_of, stack, stacked_people


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


def test_stack_reads_infos_of_one_copy_at_several_steps(record):
    later = {**record, "vector_reward": record["vector_reward"] + 7}
    infos = [Infos(record, 2)[1], Infos(later, 2)[1], Infos(record, 2)[0]]
    np.testing.assert_array_equal(stack(infos, "vector_reward"), [[0.0, 0.0], [7.0, 7.0], [1.0, -0.5]])


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


def test_stack_finds_what_a_wrapper_of_somebody_else_set(record):
    infos = Infos(record, 2)
    for index, info in enumerate(infos):
        info["cost"] = 10.0 * index
    assert stack(infos, "cost").tolist() == [0, 10]


@pytest.mark.parametrize("change", ["set", "update", "|=", "delete", "pop", "replace", "copies"])
def test_what_a_wrapper_changed_is_found_until_it_is_published_anew(record, change):
    infos = Infos(record, 2)
    changed = record_of(infos, "gone")
    assert changed is record_of(infos)
    if change == "set":
        infos[1]["vector_reward"] = np.array([5.0, 5.0])
    elif change == "update":
        infos[1].update(vector_reward=np.array([5.0, 5.0]))
    elif change == "|=":
        infos[1] |= {"vector_reward": np.array([5.0, 5.0])}
    elif change in ("delete", "pop"):
        infos[1].pop("vector_reward") if change == "pop" else infos[1].__delitem__("vector_reward")
        with pytest.raises(KeyError, match="vector_reward"):
            stack(infos, "vector_reward")
        infos[1]["vector_reward"] = np.array([5.0, 5.0])
    else:
        infos[1] = {**infos[1], "vector_reward": np.array([5.0, 5.0])}
    seen = list(infos) if change == "copies" else infos
    assert stack(seen, "vector_reward").tolist() == [[1.0, -0.5], [5.0, 5.0]]
    publish(seen, "vector_reward", np.zeros((2, 2)))
    assert stack(seen, "vector_reward").tolist() == [[0, 0], [0, 0]]
    assert [info["vector_reward"].tolist() for info in seen] == [[0, 0], [0, 0]]
    assert changed["individual"]["group"].tolist() == [0, 1]


def test_infos_in_another_order_are_read_and_written_in_theirs(record):
    infos = Infos(record, 2)
    infos.reverse()
    for seen in (infos, list(infos)):
        assert stack(seen, "vector_reward").tolist() == [[0.0, 0.0], [1.0, -0.5]]
        publish(seen, "level", np.array([1, 2]))
        assert [info["level"] for info in seen] == [1, 2]


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
    assert "b" not in [*dict.keys(clone)] and clone["b"] == 0


def test_the_infos_of_a_step_are_made_when_they_are_asked_for(record):
    infos = Infos(record, 2)
    assert len(infos) == 2 and list(infos.made()) == []
    assert infos[-1] is infos[1] and list(infos.made()) == [infos[1]]
    assert infos[-1]["individual"]["group"] == 1
    with pytest.raises(IndexError):
        infos[2]


METHODS = {
    "__class_getitem__": lambda d, k: type(d)[k] is not None,
    "__contains__": lambda d, k: k in d,
    "__delitem__": lambda d, k: d.__delitem__(k),
    "__eq__": lambda d, k: (d == {"a": 1, "b": {"c": 10.5}, "n": None}, {k: 1} == d),
    "__getitem__": lambda d, k: d[k],
    "__init__": lambda d, k: dict(d),
    "__ior__": lambda d, k: d.__ior__({k: 7}) == d,
    "__iter__": lambda d, k: list(d),
    "__len__": lambda d, k: (len(d), bool(d)),
    "__ne__": lambda d, k: (d != {"a": 1, "b": {"c": 10.5}, "n": None}, {k: 1} != d),
    "__ror__": lambda d, k: d.__ror__({k: 8}),
    "__or__": lambda d, k: (d | {k: 8}, {k: 8} | d, {**d, k: 9}, [*(d | {k: 8})]),
    "__repr__": lambda d, k: (repr(d), f"{d}", str(d)),
    "__reversed__": lambda d, k: list(reversed(d)),
    "__setitem__": lambda d, k: d.__setitem__(k, 5),
    "clear": lambda d, k: d.clear(),
    "copy": lambda d, k: (d.copy(), list(d.copy()), d.copy().pop(k, 0), copy.copy(d), copy.deepcopy(d)),
    "fromkeys": lambda d, k: d.fromkeys(k, 3),
    "get": lambda d, k: (d.get(k), d.get(k, 4)),
    "items": lambda d, k: list(d.items()),
    "json": lambda d, k: (json.dumps(d, default=str), json.dumps([d], sort_keys=True), json.dumps(d, indent=1)),
    "keys": lambda d, k: [*d.keys()],
    "match": lambda d, k: "{a}".format_map(d),
    "pickle": lambda d, k: (pickle.loads(pickle.dumps(d)), (lambda **named: named)(**d)),
    "pop": lambda d, k: d.pop(k),
    "pop with default": lambda d, k: d.pop(k, 6),
    "popitem": lambda d, k: d.popitem(),
    "setdefault": lambda d, k: (d.setdefault(k, 2), d.setdefault(k)),
    "update": lambda d, k: (d.update({k: 1}), {}.update(d), d.update(new=3)),
    "values": lambda d, k: list(d.values()),
}


def outcome(call, *arguments):
    try:
        return call(*arguments)
    except Exception as error:
        return type(error), str(error)


def test_no_method_of_dict_is_forgotten():
    basics = set(vars(object)) - {"__eq__", "__ne__", "__repr__", "__init__"}
    assert set(vars(dict)) - basics <= set(METHODS)


@given(st.lists(st.tuples(st.sampled_from(sorted(METHODS)), st.sampled_from(["a", "b", "n", "other"])), max_size=8))
def test_an_info_behaves_as_a_plain_dict(steps):
    record = {"a": np.array([0, 1]), "b": {"c": np.array([np.nan, 10.5])}, "n": np.array([0.0, np.nan])}
    light, plain = Infos(record, 2)[1], {"a": 1, "b": {"c": 10.5}, "n": None}
    for name, key in steps:
        assert outcome(METHODS[name], light, key) == outcome(METHODS[name], plain, key), name
    assert light == plain and [*light.items()] == [*plain.items()]


def test_what_is_published_reaches_every_info_whatever_was_done_with_it(record):
    infos = Infos(record, 2)
    infos[0].pop("individual")
    infos[1] = dict(infos[1])
    publish(infos, "individual", {"group": np.array([5, 6])})
    assert [info["individual"]["group"] for info in infos] == [5, 6] and list(infos[0]) == [
        "vector_reward",
        "individual",
    ]


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
        lambda infos: 2 * infos,
        lambda infos: [*infos],
        lambda infos: list(reversed(infos)),
        lambda infos: [info["group"] for _, info in zip(range(2), infos, strict=True)],
        lambda infos: infos.index({"group": 1}),
        lambda infos: infos.count({"group": 1}),
        lambda infos: {"group": 1} in infos,
        lambda infos: infos == [{"group": 0}, {"group": 1}],
        lambda infos: infos != [{"group": 0}, {"group": 1}],
        lambda infos: outcome(infos.__lt__, [{"group": 0}, {"group": 1}]),
        lambda infos: infos.pop(),
        lambda infos: infos.pop(0),
        lambda infos: infos.sort(key=lambda info: -info["group"]),
        lambda infos: infos.reverse(),
        lambda infos: infos.append(None),
        lambda infos: infos.extend([None, {}]),
        lambda infos: infos.insert(0, None),
        lambda infos: infos.remove({"group": 0}),
        lambda infos: infos.clear(),
        lambda infos: infos.__delitem__(0),
        lambda infos: infos.__setitem__(slice(0, 1), [None, None]),
        lambda infos: infos.__setitem__(1, None),
        lambda infos: infos.__iadd__([None]) and None,
        lambda infos: infos.__imul__(2) and None,
        json.dumps,
        lambda infos: np.array(infos).tolist(),
        lambda infos: [0, *[1, 2].__iadd__(infos)],
    ],
)
def test_they_look_like_any_list(look):
    light, plain = Infos({"group": np.arange(2)}, 2), [{"group": 0}, {"group": 1}]
    assert look(light) == look(plain) and light == plain and [*light] == plain


def test_labels_of_several_copies_stay_what_they_are():
    class Colour(Enum):
        RED = 1

    large = [2**63 + 1, 2**62 + 1]  # numpy makes floats of both
    for labels in (
        ["m", None],
        [None, "m"],
        [0, "other"],
        [Colour.RED, None],
        [frozenset("a")] * 2,
        [(1, 2), (3, 4)],
        large,
    ):
        stacked = stack([{"label": label} for label in labels], "label")
        assert stacked.dtype == object and stacked.tolist() == labels
    assert stacked_people([{"group": [*large, -1]}])["group"].tolist() == [[*large, -1]]
    assert stacked_people([{"group": {"of": label}} for label in (2**53 + 1, None)])["group"]["of"][0] == 2**53 + 1
    unsigned = [np.uint64(2**53 + 1), np.int64(-1)]
    assert stacked_people([{"group": label} for label in unsigned])["group"].tolist() == unsigned
    assert stacked_people([{"group": [2**53 + 1, None]}])["group"].tolist() == [[2**53 + 1, None]]
    assert stack([{"label": torch.tensor(label)} for label in (1, 0, 1)], "label").tolist() == [1, 0, 1]
    numbers = stack([{"label": 1}, {"label": None}], "label")
    assert numbers.dtype == float and np.isnan(numbers[1])


def test_an_entry_can_be_set_where_there_is_none(record):
    (info, _) = Infos(record, 2)
    assert info.setdefault("individual", None) == info["individual"]
    assert info.setdefault("new", 3) == info["new"] == 3


@pytest.mark.parametrize("own", [0.5, np.zeros(2), [0.5]])
def test_figures_that_are_no_dict_are_refused(own):
    with pytest.raises(TypeError, match=r"^info\['fairness'\] must be a dict of figures by name, got"):
        figures_of([{}, {"fairness": own}])
    assert figures_of([{}, {"fairness": None}]) == {}
    assert [*figures_of([{}, {"fairness": {"SP": 0.5}}])["SP"]] == [pytest.approx(np.nan, nan_ok=True), 0.5]
