"""Does F-PPO store and learn as its paper says, and is it PPO where nothing is asked of it?"""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_fair import make_vec
from sb3_fair.common.fairness_ppo import WatchedVecEnv
from sb3_fair.f_ppo import FPPO, massage, regularise_advantages
from sb3_fair.f_ppo.regulariser import regulariser
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers import Disparity, FairMDP, VecFairMDP
from tests.f_ppo.bank import FORMS, Bank, BankMeasures
from tests.f_ppo.models import NEUTRAL, banks, model_of
from tests.models import FORK, Watch, learned, weights
from tests.wrappers.bank import Counting

# ---------------------------------------------------------------- neutral


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("settings", [{}, {"form": "parts"}, {"form": "box"}, {"kind": "dict"}], ids=str)
def test_with_everything_off_it_is_ppo_bit_for_bit(n, settings):
    ours = model_of(banks(n, **settings), **NEUTRAL).learn(n * 72)
    theirs = model_of(banks(n, **settings), PPO).learn(n * 72)
    assert_array_equal(weights(ours), weights(theirs))


@pytest.mark.parametrize("scaling", ["std", "minmax"])
def test_scaling_alone_changes_nothing(scaling):
    ours = model_of(banks(), scaling=scaling, **NEUTRAL).learn(144)
    assert_array_equal(weights(ours), weights(model_of(banks(), PPO).learn(144)))


def test_without_massaging_nothing_is_registered_and_afterwards_never():
    seen = []
    look = Watch(lambda model, _: seen.append(len(model.policy._forward_hooks)))
    model_of(banks(), massage=False).learn(72, look)
    assert set(seen) == {0}
    model = model_of(banks()).learn(72, look)
    assert set(seen) == {0, 1} and not model.policy._forward_hooks


def test_while_the_threshold_is_0_no_action_changes():
    ours = learned(model_of(banks(start=2), reg_lambda=0), 144)
    assert_array_equal(weights(ours), weights(model_of(banks(), PPO).learn(144)))
    assert ours.logger.name_to_value["massage/changed_fraction"] == 0
    learned(ours, 72, reset_num_timesteps=False)
    assert ours.logger.name_to_value["massage/changed_fraction"] > 0.2


# ---------------------------------------------------------------- massaging


def stored_actions(model, form):
    """Those of a rollout, clipped as environments get them, after a look at their log-probabilities."""
    buffer = model.rollout_buffer
    given = torch.as_tensor(buffer.actions.reshape(-1, buffer.action_dim))
    _, log_probs, _ = model.policy.evaluate_actions(
        torch.as_tensor(buffer.observations.reshape(-1, 3)), given.flatten() if form == "discrete" else given
    )
    assert_allclose(buffer.log_probs.ravel(), log_probs.detach(), atol=2e-6)
    space = model.action_space
    return buffer.actions.clip(space.low, space.high) if form == "box" else buffer.actions


@pytest.mark.parametrize("cls", [DummyVecEnv, FORK], ids=["dummy", "subproc"])
@pytest.mark.parametrize("form", FORMS)
def test_stored_actions_are_those_executed_and_so_are_their_log_probabilities(form, cls):
    executed, rollouts = [], []

    def compare(model):
        assert_array_equal(stored_actions(model, form).reshape(np.shape(executed)), executed)
        rollouts.append(model.rollout_buffer.columns["changed"].mean())
        executed.clear()

    look = Watch(lambda _, locals_: executed.append([info["executed"] for info in locals_["infos"]]), compare)
    venv = banks(cls=cls, form=form)
    model_of(venv, learning_rate=3e-3).learn(216, look)
    venv.close()
    assert len(rollouts) == 3 and min(rollouts) > 0.1


@pytest.mark.parametrize("form", FORMS)
def test_the_filter_may_count_as_part_of_the_environment(form):
    steps = []

    def compare(model):
        shape = (*model.rollout_buffer.rewards.shape, -1)
        differ = (stored_actions(model, form).reshape(shape) != np.reshape(steps, shape)).any(2)
        assert_array_equal(differ, model.rollout_buffer.columns["changed"] == 1)
        assert differ.mean() > 0.1
        steps.clear()

    look = Watch(lambda _, locals_: steps.append([info["executed"] for info in locals_["infos"]]), compare)
    model_of(banks(form=form), massage_credit="sampled", learning_rate=3e-3).learn(216, look)


