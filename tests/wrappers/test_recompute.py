"""Is the reward with another memory what the environment would have paid with another past?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_fair.fairness import Scheme, Welfare
from sb3_fair.wrappers import FairnessScheme, MemoryAugmentation, Recompute, augment, find_counterexample, make_memory
from tests.wrappers.town import LENGTH, Tally, Town, everybody_has_more

PARITY = Welfare("relaxed_parity")
CASES = [
    ("full", Scheme()),
    ("full+clock", Scheme(when="end")),
    ("full+counter(3)", Scheme(welfare="nash", when=("period", 3))),
    ("rounds(3)", Scheme(welfare="rawls", when=("period", 3), restart=True)),
    ("full", Scheme(welfare="utilitarian", when=everybody_has_more)),
    ("min", Scheme(welfare=PARITY)),
    ("reset", Scheme(welfare=PARITY)),
]


@pytest.mark.parametrize(("name", "scheme"), CASES, ids=lambda value: value if isinstance(value, str) else "")
@given(seed=st.integers(0, 2**32 - 1))
def test_the_rest_of_an_episode_is_paid_as_if_another_past_had_gone_before(name, scheme, seed):
    """Two episodes that differ in their first four steps: relabelling one with the other's memory gives its rewards."""
    rng = np.random.default_rng(seed)
    memory = make_memory(name, (0, 1, 2), LENGTH)
    env = FairnessScheme(Town(), scheme)
    late_actions, late_granted = rng.integers(3, size=LENGTH - 4), rng.integers(2, size=LENGTH - 4)
    first, second = (
        Played(env, [*rng.integers(3, size=4), *late_actions], [*rng.integers(2, size=4), *late_granted]) for _ in "12"
    )
    recompute = Recompute(memory, env.scheme)
    other = augment(second.actions, second.events, memory)
    following, rewards = recompute(other[4:-1], first.actions[4:], first.events[4:])
    np.testing.assert_array_equal(following, other[5:])
    np.testing.assert_allclose(rewards, second.rewards[4:])


class Played:
    """One episode of given actions, each of which takes effect or not."""

    def __init__(self, env, actions, granted):
        env.reset(seed=0)
        events, rewards = [], []
        for action, works in zip(actions, granted, strict=True):
            env.unwrapped.present[:] = works
            _, reward, _, _, info = env.step(action)
            events.append(info["fair_event"])
            rewards.append(reward)
        self.actions, self.events, self.rewards = np.array(actions), np.array(events, dtype=float), np.array(rewards)


def test_the_table_of_relabelled_steps():
    recompute = Recompute(make_memory("full", (0, 1, 2), 100), Scheme())
    memories = np.array([[3, 1, 2], [0, 3, 1], [3, 2, 1]], np.float32)
    granted = np.array([1.0, 1, 0])
    events = np.stack([granted, np.zeros(3), granted], axis=1)
    following, rewards = recompute(memories, np.array([2, 0, 1]), events)
    np.testing.assert_array_equal(following, [[3, 1, 3], [1, 3, 1], [3, 2, 1]])
    np.testing.assert_allclose(rewards, [3.465736, 2.772589, 0], atol=1e-6)


def sorted_least(status):
    status.sort(axis=-1)
    return status[..., 0]


def test_a_welfare_function_that_sorts_in_place_leaves_memories_as_they_are():
    recompute = Recompute(make_memory("full", (0, 1, 2), 100), Scheme(welfare=sorted_least))
    following, rewards = recompute(np.array([[3, 1, 2]], np.float32), np.array([2]), np.array([[1, 0, 1]]))
    assert following.tolist() == [[3, 1, 3]] and rewards == [1]


@pytest.mark.parametrize(
    ("name", "scheme", "message"),
    [
        ("min", Scheme(), "does not hold the status"),
        ("reset", Scheme(), "does not hold the status"),
        ("clock", Scheme(), "does not hold the status"),
        ("min", Scheme(welfare=PARITY, when=everybody_has_more), "the filter"),
        ("full", Scheme(status="rewards"), "status must be 'counts'"),
        ("full", Scheme(when=("period", 3), restart=True), r"memory must be 'rounds\(3\)'"),
        ("rounds(3)", Scheme(when=("period", 3)), "counts over the whole episode"),
    ],
)
def test_a_reward_that_does_not_follow_from_the_memory_is_refused(name, scheme, message):
    with pytest.raises(ValueError, match=message):
        Recompute(make_memory(name, (0, 1, 2), 8), scheme)


class Amounts(Tally):
    """Of a status that is no count of who was served."""

    def status(self, memory):
        return 2 * memory


def test_a_memory_of_ones_own_may_stand_beside_a_clock():
    memory = make_memory((Amounts(), "clock"), (0, 1, 2), 8)
    scheme = Scheme(status=lambda info: info["given"], welfare="utilitarian", when="end")
    following, reward = Recompute(memory, scheme)(memory.initial((1,)), np.array([1]), np.array([[1, 0, 1]]))
    assert following.tolist() == [[1, 1]] and reward == [2]


@pytest.mark.parametrize(("name", "scheme"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_nothing_speaks_against_a_memory_that_is_enough(name, scheme):
    env = MemoryAugmentation(FairnessScheme(Town(), scheme), name)
    assert find_counterexample(env) is None


def test_what_an_action_costs_does_not_speak_against_a_memory():
    def event(obs, action, info):
        return True, -1.0 * action, 1.0

    env = FairnessScheme(Town(), Scheme(), stakeholders=(0, -1, -1), event=event)
    assert find_counterexample(MemoryAugmentation(env)) is None


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("min", Scheme()), ("reset", Scheme()), ("full", Scheme(when=("period", 3))), ("full", Scheme(when="end"))],
    ids=str,
)
def test_a_counter_example_shows_two_traces_that_the_memory_confuses(name, scheme):
    env = MemoryAugmentation(FairnessScheme(Town(), scheme), name)
    found = find_counterexample(env)
    assert found is not None
    assert found.actions[0] != found.actions[1] and found.values[0] != found.values[1]
    assert "though both end in the same observation" in str(found)


class InPlace(Town):
    """Shows the same array at every step."""

    def _present(self):
        self.shown = getattr(self, "shown", np.zeros(3, np.float32))
        self.shown[:] = super()._present()
        return self.shown


@pytest.mark.parametrize(("name", "found"), [("full", False), ("min", True)])
def test_an_environment_may_show_one_array_that_it_changes(name, found):
    def look(town):
        return find_counterexample(MemoryAugmentation(FairnessScheme(town, Scheme()), name, flatten=False))

    assert (look(InPlace()) is not None) == found
    assert str(look(InPlace())) == str(look(Town()))


def test_the_status_is_checked_by_itself():
    scheme = Scheme(when=("period", 3))
    assert find_counterexample(MemoryAugmentation(FairnessScheme(Town(), scheme), "full"), "status") is None
    assert find_counterexample(MemoryAugmentation(FairnessScheme(Town(), scheme), "min"), "status") is not None


def test_checking_needs_a_memory_and_a_status():
    with pytest.raises(ValueError, match="must have a memory"):
        find_counterexample(Town())
    with pytest.raises(ValueError, match="must have a status"):
        find_counterexample(MemoryAugmentation(Town()), "status")
    with pytest.raises(ValueError, match="of must be"):
        find_counterexample(MemoryAugmentation(Town()), "welfare")
