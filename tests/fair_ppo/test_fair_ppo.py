"""Does Fair-PPO make agents pay for disparity, in every form, and is it PPO where nothing is asked of it?"""

import warnings
from functools import partial

import numpy as np
import pytest
import torch as th
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnvWrapper, VecMonitor, VecNormalize

from sb3_fair import FairPPO, make_vec
from sb3_fair.fair_ppo import GroupedActorCriticPolicy
from sb3_fair.fair_ppo.penalty_critic import PenaltyCritic
from sb3_fair.fair_ppo.retrospective import Retrospective
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import VecFairMDP
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from tests.fair_ppo.toys import SEEN, Earner, Pairs, earners

FORK = partial(SubprocVecEnv, start_method="fork")
RETRO = ("telescoped", "terminal", "linear", "own_reweight", "constant")
PROSP = ("state_cost", "advantage_clip", "critic_loss")
GROUPED = {"group_index": 2, "net_arch": [8]}
pytestmark = [
    pytest.mark.filterwarnings("ignore:The `render_mode` attribute"),
    pytest.mark.filterwarnings("ignore:alpha and beta are 0"),
    pytest.mark.filterwarnings("ignore:prosp='critic_loss' only biases"),
]


def model_of(venv, algorithm=FairPPO, policy="MlpPolicy", **settings):
    given = {"n_steps": 16, "batch_size": 32, "n_epochs": 2, "seed": 0, "device": "cpu"}
    if policy is GroupedActorCriticPolicy or policy == "GroupedPolicy":
        given["policy_kwargs"] = GROUPED
    return algorithm(policy, venv, **(given | settings))


def weights(model):
    return th.cat([parameter.detach().flatten() for parameter in model.policy.parameters()]).clone()


def learned(model, steps, callback=None, **more):
    """``model`` after training whose logs were not written, so that they can be looked at."""
    return model.learn(steps, callback, log_interval=1000, **more)


def logs(model):
    return {key: value for key, value in model.logger.name_to_value.items() if key.startswith("fair/")}


class Watch(BaseCallback):
    """Calls ``end(model)`` after every rollout; stops the training after ``stop`` steps of all slots together."""

    def __init__(self, end=None, stop=10**9):
        super().__init__()
        self.end, self.stop = end, stop

    def _on_step(self):
        return self.num_timesteps < self.stop

    def _on_rollout_end(self):
        if self.end is not None:
            self.end(self.model)


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
    assert same_as_ppo(venv, policy, fairness="csp", prosp="critic_loss", lam="dual")[1]


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


@pytest.mark.parametrize("trunk", [False, True])
def test_a_loss_of_the_critic_reaches_the_actor_only_through_a_shared_trunk(trunk):
    def updated(beta):
        settings = {"n_epochs": 1, "batch_size": 64, "n_steps": 16, "max_grad_norm": 1e9}
        kwargs = {**GROUPED, "shared_trunk": trunk, "optimizer_class": th.optim.SGD, "optimizer_kwargs": {}}
        model = model_of(Pairs(length=4), policy="GroupedPolicy", policy_kwargs=kwargs, **settings)
        model.beta, model.prosp = beta, "critic_loss"
        model.learn(64)
        critic, actor = {}, {}
        for name, parameter in model.policy.named_parameters():
            (critic if "value_net" in name else actor)[name] = parameter.detach()
        return critic, actor

    (critic, actor), (other_critic, other_actor) = updated(0.0), updated(5.0)
    assert any(not th.equal(critic[name], other_critic[name]) for name in critic)
    assert all(th.equal(actor[name], other_actor[name]) for name in actor) is not trunk


def test_a_loss_of_the_critic_brings_values_together():
    def gap(beta):
        settings = {"prosp": "critic_loss", "learning_rate": 0.01, "n_steps": 8}
        model = model_of(Pairs(8, length=4), policy="GroupedPolicy", beta=beta, **settings)
        return logs(learned(model, 128 * 12))["fair/D_prosp"]

    assert gap(5.0) < 0.3 * gap(0.0)


def test_critic_loss_without_a_trunk_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kwargs = {**GROUPED, "shared_trunk": True}
        model_of(earners(), policy="GroupedPolicy", policy_kwargs=kwargs, beta=1.0, prosp="critic_loss")
        with pytest.raises(UserWarning, match="shared_trunk"):
            model_of(earners(), beta=1.0, prosp="critic_loss")


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


# ---------------------------------------------------------------- environments