def test_a_gaussian_action_that_is_not_replaced_is_stored_unclipped():
    beyond = []

    def compare(model):
        outside = np.abs(model.rollout_buffer.actions).max(axis=2) > 0.4
        assert not (outside & (model.rollout_buffer.columns["changed"] == 1)).any()
        beyond.append(outside.mean())

    model_of(banks(form="box")).learn(72, Watch(end=compare))
    assert beyond[0] > 0.3


@pytest.mark.parametrize("form", FORMS)
def test_the_filter_foresees_the_disparity_after_every_step_also_the_first_of_an_episode(form):
    """Copies of different episode lengths; the filter's record is still that of the step when callbacks look."""
    times = []

    def look(model, locals_):
        actions = np.array([info["executed"] for info in locals_["infos"]])
        foreseen = model.measures.would_be(model._coming, actions[:, None])[:, 0]
        assert_allclose(foreseen, [info["fairness"]["d_s"] for info in locals_["infos"]])
        other = model.measures.would_be(model._coming, model.measures.candidates(model._coming, actions, EVEN)[0])
        if form == "discrete":  # both probabilities stay near 1/2: the fairer one is always taken
            assert (foreseen <= other[:, 0] + 1e-12).all()
        times.extend(info["t"] for info in locals_["infos"])

    venv = DummyVecEnv([lambda length=length: Bank(length, form) for length in (5, 3, 4)])
    model_of(venv, massage_threshold=0.9).learn(72, Watch(look))
    assert {1, 2, 3, 4, 5} <= set(times)


def test_callbacks_may_ask_the_policy_in_the_middle_of_a_rollout():
    class Asking(Watch):
        def _on_rollout_start(self):
            self.look(self.model, {"new_obs": self.model._last_obs})

    def learned(*sizes):
        def ask(model, locals_):
            for size in sizes:
                with torch.no_grad(), torch.random.fork_rng():
                    model.policy(torch.as_tensor(locals_["new_obs"][:1].repeat(size, axis=0)))

        gains = []
        watch = Asking(ask, lambda model: gains.append(model.rollout_buffer.columns["gain"].copy()))
        return model_of(banks(), massage_threshold=0.3).learn(72, watch), gains

    (alone, expected), (asked, gains) = learned(), learned(3, 5)
    assert_array_equal(alone.rollout_buffer.actions, asked.rollout_buffer.actions)
    assert_array_equal(expected, gains)
    for own, other in zip(alone.policy.parameters(), asked.policy.parameters(), strict=True):
        assert torch.equal(own, other)


EVEN = np.full((3, 2, 2), 0.5)


def test_the_filter_is_that_of_the_pure_function():
    """The same sampled actions, massaged outside."""
    venv = banks()
    model = model_of(venv, massage_threshold=0.3, reg_lambda=0)
    plain = model_of(banks(), PPO)
    obs = torch.as_tensor(venv.reset())
    model._coming = {"group": np.array([0, 1, 0]), "granted": np.array([[2.0, 3.0]] * 3), "seen": np.full((3, 2), 4.0)}
    model.threshold = 0.3
    model.watched = WatchedVecEnv(venv)
    changes = 0
    for seed in range(10):
        torch.manual_seed(seed)
        sampled, values, _ = plain.policy(obs)
        chances = plain.policy.action_dist.distribution.probs.detach().numpy()
        torch.manual_seed(seed)
        with model.policy.register_forward_hook(model._filter):
            actions, same_values, log_probs = model.policy(obs)
        expected = massage(model.measures, model._coming, sampled.numpy(), chances, 0.3)
        assert_array_equal(actions, expected.actions)
        assert_array_equal(same_values.detach(), values.detach())
        assert_allclose(log_probs.detach(), np.log(chances[range(3), expected.actions]), atol=1e-6)
        changes += expected.changed.sum()
    assert changes > 5


@pytest.mark.parametrize("n", [1, 3, 16])
def test_any_number_of_copies_will_do(n):
    model = learned(model_of(banks(n)), n * 48)
    assert model.rollout_buffer.columns["changed"].shape == (24 * n,)
    assert model.logger.name_to_value["massage/changed_fraction"] > 0.1


@pytest.mark.parametrize("form", FORMS)
def test_processes_change_nothing(form):
    first, second = banks(form=form, cls=DummyVecEnv), banks(form=form, cls=FORK)
    assert_array_equal(weights(model_of(first).learn(144)), weights(model_of(second).learn(144)))
    second.close()


