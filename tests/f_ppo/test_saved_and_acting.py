"""F-PPO models continue from files, predict with massaging where asked, and name wrong arguments."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_fair import make_vec
from sb3_fair.f_ppo import FPPO, FairRolloutBuffer, massage
from sb3_fair.wrappers.infos import stack
from tests.f_ppo.bank import FORMS, Bank, BankMeasures
from tests.f_ppo.models import NEUTRAL, banks, model_of
from tests.models import learned, weights

# ---------------------------------------------------------------- save, load, continue


def test_a_saved_model_continues(tmp_path):
    model = model_of(banks(), massage_threshold=lambda i: min(1, i / 10), reg_lambda=2, scaling="std").learn(144)
    model.save(tmp_path / "model")
    loaded = FPPO.load(tmp_path / "model", banks(2))
    assert (loaded.iteration, loaded.threshold, loaded.reg_lambda, loaded.scaling) == (2, 0.1, 2, "std")
    assert_array_equal(weights(loaded), weights(model))
    loaded.learn(48, reset_num_timesteps=False)
    assert (loaded.iteration, loaded.threshold, loaded.num_timesteps) == (3, 0.2, 192)
    assert loaded.rollout_buffer.columns["changed"].shape == (48,)
    again = FPPO.load(tmp_path / "model", banks(), massage=False, reg_lambda=0.0)
    again.learn(72, reset_num_timesteps=False)
    assert "changed" not in again.rollout_buffer.columns and "reg_lambda" in again.rollout_buffer.regulariser


def test_a_loaded_model_acts_without_an_environment(tmp_path):
    model = model_of(banks(), massage_on_predict=True, massage_threshold=0.4).learn(72)
    venv = model.bind(banks())
    obs = venv.reset()
    model.save(tmp_path / "model")
    loaded = FPPO.load(tmp_path / "model")
    expected, _ = model.predict(obs, deterministic=True)
    assert_array_equal(loaded.predict(obs, deterministic=True, infos=venv.unwrapped.reset_infos)[0], expected)


def test_a_given_measure_is_kept_and_the_environments_own_follows_it(tmp_path):
    own = BankMeasures(tau=0.11)
    model_of(banks(tau=0.2), measures=own).save(tmp_path / "given")
    assert FPPO.load(tmp_path / "given", banks(tau=0.3)).measures == own
    model_of(banks(tau=0.2)).save(tmp_path / "taken")
    loaded = FPPO.load(tmp_path / "taken", banks(tau=0.3))
    assert loaded.measures.tau == 0.3
    loaded.set_env(banks(tau=0.4))
    assert loaded.measures.tau == 0.4
    loaded.learn(72)
    assert loaded.threshold == 0.4
    for file, measures, tau in (("taken", own, 0.11), ("given", BankMeasures(tau=0.6), 0.6), ("given", None, 0.5)):
        loaded = FPPO.load(tmp_path / file, banks(), measures=measures)
        assert (loaded.measures.tau, loaded.learn(72).threshold) == (tau, tau)


def test_measures_may_be_given_to_an_environment_without_a_spec():
    venv = banks(tells=("massage", "fairness"))
    model = learned(model_of(venv, measures=BankMeasures()), 72)
    assert model.logger.name_to_value["massage/changed_fraction"] > 0.1


# ---------------------------------------------------------------- acting


@pytest.mark.parametrize("form", FORMS)
def test_predict_acts_with_the_filter_in_the_environment_bound(form):
    model = model_of(banks(form=form), massage_threshold=0.5).learn(72)
    venv = model.bind(banks(4, form=form, length=3))
    model.massage_on_predict = True
    obs = venv.reset()
    changes = 0
    for step in range(12):
        torch.manual_seed(step)
        actions, _ = model.predict(obs)
        torch.manual_seed(step)
        sampled, _ = super(FPPO, model).predict(obs)
        expected = massage(model.measures, venv.coming, sampled, model._probabilities(), 0.5)
        assert_array_equal(actions, expected.actions)
        changes += expected.changed.sum()
        foreseen = model.measures.would_be(venv.coming, actions[:, None])[:, 0]
        obs, _, _, infos = venv.step(actions)
        assert_allclose([info["fairness"]["d_s"] for info in infos], foreseen)
    assert changes > 2


def test_predict_may_be_given_the_infos():
    model = model_of(banks(), massage_threshold=0.9, massage_on_predict=True)
    env = Bank()
    obs, info = env.reset(seed=3)
    found = []
    for step in range(5):
        torch.manual_seed(step)
        action, _ = model.predict(obs, infos=info)
        assert np.shape(action) == ()
        chances = model._probabilities()
        record = stack([info], "massage")
        unfair = model.measures.would_be(record, np.array([[0, 1]]))[0]
        assert abs(chances[0, 0] - chances[0, 1]) < 0.9
        assert unfair[action] <= unfair.min() + 1e-12
        found.append(unfair[0] != unfair[1])
        obs, _, _, _, info = env.step(action)
    assert any(found)


def test_infos_given_are_those_of_the_copies_asked_for():
    """Also where all copies share one record."""
    model = model_of(make_vec("sb3_fair/JobHiring-v0", n_envs=2), massage_threshold=1.0, massage_on_predict=True)
    venv = model.bind(make_vec("sb3_fair/JobHiring-v0", n_envs=4))
    obs = venv.reset()
    rng = np.random.default_rng(0)
    changes = 0
    for _ in range(40):
        obs, _, _, infos = venv.step(rng.integers(2, size=4))
        filtered, _ = model.predict(obs, deterministic=True)
        backwards = [3, 2, 1, 0]
        again, _ = model.predict(obs[backwards], deterministic=True, infos=[infos[copy] for copy in backwards])
        assert_array_equal(again, filtered[backwards])
        assert model.predict(obs[2], deterministic=True, infos=infos[2])[0] == filtered[2]
        changes += (filtered != super(FPPO, model).predict(obs, deterministic=True)[0]).sum()
    assert changes > 10
    with pytest.raises(ValueError, match="infos must have 'massage'"):
        model.predict(obs[0], infos={})


def test_without_the_switch_predict_is_the_policys():
    model = model_of(banks(), massage_threshold=0.9)
    obs = model.get_env().reset()
    torch.manual_seed(0)
    actions, _ = model.predict(obs)
    torch.manual_seed(0)
    assert_array_equal(actions, model.policy.predict(obs)[0])


def test_evaluation_with_the_filter_is_fairer():
    model = model_of(banks(), massage_threshold=0.9)
    disparities = {False: [], True: []}
    for filters, found in disparities.items():
        model.massage_on_predict = filters
        venv = model.follow(banks(2, length=20))
        evaluate_policy(
            model, venv, 6, deterministic=False, callback=lambda here, _, found=found: found.append(here["info"])
        )
    means = {filters: np.mean([info["fairness"]["d_s"] for info in found]) for filters, found in disparities.items()}
    assert means[True] < 0.1 < means[False] + 0.05


def test_evaluations_in_training_may_use_the_filter():
    model = model_of(banks(), massage_on_predict=True)
    model.learn(144, EvalCallback(model.bind(banks(1)), eval_freq=20, n_eval_episodes=2, verbose=0))
    assert model.rollout_buffer.columns["changed"].mean() > 0.1


# ---------------------------------------------------------------- errors


def test_predict_needs_something_to_go_by():
    model = model_of(banks(), massage_on_predict=True)
    obs = model.get_env().reset()
    with pytest.raises(ValueError, match=r"massage_on_predict needs .* model.bind\(env\) .* infos=infos"):
        model.predict(obs)
    with pytest.raises(ValueError, match=r"massage_on_predict needs"):
        evaluate_policy(model, banks(), 2)
    venv = model.bind(banks())
    with pytest.raises(ValueError, match="must have been reset"):
        model.predict(obs)
    venv.reset()
    model.predict(obs)
    with pytest.raises(ValueError, match="one row per copy of the environment bound"):
        model.predict(obs[:2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reg_lambda": -1.0}, "reg_lambda must be a non-negative number, got -1.0"),
        ({"delta": float("nan")}, "delta must be a non-negative number, got nan"),
        ({"omega": -0.1}, "omega must be a non-negative number"),
        ({"beta1": "much"}, "beta1 must be a non-negative number, got 'much'"),
        ({"scaling": "minimax"}, r"scaling must be one of .* \(did you mean 'minmax'\?\)"),
        ({"minmax_weights": (1.0,)}, r"minmax_weights must be .* or None, got \(1.0,\)"),
        ({"massage_credit": "both"}, "massage_credit must be one of"),
        ({"schedule_unit": "steps"}, "schedule_unit must be one of"),
        ({"schedule_steps": 0}, "schedule_steps must be a positive integer, got 0"),
        ({"massage_threshold": 1.2}, r"massage_threshold must be in \[0, 1\].*, got 1.2"),
        ({"massage_threshold": lambda i: -1}, r"massage_threshold must be in \[0, 1\].*, got -1"),
        ({"rollout_buffer_class": RolloutBuffer}, "rollout_buffer_class must be a subclass of FairRolloutBuffer"),
        ({"env": None}, "env must be given unless the model is loaded"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_arguments_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        FPPO("MlpPolicy", **({"env": banks()} | settings))


def test_measures_must_be_measures():
    with pytest.raises(TypeError, match=r"measures must be an object with all that Measures has"):
        model_of(banks(), measures="d_s")


def test_a_threshold_must_stay_a_probability():
    model = model_of(banks(), massage_threshold=lambda i: i)
    with pytest.raises(ValueError, match=r"massage_threshold must be in \[0, 1\].*, got 2"):
        model.learn(216)


@pytest.mark.parametrize("form", ["uneven", "bits"])
def test_actions_need_comparable_probabilities_to_be_massaged(form):
    with pytest.raises(ValueError, match="massage and massage_on_predict must be False unless actions are Discrete"):
        model_of(banks(form=form))
    model_of(banks(form=form), massage=False).learn(72)


@pytest.mark.parametrize("form", ["discrete", "box"])
def test_an_environment_without_fairness_information_is_refused(form):
    with pytest.raises(ValueError):
        model_of(banks(tells=("massage", "fairness"), form=form))


def test_an_environment_must_tell_what_is_known_before_a_decision():
    with pytest.raises(ValueError, match=r"massage must be False .* no info\['massage'\]"):
        model_of(banks(tells=("spec", "fairness"))).learn(72)
    model_of(banks(tells=("spec", "fairness")), massage=False).learn(72)

    class Forgetful(Bank):
        def step(self, action):
            *step, info = super().step(action)
            del info["massage"]
            return *step, info

    with pytest.raises(ValueError, match=r"massage must be False .* no info\['massage'\]"):
        model_of(DummyVecEnv([Forgetful])).learn(72)


def test_an_environment_must_tell_the_disparities():
    with pytest.raises(
        ValueError, match=r"env must publish \('d_s', 'd_s_prev', 'd_l', 'd_l_next'\) in info\['fairness'\]"
    ):
        model_of(banks(tells=("spec", "massage"))).learn(72)


def test_disparities_must_be_defined_where_they_count():
    class Undefined(Bank):
        def __init__(self, figure="d_l_next"):
            super().__init__()
            self.figure = figure

        def step(self, action):
            *step, info = super().step(action)
            info["fairness"][self.figure] = None
            return *step, info

    venv = make_vec_env(Undefined, n_envs=3, seed=0)
    with pytest.raises(ValueError, match="d_l_next must be a number after every step"):
        model_of(venv, massage=False).learn(72)
    model_of(venv, **NEUTRAL).learn(72)
    harmless = make_vec_env(Undefined, n_envs=3, seed=0, env_kwargs={"figure": "d_s"})
    assert model_of(harmless, cost_limit=-1.0, **NEUTRAL).learn(72).duals["cost"] == 1  # as a disparity of 0


def test_a_buffer_of_ones_own_may_be_used():
    class Own(FairRolloutBuffer):
        pass

    model = model_of(banks(), rollout_buffer_class=Own).learn(72)
    assert type(model.rollout_buffer) is Own
