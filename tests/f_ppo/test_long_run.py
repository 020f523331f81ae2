"""Is a step credited with all that it does to the groups, also later?"""

from dataclasses import dataclass
from functools import partial
from itertools import permutations

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3.common.env_util import make_vec_env

import sb3_fair
from sb3_fair.f_ppo import FPPO
from sb3_fair.f_ppo.long_run import LongRunCredit
from sb3_fair.fairness import FairnessSpec
from tests.f_ppo.models import changed

SETTINGS = {"n_steps": 60, "batch_size": 60, "n_epochs": 4, "learning_rate": 0.01, "device": "cpu"}


def infos_of(before, after, truncated):
    return [
        {"detail": {"outlook_before": b, "outlook": a}, "TimeLimit.truncated": bool(t)}
        for b, a, t in zip(before, after, truncated, strict=True)
    ]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 3), length=st.integers(1, 7), gamma=st.floats(0, 1))
def test_credit_is_the_fall_and_what_the_critic_says_of_the_groups(seed, n, length, gamma):
    rng = np.random.default_rng(seed)
    before, after = rng.random((2, length, n, 2))
    d_l, d_l_next = rng.random((2, length, n))
    dones = rng.random((length, n)) < 0.3
    truncated = dones & (rng.random((length, n)) < 0.5)
    long_run = LongRunCredit(gamma)
    for step in range(length):
        long_run.note(infos_of(before[step], after[step], truncated[step]), dones[step])
    credit = long_run.credit(d_l, d_l_next)
    for step, copy in np.ndindex(length, n):
        value, following = (long_run.critic.values(groups[step, copy, None])[0] for groups in (before, after))
        goes_on = truncated[step, copy] or not dones[step, copy]
        fall = d_l[step, copy] - d_l_next[step, copy]
        assert_allclose(credit[step, copy], fall + gamma * following * goes_on - value, atol=1e-9)


def test_uplift_counts_gains_of_those_behind_and_no_others():
    rng = np.random.default_rng(0)
    before, after = rng.random((2, 40, 3, 2))
    d_l, d_l_next = rng.random((2, 40, 3))
    behind, ended = rng.random((2, 40, 3)) < [[[0.5]], [[0.1]]]
    long_run = LongRunCredit(0.9, uplift=True)
    for step in range(40):
        infos = infos_of(before[step], after[step], np.zeros(3))
        for info, is_behind in zip(infos, behind[step], strict=True):
            info["detail"]["behind"] = is_behind
        long_run.note(infos, ended[step])
    credit = long_run.credit(d_l, d_l_next)
    for step, copy in np.ndindex(40, 3):
        now, then = (long_run.critic.values(groups[step, copy, None])[0] for groups in (before, after))
        gain = d_l[step, copy] - d_l_next[step, copy] + (0 if ended[step, copy] else 0.9 * (then - now))
        assert_allclose(credit[step, copy], max(gain, 0) if behind[step, copy] else 0, atol=1e-9)
    assert 0 < (credit > 0).mean() < 0.5


@dataclass(frozen=True)
class BridgeMeasures:
    short_term: str = "d_s"
    long_term: str = "d_l"
    long_term_next: str = "d_l_next"

    def threshold(self, iteration):
        return 0.0

    def candidates(self, massage, actions, probabilities):
        raise AssertionError("nothing is massaged here")

    would_be = candidates


class Bridge(gym.Env):
    """To build a bridge (action 1 in the first step) takes the groups apart a little, then they come closer and closer.

    Decisions are never fair, so that F-PPO punishes what takes the groups apart.
    """

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, detail=True):
        self.detail = detail
        self.fairness_spec = FairnessSpec(notions=(), measures=BridgeMeasures())

    behind = True

    def _groups(self):
        return np.array([[self.speed, self.distance]])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.speed, self.distance = 0, 0.0, 1.0
        return np.ones(1, np.float32), {}

    def step(self, action):
        groups, d_l = self._groups(), self.distance
        if self.t == 0:
            self.speed = 0.1 * int(action)
            self.distance += self.speed
        else:
            self.distance -= self.speed
            self.speed *= 0.8
        self.t += 1
        fairness = {"d_s": 1.0, "d_s_prev": 1.0, "d_l": d_l, "d_l_next": self.distance}
        info = {"fairness": fairness}
        if self.detail:
            info["detail"] = {"outlook_before": groups, "outlook": self._groups(), "behind": self.behind}
        return np.zeros(1, np.float32), 0.0, False, self.t == 6, info


def chance_of_building(model):
    first = th.ones((1, 1))
    return float(model.policy.get_distribution(first).distribution.probs[0, 1].detach())


@pytest.mark.parametrize(("credit", "builds"), [("step", False), ("return", True), ("uplift", True)])
def test_what_pays_later_is_learned_with_the_credit_of_the_long_run(credit, builds):
    model = FPPO("MlpPolicy", make_vec_env(Bridge, 4), seed=0, massage=False, reg_credit=credit, **SETTINGS)
    model.learn(6000)
    assert (chance_of_building(model) > 0.5) == builds
    assert abs(chance_of_building(model) - 0.5) > 0.2


@pytest.mark.parametrize("credit", ["return", "uplift"])
def test_the_critic_goes_on_after_saving(tmp_path, credit):
    model = FPPO("MlpPolicy", make_vec_env(Bridge, 2), seed=0, massage=False, reg_credit=credit, **SETTINGS)
    model.learn(240).save(tmp_path / "model")
    loaded = FPPO.load(tmp_path / "model", env=make_vec_env(Bridge, 2), device="cpu")
    assert_array_equal(loaded.long_run.critic.weights, model.long_run.critic.weights)
    assert loaded.long_run.critic.rollouts == model.long_run.critic.rollouts == 2
    assert loaded.long_run.uplift == (credit == "uplift")
    if loaded.long_run.uplift:
        assert_array_equal(loaded.baseline.values(np.ones((1, 1))), model.baseline.values(np.ones((1, 1))))
        assert loaded.baseline.rollouts == 2
    loaded.learn(120, reset_num_timesteps=False)
    assert loaded.long_run.critic.rollouts == 3