def test_wrappers_around_the_copies_hide_nothing():
    venv = VecNormalize(VecMonitor(DummyVecEnv([Bank] * 3)))
    model = learned(model_of(venv), 144)
    assert model.get_vec_normalize_env() is venv
    assert model.logger.name_to_value["massage/changed_fraction"] > 0.1


def test_copies_that_publish_disparities_themselves_are_as_good_as_the_layer_added():
    spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0), notions=(), groups=(0, 1))

    def copies(around):
        venv = DummyVecEnv([lambda n=n: around(FairMDP(Bank(n, tells=()), spec)) for n in (2, 3, 5)])
        venv.seed(0)
        return venv

    found = []
    for around in (Disparity, lambda env: env):
        model = learned(model_of(copies(around), massage_threshold=0.5, massage_on_predict=True), 144)
        assert model.rollout_buffer.columns["changed"].mean() > 0.1
        found.append((*weights(model), *evaluate_policy(model, model.bind(copies(around)), 6, warn=False)))
    assert_array_equal(*found)


def test_state_dependent_noise_may_squash_actions():
    executed = []

    def compare(model):
        stored = model.policy.unscale_action(model.rollout_buffer.actions)
        assert_allclose(stored, executed, atol=1e-6)
        assert model.rollout_buffer.columns["changed"].mean() > 0.1

    look = Watch(lambda _, locals_: executed.append([info["executed"] for info in locals_["infos"]]), compare)
    model_of(banks(form="box"), use_sde=True, policy_kwargs={"squash_output": True}).learn(72, look)


@pytest.mark.parametrize("name", ["Lending", "AttentionAllocation", "EpidemicControl", "JobHiring"])
def test_batched_scenarios_are_the_same_as_single_ones(name):
    settings = {"massage_threshold": 0.3, "n_steps": 32, "batch_size": 32}
    batched = learned(model_of(make_vec(f"sb3_fair/{name}-v0", n_envs=3), **settings), 192)
    single = model_of(make_vec_env(f"sb3_fair:sb3_fair/{name}-v0", n_envs=3), **settings).learn(192)
    assert_array_equal(weights(batched), weights(single))
    assert batched.logger.name_to_value["massage/changed_fraction"] > 0.1


@pytest.mark.parametrize("threshold", [0.0, 0.9])
def test_notions_see_the_probabilities_after_the_filter(threshold):
    spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0), features=slice(2, 3), low=-1, high=1, notions=("IF",))
    venv = VecFairMDP(make_vec_env("CartPole-v1", 2, seed=0), spec)
    rows, record = [], venv._count

    def noting(people, actions, probabilities, here):
        rows.append((actions, np.array(probabilities)))
        return record(people, actions, probabilities, here)

    venv._count = noting
    model_of(venv, massage_threshold=threshold).learn(48)
    actions, chances = map(np.concatenate, zip(*rows, strict=True))
    assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
    assert (chances[np.arange(len(actions)), actions] > 0).all()
    assert (chances.min(axis=1) == 0).any() == (threshold > 0)
    assert venv.probabilities_used == "policy"


# ---------------------------------------------------------------- regularisation


def test_every_transition_keeps_its_own_disparities_also_an_episodes_last_one():
    told, columns = [], {}

    def end(model):
        columns.update({name: column.copy() for name, column in model.rollout_buffer.columns.items()})

    look = Watch(lambda _, locals_: told.append(locals_["infos"]), end)
    model_of(banks(3, length=5), massage=False, n_steps=25, batch_size=25).learn(75, look)
    for name in ("d_s", "d_s_prev", "d_l", "d_l_next"):
        assert_array_equal(columns[name], [[info["fairness"][name] for info in infos] for infos in told])
    begins = np.arange(25) % 5 == 0
    assert_allclose(columns["d_l"][begins], 0.4)
    assert_array_equal(columns["d_s_prev"][begins], 0)
    assert_array_equal(columns["d_l"][~begins], columns["d_l_next"][np.roll(~begins, -1)])
    assert_array_equal(columns["d_s_prev"][~begins], columns["d_s"][np.roll(~begins, -1)])
    assert (columns["d_l_next"][4::5] != columns["d_l"][begins]).any()


