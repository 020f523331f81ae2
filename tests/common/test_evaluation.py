"""Does evaluation report complete episodes of any agent, and leave the world as it was?"""

import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from sb3_contrib import MaskablePPO
from scipy import stats
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

import sb3_fair
from sb3_fair import FPPO
from sb3_fair.common.evaluation import evaluate_vector, outcomes
from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.means import VecMeans
from sb3_fair.common.monitor import VectorMonitor
from sb3_fair.common.rollout import play, seeded, shares, twin
from sb3_fair.fairness.intervals import rate_and_interval
from sb3_fair.zoo.registry.rules import RuleAgent
from tests.models import Always
from tests.pcn.chain import Chain


class Fair(gym.Wrapper):
    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        info["fairness"] = {"SP": -0.5 if terminated else -0.1, "EO": None, "table": np.zeros(3)}
        return obs, reward, terminated, truncated, info


def chains(n=3, **kind):
    return DummyVecEnv([lambda: Chain(**kind) for _ in range(n)])


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("n_episodes", [1, 4, 7])
def test_exactly_so_many_episodes_are_shared_out(n, n_episodes):
    policy = evaluate_vector(Always(1), chains(n), n_episodes, name="right")
    assert policy.returns.tolist() == [[0, 3]] * n_episodes
    assert policy.lengths.tolist() == [3] * n_episodes
    assert (policy.name, policy.objectives) == ("right", ("left", "right"))
    assert sum(shares(n_episodes, n)) == n_episodes
    assert max(shares(n_episodes, n)) - min(shares(n_episodes, n)) <= 1


def test_short_episodes_are_not_preferred():
    """Whichever come first would be of mean length well below the true 1 + 0.5 + 0.25."""
    policy = evaluate_vector(Always(0), chains(50, early=0.5), 4_000)
    assert policy.length == pytest.approx(1.75, abs=0.05)


def test_the_last_figures_of_each_episode_are_kept():
    venv = DummyVecEnv([lambda: Fair(Chain()) for _ in range(2)])
    final = evaluate_vector(Always(0), venv, 3).final
    assert final["SP"].tolist() == [-0.5] * 3
    assert np.isnan(final["EO"]).all()
    assert set(final) == {"SP", "EO"}


class Sometimes(Chain):
    """Tells more after every other episode, the first or the second."""

    def __init__(self, first):
        super().__init__()
        self.tells = not first

    def reset(self, **options):
        self.tells = not self.tells
        return super().reset(**options)

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        told = {"gap": -0.25, "worst off": "Ann"}
        if self.tells:
            told["gap of newcomers"] = -0.5
            info |= {"chance": {"SP": 0.1}, "groups": {"": {"man": np.ones(8, int)}}}
        return obs, reward, terminated, truncated, {**info, "fairness": told}


@pytest.mark.parametrize("first", [True, False])
def test_figures_that_some_episodes_lack_are_unknown_there(first):
    policy = sb3_fair.evaluate(Always(1), DummyVecEnv([lambda: Sometimes(first)]), 2)
    assert set(policy.final) == {"gap", "mean_gap", "gap of newcomers", *["mean_gap of newcomers"] * first}
    for name in policy.final.keys() - {"gap", "mean_gap"}:
        np.testing.assert_array_equal(policy.final[name], [-0.5, np.nan] if first else [np.nan, -0.5])
    assert policy.chance == {"SP": 0.1}
    np.testing.assert_array_equal(policy.groups[""]["man"][:, 0], [1, 0] if first else [0, 1])


@pytest.mark.parametrize("order", [1, -1])
def test_means_of_copies_that_do_not_tell_figures_at_every_step(order):
    class Early(Chain):
        def step(self, action):
            *step, terminated, truncated, info = super().step(action)
            return *step, terminated, truncated, info if terminated else {**info, "fairness": {"gap": -self.t}}

    venv = VecMeans(DummyVecEnv([Early, Chain][::order]))
    venv.reset()
    for _ in range(6):
        _, _, dones, infos = venv.step(np.zeros(2, int))
        if dones.all():
            assert [info["fairness"]["mean_gap"] for info in infos][::order] == [-1.5, None]
    venv.step(np.zeros(2, int))
    venv.reset()
    for _ in range(3):
        _, _, _, infos = venv.step(np.zeros(2, int))
    assert [info["fairness"]["mean_gap"] for info in infos][::order] == [-1.5, None]
    wrong = VecMeans(DummyVecEnv([Early]), ["gaps"])
    wrong.reset()
    with pytest.raises(ValueError, match=r"figures in info\['fairness'\], got 'gaps' \(did you mean 'gap'"):
        wrong.step(np.zeros(1, int))


