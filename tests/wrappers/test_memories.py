"""Do memories hold what their names promise, and do their counterfactuals stay inside them?"""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_fair.wrappers.encoders import ENCODERS
from sb3_fair.wrappers.memories import Memory, augment, make_memory
from tests.wrappers.town import ACTIONS, COUNTS, EVENTS, GRANTED, Tally

PEOPLE = (0, 1, 2)
NAMES = ("full", "min", "reset", "clock", "counter(3)", "rounds(3)", "full+clock", "min+counter(4)")


def made(name, maximum=8, stakeholders=PEOPLE, **more):
    return make_memory(name, stakeholders, maximum, **more)


def test_full_counts_what_was_granted():
    np.testing.assert_array_equal(augment(ACTIONS, EVENTS, made("full")), COUNTS)


def test_min_keeps_the_lead_over_the_least_served():
    np.testing.assert_array_equal(augment(ACTIONS, EVENTS, made("min")), COUNTS - COUNTS.min(axis=1, keepdims=True))


def test_reset_begins_anew_when_all_are_equal():
    expected = COUNTS.copy()
    expected[-1] = 0
    np.testing.assert_array_equal(augment(ACTIONS, EVENTS, made("reset")), expected)


def test_difference_is_the_lead_of_the_first_of_two_groups():
    memory = made("difference", stakeholders=(0, 0, 1))
    gains = np.array([1, 1, -1])[ACTIONS] * GRANTED
    np.testing.assert_array_equal(augment(ACTIONS, EVENTS, memory)[1:, 0], gains.cumsum())
    np.testing.assert_array_equal(memory.differences(np.array([[3.0], [-2.0]])), [[3, 0], [0, 2]])


def test_clock_and_counter_tick_whatever_happens():
    memories = augment(ACTIONS, EVENTS * 0, made("clock+counter(3)"))
    np.testing.assert_array_equal(memories[:, 0], np.arange(9))
    np.testing.assert_array_equal(memories[:, 1], np.arange(9) % 3)


def test_rounds_count_anew_after_every_period():
    memories = augment(ACTIONS, EVENTS, made("rounds(3)"))
    for step in range(1, 9):
        begins = (step - 1) // 3 * 3
        np.testing.assert_array_equal(memories[step, :3], COUNTS[step] - COUNTS[begins])
        assert memories[step, 3] == step - begins


def test_an_action_that_serves_nobody_is_remembered_by_nobody():
    memory = made("full", stakeholders=(0, -1, 1))
    np.testing.assert_array_equal(memory.update(np.zeros((1, 2)), np.array([1]), np.ones((1, 3))), [[0, 0]])


def test_counts_saturate():
    memory = made("full", maximum=2)
    assert augment(np.zeros(5, int), np.ones((5, 3)), memory)[-1].tolist() == [2, 0, 0]


@given(st.integers(0, 2**32 - 1), st.sampled_from((*NAMES, "difference")))
def test_counterfactuals_are_memories(seed, name):
    """Within the bounds, of the right form, and as far from the real memory as the window allows."""
    rng = np.random.default_rng(seed)
    memory = made(name, stakeholders=(0, 0, 1)) if name == "difference" else made(name)
    real = augment(rng.integers(3, size=(5, 6)), rng.integers(2, size=(5, 6, 3)), memory)[:, -1]
    other = memory.sample_counterfactuals(real, rng)
    assert other.shape == real.shape and other.dtype == np.float32
    assert (other >= memory.low).all() and (other <= memory.high).all()
    if name == "full":
        assert (np.abs(other - real) <= 2).all()
    if name == "min":
        assert (other.min(axis=1) == 0).all()
    if name == "reset":
        assert not ((other == other[:, :1]).all(axis=1) & (other[:, 0] > 0)).any()
    if name == "difference":
        assert (np.abs(other - real) <= 5).all() and (other != real).all()


def test_counterfactual_differences_are_as_far_from_the_real_one_as_the_window_allows():
    memory = made("difference", maximum=20, stakeholders=(0, 0, 1))
    other = memory.sample_counterfactuals(np.full((500, 1), 9.0, np.float32), np.random.default_rng(0))
    assert set((other - 9).ravel().tolist()) == set(range(-5, 6)) - {0}


@pytest.mark.parametrize("name", ["full+clock", "rounds(3)", "min+counter(4)"])
def test_counterfactuals_do_not_change_the_time(name):
    memory = made(name)
    real = augment(np.tile(ACTIONS[:5], (50, 1)), np.tile(EVENTS[:5], (50, 1, 1)), memory)[:, -1]
    other = memory.sample_counterfactuals(real, np.random.default_rng(0))
    np.testing.assert_array_equal(other[:, -1], real[:, -1])
    assert (other[:, :3] != real[:, :3]).any()


@pytest.mark.parametrize("name", NAMES)
def test_a_memory_is_picklable_and_shown_as_finite_float32(name):
    for encoder in ENCODERS:
        memory = pickle.loads(pickle.dumps(made(name, encoder=encoder)))
        assert isinstance(memory, Memory)
        shown = memory.encode(augment(ACTIONS, EVENTS, memory))
        assert shown.dtype == np.float32 and np.isfinite(shown).all() and shown.shape[0] == 9