@pytest.mark.parametrize("kind", ["box", "dict"])
def test_advantages_have_the_regulariser_and_returns_have_not(kind):
    kept = []

    def keep(model):
        buffer = model.rollout_buffer
        kept.append((buffer.advantages.copy(), buffer.returns.copy(), getattr(buffer, "columns", None)))

    model_of(banks(kind=kind), massage=False, reg_lambda=3, delta=0.3).learn(72, Watch(end=keep))
    model_of(banks(kind=kind), PPO).learn(72, Watch(end=keep))
    (ours, returns, columns), (theirs, same_returns, _) = kept
    change = columns["d_l"] - columns["d_l_next"]
    bonus = np.where(columns["d_s"] > 0.3, np.minimum(change, 0), np.maximum(change, 0))
    assert (bonus != 0).any()
    assert_allclose(ours, theirs + 3 * bonus, atol=1e-6)
    assert_array_equal(returns, same_returns)


def test_what_is_added_is_scaled_like_the_rewards():
    kept = []

    def keep(model):
        buffer, normaliser = model.rollout_buffer, model.get_vec_normalize_env()
        bonus = regulariser(buffer.disparities(), 0.3)
        kept.append((buffer.advantages.copy(), bonus * normaliser.normalize_reward(np.ones(1))))

    for weight in (0.0, 3.0):
        venv = VecNormalize(banks(reward=5.0))
        model_of(venv, massage=False, reg_lambda=weight, delta=0.3).learn(72, Watch(end=keep))
    (plain, _), (regularised, bonus) = kept
    assert_allclose(regularised, plain + 3 * bonus, atol=1e-6)


def test_minmax_is_done_in_every_minibatch(monkeypatch):
    monkeypatch.setattr(PPO, "train", lambda model: None)
    model = model_of(banks(), massage=False, scaling="minmax", beta1=0.5)
    model.learn(72, Watch(end=lambda model: setattr(model, "plain", model.rollout_buffer.advantages.copy())))
    buffer = model.rollout_buffer
    drawn = np.random.RandomState(5).permutation(72).reshape(3, 24)
    np.random.seed(5)  # noqa: NPY002 (SB3's generator)
    for rows, batch in zip(drawn, buffer.get(24), strict=True):
        expected = regularise_advantages(
            model.plain.T.ravel()[rows], buffer.disparities(rows), reg_lambda=1.0, beta1=0.5, scaling="minmax"
        )
        assert_allclose(batch.advantages, expected, atol=1e-5)


class Arms(Counting):
    """Two arms without reward. Long-term disparity falls by 1 with the second arm, or with a coin's head."""

    def __init__(self, acts, unfair=False):
        self.acts, self.unfair = acts, unfair
        self.fairness_spec = FairnessSpec(measures=BankMeasures(), notions=())

    def step(self, action):
        falls = action if self.acts else self.np_random.integers(2)
        figures = {"d_s": float(self.unfair), "d_s_prev": 0.0, "d_l": 1.0, "d_l_next": 1.5 - float(falls)}
        return np.zeros(1, np.float32), 0.0, True, False, {"fairness": figures}


def second_arm(seed=0, unfair=False, acts=True, **settings):
    """Probability of the second arm after training."""
    venv = make_vec_env(lambda: Arms(acts, unfair), n_envs=4, seed=seed)
    settings = {"massage": False, "n_steps": 64, "batch_size": 64, "n_epochs": 4, "learning_rate": 0.02} | settings
    model = model_of(venv, seed=seed, policy_kwargs={"net_arch": [8]}, **settings).learn(256 * 4)
    return model.policy.get_distribution(torch.zeros(1, 1)).distribution.probs[0, 1].item()


@pytest.mark.parametrize("scaling", ["none", "std", "minmax"])
@pytest.mark.parametrize("unfair", [False, True])
def test_where_the_regulariser_depends_on_the_action_the_policy_moves(scaling, unfair):
    assert second_arm(scaling=scaling, unfair=unfair) > 0.9
    assert abs(second_arm(scaling=scaling, unfair=unfair, reg_lambda=0) - 0.5) < 0.05


def test_where_it_does_not_the_policy_stays_within_noise():
    found = np.array([second_arm(seed, acts=False) for seed in range(6)])
    assert abs(found.mean() - 0.5) < 3 * found.std(ddof=1) / np.sqrt(6)
    assert (np.abs(found - 0.5) < 0.4).all()


# ---------------------------------------------------------------- names and schedules


