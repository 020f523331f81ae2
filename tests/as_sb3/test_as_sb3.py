"""What SB3's own tests ask of PPO and DQN holds for our learners, but for differences listed by name and reason."""

import io

import numpy as np
import pytest
from gymnasium import spaces
from numpy.testing import assert_array_equal
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    EvalCallback,
    EveryNTimesteps,
    StopTrainingOnMaxEpisodes,
)
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize

from sb3_fair.fairness import Scheme
from sb3_fair.wrappers import VecFairnessScheme, VecMemoryAugmentation
from tests.as_sb3.learners import LEARNERS, OBSERVATIONS, Numbers, envs, first_of, make, numbers, observed

ACTIONS = {
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "multidiscrete": spaces.MultiDiscrete([2, 3]),
    "multibinary": spaces.MultiBinary(2),
}
DIFFERENCES = {
    **{
        (name, actions): "its actions are Discrete"
        for name in ("FairQCM", "RecurrentDQN", "TabularFairQCM", "PCN")
        for actions in ACTIONS
    },
    **{("FPPO", actions): "demographic parity counts favourable actions" for actions in ACTIONS},
    ("TabularFairQCM", "normalised"): "a table needs discrete states",
    ("TabularFairQCM", "image"): "as above",
    ("TabularFairQCM", "CnnPolicy"): "a table has no networks",
    ("PCN", "CnnPolicy"): "features_extractor_class is for images",
    ("RecurrentDQN", "CnnPolicy"): "features_extractor_class is for images",
}
STEPS = 64


def without(what):
    return [name for name in LEARNERS if (name, what) not in DIFFERENCES]


def equal(one, other):
    assert one.keys() == other.keys() and one
    for name, value in one.items():
        assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_saved_model_acts_and_learns_on_as_before(name, tmp_path):
    model = make(name).learn(STEPS)
    obs, learned, memory = observed(model), numbers(model), io.BytesIO()
    expected, _ = model.predict(obs, deterministic=True)
    for target in (tmp_path / "model.zip", str(tmp_path / "model"), memory):
        model.save(target)
    memory.seek(0)
    for source in (tmp_path / "model.zip", str(tmp_path / "model"), memory):
        loaded = type(model).load(source, env=envs(), **({} if name == "TabularFairQCM" else {"device": "cpu"}))
        equal(learned, numbers(loaded))
        assert_array_equal(loaded.predict(obs, deterministic=True)[0], expected)
        assert loaded.num_timesteps == model.num_timesteps
    loaded.learn(STEPS, reset_num_timesteps=False)
    assert loaded.num_timesteps >= model.num_timesteps + STEPS
    memory.seek(0)
    actor = type(model).load(memory)
    assert actor.get_env() is None
    assert_array_equal(actor.predict(obs, deterministic=True)[0], expected)
    actor.set_env(envs())
    actor.learn(STEPS)


@pytest.mark.parametrize("name", LEARNERS)
def test_settings_are_checked_again_in_a_loaded_model(name, tmp_path):
    model = make(name)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="verbose must be"):
        type(model).load(tmp_path / "model", envs(), custom_objects={"verbose": 3})


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "TabularFairQCM"])
def test_parameters_are_read_and_set(name):
    trained, new = make(name).learn(STEPS), make(name, seed=1)
    new.set_parameters(trained.get_parameters())
    equal(numbers(trained), numbers(new))
    trained.set_parameters(make(name).get_parameters())
    with pytest.raises(ValueError, match="nobody"):
        new.set_parameters({"nobody": {}})


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("deterministic", [True, False])
def test_actions_are_arrays_of_the_shape_of_the_space(name, deterministic):
    model = make(name)
    obs = observed(model)
    single, _ = model.predict(first_of(obs), deterministic=deterministic)
    assert np.shape(single) == single.shape == () and single.item() in (0, 1)
    assert model.action_space.contains(np.asarray(single).item())
    batch, _ = model.predict(obs, deterministic=deterministic)
    assert isinstance(batch, np.ndarray) and batch.shape == (2,) and batch.dtype.kind == "i"


class Sees(BaseCallback):
    def __init__(self):
        super().__init__()
        self.called, self.seen = [], set()

    def _on_training_start(self):
        self.called.append("training start")

    def _on_rollout_start(self):
        self.called.append("rollout start")

    def _on_step(self):
        self.seen |= self.locals.keys()
        assert len(self.locals["dones"]) == len(self.locals["infos"]) == len(self.locals["rewards"]) == 2
        return True

    def _on_rollout_end(self):
        self.called.append("rollout end")

    def _on_training_end(self):
        self.called.append("training end")