@pytest.mark.parametrize(
    ("encoder", "expected"),
    [
        ("raw", [0.03, 0, 1]),
        ("log", [np.log(4), 0, np.log(101)]),
        ("relative", [3, 0, 100, 103 / 300]),
        ("binary", [1, 1, 0, 0, 0, 0, 0, *[0] * 7, 0, 0, 1, 0, 0, 1, 1]),
    ],
)
def test_encoders_show_counts(encoder, expected):
    shown = made("full", maximum=100, encoder=encoder).encode(np.array([3, 0, 100], np.float32))
    np.testing.assert_allclose(shown, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "memory", "expected"),
    [
        ("clock", [2], [2 / 8]),
        ("counter(4)", [3], [3 / 4]),
        ("rounds(4)", [1, 0, 2, 3], [1 / 4, 0, 2 / 4, 3 / 4]),
        ("rounds(4)", [1, 1, 2, 4], [0, 0, 0, 0]),  # a round that is over
    ],
)
def test_clocks_show_which_share_has_passed(name, memory, expected):
    shown = made(name, encoder="raw").encode(np.array([memory], np.float32))
    np.testing.assert_allclose(shown, [expected])


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_difference_is_shown_with_its_sign(encoder):
    memory = made("difference", stakeholders=(0, 0, 1), encoder=encoder)
    shown = memory.encode(np.array([[-3.0], [3.0]], np.float32))
    np.testing.assert_array_equal(shown[0], -shown[1])
    assert shown.any()


def test_stored_rows_of_full_are_all_counts_above_the_real_ones():
    candidates, valid = made("full").rows(np.array([[0.0, 1.0, 7.0]]))
    assert candidates.shape == (1, 8, 3)
    assert {tuple(row) for row in candidates[0][valid[0]]} == {(a, b, 8.0) for a in (1, 2) for b in (2, 3)}


def test_stored_rows_of_a_difference_surround_it_on_its_own_side():
    memory = made("difference", stakeholders=(0, 0, 1))
    candidates, valid = memory.rows(np.array([[2.0], [-1.0]]))
    assert sorted(candidates[0][valid[0]].ravel()) == [0, 1, 3, 4, 5, 6, 7]
    assert sorted(candidates[1][valid[1]].ravel()) == [-6, -5, -4, -3, -2, 0]


@pytest.mark.parametrize(("name", "first"), [("full+clock", 0), ("clock+full", 1), ("clock+full+counter(9)", 1)])
def test_rows_of_a_product_keep_the_clocks(name, first):
    memory, counts = made(name), slice(first, first + 3)
    now = np.full((1, memory.dim), 5.0)
    now[0, counts] = 0, 1, 2
    candidates, valid = memory.rows(now)
    expected = made("full").rows(now[:, counts])
    np.testing.assert_array_equal(candidates[..., counts], expected[0])
    np.testing.assert_array_equal(valid, expected[1])
    assert (np.delete(candidates, counts, axis=-1) == 5).all()


@pytest.mark.parametrize("name", ["min", "reset", "rounds(3)", "clock+counter(3)", (Tally(), "clock")])
def test_memories_for_which_the_paper_stores_no_rows_say_so(name):
    memory = made(name)
    with pytest.raises(ValueError, match="stored rows"):
        memory.rows(memory.initial((1,)))


def test_a_memory_of_ones_own_is_taken_as_it_is():
    memory = made("full")
    assert make_memory(memory, PEOPLE, None) is memory
    assert make_memory([memory, "clock"], PEOPLE, 9).name == "full+clock"


class InPlace(Tally):
    def update(self, memory, action, event):
        memory += event[..., :1]
        return memory


def test_past_memories_are_kept_by_a_memory_that_works_in_place():
    np.testing.assert_array_equal(augment(ACTIONS, EVENTS, InPlace()), augment(ACTIONS, EVENTS, Tally()))


@pytest.mark.parametrize(
    ("memory", "error", "message"),
    [
        ("ful", ValueError, "did you mean 'full'"),
        ("counter(0)", ValueError, "period must be a positive integer"),
        ("difference", ValueError, "must be two"),
        (3, TypeError, "all that Memory has"),
        ([], TypeError, "memory must be"),
    ],
)
def test_bad_memories_are_refused(memory, error, message):
    with pytest.raises(error, match=message):
        made(memory)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="env must have a limit of steps"):
        made("full", maximum=None)
    with pytest.raises(ValueError, match="did you mean 'log'"):
        made("full", encoder="lg")
    with pytest.raises(ValueError, match="window must be"):
        made("full", window=0)
    with pytest.raises(ValueError, match="number those whom"):
        made("full", stakeholders=(0, 2))
    with pytest.raises(ValueError, match="events must have the shape"):
        augment(ACTIONS, EVENTS[:-1], made("full"))