def test_named_constructors_are_settings():
    given = {"n_steps": 24, "batch_size": 24}
    long_term = FPPO.f_ppo_l("MlpPolicy", banks(), reg_lambda=3, **given)
    short_term = FPPO.f_ppo_s("MlpPolicy", banks(), massage_threshold=0.2, **given)
    a_ppo = FPPO.a_ppo("MlpPolicy", banks(), omega=0.1, **given)
    assert (long_term.massage, long_term.reg_lambda, long_term.beta1) == (False, 3, 0)
    assert (short_term.massage, short_term.reg_lambda, short_term.threshold) == (True, 0, 0.2)
    assert (a_ppo.massage, a_ppo.reg_lambda, a_ppo.beta1, a_ppo.beta2, a_ppo.omega) == (False, 0, 0.25, 0.25, 0.1)
    assert a_ppo.scaling == "minmax" and long_term.scaling == "none"
    assert FPPO.a_ppo("MlpPolicy", banks(), scaling="none", **given).scaling == "none"
    for constructor, name in ((FPPO.f_ppo_l, "massage"), (FPPO.f_ppo_s, "reg_lambda"), (FPPO.a_ppo, "reg_lambda")):
        with pytest.raises(TypeError, match=name):
            constructor("MlpPolicy", banks(), **{name: 1.0})


def test_the_short_term_half_has_no_regulariser():
    alike = [
        model_of(banks(), massage_threshold=0.3, **more).learn(144) for more in ({"reg_lambda": 0}, {"delta": 0.4})
    ]
    assert (
        weights(FPPO.f_ppo_s("MlpPolicy", banks(), massage_threshold=0.3, **SAME).learn(144)) == weights(alike[0])
    ).all()
    assert (weights(alike[0]) != weights(alike[1])).any()


SAME = {"n_steps": 24, "batch_size": 24, "n_epochs": 2, "seed": 0, "device": "cpu"}


def thresholds(model, n):
    """Of the n next rollouts."""
    seen = []
    model.learn(n * 72, Watch(end=lambda model: seen.append(model.threshold)), reset_num_timesteps=False)
    return seen


def test_thresholds_follow_the_rollouts():
    assert thresholds(model_of(banks(start=2, tau=0.25)), 4) == [0, 0, 0.25, 0.25]
    assert thresholds(model_of(banks(), massage_threshold=lambda i: i / 10), 4) == [0, 0.1, 0.2, 0.3]
    assert thresholds(model_of(banks(), massage_threshold=0.7), 2) == [0.7, 0.7]


def test_thresholds_may_follow_the_steps_of_all_copies():
    ten = {"massage_threshold": lambda i: i / 10, "schedule_unit": "timesteps", "schedule_steps": 36}
    assert thresholds(model_of(banks(3), **ten), 3) == [0, 0.2, 0.4]


def test_a_new_training_begins_with_iteration_0():
    model = model_of(banks(start=1)).learn(144)
    assert model.iteration == 2
    assert model.learn(72).iteration == 1
    assert len(model.figures.figures["d_s"]) == len(model.ep_info_buffer) < 100
    assert model.threshold == 0


def test_logs_tell_what_was_done():
    model = learned(model_of(banks(length=4)), 72)
    logs = model.logger.name_to_value
    columns = model.rollout_buffer.columns
    assert logs["massage/changed_fraction"] == columns["changed"].mean() > 0
    assert logs["massage/candidate_fraction"] == columns["candidates"].mean() == 1
    assert logs["massage/d_s_gain"] == pytest.approx(columns["gain"].mean()) and columns["gain"].max() > 0
    assert logs["massage/threshold"] == 0.5
    assert logs["fairness/d_s"] == pytest.approx(columns["d_s"].mean())
    assert logs["fairness/d_l"] == pytest.approx(columns["d_l"].mean())
    assert logs["fairness/d_l_next"] == pytest.approx(model.figures.means()["d_l_next"])
    bonus = regulariser(model.rollout_buffer.disparities(), 0.05)
    assert logs["train/reg_mean"] == pytest.approx(bonus.mean())
    assert logs["train/reg_nonzero_fraction"] == (bonus != 0).mean()
    added = model.reg_lambda * bonus
    assert logs["train/reg_share"] == pytest.approx(added.std() / model.rollout_buffer.advantages.std())
    assert "train/reg_share" not in learned(model_of(banks(), scaling="std"), 72).logger.name_to_value
    model = learned(model_of(banks(length=4), massage=False, reg_lambda=0.0, beta1=2.0, omega=0.01), 72)
    added = 2 * np.minimum(0, 0.01 - model.rollout_buffer.columns["d_s"])
    share = added.std() / model.rollout_buffer.advantages.std()
    assert model.logger.name_to_value["train/reg_share"] == pytest.approx(share) and share > 0
    assert all(logs[f"time/{part}"] > 0 for part in ("env", "policy", "massage", "update"))
