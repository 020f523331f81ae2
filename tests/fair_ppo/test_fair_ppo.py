"""Does Fair-PPO make agents pay for disparity, in every form, and is it PPO where nothing is asked of it?"""

from functools import partial

import numpy as np
import pytest
import torch as th
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_fair.fair_ppo import GroupedActorCriticPolicy
from sb3_fair.fair_ppo.prospective import advantage_clip
from sb3_fair.fair_ppo.retrospective import Retrospective
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import VecFairMDP
from tests.fair_ppo.models import PROSP, RETRO, logs, model_of
from tests.fair_ppo.toys import Earner, Pairs, earners
from tests.models import learned, weights

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `render_mode` attribute"),
    pytest.mark.filterwarnings("ignore:alpha and beta are 0"),
]


# ---------------------------------------------------------------- neutral


def same_as_ppo(venv, policy="MlpPolicy", steps=128, **settings):
    ours = model_of(venv(), policy=policy, **settings).learn(steps)
    theirs = model_of(venv(), PPO, GroupedActorCriticPolicy if policy == "GroupedPolicy" else policy).learn(steps)
    return ours, th.equal(weights(ours), weights(theirs))


@pytest.mark.parametrize("lam", [1.0, "auto", "dual"])
@pytest.mark.parametrize(
    ("retro", "prosp"), [*((retro, "state_cost") for retro in RETRO), *(("linear", p) for p in PROSP)]
)
def test_without_weights_it_is_ppo_bit_for_bit(retro, prosp, lam):
    ours, same = same_as_ppo(lambda: Pairs(length=5, noise=0.5), retro=retro, prosp=prosp, lam=lam)
    assert same and ours.penalty_critic is None and "fair/D_retro" in logs(learned(ours, 64))


def test_a_tolerance_is_ppo_too_without_weights_or_as_long_as_it_is_not_exceeded():
    venv = partial(Pairs, length=5, noise=0.1)
    assert same_as_ppo(venv, tolerance=0.3)[1]
    assert same_as_ppo(venv, alpha=1.0, retro="own_reweight", tolerance=10.0, stream="reward")[1]
    assert not same_as_ppo(venv, alpha=1.0, retro="own_reweight", tolerance=0.3, stream="reward")[1]


@pytest.mark.parametrize("ends", ["terminated", "truncated"])
@pytest.mark.parametrize("stream", ["advantage", "reward"])
def test_nor_does_the_literal_loss_of_the_paper_change_a_bit(ends, stream):
    venv = partial(Pairs, length=5, noise=0.5, ends=ends)
    assert same_as_ppo(venv, alpha=1.0, retro="constant", stream=stream)[1]


@pytest.mark.parametrize(
    ("venv", "policy"),
    [
        (partial(Pairs, length=5), "GroupedPolicy"),
        (partial(Pairs, keyed=True), "MultiInputPolicy"),
        (partial(earners, action="box"), "MlpPolicy"),
        (partial(earners, tells=False), "MlpPolicy"),
        (partial(earners, 1), "MlpPolicy"),
        (lambda: VecNormalize(VecMonitor(earners())), "MlpPolicy"),
    ],
    ids=["grouped", "dict", "box", "no labels", "one group", "normalised"],
)
def test_neither_with_other_policies_environments_or_labels_that_are_no_good(venv, policy):
    assert same_as_ppo(venv, policy)[1]
    assert same_as_ppo(venv, policy, fairness="csp", prosp="advantage_clip", lam="dual")[1]


def test_a_weight_changes_the_training():
    plain = weights(model_of(Pairs(length=5)).learn(192))
    for settings in ({"alpha": 0.5, "retro": retro} for retro in RETRO[:-1]):
        assert not th.equal(weights(model_of(Pairs(length=5), **settings).learn(192)), plain)
    for settings in ({"beta": 0.5, "prosp": prosp, "threshold": 0.0} for prosp in PROSP):
        assert not th.equal(weights(model_of(Pairs(length=5), **settings).learn(192)), plain)