@pytest.mark.parametrize("name", LEARNERS)
def test_callbacks_are_called_see_the_step_and_stop_the_training(name, tmp_path):
    model, sees, each = make(name), Sees(), Sees()
    saves = CheckpointCallback(save_freq=8, save_path=str(tmp_path))
    model.learn(STEPS, CallbackList([sees, saves, EveryNTimesteps(16, each)]))
    assert sees.called[:2] == ["training start", "rollout start"] and sees.called[-1] == "training end"
    assert "rollout end" in sees.called
    assert {"self", "new_obs", "rewards", "dones", "infos", "actions"} <= sees.seen
    assert list(tmp_path.glob("rl_model_*_steps.zip")) and each.n_calls
    make(name).learn(STEPS, lambda seen, known: True)
    stopped = make(name).learn(10_000, StopTrainingOnMaxEpisodes(2))
    assert stopped.num_timesteps < 100
    assert make(name).learn(0).num_timesteps == 0


@pytest.mark.parametrize("name", without("normalised"))
def test_normalised_environments_are_learned_from_and_evaluated(name):
    def normalised(**more):
        venv = envs()
        if name == "FairQCM":
            return VecNormalize(VecMemoryAugmentation(venv), norm_obs_keys=["state"], norm_reward=False, **more)
        return VecNormalize(venv, **more)

    model = make(name, normalised())
    if name == "PCN":
        model.learn(STEPS)
        model.set_command(model.coverage_set(2, eval_env=normalised(training=False))[0])
    evaluation = normalised(training=False)
    evaluation = model.follow(evaluation) if hasattr(model, "follow") else evaluation
    callback = EvalCallback(evaluation, n_eval_episodes=2, eval_freq=8, verbose=0, warn=False)
    model.learn(STEPS, callback)
    assert np.isfinite(callback.last_mean_reward)
    assert model.get_vec_normalize_env() is not None
    assert np.isfinite(evaluate_policy(model, callback.eval_env, n_eval_episodes=2)[0])


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind in OBSERVATIONS for name in without(kind) if kind != "box"]
)
def test_every_kind_of_observation_is_learned_from(name, kind):
    convolves = kind == "image" and (name, "CnnPolicy") not in DIFFERENCES
    policy = "CnnPolicy" if convolves else "MultiInputPolicy" if kind == "dict" else "MlpPolicy"
    more = {"policy_kwargs": {"hidden_size": 8, "net_arch": [4]}} if name == "RecurrentDQN" else {}
    model = make(name, envs(kind), policy, **more).learn(24)
    assert model.predict(observed(model))[0].shape == (2,)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "TabularFairQCM"])
def test_unknown_policies_are_refused_by_name(name):
    with pytest.raises(ValueError, match=r"policy .* got 'MlpPolcy' \(did you mean '\w+Policy'"):
        make(name, policy="MlpPolcy")
    if (name, "CnnPolicy") in DIFFERENCES:
        with pytest.raises(ValueError, match=r"policy .*CnnPolicy"):
            make(name, policy="CnnPolicy")


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("name", LEARNERS)
def test_other_actions_are_learned_or_refused(name, actions):
    venv = DummyVecEnv([lambda: Numbers(ACTIONS[actions])] * 2)
    if (name, actions) in DIFFERENCES:
        with pytest.raises((ValueError, AssertionError)):
            make(name, venv)
        return
    more = {"cost": "gap"} if name == "PPOLagrangian" else {}
    model = make(name, venv, **more).learn(24)
    assert model.predict(observed(model))[0].shape == (2, *ACTIONS[actions].shape)


@pytest.mark.parametrize("name", LEARNERS)
def test_one_seed_gives_one_model_on_every_kind_of_vec_env(name):
    first, again, other = (make(name, seed=seed).learn(STEPS) for seed in (0, 0, 1))
    equal(numbers(first), numbers(again))
    assert any(not np.array_equal(value, numbers(other).get(key)) for key, value in numbers(first).items())
    venv = envs(vec_env=SubprocVecEnv)
    try:
        equal(numbers(first), numbers(make(name, venv).learn(STEPS)))
    finally:
        venv.close()


@pytest.mark.parametrize("name", LEARNERS)
def test_monitored_batches_are_learned_from(name):
    model = make(name, VecMonitor(envs())).learn(STEPS)
    assert len(model.ep_info_buffer) > 0


def test_a_table_learns_the_same_from_a_scheme_outside_the_processes():
    learned = []
    for vec_env in (DummyVecEnv, SubprocVecEnv):
        venv = VecFairnessScheme(envs(vec_env=vec_env), Scheme(welfare="log_nash"))
        learned.append(numbers(make("TabularFairQCM", venv).learn(STEPS)))
        venv.close()
    equal(*learned)