@pytest.mark.parametrize("retro", RETRO)
@pytest.mark.parametrize("fairness", ["dp", "cf"])
def test_twins_and_worlds_train_in_every_mode(retro, fairness):
    model = model_of(Pairs(n_worlds=2, length=3, twins=True), fairness=fairness, alpha=0.5, beta=0.5, retro=retro)
    found = logs(learned(model, 192))
    assert found["fair/D_retro"] >= 0 and weights(model).isfinite().all()


@pytest.mark.parametrize("prosp", PROSP)
@pytest.mark.parametrize("retro", RETRO)
def test_a_stream_of_applicants_trains_in_every_mode(retro, prosp):
    venv = make_vec("sb3_fair/Lending-v0", n_envs=3)
    model = learned(model_of(venv, alpha=0.5, beta=0.5, retro=retro, prosp=prosp), 96)
    assert model.labels.streaming
    assert {"fair/D_retro", "fair/D_prosp", "fair/D_norm", "fair/return_0", "fair/return_1"} <= set(logs(model))
    assert weights(model).isfinite().all()


@pytest.mark.parametrize(
    ("fairness", "counterfactual"), [("dp", None), ("csp", None), ("cf", "none_vs_all"), ("cf", "swap")]
)
def test_harvesters_of_two_groups_train_with_networks_of_their_own(fairness, counterfactual):
    venv = HarvestVecEnv(2, {"horizon": 20, "obs_scale": True}, seed=0, counterfactual=counterfactual)
    settings = {"policy": "GroupedPolicy", "batch_size": 512, "fairness": fairness, "alpha": 1.0, "beta": 0.5}
    model = learned(model_of(VecMonitor(venv), **settings), 32 * venv.num_envs)
    assert not model.labels.streaming and weights(model).isfinite().all()
    assert logs(model)["fair/D_retro"] > 0 and len(model.penalty_critic.members) == 2


def test_a_stream_may_have_networks_for_each_group():
    model = learned(model_of(earners(2, stream=True, length=10), policy="GroupedPolicy", alpha=1.0), 128)
    assert model.labels.streaming and len(model.penalty_critic.members) == 2


@pytest.mark.parametrize("settings", [{}, {"stream": True}, {"action": "box"}, {"pay": 0.1}], ids=str)
def test_processes_change_nothing(settings):
    first, second = earners(cls=DummyVecEnv, **settings), earners(cls=FORK, **settings)
    ours = [weights(model_of(venv, alpha=1.0, beta=0.5).learn(192)) for venv in (first, second)]
    second.close()
    assert th.equal(*ours)


def test_labels_may_come_from_a_function():
    by_function = model_of(earners(tells=False), alpha=1.0, group_fn=lambda obs, infos: obs[:, 2].astype(int))
    assert th.equal(weights(by_function.learn(192)), weights(model_of(earners(), alpha=1.0).learn(192)))


@pytest.mark.parametrize("policy", ["MlpPolicy", "GroupedPolicy"])
def test_a_seed_fixes_the_training(policy):
    runs = [weights(model_of(Pairs(length=5), policy=policy, alpha=1.0, seed=seed).learn(192)) for seed in (3, 3, 4)]
    assert th.equal(runs[0], runs[1]) and not th.equal(runs[0], runs[2])


def test_critics_of_penalties_learn_from_their_own_group():
    critic = PenaltyCritic(SEEN, 2, lambda obs: obs[:, 2].astype(int), seed=0, hidden=(8,), learning_rate=0.01)
    first, second = critic.members
    obs = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    obs[:, 2] = np.arange(64) % 2
    before = [first.values(obs), second.values(obs)]
    assert_allclose(critic.values(obs), np.where(obs[:, 2] == 0, *before))
    critic.fit(obs[1::2], np.full(32, 7.0), epochs=3, batch_size=16)
    assert_array_equal(first.values(obs), before[0])
    assert abs(second.values(obs).mean() - 7) < 1


# ---------------------------------------------------------------- save, load, continue


