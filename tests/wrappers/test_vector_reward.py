"""Is the vector what the three ways of emission say, in single and in batched form?"""

import warnings

import gymnasium as gym
import mo_gymnasium.wrappers as mo
import numpy as np
import pytest
from gymnasium.wrappers import ClipReward, TimeLimit
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_fair.wrappers import Scalarise, VecScalarise, VectorReward, VecVectorReward
from sb3_fair.wrappers.scalarise import Chebyshev
from tests.wrappers.bank import Counting

LEVELS = [None, -1.0, -0.5, 0.0, -2 / 3, -0.5]
EMITTED = {
    "level": [0, -1, -0.5, 0, -2 / 3, -0.5],
    "difference": [0, -1, 0.5, 0.5, -2 / 3, 1 / 6],
    "terminal": [0, 0, 0, 0, 0, -0.5],
}


class Told(Counting):
    """Publishes the given fairness figures one after another; rewards 1, 2, 3, ..."""

    fairness_names = ("SP",)
    max_return = 21.0

    def __init__(self, levels=LEVELS, reset_on_episode=True):
        self.levels, self.reset_on_episode = levels, reset_on_episode

    def step(self, action):
        fairness = {"SP": self.levels[self.t], "d_s": 0.25}
        self.t += 1
        return np.zeros(1, np.float32), float(self.t), False, self.t == len(self.levels), {"fairness": fairness}


def test_disparities_need_measures():
    env = VectorReward(Told(levels=[None]), objectives=("R", "d_l"))
    env.reset()
    with pytest.raises(ValueError, match=r"objectives must be what env measures, \['SP', 'd_s'\], got 'd_l'"):
        env.step(0)


def test_an_infinite_reward_does_not_spoil_the_next_one():
    env = VectorReward(Told(), objectives=("R", "SP"), emit="difference")
    env.reset()
    plain = env.env.step

    def lost(action):
        obs, _, *rest = plain(action)
        return obs, -np.inf, *rest

    env.env.step = lost
    env.step(0)
    env.env.step = plain
    assert np.isfinite(env.step(0)[4]["vector_reward"]).all()


