"""Does F-PPO hold a limit of short-term disparity and a floor of the reward?"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3.common.vec_env import VecNormalize

from sb3_fair.f_ppo import FPPO, PPOLagrangian, f_ppo
from tests.f_ppo.models import NEUTRAL, banks, changed, model_of
from tests.models import FORK, Watch, learned, weights

STEPS = 24 * 3
"""Of a rollout."""


def test_with_a_limit_alone_it_is_ppo_lagrangian_bit_for_bit():
    ours = model_of(banks(), cost_limit=0.1, **NEUTRAL).learn(4 * STEPS)
    theirs = model_of(banks(), PPOLagrangian, cost_limit=0.1).learn(4 * STEPS)
    assert_array_equal(weights(ours), weights(theirs))
    assert ours.multipliers["cost"] == theirs.multiplier > 0
    assert ours.duals["cost"] == theirs.dual


def test_a_floor_that_is_kept_changes_nothing():
    ours = model_of(banks(), reward_floor=-2.0).learn(4 * STEPS)
    assert_array_equal(weights(ours), weights(model_of(banks()).learn(4 * STEPS)))
    assert ours.multipliers["floor"] == 0


def test_a_floor_is_the_same_for_environments_in_other_processes():
    first, second = banks(reward=0.1), banks(reward=0.1, cls=FORK)
    ours = [model_of(venv, massage=False, reward_floor=0.6).learn(4 * STEPS) for venv in (first, second)]
    assert_array_equal(*map(weights, ours))
    assert ours[0].multipliers == ours[1].multipliers
    second.close()


@pytest.mark.parametrize("normalised", [False, True])
def test_a_floor_that_is_missed_lessens_all_weights_by_its_multiplier(normalised):
    given = {"reg_lambda": 5.0, "beta1": 1.0, "beta2": 3.0, "minmax_weights": (2.0, 4.0)}
    multipliers, dual = [0.0], 0.0

    def follow(model):
        nonlocal dual
        share = 1 / (1 + multipliers[-1])
        used = model.rollout_buffer.regulariser
        assert_allclose(used["reg_lambda"], 5 * share)
        assert_allclose([used["beta1"], used["beta2"]], [share, 3 * share])
        assert_allclose(used["minmax_weights"], [2 * share, 4 * share])
        earned = model.rollout_buffer.columns["reward"]
        assert np.isin(earned, (-1.0, 0.0, 1.0)).all()  # as they are without VecNormalize
        excess = 0.6 - earned.mean()
        dual = min(max(dual + 2 * excess, 0), 3)
        multipliers.append(min(max(dual + excess, 0), 3))
        assert model.multipliers["floor"] == pytest.approx(multipliers[-1])

    venv = VecNormalize(banks()) if normalised else banks()
    rates = {"multiplier_lr": 2.0, "multiplier_damping": 1.0, "max_multiplier": 3.0}
    model_of(venv, reward_floor=0.6, scaling="minmax", **given, **rates).learn(6 * STEPS, Watch(end=follow))
    assert multipliers[-1] == 3


def test_a_floor_that_is_missed_lessens_the_multiplier_of_a_limit(monkeypatch):
    used, multipliers = [], []
    monkeypatch.setattr(f_ppo, "lagrangian", lambda advantages, _, multiplier: used.append(multiplier) or advantages)
    model = model_of(banks(), massage=False, cost_limit=0.1, reward_floor=0.6)
    model.learn(4 * STEPS, Watch(end=lambda model: multipliers.append(dict(model.multipliers))))
    floors = [0.0, *(each["floor"] for each in multipliers[:-1])]  # those that divided the other weights too
    assert min(floors[1:]) > 0
    assert_allclose(used, [each["cost"] / (1 + floor) for each, floor in zip(multipliers, floors, strict=True)])


def test_the_share_of_what_is_added_counts_the_limit():
    rates = {"multiplier_lr": 1e6, "max_multiplier": 9.0}
    model = learned(model_of(banks(), massage=False, reg_lambda=5.0, cost_limit=0.0, **rates), STEPS)
    of_rewards = model_of(banks(), **NEUTRAL).learn(STEPS).rollout_buffer.advantages / (1 + 9)
    advantages = model.rollout_buffer.advantages
    share = np.std(advantages - of_rewards) / np.std(advantages)
    assert model.logger.name_to_value["train/reg_share"] == pytest.approx(share, rel=1e-4)


def test_a_floor_holds_off_levelling_down():
    """A regulariser that is content if nobody gets a loan, against the reward of loans that are paid back."""
    learning = {"n_steps": 64, "batch_size": 512, "n_epochs": 4, "learning_rate": 0.01, "massage": False}
    levelling = {"reg_lambda": 0.0, "beta1": 30.0, "omega": 0.0, "multiplier_lr": 5.0, "max_multiplier": 1000.0}
    earned = {}
    for floor in (-2.0, 0.35):
        rewards = []
        keep = Watch(end=lambda model, kept=rewards: kept.append(model.rollout_buffer.columns["reward"].mean()))
        model_of(banks(8, length=20), reward_floor=floor, **levelling, **learning).learn(16_000, keep)
        earned[floor] = np.mean(rewards[5:])
    assert earned[-2.0] < 0.25
    assert earned[0.35] > 0.29


def test_a_loaded_model_goes_on_with_its_multipliers(tmp_path):
    model = model_of(banks(), massage=False, cost_limit=0.1, reward_floor=0.5).learn(2 * STEPS)
    model.save(tmp_path / "model")
    loaded = FPPO.load(tmp_path / "model", env=banks())
    assert loaded.duals == model.duals and min(loaded.duals.values()) > 0
    assert loaded.multipliers == model.multipliers
    assert loaded.cost_critic.rollouts == 2
    loaded.learn(STEPS, reset_num_timesteps=False)
    assert loaded.duals != model.duals


@pytest.mark.parametrize("way", ["load", "attributes"])
@pytest.mark.parametrize(("before", "after"), [(None, 0.1), (0.1, None)])
def test_a_limit_may_be_set_and_lifted_later(tmp_path, before, after, way):
    model = model_of(banks(), massage=False, cost_limit=before).learn(STEPS)
    multiplier = model.multipliers["cost"]
    model = changed(model, banks(), tmp_path / "before" if way == "load" else None, cost_limit=after)
    model.learn(STEPS, reset_num_timesteps=False)
    assert (model.multipliers["cost"] != multiplier) == (after is not None)
    model.save(tmp_path / "after")
    assert FPPO.load(tmp_path / "after", env=banks()).cost_critic.rollouts == 1