@pytest.mark.parametrize("keyed", [False, True])
def test_a_saved_model_continues(tmp_path, keyed):
    venv = partial(Pairs, length=5, keyed=keyed)
    kwargs = {"net_arch": [8]} if keyed else GROUPED
    model = model_of(venv(), policy="GroupedPolicy", policy_kwargs=kwargs, alpha=1.0, lam="dual", lam_target=0.0)
    model.learn(192).save(tmp_path / "model")
    loaded = [FairPPO.load(tmp_path / "model", venv()) for _ in range(2)]
    assert th.equal(weights(loaded[0]), weights(model))
    assert (loaded[0].coefficient.value, loaded[0].retrospective.scale) == (
        model.coefficient.value,
        model.retrospective.scale,
    )
    ours, theirs = (m.penalty_critic.state_dict() for m in (model, loaded[0]))
    assert all(th.equal(ours[key], theirs[key]) for key in ours)
    th.manual_seed(1), np.random.seed(1)  # noqa: NPY002
    first = weights(loaded[0].learn(192, reset_num_timesteps=False))
    th.manual_seed(1), np.random.seed(1)  # noqa: NPY002
    assert th.equal(first, weights(loaded[1].learn(192, reset_num_timesteps=False)))
    assert loaded[0].num_timesteps == 384
    obs = venv().reset()
    assert_array_equal(
        FairPPO.load(tmp_path / "model").predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0]
    )


def test_other_weights_may_be_given_to_a_loaded_model_or_between_rollouts(tmp_path):
    model = model_of(Pairs(length=5)).learn(64)
    model.save(tmp_path / "classic")
    fair = FairPPO.load(tmp_path / "classic", Pairs(length=5), alpha=1.0).learn(64, reset_num_timesteps=False)
    assert fair.penalty_critic is not None and fair.coefficient.retrospective == 1.0
    fair.save(tmp_path / "fair")
    again = FairPPO.load(tmp_path / "fair", Pairs(length=5), alpha=0.0).learn(64, reset_num_timesteps=False)
    assert again.penalties is None
    again.alpha = 0.5
    again.learn(64, reset_num_timesteps=False)
    assert again.penalties is not None


def test_episodes_begin_anew_after_an_interruption():
    model = model_of(Pairs(length=1000), alpha=1.0)
    model.learn(64, Watch(stop=4 * 6))
    model.learn(64, reset_num_timesteps=False)
    begin = model.rollout_buffer.episode_starts
    assert begin[0].all() and not begin[1:].any()
    earned = model.rollout_buffer.columns["reward"].reshape(4, 16).sum(axis=1)
    assert model.retrospective.past.returns[0] == pytest.approx(earned[::2].mean())


def test_controls_without_labels_can_be_interrupted():
    model = model_of(Pairs(length=1000), fairness="csp")
    model.learn(64, Watch(stop=4 * 6))
    model.learn(64, reset_num_timesteps=False)
    assert model.num_timesteps >= 64


def test_parameters_go_from_a_trained_model_to_a_new_one_and_back():
    trained, new = (model_of(Pairs(length=5), alpha=1.0) for _ in range(2))
    trained.learn(128)
    new.set_parameters(trained.get_parameters())
    assert th.equal(weights(new), weights(trained))
    trained.set_parameters(model_of(Pairs(length=5), alpha=1.0).get_parameters())


def test_several_binary_actions_can_be_charged():
    assert model_of(earners(action="binary"), alpha=1.0).learn(128).penalised_rollouts > 0


def test_a_function_that_tells_groups_sees_observations_before_they_are_normalised():
    seen = []
    venv = VecNormalize(earners(tells=False))
    model = model_of(venv, alpha=1.0, group_fn=lambda obs, infos: seen.append(obs) or obs[:, 2].astype(int))
    model.learn(64)
    assert len(seen) == 16 and all(np.array_equal(obs[:, 2], [0, 1, 0, 1]) for obs in seen)
    assert [obs[0, 0] for obs in seen] == [0, 1, 2, 3] * 4  # before the step, not after it


# ---------------------------------------------------------------- errors


def test_what_is_not_allowed_is_named():
    for settings, words in (
        ({"alpha": -1.0}, "alpha must be a non-negative number, got -1.0"),
        ({"beta": -0.5}, "beta must be a non-negative number, got -0.5"),
        ({"alpha": "much"}, "alpha must be a non-negative number, got 'much'"),
        ({"threshold": -1}, "threshold must be a non-negative number, got -1"),
        ({"tolerance": -0.1}, "tolerance must be a non-negative number, got -0.1"),
        ({"retro": "telescope"}, "did you mean 'telescoped'"),
        ({"prosp": "statecost"}, "did you mean 'state_cost'"),
        ({"fairness": "pd"}, "fairness must be one of"),
        ({"sign": "two_sided"}, "did you mean 'one_sided'"),
        ({"aggregate": "mean"}, "aggregate must be one of"),
        ({"g": "now"}, "g must be one of"),
        ({"stream": "rewards"}, "did you mean 'reward'"),
        ({"mode": "streams"}, "did you mean 'streaming'"),
        ({"lam": "automatic"}, "lam must be"),
        ({"penalty_gamma": 1.5}, "penalty_gamma must be in .* or None, got 1.5"),
        ({"rollout_buffer_class": dict}, "subclass of .*RolloutBuffer"),
    ):
        with pytest.raises(ValueError, match=words):
            model_of(earners(), **settings)
    with pytest.raises(ValueError, match="env must be given"):
        model_of(None)