def test_resets_without_a_step_are_no_episodes():
    env = VectorReward(Told(levels=[None] * 3), objectives=("R", "SP"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(30):
            env.reset()


def episode(env):
    """Vectors and rewards of one episode."""
    env.reset()
    vectors, rewards, over = [], [], False
    while not over:
        _, reward, _, over, info = env.step(0)
        vectors.append(info["vector_reward"])
        rewards.append(reward)
    return np.array(vectors), np.array(rewards)


@pytest.mark.parametrize("emit", EMITTED)
def test_emission_in_consecutive_episodes(emit):
    env = VectorReward(Told(), ("R", "SP"), emit=emit)
    for _ in range(2):
        vectors, rewards = episode(env)
        np.testing.assert_allclose(vectors[:, 0], [1, 2, 3, 4, 5, 6])
        np.testing.assert_allclose(vectors[:, 1], EMITTED[emit])
        np.testing.assert_array_equal(rewards, vectors[:, 0])


def test_a_carried_over_history_continues_from_its_last_value():
    env = VectorReward(Told(reset_on_episode=False), ("SP",), emit="difference")
    episode(env)
    vectors, _ = episode(env)
    np.testing.assert_allclose(vectors[:2, 0], [0.5, -1.0])


def test_a_carried_over_history_can_be_forgotten():
    env = VectorReward(Told(reset_on_episode=False), ("SP",), emit="difference")
    venv = VecVectorReward(DummyVecEnv([lambda: Told(reset_on_episode=False)]), ("SP",), emit="difference")
    venv.reset()
    for _ in LEVELS:
        venv.step([0])
    for one in (env, venv):
        one.forget_history()
    assert episode(env)[0][0] == 0
    assert venv.step([0])[3][0]["vector_reward"] == 0


def test_undefined_is_replaced_and_disparities_are_negated():
    vectors, _ = episode(VectorReward(Told(), ("SP", "d_s"), undefined=-1.0))
    np.testing.assert_allclose(vectors[0], [-1.0, -0.25])


@pytest.mark.parametrize(
    ("emit", "low", "high", "max_return"),
    [("level", -1, 0, 0), ("difference", -1, 1, 1), ("terminal", -1, 0, 0)],
)
def test_bounds_of_the_vector(emit, low, high, max_return):
    env = VectorReward(Told(), ("R", "SP"), emit=emit)
    assert (env.reward_space.low[1], env.reward_space.high[1]) == (low, high)
    np.testing.assert_array_equal(env.max_return, [21.0, max_return])
    assert env.reward_dim == 2 and env.objective_names == ("R", "SP")
    individual = Told()
    individual.fairness_names = ("IF",)
    env = VectorReward(individual, ("IF",), emit=emit)
    assert (env.reward_space.low, env.reward_space.high, env.max_return) == (2 * low, 2 * high, 2 * max_return)


def test_the_batched_twin_answers_for_its_attributes():
    venv = VecVectorReward(DummyVecEnv([Told, Told]), ("R", "SP"))
    assert venv.get_attr("objective_names") == [("R", "SP")] * 2
    np.testing.assert_array_equal(venv.get_attr("max_return")[0], [21.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objectives": ("R", "SPP")}, "objectives must be among .*'SPP'.*did you mean 'SP'"),
        ({"objectives": ("R", "w1")}, r"objectives must be among \('R', 'SP'\) or disparities \(d_...\), got 'w1'"),
        ({"objectives": ("R", "R")}, "none of them twice"),
        ({"objectives": ()}, "at least one objective"),
        ({"objectives": ("R",), "emit": "sum"}, "emit must be one of .*'sum'"),
        ({"objectives": ("R",), "undefined": float("nan")}, "undefined must be a finite number"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        VectorReward(Told(), **arguments)


def test_a_string_is_no_sequence_of_objectives():
    with pytest.raises(ValueError, match="objectives must be a sequence"):
        VectorReward(Told(), "SP")


def test_mo_gymnasium_wrappers_take_the_vector():
    env = VectorReward(Told(), ("R", "SP"), vector=True)
    env.reset()
    reward = env.step(0)[1]
    assert isinstance(reward, np.ndarray) and reward.shape == env.unwrapped.reward_space.shape
    statistics = mo.MORecordEpisodeStatistics(VectorReward(Told(), ("R", "SP"), vector=True))
    statistics.reset()
    for _ in LEVELS:
        *_, info = statistics.step(0)
    np.testing.assert_allclose(info["episode"]["r"], [21, sum(EMITTED["level"])], rtol=1e-6)
    linear = mo.LinearReward(VectorReward(Told(), ("R", "SP"), vector=True), weight=np.array([1.0, 2.0]))
    linear.reset()
    linear.step(0)
    assert linear.step(0)[1] == 0.0
    normalised = mo.MONormalizeReward(mo.MOClipReward(env, 0, -1, 1), 1)
    normalised.reset()
    assert normalised.step(0)[1][0] == 1.0


def test_weights_make_one_number():
    vectors, rewards = episode(Scalarise(VectorReward(Told(), ("R", "SP")), (1, 10)))
    np.testing.assert_allclose(rewards, vectors @ [1, 10])
    venv = VecScalarise(VecVectorReward(DummyVecEnv([Told]), ("R", "SP")), (1, 0.1))
    venv.reset()
    assert [venv.step([0])[1].item() for _ in range(2)] == [1.0, 1.9]  # not rounded to float32


def test_weights_are_those_of_the_moment_they_were_given():
    weights, ideal = np.array([1.0, 10.0]), np.array([30.0, 0.0])
    env = Scalarise(VectorReward(Told(), ("R", "SP")), weights)
    venv = VecScalarise(VecVectorReward(DummyVecEnv([Told]), ("R", "SP")), weights)
    chebyshev = Chebyshev(weights, ideal)
    weights[:] = ideal[:] = 0
    vectors, rewards = episode(env)
    np.testing.assert_allclose(rewards, vectors @ [1, 10])
    venv.reset()
    np.testing.assert_allclose([venv.step([0])[1].item() for _ in range(2)], rewards[:2])
    assert chebyshev == Chebyshev((1, 10), (30, 0)) and chebyshev(np.array([1.0, 0.0])) == -29


def test_performance_is_the_default_and_must_be_there():
    _, rewards = episode(Scalarise(VectorReward(Told(), ("SP", "R"))))
    np.testing.assert_allclose(rewards, [1, 2, 3, 4, 5, 6])
    with pytest.raises(ValueError, match="'R' is not among"):
        Scalarise(VectorReward(Told(), ("SP",)))


def test_a_function_of_the_return_telescopes():
    chebyshev = Chebyshev((1, 5), ideal=(30, 0))
    env = Scalarise(VectorReward(Told(), ("R", "SP")), chebyshev)
    for _ in range(2):
        vectors, rewards = episode(env)
        assert sum(rewards) == pytest.approx(chebyshev(vectors.sum(axis=0)) - chebyshev(np.zeros(2)))
    _, rewards = episode(Scalarise(VectorReward(Told(), ("R", "SP")), chebyshev, on="step"))
    np.testing.assert_allclose(rewards, chebyshev(vectors))


def least_in_place(vectors):
    vectors.sort(axis=-1)
    return vectors[..., 0]


def test_a_function_that_sorts_in_place_leaves_the_vectors_as_they_are():
    env = VectorReward(Told(), ("R", "SP"))
    vectors, rewards = episode(Scalarise(env, least_in_place))
    expected, same = episode(Scalarise(env, lambda v: v.min(axis=-1)))
    np.testing.assert_array_equal(vectors, expected)
    np.testing.assert_array_equal(rewards, same)


@pytest.mark.parametrize("weights", [(1,), (1, float("nan")), lambda v: v])
def test_weights_must_fit_the_objectives(weights):
    with pytest.raises(ValueError, match="weights"):
        Scalarise(VectorReward(Told(), ("R", "SP")), weights)


@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("weights", [lambda v: v[0] + 5 * v[1], lambda v: v[0] + 30 * min(v[1], -0.1)])
def test_a_function_must_take_the_vectors_of_all_copies(weights, n_envs):
    vectors = VecVectorReward(DummyVecEnv([Told] * n_envs), ("R", "SP"))
    with pytest.raises(ValueError, match=r"weights as a function must map \(..., 2\) to \(...\), as lambda v"):
        VecScalarise(vectors, weights)


def test_rewards_normalised_inside_would_be_lost():
    vectors = VecVectorReward(DummyVecEnv([Told]), ("R", "SP"))
    with pytest.raises(ValueError, match="put VecNormalize around VecScalarise"):
        VecScalarise(VecNormalize(vectors))
    assert VecNormalize(VecScalarise(VecNormalize(vectors, norm_reward=False))).num_envs == 1
    with pytest.raises(ValueError, match="put ClipReward around Scalarise"):
        Scalarise(TimeLimit(ClipReward(VectorReward(Told(), ("R", "SP")), -1, 1), 3))


def test_rewards_normalised_before_they_are_in_the_vector_are_not_lost():
    env = Scalarise(VectorReward(ClipReward(Told(), -1, 0.5), ("R", "SP")))
    env.reset()
    assert env.step(0)[1] == 0.5
    venv = VecScalarise(VecMonitor(VecVectorReward(VecNormalize(DummyVecEnv([Told]), clip_reward=0.25), ("R", "SP"))))
    venv.reset()
    assert venv.step([0])[1] == 0.25


def test_wrappers_of_mo_gymnasium_around_a_vector_count():
    env = Scalarise(mo.MOClipReward(VectorReward(Told(), ("R", "SP"), vector=True), 0, -1, 0.5))
    env.reset()
    assert env.step(0)[1] == 0.5


def test_a_scalar_env_cannot_be_scalarised():
    with pytest.raises(ValueError, match="vector reward"):
        Scalarise(Told())


def test_an_array_reward_is_taken_where_it_is():
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    env = Scalarise(mo_gymnasium.make("deep-sea-treasure-v0"), weights=(1.0, 0.5))
    env.reset(seed=0)
    _, reward, _, _, info = env.step(1)
    assert reward == pytest.approx(info["vector_reward"] @ [1.0, 0.5])
    even = Scalarise(mo_gymnasium.make("deep-sea-treasure-v0"))
    even.reset(seed=0)
    assert even.step(1)[1] == pytest.approx(info["vector_reward"].mean())


def test_an_array_reward_is_no_performance():
    array = gym.wrappers.TransformReward(Told(), lambda reward: np.array([reward, 0.5]))
    array.reward_space = gym.spaces.Box(0, 9, (2,))
    for env, objectives in ((array, ("SP",)), (Scalarise(array, (1.0, 2.0)), ("R", "SP"))):
        rewarded = VectorReward(env, objectives)
        rewarded.reset()
        assert rewarded.step(0)[4]["vector_reward"][0] == (2.0 if "R" in objectives else 0.0)
    for objectives in (("R",), ("R", "SP")):
        rewarded = VectorReward(array, objectives)
        rewarded.reset()
        with pytest.raises(ValueError, match=r"R must be one number per step, got .* \[1\.  0\.5\]: use Scalarise"):
            rewarded.step(0)


@pytest.mark.parametrize("vec", [False, True])
def test_an_objective_that_is_never_defined_is_told_once(vec):
    def play(levels, episodes):
        env = VecVectorReward(DummyVecEnv([lambda: Told(levels)] * 2), ("R", "SP")) if vec else Told(levels)
        env = env if vec else VectorReward(env, ("R", "SP"))
        env.reset()
        for _ in range(episodes * len(levels)):
            if vec:
                env.step([0, 0])
            elif env.step(0)[3]:
                env.reset()

    with pytest.warns(UserWarning, match="SP was undefined in every step of 10 episodes, and counted as 0") as told:
        play([None] * 3, 40)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play([None] * 3, 5)
        play([None, None, -0.5], 40)


def test_what_is_no_fairness_mdp_has_no_notions():
    with pytest.raises(
        ValueError, match=r"objectives must be among \('R',\) or disparities .*, got 'SP': make env a fairness MDP"
    ):
        VectorReward(gym.make("CartPole-v1"), ("R", "SP"))


@pytest.mark.parametrize("carried_over", [False, True])
def test_differences_of_disparities_begin_anew_with_each_episode(carried_over):
    settings = {"objectives": ("R", "d_s"), "emit": "difference", "episode_length": 3}
    env = gym.make("sb3_fair/EpidemicControl-v0", reset_on_episode=not carried_over, **settings)
    env.reset(seed=0)
    for _ in range(4):
        env.reset()
        steps = [env.step(index)[4] for index in range(3)]
        total = sum(info["vector_reward"][1] for info in steps)
        assert total == pytest.approx(-steps[-1]["fairness"]["d_s"])