@pytest.mark.parametrize("way", ["load", "attributes"])
@pytest.mark.parametrize(("before", "after"), list(permutations(("step", "return", "uplift"), 2)))
def test_the_credit_may_be_changed_later(tmp_path, before, after, way):
    model = FPPO("MlpPolicy", make_vec_env(Bridge, 2), massage=False, reg_credit=before, **SETTINGS).learn(120)
    path = tmp_path / "model" if way == "load" else None
    model = changed(model, make_vec_env(Bridge, 2), path, reg_credit=after)
    model.learn(120, reset_num_timesteps=False)
    assert (model.rollout_buffer.credit is None) == (after == "step")
    assert (model.rollout_buffer.baseline is None) == (after != "uplift")
    assert model.long_run is None if after == "step" else model.long_run.uplift == (after == "uplift")


@pytest.mark.parametrize("way", ["load", "attributes"])
def test_the_discount_of_the_credit_may_be_changed_later(tmp_path, way):
    model = FPPO("MlpPolicy", make_vec_env(Bridge, 2), massage=False, reg_credit="return", **SETTINGS).learn(120)
    path = tmp_path / "model" if way == "load" else None
    model = changed(model, make_vec_env(Bridge, 2), path, reg_gamma=0.5)
    model.learn(240, reset_num_timesteps=False)
    assert (model.long_run.critic.gamma, model.long_run.critic.rollouts) == (0.5, 2)


def test_a_rollout_that_was_broken_off_leaves_nothing_behind():
    model = FPPO("MlpPolicy", make_vec_env(Bridge, 2), seed=0, massage=False, reg_credit="return", **SETTINGS)
    model.learn(240, callback=lambda *_: model.num_timesteps < 50)
    assert model.long_run.critic.rollouts == 0
    assert model.learn(240).long_run.critic.rollouts == 2


def test_learning_goes_on_when_the_credit_is_switched_off():
    model = FPPO("MlpPolicy", make_vec_env(Bridge, 2), massage=False, reg_credit="return", beta1=0.1, **SETTINGS)
    model.learn(120)
    model.reg_lambda = 0.0
    model.learn(120, reset_num_timesteps=False)
    assert model.rollout_buffer.credit is None
    assert model.long_run.critic.rollouts == 1


def test_a_weight_that_changes_in_a_rollout_counts_from_the_next_one_on():
    model = FPPO("MlpPolicy", make_vec_env(Bridge, 2), massage=False, reg_credit="return", **SETTINGS)
    model.learn(240, callback=lambda *_: setattr(model, "reg_lambda", 0.0) or True)
    assert model.long_run.critic.rollouts == 1


ATTENTION = partial(sb3_fair.make_vec, "sb3_fair/AttentionAllocation-v0", 1, seed=0, detail=True)


@pytest.mark.parametrize(
    ("venv", "settings", "message"),
    [
        (
            lambda: make_vec_env(lambda: Bridge(detail=False), 1),
            {"reg_credit": "return"},
            r"reg_credit must be 'step' for an environment without info\['detail'\]\['outlook_before'\]",
        ),
        (ATTENTION, {"reg_credit": "uplift"}, "reg_credit must not be 'uplift' for an environment without .*behind"),
    ],
    ids=["outlook", "behind"],
)
def test_environments_that_hide_what_is_asked_for_are_refused(venv, settings, message):
    model = FPPO("MlpPolicy", venv(), massage=False, **settings)
    with pytest.raises(ValueError, match=message):
        model.learn(10)


def test_what_is_usual_is_taken_off_in_every_state():
    model = FPPO("MlpPolicy", make_vec_env(Bridge, 8), seed=0, massage=False, reg_credit="uplift", **SETTINGS)
    usual = []
    model.learn(9600, callback=lambda *_: usual.append(model.rollout_buffer.credit) or True)
    first, last = usual[61], usual[-1]
    assert np.mean(first) > 4 * abs(np.mean(last))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reg_credit": "steps"}, "reg_credit must be one of"),
        ({"reg_credit": "return", "scaling": "minmax"}, "scaling must be 'none' or 'std' with reg_credit='return'"),
        ({"reg_credit": "uplift", "scaling": "minmax"}, "scaling must be 'none' or 'std' with reg_credit='uplift'"),
        ({"reg_gamma": 1.5}, r"reg_gamma must be in \[0, 1\], got 1.5"),
        ({"massage_start": -0.1}, r"massage_start must be in \[0, 1\], got -0.1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        FPPO("MlpPolicy", make_vec_env(Bridge, 1), **settings)


def test_the_filter_stays_shut_until_it_is_to_start():
    venv = sb3_fair.make_vec("sb3_fair/Lending-v0", 4, seed=0)
    thresholds = []
    model = FPPO("MlpPolicy", venv, n_steps=8, batch_size=32, massage_threshold=0.4, massage_start=0.5, device="cpu")
    assert model.threshold == 0
    model.learn(32 * 8, callback=lambda *_: thresholds.append(model.threshold) or True)
    assert thresholds[::8] == [0.0] * 4 + [0.4] * 4
    model.learn(32 * 4, callback=lambda *_: thresholds.append(model.threshold) or True)
    assert thresholds[64::8] == [0.0] * 2 + [0.4] * 2  # of the second training too