# ---------------------------------------------------------------- gradients


def priced(monkeypatch, venv=None, **settings):
    """A model after one rollout and no update: observations, actions and rewards are the same for all settings."""
    with monkeypatch.context() as patch:
        patch.setattr(PPO, "train", lambda model: model.logger.name_to_value.update(NO_LOSS))
        venv = venv or Pairs(n_worlds=8, length=4, noise=0.3)
        model = model_of(venv, **({"n_steps": 32, "gamma": 0.9} | settings))
        model.policy.value_net.weight.data *= 10  # values apart
        return learned(model, 32 * venv.num_envs)


NO_LOSS = {"train/policy_gradient_loss": 0.0, "train/entropy_loss": 0.0, "train/value_loss": 0.0}


def actor_gradient(model):
    """That of PPO's loss on the whole rollout, at ratio 1."""
    batch = next(model.rollout_buffer.get())
    advantages = batch.advantages
    if "bonus" not in model.rollout_buffer.columns:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    _, log_prob, _ = model.policy.evaluate_actions(batch.observations, batch.actions.long().flatten())
    model.policy.zero_grad()
    (-advantages * th.exp(log_prob - batch.old_log_prob)).mean().backward()
    grads = [parameter.grad.flatten() for parameter in model.policy.parameters() if parameter.grad is not None]
    return th.cat(grads)


def cosine(monkeypatch, gamma=0.9, **settings):
    gradients = [actor_gradient(priced(monkeypatch, gamma=gamma, **more)) for more in ({}, settings)]
    return float(th.cosine_similarity(*gradients, dim=0))


@pytest.mark.parametrize("stream", ["advantage", "reward"])
@pytest.mark.parametrize("retro", RETRO[:-1])
def test_the_penalty_of_the_past_turns_the_actors_gradient_the_more_the_larger_alpha(monkeypatch, retro, stream):
    cosines = [cosine(monkeypatch, retro=retro, stream=stream, alpha=alpha) for alpha in (0.25, 0.5, 1.0, 2.0)]
    assert cosines[2] < 0.99 and np.all(np.diff(cosines) < 0)


def test_the_literal_loss_of_the_paper_does_not_turn_it(monkeypatch):
    assert cosine(monkeypatch, retro="constant", alpha=5.0) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("prosp", PROSP[:2])
def test_the_penalty_of_values_turns_it_the_more_the_larger_beta(monkeypatch, prosp):
    settings = {"prosp": prosp, "gamma": 0.5, "threshold": 0.0}
    cosines = [cosine(monkeypatch, beta=beta, **settings) for beta in (4.0, 16.0, 64.0)]
    assert cosines[2] < 0.99 and np.all(np.diff(cosines) < 0)


def test_the_cosine_in_the_logs_is_that_of_the_gradients(monkeypatch):
    model = priced(monkeypatch, alpha=1.0)
    assert logs(model)["fair/actor_cosine"] == pytest.approx(cosine(monkeypatch, alpha=1.0), abs=1e-3)
    assert 0 < logs(model)["fair/penalty_share"] < 1


def test_every_tenth_update_has_the_cosine():
    model = learned(model_of(Pairs(), alpha=1.0), 64)
    seen = ["fair/actor_cosine" in logs(model)]
    seen += ["fair/actor_cosine" in logs(learned(model, 64, reset_num_timesteps=False)) for _ in range(20)]
    assert np.flatnonzero(seen).tolist() == [0, 10, 20]


# ---------------------------------------------------------------- the one-step game


def first_action(k, seed=0, **settings):
    """Probability that the first agent, who gets 2 for it, takes action 0 after training."""
    given = {"n_steps": 8, "batch_size": 64, "n_epochs": 4, "learning_rate": 0.03, "alpha": k} | settings
    model = model_of(Pairs(8), policy="GroupedPolicy", seed=seed, **given).learn(128 * 10)
    seen = th.tensor([[0.0, 0.0, 0.0]])
    return model.policy.get_distribution(seen).distribution.probs[0, 0].item()


