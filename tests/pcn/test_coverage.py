"""Does the coverage set show all that PCN has learned?"""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_fair.common.pareto import hypervolume, nondominated
from sb3_fair.pcn import PCN, coverage
from sb3_fair.pcn.buffer import Episode, EpisodeBuffer
from sb3_fair.wrappers import Scalarise
from tests.pcn.chain import Chain
from tests.pcn.models import chains, model_on
from tests.wrappers.bank import Counting


class Tree(gym.Env):
    """A binary tree with a fruit at each leaf, whose nutrients none of the other fruits has: the front has them all.

    :param depth: decisions per episode, left or right
    :param k: nutrients
    """

    def __init__(self, depth=5, k=4):
        fruits = np.random.default_rng(0).random((2**depth, k))
        self.fruits = fruits / np.linalg.norm(fruits, axis=1, keepdims=True)
        self.depth = depth
        self.observation_space = spaces.Box(0, 2**depth, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.objective_names = tuple("ABCDEF"[:k])

    def _obs(self):
        return np.array([self.row, self.place], dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.row = self.place = 0
        return self._obs(), {}

    def step(self, action):
        self.row, self.place = self.row + 1, 2 * self.place + int(action)
        done = self.row == self.depth
        vector = self.fruits[self.place] if done else np.zeros(self.fruits.shape[1])
        return self._obs(), 0.0, done, False, {"vector_reward": vector}


@pytest.fixture(scope="module")
def grown():
    venv = make_vec_env(Tree, 10)
    return PCN("MlpPolicy", venv, seed=0, eval_freq=0, learning_rate=5e-3, device="cpu").learn(5_000)


def rounded(points):
    return {tuple(point) for point in np.round(points, 6)}


def test_nothing_is_known_before_the_first_episode():
    assert PCN("MlpPolicy", Tree(), device="cpu").buffer_points().shape == (0, 4)


def test_every_command_of_a_large_front_comes_back(grown):
    """Of 32 returns a limit of 25 commands hides seven."""
    known = rounded(Tree().fruits)
    assert nondominated(Tree().fruits).all() and len(known) == 32
    assert rounded(grown.buffer_points()) == known
    assert rounded(grown.coverage_set(1, deterministic=True).means) == known
    assert known <= rounded(grown.coverage_set(3).means)
    assert len(grown.coverage_set(1, deterministic=True, n_commands=25)) <= 25
    with pytest.raises(ValueError, match="n_commands must be a positive integer or None, got 0"):
        grown.coverage_set(n_commands=0)


def test_a_saved_model_has_the_same_coverage_set(grown, tmp_path):
    grown.save(tmp_path / "model")
    loaded = PCN.load(tmp_path / "model", make_vec_env(Tree, 10), device="cpu")
    for way in (True, False):
        first, again = grown.coverage_set(2, way), loaded.coverage_set(2, way)
        np.testing.assert_array_equal(first.means, again.means)
    assert th.equal(loaded.policy.command_scale, grown.policy.command_scale)


def test_more_commands_than_the_limit_are_said_to_be_left_out(grown, monkeypatch):
    monkeypatch.setattr(coverage, "MOST", 30)
    with pytest.warns(UserWarning, match="32 commands are not dominated, of which the 30 least crowded are tried"):
        assert len(coverage.evaluated(grown, 1, True, None, None)) == 30
    assert len(coverage.evaluated(grown, 1, True, 1_000, None)) == 32


def test_any_evaluation_env_is_seen_on_the_scale_of_training():
    model = model_on(VecNormalize(chains(2))).learn(60)
    predict, seen = model.predict, []
    model.predict = lambda shown, **given: seen.append(shown["observation"]) or predict(shown, **given)
    model.coverage_set(2, n_commands=2)
    expected = seen.copy()
    for eval_env in (chains(2), VecNormalize(chains(2)), model.get_env()):
        seen.clear()
        model.coverage_set(2, n_commands=2, eval_env=eval_env)
        np.testing.assert_array_equal(seen, expected)


class Lucky(Counting):
    """Action 1 wins both objectives with probability 1/10, else nothing; action 0 half of both for sure."""

    def step(self, action):
        gain = float(self.np_random.random() < 0.1) if action else 0.5
        return np.zeros(1, np.float32), gain, True, False, {"vector_reward": np.full(2, gain)}


def test_a_lucky_episode_does_not_hide_what_can_be_relied_upon():
    venv = DummyVecEnv([Lucky])
    model = PCN("MlpPolicy", venv, n_episodes=1, seed=0, eval_freq=0, n_updates=200, learning_rate=1e-2, device="cpu")
    model.learn(60)
    assert rounded(model.buffer_points()) == {(1.0, 1.0)}
    assert len(coverage.evaluated(model, 1, True, 10, None)) == 1
    asked = {tuple(policy.command.desired_return) for policy in coverage.evaluated(model, 1, True, None, None)}
    assert (0.5, 0.5) in asked
    assert model.coverage_set(20, deterministic=True)[0].mean.tolist() == [0.5, 0.5]


def test_other_returns_are_tried_before_the_same_one_in_other_numbers_of_steps(monkeypatch):
    monkeypatch.setattr(coverage, "FEW", 3)
    model = PCN("MlpPolicy", Lucky(), eval_freq=0, device="cpu")
    for gain, length in ((1.0, 4), (1.0, 2), (1.0, 3), (0.5, 1), (0.5, 5)):
        shown = {"observation": np.zeros((length, 1), np.float32)}
        model.buffer.add(Episode(shown, np.zeros(length, int), np.full((length, 2), gain / length)))
    asked = model.buffer.points[:, 0].round(6), model.buffer.lengths
    assert [(asked[0][slot], asked[1][slot]) for slot in coverage._promising(model, None)] == [(1, 2), (0.5, 1), (1, 4)]


def test_the_way_of_acting_is_what_reaches_more():
    """Where a network has learned little, one command is reached by the most probable actions, the next by chance."""
    model = PCN("MlpPolicy", make_vec_env(Tree, 10), seed=0, n_updates=5, eval_freq=0, device="cpu").learn(1_000)
    volumes = [hypervolume(model.coverage_set(5, way).means, np.zeros(4)) for way in (True, False)]
    both = model.coverage_set(5)
    assert {policy.deterministic for policy in both} == {True, False}
    assert hypervolume(both.means, np.zeros(4)) > max(volumes)


@pytest.mark.parametrize(
    ("told", "in_training", "at_the_end"), [(None, {True}, 2), (False, {False}, 1), ("both", {True, False}, 2)]
)
def test_training_evaluates_one_way_and_the_coverage_set_both_unless_told(told, in_training, at_the_end):
    model = PCN(
        "MlpPolicy", Chain(noise=0.3), seed=0, n_updates=2, eval_freq=0.5, eval_deterministic=told, device="cpu"
    )
    model.learn(200)
    assert {policy.deterministic for _, front in model.evaluations for policy in front} <= in_training
    ways = [policy.deterministic for policy in coverage.evaluated(model, 1, None, 3, None)]
    assert len(set(ways)) == at_the_end and len(ways) == 3 * at_the_end


def test_evaluations_log_the_best_and_how_far_commands_were_missed():
    model = model_on(chains(2, noise=0.3), scaling_floor={"left": 100.0}, eval_deterministic=False).learn(200)
    coverage.evaluate_in_training(model)
    policies = coverage.evaluated(model, model.n_eval_episodes, False, model.n_eval_commands, None)
    reached, aims = (np.array([getattr(policy, name) for policy in policies]) for name in ("mean", "aim"))
    missed = np.abs(reached - aims) / [100.0, np.ptp(aims[:, 1])]
    logs = model.logger.name_to_value
    assert [logs["eval/best_left"], logs["eval/best_right"]] == reached.max(axis=0).tolist()
    assert logs["eval/epsilon_mean"] == pytest.approx(missed.max(axis=1).mean())
    assert logs["eval/epsilon_max"] == pytest.approx(missed.max())
    assert logs["eval/hypervolume"] == pytest.approx(hypervolume(reached, model.ref_point))


def test_equal_returns_are_listed_once_as_most_probable(grown):
    front = grown.coverage_set(1)
    assert len(rounded(front.means)) == len(front)
    assert sum(policy.deterministic for policy in front) == 32


def test_copies_play_side_by_side_as_one_would(grown, monkeypatch):
    model = PCN("MlpPolicy", Chain(noise=0.3), seed=0, n_updates=2, eval_freq=0, device="cpu").learn(200)
    many = model.coverage_set(3, deterministic=True)
    monkeypatch.setattr(coverage, "COPIES", 1)
    np.testing.assert_array_equal(many.means, model.coverage_set(3, deterministic=True).means)


def test_the_spread_of_commands_is_that_of_what_training_draws():
    buffer = EpisodeBuffer(5, np.arange(2), np.ones(2), np.zeros(2, dtype=bool))
    rng = np.random.default_rng(0)
    for length in (2, 30, 7):
        buffer.add(Episode({"x": np.zeros((length, 1))}, np.zeros(length, dtype=int), rng.normal(size=(length, 2))))
    batch = buffer.sample(200_000, rng)
    drawn = np.column_stack([batch.returns, batch.horizons]).std(axis=0)
    np.testing.assert_allclose(buffer.spread(), drawn, rtol=0.01)


def test_commands_are_scaled_as_episodes_get_better():
    model = PCN("MlpPolicy", Chain(), seed=0, n_updates=1, eval_freq=0, scaling_floor=1e-3, device="cpu").learn(300)
    before = model.buffer.spread()
    model.train()
    np.testing.assert_allclose(model.policy.command_scale, 3 / before, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_fruit_tree_is_learned_to_98_percent_of_its_hypervolume(seed):
    mo_gymnasium = pytest.importorskip("mo_gymnasium")

    def make():
        return Scalarise(mo_gymnasium.make("fruit-tree-v0"), np.ones(6))

    model = PCN("MlpPolicy", DummyVecEnv([make] * 10), seed=seed, eval_freq=0, device="cpu").learn(20_000)
    optimum = hypervolume(make().unwrapped.pareto_front(gamma=1.0), [-0.01] * 6)
    front = model.coverage_set(1, deterministic=True)
    assert hypervolume(front.means, [-0.01] * 6) >= 0.98 * optimum