@pytest.mark.parametrize(
    ("venv", "settings", "words"),
    [
        (partial(earners, tells=False), {"alpha": 1.0}, "slot_group.*individual.*group_fn"),
        (partial(earners, tells=False), {"beta": 1.0}, "slot_group.*individual.*group_fn"),
        (partial(earners), {"alpha": 1.0, "fairness": "cf"}, "pair must be given for fairness='cf'"),
        (partial(earners), {"beta": 1.0, "fairness": "csp"}, "lf must be given for fairness='csp'"),
    ],
)
def test_labels_that_are_missing_are_named(venv, settings, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        model_of(venv(), **settings).learn(64)


@pytest.mark.parametrize(
    ("venv", "settings", "words"),
    [
        (partial(earners, 1), {}, r"got \['0'\] in 64 steps, and never two of them were in a world at once"),
        (partial(earners), {"mode": "streaming"}, r"got \['0', '1'\] in 64 steps, and never one slot met two of them"),
    ],
)
def test_groups_that_never_meet_are_warned_about(venv, settings, words):
    with pytest.warns(UserWarning, match=words):
        model_of(venv(), alpha=1.0, **settings).learn(64)


def test_that_they_never_met_is_said_after_a_while(monkeypatch):
    monkeypatch.setattr("sb3_fair.fair_ppo.labels.LONG", 32)
    with pytest.warns(UserWarning, match="in 32 steps") as said:
        model_of(earners(1), alpha=1.0).learn(64)
    assert sum("in 32 steps" in str(warning.message) for warning in said) == 1


def test_a_rare_group_may_come_late():
    class Late(Earner):
        def _observe(self):
            observation = super()._observe()
            self.present = observation[2] = int(self.t == 40)
            return observation

    venv = DummyVecEnv([lambda: Late(None, length=50)])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="group must have")
        model = model_of(venv, alpha=1.0).learn(64)
    assert model.labels.streaming


def test_gamma_is_below_1_for_a_cost_of_states():
    with pytest.raises(ValueError, match="gamma must be below 1"):
        model_of(earners(), beta=1.0, gamma=1.0)


def test_without_weights_it_says_so_once():
    with pytest.warns(UserWarning, match="alpha and beta are 0: this is plain PPO"):
        model_of(earners())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="alpha and beta are 0")
        model_of(earners(), beta=0.1)


class Labelled(VecEnvWrapper):
    """Groups by these names."""

    def __init__(self, venv, *names):
        super().__init__(venv)
        self.names = names

    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            info["individual"]["group"] = self.names[info["individual"]["group"]]
        return obs, rewards, dones, infos


@pytest.mark.parametrize("stream", [False, True])
def test_groups_may_have_names(stream):
    settings = {"alpha": 1.0, "beta": 0.5, "retro": "linear"}
    numbers = learned(model_of(Labelled(earners(stream=stream), 0, 1), **settings), 192)
    names = learned(model_of(Labelled(earners(stream=stream), "men", "women"), **settings), 192)
    assert th.equal(weights(numbers), weights(names))
    found = {key for key in logs(names) if key.startswith("fair/return")}
    assert found == {"fair/return_men", "fair/return_women"}
    by_function = {"group_fn": lambda obs, infos: obs[:, 2].astype(int)}
    model = model_of(Labelled(earners(stream=stream), "all", "all"), **settings, **by_function)
    assert th.equal(weights(model.learn(192)), weights(numbers))


def test_names_keep_their_numbers_in_a_saved_model(tmp_path):
    model = model_of(Labelled(earners(), "women", "men"), alpha=1.0).learn(64)
    model.save(tmp_path / "model")
    loaded = FairPPO.load(tmp_path / "model", Labelled(earners(), "men", "women")).learn(64)
    assert [loaded.labels.name(number) for number in range(2)] == ["women", "men"]


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