@pytest.mark.parametrize("stream", ["advantage", pytest.param("reward", marks=pytest.mark.slow)])
@pytest.mark.parametrize("retro", ["telescoped", "terminal", "linear"])
def test_who_gains_2_less_the_penalty_gives_up_when_it_is_more_than_1(retro, stream):
    assert first_action(0.5, retro=retro, stream=stream) > 0.9
    assert first_action(2.0, retro=retro, stream=stream) < 0.1


def test_who_is_ahead_by_a_tolerated_share_does_not_give_up():
    """2 to 1 is a difference of 2 / 3 of the mean."""
    assert first_action(2.0, tolerance=0.7) > 0.9
    assert first_action(2.0, tolerance=0.1) < 0.1


def test_the_logs_tell_the_whole_disparity():
    tolerant, strict = (learned(model_of(Pairs(), alpha=1.0, tolerance=w), 64) for w in (0.4, 0.0))
    for figure in ("fair/D_retro", "fair/D_norm"):
        assert logs(tolerant)[figure] == logs(strict)[figure] > 0


def test_who_pays_out_of_its_own_reward_gives_up_too():
    assert first_action(0.25, retro="own_reweight") > 0.9
    assert first_action(1.0, retro="own_reweight") < 0.1


def test_lambda_multiplies_and_a_dual_one_rises_as_long_as_there_is_disparity():
    assert first_action(1.0, lam=2.0) < 0.1
    model = learned(model_of(Pairs(), alpha=1.0, lam="dual", lam_eta=0.5, lam_max=3.0), 64)
    rising = [logs(learned(model, 64, reset_num_timesteps=False))["fair/lambda"] for _ in range(4)]
    assert rising[0] < rising[-1] <= 3.0


@pytest.mark.slow
def test_agents_of_infos_learn_to_earn_alike():
    """Group 0 earns twice its action, group 1 its action: at k = 2 the first takes 1 where the other takes 2."""

    def gap(alpha):
        settings = {"n_steps": 16, "batch_size": 128, "n_epochs": 4, "learning_rate": 0.02, "alpha": alpha}
        model = learned(model_of(earners(16, length=2), policy="GroupedPolicy", **settings), 256 * 20)
        assert not model.labels.streaming
        return logs(model)["fair/D_norm"], logs(model)["fair/return_1"]

    (classic, before), (fair, after) = gap(0.0), gap(2.0)
    assert classic > 0.6 and fair < 0.5 * classic and after > 0.9 * before


# ---------------------------------------------------------------- what enters the streams


def test_penalties_are_of_the_rewards_that_agents_got_whatever_the_buffer_holds(monkeypatch):
    """Neither normalisation nor the values of truncated episodes are part of them."""
    venv = VecNormalize(Pairs(n_worlds=4, length=5, noise=0.1, ends="truncated"), norm_obs=False)
    model = priced(monkeypatch, venv, alpha=1.5, stream="reward")
    plain = priced(monkeypatch, VecNormalize(Pairs(n_worlds=4, length=5, noise=0.1, ends="truncated"), norm_obs=False))
    rows = model.rollout_buffer.columns
    assert abs(rows["reward"][:, 1::2].mean() - 1) < 0.1 and rows["reward"].max() < 2.5
    expected = 1.5 * Retrospective()(rows["reward"], model._populations, rows["done"] > 0)
    found = model.rollout_buffer.rewards - plain.rollout_buffer.rewards
    bootstrapped = rows["done"] > 0
    assert_allclose(found[~bootstrapped], (expected * rows["reward_scale"])[~bootstrapped], atol=1e-5)
    assert bootstrapped.any() and not np.allclose(rows["reward_scale"], 1)


@pytest.fixture
def whole(monkeypatch):
    return partial(priced, monkeypatch)


