"""Does the constrained baseline meet its limit, and is it PPO where nothing is constrained?"""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import SubprocVecEnv

from sb3_fair.common.columns import ColumnDictRolloutBuffer
from sb3_fair.f_ppo.constrained import PPOLagrangian, lagrangian
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import VecFairMDP

ACTIONS = {
    "Discrete": spaces.Discrete(2),
    "MultiDiscrete": spaces.MultiDiscrete([2, 2]),
    "Box": spaces.Box(0.0, 1.0, (1,), np.float32),
}
SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "seed": 0, "device": "cpu"}


def mood_group(obs, info):
    return int(obs[0] > 0.5)


class Greed(gym.Env):
    """Taking brings ``pay`` and harms as much as was taken, 0 to 1; nobody is as well off as those who take it all."""

    def __init__(self, actions="Discrete", keyed=False, terminates=False, pay=1.0, measured=True):
        self.action_space = ACTIONS[actions]
        box = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict({"day": spaces.Discrete(8), "mood": box}) if keyed else box
        self.terminates, self.pay = terminates, pay
        measures = SimpleNamespace(short_term="harm") if measured else None
        self.fairness_spec = FairnessSpec(group=mood_group, measures=measures)

    def _seen(self):
        mood = self.np_random.random(2, dtype=np.float32)
        return {"day": self.day % 8, "mood": mood} if isinstance(self.observation_space, spaces.Dict) else mood

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.day = 0
        return self._seen(), {}

    def step(self, action):
        self.day += 1
        taken = float(np.mean(action))
        over = self.day == 8
        info = {"fairness": {"harm": taken, "SP": -taken, "double": 2 * taken}}
        info["fairness"]["sometimes"] = None if self.day % 2 else taken
        return self._seen(), self.pay * taken, over and self.terminates, over and not self.terminates, info


def greed(n=4, vec_env_cls=None, seed=0, **arguments):
    return make_vec_env(Greed, n_envs=n, seed=seed, env_kwargs=arguments, vec_env_cls=vec_env_cls)


def weights(model):
    return {name: value.clone() for name, value in model.policy.state_dict().items()}


def same(one, other):
    return all(th.equal(one[name], other[name]) for name in one)


class Rows(Logger):
    """Keeps every row of the log."""

    def __init__(self):
        super().__init__(None, [])
        self.rows = []

    def dump(self, step=0):
        self.rows.append(dict(self.name_to_value))
        super().dump(step)


def logged(model, steps):
    rows = Rows()
    model.set_logger(rows)
    model.learn(steps)
    return rows.rows


# -------------------------------------------------------------------- the formula


def test_cost_advantages_are_centred_by_their_own_mean():
    rng = np.random.default_rng(0)
    reward, cost = rng.normal(5, 1, (6, 3)).astype(np.float32), rng.normal(-40, 2, (6, 3))
    expected = (reward - 3 * (cost - cost.mean()) * reward.std() / cost.std()) / 4
    np.testing.assert_allclose(lagrangian(reward, cost, multiplier=3), expected, rtol=1e-5)
    assert lagrangian(reward, cost, multiplier=3).mean() == pytest.approx(reward.mean() / 4, rel=1e-5)


def test_scaled_cost_advantages_vary_as_much_as_those_of_the_reward_whatever_their_units():
    rng = np.random.default_rng(0)
    reward, cost = rng.normal(0, 5, (6, 3)).astype(np.float32), rng.normal(0, 1, (6, 3))
    scaled = lagrangian(reward, cost, 2)
    np.testing.assert_allclose(scaled, lagrangian(reward, 1000 * cost, 2), rtol=1e-4, atol=1e-5)
    part = reward - 3 * scaled
    assert part.std() == pytest.approx(2 * reward.std(), rel=1e-4)


