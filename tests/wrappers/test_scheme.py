"""Is the return of an episode the score of the fairness scheme?"""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair.fairness import FairnessSpec, Scheme, count_status
from sb3_fair.wrappers import (
    FairEvent,
    FairMDP,
    FairnessScheme,
    MemoryAugmentation,
    VecFairnessScheme,
    VecMemoryAugmentation,
    make_memory,
)
from sb3_fair.wrappers.events import events_of, told_events
from tests.wrappers.town import LENGTH, FirstActionOf, Town, everybody_has_more, play


def words(scheme):
    """The same in every process, unlike the repr of a function."""
    return str(scheme).replace(repr(everybody_has_more), everybody_has_more.__name__)


SCHEMES = [
    Scheme(),
    Scheme(welfare="rawls", when=("period", 3)),
    Scheme(welfare="rawls", when=("period", 3), restart=True),
    Scheme(when="end"),
    Scheme(temporal="last"),
    Scheme(welfare="utilitarian", when=everybody_has_more),
]


class Generous(Town):
    """Fairness counts in every step, also when nobody was served."""

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        info["fair_event"] = info["fair_event"]._replace(mask=1.0)
        return obs, reward, terminated, truncated, info


@pytest.mark.parametrize("scheme", SCHEMES, ids=words)
def test_the_undiscounted_return_is_the_score(scheme):
    env = FairnessScheme(Generous(), scheme)
    for seed in range(5):
        _, actions, events, rewards = play(env, seed)
        status = count_status(actions, events[:, 0].astype(bool), stakeholders=(0, 1, 2))
        assert rewards.sum() == pytest.approx(scheme.score(status))


@pytest.mark.parametrize("scheme", SCHEMES, ids=words)
def test_a_masked_step_pays_its_base_alone(scheme):
    """The town's mask is 0 where nobody was served."""
    *_, events, rewards = play(FairnessScheme(Town(), scheme), 3)
    *_, generous = play(FairnessScheme(Generous(), scheme), 3)
    np.testing.assert_array_equal(rewards, np.where(events[:, 0], generous, 0.0))


@pytest.mark.parametrize("start", [-2, 1, 7])
def test_actions_may_start_at_any_number(start):
    """Rewards and memories are those of the same town with actions from 0 on."""
    rng = np.random.default_rng(0)
    plain, moved = Generous(), FirstActionOf(Generous(), start)
    plain, moved = (MemoryAugmentation(FairnessScheme(env, Scheme()), "full+rounds(3)") for env in (plain, moved))
    vec = VecFairnessScheme(DummyVecEnv([lambda: FirstActionOf(Generous(), start)]), Scheme())
    vec = VecMemoryAugmentation(vec, "full+rounds(3)")
    vec.seed(5)
    vec.reset(), plain.reset(seed=5), moved.reset(seed=5)
    for action in rng.integers(3, size=LENGTH - 1):
        obs, reward, *_ = plain.step(action)
        others, rewards, *_ = vec.step([action + start])
        moved_obs, moved_reward, *_ = moved.step(action + start)
        assert reward == moved_reward == rewards[0]
        np.testing.assert_array_equal(obs["memory"], moved_obs["memory"])
        np.testing.assert_array_equal(obs["memory"], others["memory"][0])
    assert reward > 0


def test_an_action_outside_the_space_serves_nobody_by_mistake():
    with pytest.raises(ValueError, match=r"actions must be in 1\.\.3, got 0\.\.0"):
        make_memory("full", (0, 1, 2), 8, first_action=1).update(np.zeros((1, 3)), np.array([0]), np.ones((1, 3)))


@pytest.mark.parametrize("stakeholders", [(0, 1), (0, 1, 2, 3)])
def test_every_action_has_one_stakeholder(stakeholders):
    with pytest.raises(ValueError, match="stakeholders must have one entry per action"):
        FairnessScheme(Town(), Scheme(), stakeholders=stakeholders)


def three_way(obs, action, info):
    """Granted if present; one point is lost whenever the third is asked."""
    return obs[action] == 1, -1.0 * (action == 2), 1.0


class Silent(Town):
    def step(self, action):
        return *super().step(action)[:4], {}


def test_an_environment_that_tells_nothing_gets_an_event():
    env = FairnessScheme(Silent(), Scheme(welfare="utilitarian"), event=three_way)
    obs, _ = env.reset(seed=1)
    total = 0
    for action in (0, 1, 2, 2, 1, 0, 2, 1):
        present = obs[action]
        obs, reward, _, _, info = env.step(action)
        total += present
        assert reward == total - (action == 2)
        assert info["fair_event"] == (bool(present), -1.0 * (action == 2), 1.0)


def test_without_events_every_action_takes_effect():
    env = FairnessScheme(Silent(), Scheme(welfare="utilitarian", when="end"))
    env.reset(seed=0)
    assert [env.step(0)[1] for _ in range(LENGTH)] == [0] * (LENGTH - 1) + [LENGTH]


class Partly(Silent):
    """Some copies of it tell something of their steps."""

    def __init__(self, told):
        super().__init__()
        self.told = told

    def step(self, action):
        return *super().step(action)[:4], dict(self.told)