def test_a_penalty_stream_leaves_returns_alone_and_a_common_stream_does_not(whole):
    plain, own, common = whole(), whole(alpha=1.0), whole(alpha=1.0, stream="reward")
    assert_array_equal(own.rollout_buffer.returns, plain.rollout_buffer.returns)
    assert_allclose(own.rollout_buffer.advantages, plain.rollout_buffer.advantages + own.penalties, atol=1e-5)
    assert_allclose(common.rollout_buffer.advantages, plain.rollout_buffer.advantages + common.penalties, atol=1e-4)
    assert not np.allclose(common.rollout_buffer.returns, plain.rollout_buffer.returns)
    assert common.penalty_critic is None


def test_penalties_may_be_discounted_in_their_own_way(whole):
    """With a discount of 1 and no critic yet, an advantage is all that the episode still costs."""
    model = whole(alpha=1.0, penalty_gamma=1.0, gae_lambda=1.0, critic_kwargs={"learning_rate": 1e-9})
    done = model.rollout_buffer.columns["done"] > 0
    rewards = model.rollout_buffer.columns["reward"]
    costs = Retrospective()(rewards, model._populations, done)
    left = np.cumsum(costs.reshape(8, 4, 16)[:, ::-1], axis=1)[:, ::-1].reshape(32, 16)
    assert_allclose(model.penalties, left, atol=0.1)
    assert not np.allclose(whole(alpha=1.0, penalty_gamma=0.5).penalties, left, atol=0.1)


def test_a_clip_is_added_after_normalisation(whole, monkeypatch):
    plain, model = whole(), whole(beta=2.0, prosp="advantage_clip")
    bonus = model.rollout_buffer.columns["bonus"].copy()
    assert (bonus <= 0).all() and (bonus < 0).any()
    assert_array_equal(model.rollout_buffer.advantages, plain.rollout_buffer.advantages)
    advantages = model.rollout_buffer.advantages.T.ravel()
    drawn = np.random.RandomState(5).permutation(len(advantages)).reshape(-1, 64)
    np.random.seed(5)  # noqa: NPY002 (SB3's generator)
    for rows, batch in zip(drawn, model.rollout_buffer.get(64), strict=True):
        own = advantages[rows]
        expected = (own - own.mean()) / own.std(ddof=1) + bonus.T.ravel()[rows]
        assert_allclose(batch.advantages, expected, atol=1e-4)
    seen = []
    monkeypatch.setattr(
        PPO, "train", lambda model: (seen.append(model.normalize_advantage), model.logger.name_to_value.update(NO_LOSS))
    )
    model.train()
    assert seen == [False] and model.normalize_advantage


def test_values_are_compared_in_units_of_rewards_also_those_after_the_rollout(whole):
    venv = VecNormalize(Pairs(n_worlds=8, length=5, noise=0.3), norm_obs=False)
    model = whole(venv=venv, beta=2.0, prosp="advantage_clip")
    rows = model.rollout_buffer.columns
    scales = np.append(rows["reward_scale"][:, 0], rows["reward_scale"][-1, 0])
    last = model._last_values().numpy().reshape(1, -1)
    values = np.concatenate([model.rollout_buffer.values, last]) / scales[:, None]
    disparity = np.repeat(np.abs(values[:, ::2] - values[:, 1::2]), 2, axis=1)
    assert not np.allclose(scales, 1) and (disparity[-1] > disparity[-2]).any()
    assert logs(model)["fair/D_prosp"] == pytest.approx(disparity[:-1].mean())
    normalised = disparity / model.retrospective.scale
    expected = 2 * advantage_clip(normalised[:-1], rows["done"] > 0, normalised[-1])
    assert_allclose(rows["bonus"], expected, atol=1e-6)


def test_the_loss_that_sizes_lambda_has_the_weights_of_ppo():
    whole_rollout = {"batch_size": 64, "n_epochs": 1, "ent_coef": 0.1, "vf_coef": 0.3}
    model = learned(model_of(Pairs(), alpha=1.0, lam="auto", **whole_rollout), 64)
    assert model._last_loss == pytest.approx(model.logger.name_to_value["train/loss"], rel=1e-5)


