"""Does every label that occurs get a column of its own, and no other label one?"""

import numpy as np
import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st

from sb3_fair.fairness.tracking.partition import NOWHERE, Partition, ProductPartition
from sb3_fair.fairness.tracking.tracker import Tracker

NEAR_AND_FAR = st.integers(-5, 5) | st.sampled_from([1990, 2000, 32767, 32768, -32769, 2**63 - 1, -(2**63)])
DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool", "U9", "float64", "object"]


@given(st.lists(st.lists(NEAR_AND_FAR, max_size=6), max_size=8), st.data())
def test_the_column_of_a_label_is_the_same_whatever_carries_it(batches, data):
    """Arrays of every dtype, lists and tensors, against a dict; integers only for numbers that the dtype holds."""
    for groups in (None, (1990, -3)):
        partition, known = Partition(groups), {label: 1 + i for i, label in enumerate(groups or ())}
        for batch in batches:
            dtype = np.dtype(data.draw(st.sampled_from(["int8", "int16", "uint8", "int64"])))
            labels = np.array(batch, dtype=np.int64).astype(dtype)
            tensor, single = th.tensor(labels.tolist()), list(map(np.array, labels))
            kinds = [labels, labels.tolist(), labels.astype(object), list(labels), single, tensor, list(tensor)]
            columns = partition.columns(data.draw(st.sampled_from(kinds)))
            for label, column in zip(labels.tolist(), columns.tolist(), strict=True):
                assert column == (known.setdefault(label, column) if groups is None else known.get(label, NOWHERE))
        assert len(set(known.values())) == len(known) == partition.size - 1
        assert partition.labels[1:] == sorted(known, key=known.get)


@pytest.mark.parametrize("dtype", DTYPES)
def test_labels_of_every_dtype(dtype):
    labels = np.array([1, 0, 0, 1]).astype(dtype)
    partition = Partition()
    first = partition.columns(labels)
    assert first[0] == first[3] != first[1] == first[2]
    np.testing.assert_array_equal(partition.columns(labels.tolist()), first)
    assert partition.size == 3


def test_integers_beyond_64_bits_of_a_signed_number_are_not_taken_for_others():
    partition = Partition()
    assert partition.columns(np.array([-1])) != partition.columns(np.array([2**64 - 1], dtype=np.uint64))


@given(st.lists(st.lists(st.tuples(NEAR_AND_FAR, st.sampled_from("abc")), max_size=5), max_size=6))
def test_a_product_has_one_column_per_combination_that_occurs(batches):
    partition, known = ProductPartition(2), {}
    for batch in batches:
        numbers = np.array([number for number, _ in batch], dtype=np.int64)
        for pair, column in zip(batch, partition.columns([numbers, [c for _, c in batch]]), strict=True):
            assert known.setdefault(pair, column) == column
    assert dict(zip(partition.labels[1:], range(1, partition.size), strict=True)) == known


@pytest.mark.parametrize(
    "labels", [(1990, 2000), (4000, 4090), (-7, -1), (-5, 10**12), ("man", "woman"), (0.5, 2.5), (False, True)]
)
def test_two_labels_take_the_place_of_two_whatever_they_are(labels):
    """Room is made for the two labels that occur, and their four combinations; the figures are those of 0 and 1."""
    rng = np.random.default_rng(0)
    people = [(rng.integers(2, size=(2, 3)), rng.integers(2, size=3)) for _ in range(40)]
    found = []
    for pair in (np.array([0, 1]), np.array(labels)):
        tracker = Tracker(3, notions=["SP"], attributes=["a", "b", ("a", "b")])
        for (a, b), action in people:
            tracker.add({"a": pair[a], "b": pair[b]}, action)
        found.append(tracker.values())
        sizes = {counts.counts.shape[1] for track in tracker._tracks for counts in track._counts.values()}
        assert max(sizes) <= 2 * 5
    for name, values in found[0].items():
        np.testing.assert_array_equal(found[1][name], values)
