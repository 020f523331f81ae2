"""Are recent sums those of the steps in the window?"""

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sb3_fair.zoo.envs.recent import Recent


@pytest.mark.parametrize("window", [None, 0, 1, 4])
def test_sums_are_those_of_a_list_of_all_steps_and_never_change_once_handed_out(window):
    rng = np.random.default_rng(0)
    recent = Recent((3, 2), window, np.int64)
    episodes = [[] for _ in range(3)]
    handed, kept = [], []

    def summed(length):
        latest = [rows if length is None else rows[len(rows) - min(length, len(rows)) :] for rows in episodes]
        return [np.sum(rows, axis=0) if rows else np.zeros(2) for rows in latest]

    for step in range(40):
        if step % 6 == 5:
            which = rng.permutation(3)[: rng.integers(1, 4)]
            first = rng.integers(0, 9, (len(which), 2)) if step % 4 == 1 else np.zeros((len(which), 2), dtype=int)
            recent.restart(which, first)
            for index, row in zip(which, first, strict=True):
                episodes[index] = [row]
        else:
            counts = rng.integers(0, 9, (3, 2))
            assert_array_equal(recent.staying, summed(window))
            recent.add(counts)
            for rows, row in zip(episodes, counts, strict=True):
                rows.append(row)
        assert_array_equal(recent.total, summed(None if window is None else window + 1))
        assert recent.total.dtype == np.int64
        handed.append((recent.total, recent.staying))
        kept.append(copy.deepcopy(handed[-1]))
    assert_array_equal(handed, kept)