# ---------------------------------------------------------------- episodes of one decision, or that end apart


class Uneven(Earner):
    """Its episodes have random lengths; it earns 1, and with a gap group 0 one more if it chooses 0."""

    def __init__(self, group, gap):
        super().__init__(group)
        self.gap = gap

    def reset(self, *, seed=None, options=None):
        found = super().reset(seed=seed)
        self.length = int(self.np_random.integers(2, 19))
        return found

    def step(self, action):
        obs, _, *ends, info = super().step(action)
        return obs, 1.0 + (self.gap and self.group == 0 and action == 0), *ends, info


def uneven(gap=False):
    return DummyVecEnv([lambda i=i: Uneven(i % 2, gap) for i in range(16)])


def test_who_earns_alike_pays_nothing_whenever_its_episodes_end():
    model = learned(model_of(uneven(), alpha=1.0, lam="dual", n_steps=64, batch_size=256), 16_384)
    assert logs(model)["fair/D_norm"] < 0.06 and logs(model)["fair/lambda"] < 1.1


def test_a_gap_is_closed_whenever_episodes_end():
    settings = {"alpha": 2.0, "n_steps": 64, "batch_size": 256, "learning_rate": 0.01}
    model = model_of(uneven(gap=True), policy="GroupedPolicy", **settings).learn(16_384)
    seen = th.tensor([[0.0, 0.0, 0.0]])
    assert model.policy.get_distribution(seen).distribution.probs[0, 0] < 0.2


@pytest.mark.parametrize("prosp", PROSP)
def test_values_are_compared_whenever_episodes_end(prosp):
    model = learned(model_of(uneven(gap=True), beta=1.0, prosp=prosp), 512)
    assert logs(model)["fair/D_prosp"] > 0 and weights(model).isfinite().all()


def test_single_decisions_pay_for_what_groups_earn():
    """Group 0 earns twice its action, group 1 its action."""

    def trained(alpha):
        settings = {"policy": "GroupedPolicy", "mode": "streaming", "learning_rate": 0.02, "alpha": alpha}
        model = model_of(earners(8, stream=True, length=1), **settings)
        return logs(learned(model, 3072))["fair/D_norm"]

    assert trained(1.5) < 0.5 * trained(0.0)


def test_so_does_a_single_slot():
    model = learned(model_of(earners(1, stream=True, length=1), alpha=1.0), 128)
    assert model.labels.carries and logs(model)["fair/D_norm"] > 0 and model.penalties.any()


def test_what_groups_earned_is_kept_where_the_environment_keeps_its_history():
    def carried(reset):
        spec = FairnessSpec(notions=())
        model = model_of(VecFairMDP(earners(1, stream=True), spec, reset_on_episode=reset), alpha=1.0).learn(64)
        return model.labels.carries, model.retrospective._state.counts.sum()

    assert carried(True) == (False, 0)
    goes_on, counts = carried(False)
    assert goes_on and counts == 16 + 8 + 4 + 2


@pytest.mark.parametrize("again", [False, True])
def test_what_was_earned_stays_where_the_environment_goes_on(again):
    venv = Pairs(2, length=10, ends="truncated")
    model = model_of(venv, alpha=1.0, n_steps=5, batch_size=20).learn(20)
    halfway = model.retrospective.past.disparity
    if again:
        model.set_env(venv, force_reset=False)
    model.learn(20, reset_num_timesteps=False)
    whole = model_of(Pairs(2, length=10, ends="truncated"), alpha=1.0, n_steps=5, batch_size=20).learn(40)
    assert model.retrospective.past.disparity == whole.retrospective.past.disparity > halfway


def test_what_was_earned_is_forgotten_where_the_environment_was_reset():
    venv = Pairs(2, length=10, ends="truncated")
    model = model_of(venv, alpha=1.0, n_steps=5, batch_size=20).learn(20)
    venv.reset()
    model.learn(40, reset_num_timesteps=False)
    assert model.retrospective.past.returns[1] == 10