def test_advantages_that_do_not_vary_are_not_scaled_by_them():
    flat, cost = np.zeros((2, 2), np.float32), np.array([[0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_allclose(lagrangian(flat, cost, 1), (1.5 - cost) / 2)
    np.testing.assert_array_equal(lagrangian(cost.astype(np.float32), flat, 1), cost / 2)


def test_the_policy_follows_the_advantages_of_the_formula(monkeypatch):
    model = PPOLagrangian("MlpPolicy", greed(), **SMALL)
    model.dual = 2.0
    plain, judged, fitted = {}, {}, []
    compute, judge = RolloutBuffer.compute_returns_and_advantage, model.cost_critic.judge

    def computed(buffer, last_values, dones):
        compute(buffer, last_values, dones)
        plain.update(advantages=buffer.advantages.copy(), returns=buffer.returns.copy())

    monkeypatch.setattr(RolloutBuffer, "compute_returns_and_advantage", computed)
    monkeypatch.setattr(model.cost_critic, "judge", lambda *given: judged.setdefault("credit", judge(*given)))
    monkeypatch.setattr(model.cost_critic, "fit", lambda *given: fitted.append(given[2:]))
    trained = {}
    monkeypatch.setattr(
        model,
        "train",
        lambda: trained.update(advantages=model.rollout_buffer.advantages, returns=model.rollout_buffer.returns),
    )
    model.learn(64)
    cost = judged["credit"].advantages
    scaled = (cost - cost.mean()) * plain["advantages"].std() / cost.std()
    expected = (plain["advantages"] - model.multiplier * scaled) / (1 + model.multiplier)
    np.testing.assert_allclose(trained["advantages"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(trained["returns"], plain["returns"])  # of the rewards alone
    assert fitted == [(SMALL["n_epochs"], SMALL["batch_size"])]


# -------------------------------------------------------------------- PPO


@pytest.mark.parametrize("arguments", [{"actions": name} for name in ACTIONS] + [{"keyed": True}], ids=str)
def test_without_a_multiplier_it_is_ppo_bit_for_bit(arguments):
    policy = "MultiInputPolicy" if "keyed" in arguments else "MlpPolicy"
    plain = PPO(policy, greed(**arguments), **SMALL).learn(192)
    constrained = PPOLagrangian(policy, greed(**arguments), max_multiplier=0, **SMALL).learn(192)
    assert same(weights(plain), weights(constrained))
    assert constrained.multiplier == 0
    assert constrained.cost_mean > 0


def test_a_multiplier_changes_what_is_learnt():
    plain = PPO("MlpPolicy", greed(), **SMALL).learn(192)
    constrained = PPOLagrangian("MlpPolicy", greed(), **SMALL).learn(192)
    assert not same(weights(plain), weights(constrained))


# -------------------------------------------------------------------- the constraint


LEARNING = {"n_steps": 64, "batch_size": 512, "n_epochs": 4, "learning_rate": 0.01, "seed": 1, "device": "cpu"}


def test_it_meets_a_limit_that_ppo_exceeds():
    free = logged(PPOLagrangian("MlpPolicy", greed(8), max_multiplier=0, **LEARNING), 4_000)
    assert free[-1]["cost/mean"] > 0.8
    assert free[-1]["cost/met"] == 0
    rows = logged(PPOLagrangian("MlpPolicy", greed(8), cost_limit=0.3, **LEARNING), 10_000)
    assert np.mean([row["cost/mean"] for row in rows[-10:]]) == pytest.approx(0.3, abs=0.05)  # all that is allowed


@pytest.mark.slow
@pytest.mark.parametrize("pay", [0.001, 1000.0])
@pytest.mark.parametrize("actions", ACTIONS)
def test_it_meets_the_limit_with_all_actions_whatever_the_unit_of_the_reward(actions, pay):
    model = PPOLagrangian("MlpPolicy", greed(8, actions=actions, pay=pay), cost_limit=0.3, **LEARNING)
    rows = logged(model, 25_000)
    assert np.mean([row["cost/mean"] for row in rows[-20:]]) == pytest.approx(0.3, abs=0.05)


@pytest.mark.slow
def test_damping_keeps_the_costs_closer_to_the_limit():
    swings = []
    for damping in (0, 5):
        model = PPOLagrangian("MlpPolicy", greed(8), cost_limit=0.3, multiplier_damping=damping, **LEARNING)
        swings.append(np.std([row["cost/mean"] for row in logged(model, 25_000)[-30:]]))
    assert swings[1] < 0.7 * swings[0]


def test_the_multiplier_follows_the_costs_and_stays_within_its_bounds():
    rates = {"multiplier_lr": 2, "multiplier_damping": 3, "max_multiplier": 1.5}
    model = PPOLagrangian("MlpPolicy", greed(), cost_limit=0.1, **rates, **SMALL)
    dual = 0.0
    for row in logged(model, 640):
        excess = row["cost/mean"] - 0.1
        dual = min(max(dual + 2 * excess, 0), 1.5)
        assert row["cost/multiplier"] == pytest.approx(min(max(dual + 3 * excess, 0), 1.5))
        assert row["cost/limit"] == 0.1
        assert row["cost/met"] == (row["cost/mean"] <= 0.1)
    assert model.dual == model.multiplier == 1.5
    model.cost_limit = 1.0
    model.multiplier_damping = 0
    multipliers = [row["cost/multiplier"] for row in logged(model, 640)]
    assert multipliers[-1] == 0
    assert multipliers == sorted(multipliers, reverse=True)
    assert model.constraint_met is True


def test_a_limit_out_of_reach_ends_at_the_largest_multiplier_and_is_reported_as_unmet():
    model = PPOLagrangian("MlpPolicy", greed(), cost_limit=-1, max_multiplier=2, **SMALL)
    rows = logged(model, 256)
    assert rows[-1]["cost/multiplier"] == 2
    assert rows[-1]["cost/met"] == 0
    assert model.constraint_met is False


def test_the_log_tells_the_mean_cost_of_a_step():
    model = PPOLagrangian("MlpPolicy", greed(), **SMALL)
    assert model.constraint_met is None
    (row,) = logged(model, 64)
    assert row["cost/mean"] == pytest.approx(model.rollout_buffer.rewards.mean(), abs=0.2)
    assert row["cost/mean"] == model.cost_mean == pytest.approx(model.rollout_buffer.columns["cost"].mean())
    assert {"cost/limit", "cost/met", "cost/multiplier", "cost/explained_variance"} <= row.keys()


# -------------------------------------------------------------------- what a step costs


def test_a_step_costs_the_short_term_disparity_another_figure_or_what_a_function_says():
    def triple(infos):
        return [3 * info["fairness"]["harm"] for info in infos]

    means = {}
    for cost in (None, "harm", "SP", "double", "sometimes", triple):
        model = PPOLagrangian("MlpPolicy", greed(), cost=cost, max_multiplier=0, **SMALL).learn(64)
        means[cost] = model.cost_mean
        assert model.cost_source == ("harm" if cost is None else cost)
    assert means[None] == means["harm"] == means["SP"] == means["double"] / 2 == pytest.approx(means[triple] / 3)
    assert 0 < means["sometimes"] < means["harm"]  # undefined costs nothing


def test_the_cost_may_be_changed_later():
    model = PPOLagrangian("MlpPolicy", greed(), **SMALL).learn(64)
    model.cost = "double"
    assert set(model.learn(64).rollout_buffer.columns["cost"]) == {0, 2}


def test_where_the_environment_measures_nothing_a_step_costs_demographic_disparity(tmp_path):
    def unmeasured():
        return VecFairMDP(greed(measured=False), FairnessSpec(group=mood_group))

    model = PPOLagrangian("MlpPolicy", unmeasured(), **SMALL).learn(64)
    assert model.cost_source == "d_s"
    assert 0 < model.cost_mean < 1
    model.save(tmp_path / "model")
    loaded = PPOLagrangian.load(tmp_path / "model", env=unmeasured()).learn(64)
    loaded.set_env(unmeasured())
    assert loaded.learn(64).cost_mean > 0
    loaded.set_env(greed())
    assert loaded.learn(64).cost_source == "harm"


def test_an_episodes_last_step_costs_what_it_did():
    model = PPOLagrangian("MlpPolicy", greed(1, actions="Box", terminates=True), **SMALL).learn(16)
    taken = np.clip(model.rollout_buffer.actions.ravel(), 0, 1)
    np.testing.assert_allclose(model.rollout_buffer.columns["cost"], taken, rtol=1e-6)


def test_the_value_of_the_last_observation_counts_where_time_limits_cut_off():
    cut = PPOLagrangian("MlpPolicy", greed(2), **SMALL).learn(32)
    ended = PPOLagrangian("MlpPolicy", greed(2, terminates=True), **SMALL).learn(32)
    assert [end[:2] for end in cut.rollout_buffer.truncations] == [(7, 0), (7, 1), (15, 0), (15, 1)]
    assert ended.rollout_buffer.truncations == []


# -------------------------------------------------------------------- save, load, seeds


def test_a_loaded_model_goes_on_where_the_saved_one_stopped(tmp_path):
    model = PPOLagrangian("MlpPolicy", greed(), cost="double", cost_limit=0.2, **SMALL).learn(128)
    model.save(tmp_path / "model")
    loaded = PPOLagrangian.load(tmp_path / "model", env=greed(seed=5), device="cpu")
    assert (loaded.cost, loaded.cost_limit) == ("double", 0.2)
    assert loaded.multiplier == model.multiplier > 0
    assert loaded.dual == model.dual > 0
    assert (loaded.cost_mean, loaded.constraint_met) == (model.cost_mean, model.constraint_met)
    saved, restored = model.cost_critic.state_dict(), loaded.cost_critic.state_dict()
    assert all(th.equal(saved[name].cpu(), restored[name].cpu()) for name in saved)
    assert loaded.cost_critic.rollouts == 2
    moments = [model_.cost_critic.optimizer.state_dict()["state"][0]["exp_avg"] for model_ in (model, loaded)]
    assert th.equal(*moments)
    before = loaded.dual
    loaded.learn(64, reset_num_timesteps=False)
    assert loaded.dual == pytest.approx(before + loaded.cost_mean - 0.2)  # goes on from there
    assert loaded.num_timesteps == 192


def test_a_function_as_cost_is_saved(tmp_path):
    model = PPOLagrangian(
        "MlpPolicy",
        greed(measured=False),
        cost=lambda infos: np.full(len(infos), 0.7),
        **SMALL,
    ).learn(64)
    model.save(tmp_path / "model")
    loaded = PPOLagrangian.load(tmp_path / "model", env=greed(measured=False)).learn(64)
    assert loaded.cost_mean == pytest.approx(0.7)
    observation = np.zeros(2, np.float32)
    assert PPOLagrangian.load(tmp_path / "model").predict(observation)[0].shape == ()


def test_one_seed_one_model():
    one, other = (PPOLagrangian("MlpPolicy", greed(), **SMALL).learn(192) for _ in range(2))
    another = PPOLagrangian("MlpPolicy", greed(), **(SMALL | {"seed": 1})).learn(192)
    assert same(weights(one), weights(other))
    assert one.multiplier == other.multiplier > 0
    assert not same(weights(one), weights(another))


@pytest.mark.slow
def test_processes_change_nothing():
    one = PPOLagrangian("MlpPolicy", greed(2), **SMALL).learn(96)
    workers = PPOLagrangian("MlpPolicy", greed(2, vec_env_cls=SubprocVecEnv), **SMALL).learn(96)
    workers.env.close()
    assert same(weights(one), weights(workers))
    assert one.multiplier == workers.multiplier > 0


# -------------------------------------------------------------------- arguments


def test_dict_observations_have_their_buffer_and_critic():
    model = PPOLagrangian("MultiInputPolicy", greed(keyed=True), **SMALL).learn(128)
    assert isinstance(model.rollout_buffer, ColumnDictRolloutBuffer)
    assert model.cost_critic.body[0].in_features == 8 + 2
    assert model.multiplier > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"env": None}, "env must be given unless the model is loaded"),
        ({"cost": 3}, "cost must be a string or a callable or None, got 3"),
        ({"cost_limit": None}, "cost_limit must be a finite number, got None"),
        ({"multiplier_lr": -1}, "multiplier_lr must be a non-negative number, got -1"),
        ({"multiplier_damping": -2}, "multiplier_damping must be a non-negative number, got -2"),
        ({"max_multiplier": -0.5}, "max_multiplier must be a non-negative number, got -0.5"),
        ({"max_multiplier": float("inf")}, "max_multiplier must be a non-negative number, got inf"),
        ({"rollout_buffer_class": RolloutBuffer}, "rollout_buffer_class must be a subclass of ColumnRolloutBuffer"),
    ],
)
def test_arguments_that_are_not_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        PPOLagrangian("MlpPolicy", **{"env": greed(1), **SMALL, **arguments})


def test_a_cost_must_be_told_where_none_can_be_measured():
    with pytest.raises(ValueError, match="env must be a fairness MDP"):
        PPOLagrangian("MlpPolicy", "CartPole-v1", **SMALL)
    told = PPOLagrangian("MlpPolicy", "CartPole-v1", cost=lambda infos: [1.0] * len(infos), **SMALL)
    assert told.learn(16).cost_mean == 1


def test_a_figure_that_steps_do_not_tell():
    with pytest.raises(
        ValueError, match=r"\['SP', 'double', 'harm', 'sometimes'\], got 'harms' \(did you mean 'harm'\?\)"
    ):
        PPOLagrangian("MlpPolicy", greed(1), cost="harms", **SMALL).learn(16)


@pytest.mark.parametrize("cost", [lambda infos: 0.0, lambda infos: [np.nan] * len(infos)])
def test_a_function_must_return_one_finite_number_per_copy(cost):
    with pytest.raises(ValueError, match="cost must return 4 finite numbers, one per copy"):
        PPOLagrangian("MlpPolicy", greed(), cost=cost, **SMALL).learn(64)