@pytest.mark.parametrize("algorithm", [PPO, DQN])
def test_sb3_models_are_evaluated_reproducibly(algorithm):
    model = algorithm("MlpPolicy", Chain(), seed=0, device="cpu")
    if algorithm is DQN:
        model.exploration_rate = 0.5
    one, two, other = (
        evaluate_vector(model, chains(noise=0.1), 6, deterministic=False, seed=seed).returns for seed in (0, 0, 1)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    sampled = [evaluate_vector(model, chains(), 6, deterministic=False, seed=seed).returns for seed in (0, 1)]
    assert not np.array_equal(*sampled)


def test_global_generators_are_put_back():
    legacy = np.random.mtrand._rand  # the global generator behind np.random, which SB3's DQN draws from
    legacy.seed(0), th.manual_seed(0)
    expected = legacy.rand(), th.rand(1)
    legacy.seed(0), th.manual_seed(0)
    with seeded(5):
        legacy.rand(9), th.rand(9)
    assert (legacy.rand(), th.rand(1)) == expected


def test_outcomes_know_their_copy():
    played = outcomes(Always(0), chains(3), np.array([1, 0, 2]))
    assert sorted(outcome.copy for outcome in played) == [0, 2, 2]


def test_copies_may_have_the_same_seed():
    one, same, other = outcomes(Always(0), chains(3, noise=1.0), np.ones(3, int), seeds=[5, 5, 6])
    assert np.array_equal(one.vector, same.vector)
    assert not np.array_equal(one.vector, other.vector)


def test_copies_that_are_done_go_on_without_counting():
    steps = list(play(chains(2), lambda obs, begins: np.zeros(2, int), np.array([1, 2])))
    assert [step.counts.tolist() for step in steps] == [[True, True]] * 3 + [[False, True]] * 3


def test_agents_hear_when_an_episode_begins():
    heard = []
    list(play(chains(2), lambda obs, begins: heard.append(begins.tolist()) or np.zeros(2, int), np.array([2, 1])))
    assert heard == [[True] * 2, [False] * 2, [False] * 2] * 2


def test_a_twin_goes_its_own_way(tmp_path):
    venv = VectorMonitor(VecNormalize(VecMonitor(chains(2, noise=1.0), str(tmp_path / "log"))))
    venv.seed(0)
    venv.reset()
    for _ in range(3):
        venv.step(np.zeros(2, int))
    other = twin(venv)
    before = venv.venv.obs_rms.mean.copy()
    one, same = venv.step(np.ones(2, int)), other.step(np.ones(2, int))
    np.testing.assert_allclose(one[3][0]["vector_reward"], same[3][0]["vector_reward"])
    for _ in range(5):
        other.step(np.ones(2, int))
    assert np.array_equal(other.venv.obs_rms.mean, before)
    assert other.unwrapped is not venv.unwrapped
    assert len((tmp_path / "log.monitor.csv").read_text().splitlines()) == 4
    venv.close()


def test_wrong_numbers_of_episodes_and_scalar_envs_are_refused():
    with pytest.raises(ValueError, match="n_eval_episodes must be a positive integer, got 0"):
        evaluate_vector(Always(0), chains(), 0)
    with pytest.raises(ValueError, match="env must have a vector reward"):
        evaluate_vector(Always(0), DummyVecEnv([lambda: gym.make("CartPole-v1")]), 1)


def test_histories_that_outlive_episodes_are_emptied_first():
    class Carrying(VectorMonitor):
        forgotten = 0

        def forget_history(self):
            self.forgotten += 1

    venv = Carrying(chains(2))
    evaluate_vector(Always(0), venv, 4)
    assert venv.forgotten == 1


def test_a_policy_says_in_a_line_what_it_is_worth():
    policy = EvaluatedPolicy("PCN 3", ("R", "SP"), np.array([[12.0, -0.25], [13.0, 0.0]]), np.array([5.0, 6.0]))
    assert repr(policy) == "<PCN 3: R=12.5, SP=-0.125; 2 episodes>"


SMALL = "sb3_fair/JobHiring-Small-v0"
SHORT = {"team_size": 4, "episode_length": 12}


def reject(observation):
    return 0


def test_any_policy_is_evaluated_in_any_environment():
    asked = {"objectives": ("R", "SP"), **SHORT}
    rule = sb3_fair.evaluate("reject-all", SMALL, 5, seed=3, name="reject all", **asked)
    model = DQN("MlpPolicy", sb3_fair.make_vec(SMALL, **SHORT), seed=0, device="cpu")
    others = [
        sb3_fair.evaluate(reject, SMALL, 5, seed=3, **asked),
        sb3_fair.evaluate(Always(0), sb3_fair.make_vec(SMALL, n_envs=5, monitor=False, **asked), 5, seed=3),
        sb3_fair.evaluate(reject, gym.make(SMALL, **asked), 5, seed=3),
    ]
    for other in others[:2]:
        for name, values in rule.table().items():
            np.testing.assert_array_equal(values, other.table()[name], name)
    assert others[2].lengths.tolist() == [12] * 5
    found = sb3_fair.evaluate(model, SMALL, 4, audit=("SP", "IF"), **SHORT)
    assert found.probabilities == "policy" and found.objectives == ("R",)
    table = found.table()
    assert {"length", "return R", "SP", "IF", "mean_SP", "man: decisions", "woman: favourable rate"} <= set(table)
    assert all(len(column) == 4 for column in table.values())
    np.testing.assert_array_equal(table["man: decisions"] + table["woman: decisions"], table["length"])
    assert found.summary()["return R"].mean == pytest.approx(table["return R"].mean())


class Blocked(Chain):
    def action_masks(self):
        return np.array([False, True, False])


def test_models_that_take_action_masks_take_no_blocked_action():
    model = MaskablePPO("MlpPolicy", DummyVecEnv([Blocked]), seed=0, device="cpu")
    found = sb3_fair.evaluate(model, DummyVecEnv([Blocked] * 3), 12, deterministic=False)
    assert found.returns.tolist() == [[0, 3]] * 12
    assert sb3_fair.evaluate(model, chains(), 12, deterministic=False).returns[:, 0].any()


def test_rewards_of_plain_environments_are_returns():
    found = sb3_fair.evaluate(lambda observation: int(observation[2] > 0), gym.make("CartPole-v1"), 3)
    np.testing.assert_array_equal(found.table()["return R"], found.lengths)


class Silent(Chain):
    def step(self, action):
        return *super().step(action)[:4], {}


@pytest.mark.parametrize("order", [1, -1])
def test_vector_rewards_of_some_copies_alone_are_refused(order):
    venv = DummyVecEnv([Chain, Silent][::order])
    with pytest.raises(ValueError, match="env must have a vector reward"):
        evaluate_vector(Always(1), venv, 2, scalar=True)


def test_an_id_that_only_gymnasium_knows_has_returns_alone():
    def policy(observation):
        return int(observation[2] > 0)

    found = sb3_fair.evaluate(policy, "CartPole-v1", 3, seed=5, n_envs=1, sutton_barto_reward=True)
    assert not found.final and found.objectives == ("R",)
    assert found.returns[:, 0].tolist() == [-1] * 3
    np.testing.assert_array_equal(found.lengths, sb3_fair.evaluate(policy, gym.make("CartPole-v1"), 3, seed=5).lengths)


def test_undefined_objectives_are_warned_of_once_and_only_if_asked_for():
    """Predictive parity compares those who are hired."""
    with pytest.warns(
        UserWarning, match="PP was undefined at the end of 5 of 5 episodes, which tables and summary"
    ) as told:
        found = sb3_fair.evaluate(reject, SMALL, 5, objectives=("R", "PP"), **SHORT)
    assert len(told) == 1 and found.mean[1] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3_fair.evaluate(reject, SMALL, 5, objectives=("R", "SP"), audit=("PP",), **SHORT)
        sb3_fair.evaluate(reject, Fair(Chain()), 1)


def test_array_rewards_are_vector_returns():
    found = sb3_fair.evaluate(lambda observation: 1, Chain(array=True), 2)
    assert (found.objectives, found.returns.tolist()) == (("left", "right"), [[0, 3]] * 2)


def test_observations_have_the_scale_of_training_whatever_normalises_them():
    def carts():
        return DummyVecEnv([lambda: gym.make("CartPole-v1")] * 2)

    trained, other = VecNormalize(carts()), VecNormalize(carts(), clip_obs=0.1)
    model = PPO("MlpPolicy", trained, n_steps=64, batch_size=128, n_epochs=1, seed=0, device="cpu").learn(128)
    predict, seen = model.predict, []
    model.predict = lambda observation, **given: seen.append(observation) or predict(observation, **given)
    scales = [(venv, vars(venv).copy(), venv.obs_rms.mean.copy()) for venv in (trained, other)]
    tables = []
    for env in (carts(), trained, model.get_env(), VecMonitor(other)):
        seen.clear()
        found = sb3_fair.evaluate(model, env, 4, seed=3)
        np.testing.assert_array_equal(found.returns[:, 0], found.lengths)
        tables.append(np.concatenate(seen))
    raw = carts()
    raw.seed(3)
    np.testing.assert_array_equal(tables[0][:2], trained.normalize_obs(raw.reset()))
    for table in tables[1:]:
        np.testing.assert_array_equal(table, tables[0])
    for venv, before, mean in scales:
        assert all(vars(venv)[name] is before[name] for name in ("training", "norm_reward", "clip_obs", "obs_rms"))
        np.testing.assert_array_equal(venv.obs_rms.mean, mean)
    with pytest.raises(ValueError, match="env must have observations as the policy was trained on"):
        sb3_fair.evaluate(model, VecNormalize(chains()), 1)


def test_a_policy_stays_bound_to_its_environments():
    model = FPPO("MlpPolicy", lenders(), n_steps=8, batch_size=16, seed=0, device="cpu")
    bound = model.bind(lenders())
    rule = RuleAgent("random", bound, seed=0)
    for policy in (model, rule):
        sb3_fair.evaluate(policy, lenders(), 2)
    assert model._bound is bound and rule.venv is bound


def lenders():
    return sb3_fair.make_vec("sb3_fair/Lending-v0", n_envs=2, episode_length=5)


def test_group_counts_are_saved_and_damaged_ones_refused():
    found = sb3_fair.evaluate("random", SMALL, 3, audit=("SP",), **SHORT)
    again = EvaluatedPolicy.from_dict(found.to_dict())
    np.testing.assert_array_equal(again.groups[""]["man"], found.groups[""]["man"])
    content = found.to_dict()
    content["groups"][""]["man"] = [[1, 2]]
    with pytest.raises(ValueError, match="groups man must have the shape"):
        EvaluatedPolicy.from_dict(content)


def test_groups_stand_in_the_order_of_their_names_whoever_came_first():
    found = [sb3_fair.evaluate("random", SMALL, 1, seed, audit=("SP",), **SHORT).groups[""] for seed in range(4)]
    assert {tuple(groups) for groups in found} == {("man", "woman")}


def test_what_cannot_be_evaluated_is_refused():
    with pytest.raises(ValueError, match="n_episodes must be"):
        sb3_fair.evaluate(reject, SMALL, 0)
    with pytest.raises(ValueError, match="env must have an end"):
        sb3_fair.evaluate("random", "sb3_fair/AttentionAllocation-Discrete-v0", 1, episode_length=None)
    with pytest.raises(ValueError, match="env_kwargs must be left out"):
        sb3_fair.evaluate(reject, gym.make(SMALL), 1, audit=("SP",))


def test_intervals_of_rates_are_over_episodes():
    hits, people = np.array([1.0, 4.0, 0.0]), np.array([10.0, 20.0, 10.0])
    rate, low, high = rate_and_interval(hits, people)
    off, n = (hits - 0.125 * people) / 40, 40**2 / 600
    half = stats.t.ppf(0.975, n - 1) * np.sqrt((off @ off) * n / (n - 1))
    assert (rate, low, high) == pytest.approx((0.125, 0.125 - half, 0.125 + half))
    assert rate_and_interval([1, 4, 0, 0], [10, 20, 10, 0]) == pytest.approx((rate, low, high)), "nobody tells nothing"
    same = rate_and_interval([2.0, 4.0], [4.0, 8.0])
    assert (same.low, same.high) == (0.5, 0.5)