@pytest.mark.parametrize("order", [1, -1])
def test_each_copy_counts_by_what_it_tells_itself(order):
    told = [{"fair_event": FairEvent(False, 5.0, False), "fairness": {"mine": 0.5}}, {}][::order]
    venv = VecFairnessScheme(DummyVecEnv([lambda told=each: Partly(told) for each in told]), Scheme(welfare="rawls"))
    venv.reset()
    _, rewards, _, infos = venv.step(np.array([0, 0]))
    assert rewards[::order].tolist() == [5, 0]
    assert venv.status[::order].tolist() == [[0, 0, 0], [1, 0, 0]]
    assert [info["fairness"]["mine"] for info in infos][::order] == [0.5, None]
    assert [info["fairness"]["spread"] for info in infos][::order] == [0, 1]


def gain(info):
    return [info["x"], 1.0]


class Drawn(Silent):
    """Publishes a number that is somebody's gain, and a vector reward."""

    reward_dim = 2

    def step(self, action):
        return *super().step(action)[:4], {"x": float(action), "vector_reward": np.array([action, 1.0])}


@pytest.mark.parametrize("status", [gain, "rewards"])
def test_the_status_can_be_anything_that_adds_up(status):
    env = FairnessScheme(Drawn(), Scheme(status=status, welfare="rawls"))
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (0, 1, 2, 2, 0)] == [0, 1, 3, 4, 5]
    np.testing.assert_array_equal(env.status, [5, 5])


def test_groups_of_stakeholders_share_an_account():
    env = FairnessScheme(Silent(), Scheme(welfare="relaxed_parity"), stakeholders=(0, 0, 1))
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (0, 1, 2, 2, 2)] == [-1, -2, -1, 0, -1]


def test_welfare_and_spread_join_the_figures_of_a_fairness_mdp():
    spec = FairnessSpec(group=lambda obs, info: 0, notions=("SP",))
    for env in (FairnessScheme(FairMDP(Town(), spec), Scheme()), FairMDP(FairnessScheme(Town(), Scheme()), spec)):
        env.reset(seed=0)
        assert {"SP", "welfare", "spread"} <= set(env.step(0)[4]["fairness"])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_plain_tuples_are_events_too(n):
    """Whose columns are not the copies, also where there are three of these."""
    told = [(index % 2 == 0, -1.0 * index, 1.0) for index in range(n)]
    for found in (told_events([{"fair_event": event} for event in told]), events_of([{"fair_event": e} for e in told])):
        np.testing.assert_array_equal(found.array, told)


def test_events_travel_as_arrays_and_as_numbers():
    event = FairEvent(np.array([True, False]), np.zeros(2), np.ones(2))
    assert event.array.tolist() == [[1, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        (Scheme(temporal="min"), "temporal must be 'sum'"),
        (Scheme(temporal="last", when=("period", 3)), "temporal must be 'sum'"),
        (Scheme(status="rewards"), "needs a vector reward"),
    ],
)
def test_schemes_that_are_no_reward_are_refused(scheme, message):
    with pytest.raises(ValueError, match=message):
        FairnessScheme(Town(), scheme)


def test_counts_need_discrete_actions():
    with pytest.raises(ValueError, match="needs Discrete actions"):
        FairnessScheme(gym.make("Pendulum-v1"), Scheme())


class Timed(Town):
    clock = True


class Pictured(Town):
    clock = object()  # as pygame's, of what is rendered


class Pairs(Town):
    default_memory = "min"


PARITY = "relaxed_parity"


@pytest.mark.parametrize(
    ("town", "scheme", "memory"),
    [
        (Town, Scheme(), "full"),
        (Town, Scheme(when=("period", 3)), "full+counter(3)"),
        (Town, Scheme(when=("period", 3), restart=True), "rounds(3)"),
        (Town, Scheme(when="end"), "full+clock"),
        (Timed, Scheme(when="end"), "full"),
        (Pictured, Scheme(when="end"), "full+clock"),
        (Pairs, Scheme(welfare=PARITY), "min"),
        (Pairs, Scheme(welfare=PARITY, when=everybody_has_more), "full"),
        (Pairs, Scheme(), "full"),
    ],
)
def test_it_names_a_memory_that_is_enough(town, scheme, memory):
    assert FairnessScheme(town(), scheme).default_memory == memory
    assert VecFairnessScheme(DummyVecEnv([town]), scheme).get_attr("default_memory") == [memory]


def test_the_bound_of_the_old_reward_is_not_that_of_the_new():
    town = Town()
    town.max_return = 5.0
    assert FairnessScheme(town, Scheme()).max_return == np.inf


def test_a_scheme_may_be_given_by_its_arguments():
    env = FairnessScheme(Town(), {"welfare": "rawls", "when": ["period", 3]})
    assert env.scheme == Scheme(welfare="rawls", when=("period", 3))
    with pytest.raises(TypeError, match="scheme must be of class Scheme or a dict"):
        FairnessScheme(Town(), "rawls")
