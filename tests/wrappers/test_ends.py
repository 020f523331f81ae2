"""Do wrappers that pay at the end of an episode see every end, and do all find the limit of steps?"""

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import sb3_fair
from sb3_fair.fairness import FairnessSpec, Scheme
from sb3_fair.wrappers import FairMDP, FairnessScheme, MemoryAugmentation, VectorReward
from sb3_fair.wrappers.layer import max_steps_of
from tests.wrappers.town import LENGTH, Town
from tests.zoo.forms import SINGLE

LIMIT = 7


def objective_of(env_id):
    """A notion of the scenario, else a disparity that it publishes, else SP."""
    env = gym.make(env_id)
    env.reset(seed=0)
    figures = env.step(env.action_space.sample())[4]["fairness"]
    names = (*env.get_wrapper_attr("fairness_names"), *figures, "SP")
    return next(name for name in names if name.startswith("d_") or name.isupper())


@pytest.mark.parametrize("env_id", SINGLE)
def test_the_last_step_before_a_limit_outside_is_paid(env_id):
    name = objective_of(env_id)
    settings = {"objectives": ("R", name), "emit": "terminal", "undefined": -0.625}
    env = gym.make(env_id, max_episode_steps=LIMIT, **settings)
    env.action_space.seed(0)
    for seed in (0, None):
        env.reset(seed=seed)
        for step in range(1, LIMIT + 1):
            *_, terminated, truncated, info = env.step(env.action_space.sample())
            assert not terminated and truncated == (step == LIMIT)
            level = info["fairness"][name]
            paid = -0.625 if level is None else -level if name.startswith("d_") else level
            assert info["vector_reward"][1] == (paid if step == LIMIT else 0)


def cut_off(env):
    return copy.deepcopy(TimeLimit(TimeLimit(env, LENGTH), 3))


def town():
    return cut_off(FairnessScheme(Town(), Scheme(when="end")))


@pytest.mark.parametrize(
    "make", [DummyVecEnv, lambda envs: SubprocVecEnv(envs, "fork"), lambda envs: make_vec_env(town, 2)]
)
def test_a_scheme_assessed_at_the_end_is_paid_before_a_limit_outside(make):
    inside = make([lambda: FairnessScheme(TimeLimit(Town(), 3), Scheme(when="end"))] * 2)
    outside = make([town] * 2)
    for venv in (inside, outside):
        venv.seed(3)
        venv.reset()
    found = []
    for actions in np.random.default_rng(0).integers(3, size=(12, 2)):
        steps = [venv.step(actions) for venv in (inside, outside)]
        np.testing.assert_array_equal(steps[0][1], steps[1][1])
        np.testing.assert_array_equal(steps[0][2], steps[1][2])
        found.append(steps[0][1])
    assert np.any(found)
    inside.close()
    outside.close()


class Begun(gym.Wrapper):
    """Takes the first two steps of every episode itself."""

    def reset(self, *, seed=None, options=None):
        self.env.reset(seed=seed, options=options)
        self.env.step(0)
        obs, *_, info = self.env.step(1)
        return obs, info


class Repeating(gym.Wrapper):
    """Takes every action twice."""

    def step(self, action):
        self.env.step(action)
        return self.env.step(action)


def assessed_at_the_end():
    return FairnessScheme(Endless(), Scheme(when="end"))


def test_the_steps_that_count_are_those_of_the_limit():
    env = TimeLimit(Begun(assessed_at_the_end()), 5)
    for seed in (0, None):
        env.reset(seed=seed)
        assert [env.step(step % 3)[1] != 0 for step in range(5)] == [False] * 4 + [True]


def test_a_last_step_that_is_several_is_refused():
    env = TimeLimit(Repeating(assessed_at_the_end()), 3)
    env.reset(seed=0)
    assert [env.step(0)[1] for _ in range(2)] == [0, 0]
    with pytest.raises(ValueError, match="a wrapper takes several steps in the last step before a TimeLimit outside"):
        env.step(0)


class Impatient(gym.Wrapper):
    """Ends episodes for reasons of its own."""

    def step(self, action):
        obs, reward, terminated, _, info = self.env.step(action)
        return obs, reward, terminated, bool(np.random.default_rng(action).random() < 0.9), info


@pytest.mark.parametrize("emit", ["terminal", "level"])
def test_who_never_sees_an_end_says_so_once(emit):
    def make(limit):
        env = gym.make("CartPole-v1", max_episode_steps=limit)
        return VectorReward(FairMDP(env, FairnessSpec(group="g", notions=())), ("R",), emit=emit)

    def play(env, resets):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for seed in resets:
                env.reset(seed=seed)
                for _ in range(3):
                    env.step(0)
        return [str(each.message) for each in caught if "were left" in str(each.message)]

    said = play(Impatient(make(500)), [None] * 6)
    assert len(said) == (emit == "terminal") and all("emit='terminal' was not paid" in each for each in said)
    assert not play(Impatient(make(3)), [None] * 6), "these are seen"
    assert not play(make(500), range(6)), "people who reset with seeds know what they do"


class Endless(Town):
    """As long as nobody outside ends it."""

    max_steps = None

    def step(self, action):
        obs, reward, _, _, info = super().step(action)
        return obs, reward, False, False, info


LIMITED = {
    "inside": lambda: FairnessScheme(TimeLimit(Endless(), 300), Scheme()),
    "deep inside": lambda: FairnessScheme(FairMDP(TimeLimit(Endless(), 300), FairnessSpec(notions=())), Scheme()),
    "of gym.make": lambda: FairnessScheme(gym.make("CartPole-v1", max_episode_steps=300), Scheme()),
    "of ours": lambda: gym.make("sb3_fair/Doughnut-v0", max_episode_steps=300, episode_length=1000),
}


@pytest.mark.parametrize("nesting", LIMITED)
def test_the_limit_of_steps_is_found_in_the_whole_stack(nesting):
    make = LIMITED[nesting]
    assert max_steps_of(make()) == max_steps_of(make_vec_env(make, 2)) == 300
    assert MemoryAugmentation(make()).memory.high.max() == 300
    model = sb3_fair.FairQCM("MlpPolicy", make(), learning_starts=10_000, seed=0)
    assert model.get_env().get_attr("memory")[0].high.max() == 300
    assert max_steps_of(Endless()) is max_steps_of(DummyVecEnv([Endless])) is None


@pytest.mark.parametrize("told", [np.inf, np.nan, "many", lambda: 5])
def test_what_is_no_finite_number_is_no_limit_of_steps(told):
    def make():
        env = Endless()
        env.max_steps = told
        return env

    assert max_steps_of(make()) is max_steps_of(DummyVecEnv([make])) is None
    assert MemoryAugmentation(TimeLimit(make(), 20)).memory.high.max() == 20


def test_the_registered_limits_are_those_of_the_worlds():
    for env_id in SINGLE:
        assert max_steps_of(gym.make(env_id)) == max_steps_of(sb3_fair.make_vec(env_id)), env_id


def test_a_wrapped_environment_still_pickles():
    env = pickle.loads(pickle.dumps(town()))
    env.reset(seed=0)
    assert env.step(0)[3] is False
