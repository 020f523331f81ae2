"""Does PCN keep SB3's habits: files, predictions, callbacks, logs and errors that name the argument?"""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize

import sb3_fair
from sb3_fair import make_vec
from sb3_fair.common.front import Command, EvaluatedPolicy
from sb3_fair.pcn import PCN
from sb3_fair.pcn.policies import PCNPolicy
from sb3_fair.wrappers.choices import Choices
from tests.pcn.chain import FRONT, Chain
from tests.pcn.models import chains, model_on


def test_a_log_is_not_needed():
    assert model_on(chains(2)).learn(60, log_interval=None).num_timesteps >= 60


def test_environments_that_write_monitor_files_can_be_evaluated_on(tmp_path):
    model = model_on(make_vec_env(Chain, 2, monitor_dir=str(tmp_path)), eval_freq=30).learn(60)
    written = [path.read_text() for path in sorted(tmp_path.iterdir())]
    assert model.evaluations and len(model.coverage_set(n_eval_episodes=2)) > 0
    assert written == [path.read_text() for path in sorted(tmp_path.iterdir())]


def test_normalised_environments_stay_normalised(tmp_path):
    model = model_on(VecNormalize(chains(2), norm_reward=False)).learn(60)
    model.save(tmp_path / "model")
    again = VecNormalize(chains(3), norm_reward=False)
    assert PCN.load(tmp_path / "model", env=again).get_vec_normalize_env() is again
    other = VecNormalize(chains(2), norm_reward=False)
    model.set_env(other)
    assert model.get_vec_normalize_env() is other


@pytest.mark.parametrize("settings", [{"gamma": 0.9}, {"buffer_size": 10}, {"crowding_threshold": 0.5}])
def test_what_the_stored_episodes_were_made_with_cannot_be_changed_on_loading(trained, tmp_path, settings):
    trained.save(tmp_path / "model")
    with pytest.raises(ValueError, match="cannot be changed"):
        PCN.load(tmp_path / "model", **settings)


def test_a_loaded_model_predicts_the_same(trained, tmp_path):
    trained.save(tmp_path / "model")
    loaded = PCN.load(tmp_path / "model", device="cpu")
    obs = trained.observation_space.sample()
    obs["desired_horizon"][:] = 3
    actions, _ = trained.predict(obs, deterministic=True)
    again, _ = loaded.predict(obs, deterministic=True)
    assert actions == again
    assert np.array_equal(actions.probabilities, again.probabilities)
    assert loaded.policy.optimizer.state_dict()["state"].keys() == trained.policy.optimizer.state_dict()["state"].keys()
    assert {tuple(mean) for mean in loaded.coverage_set(1, eval_env=Chain()).means} == FRONT


def test_a_model_saved_without_its_episodes_acts_but_does_not_learn(trained, tmp_path):
    trained.save(tmp_path / "pcn.zip", exclude=["buffer"])
    acting = PCN.load(tmp_path / "pcn.zip", env=trained.get_env())
    obs = trained.get_env().reset()
    np.testing.assert_array_equal(acting.predict(obs)[0], trained.predict(obs)[0])
    with pytest.raises(ValueError, match="saved without its buffer of episodes cannot learn"):
        acting.learn(100)


def test_the_chosen_command_is_saved(trained, tmp_path):
    trained.set_command(Command([2.0, 1.0], 3))
    trained.save(tmp_path / "model")
    loaded = PCN.load(tmp_path / "model")
    assert loaded.follow(Chain()).reset()[0]["desired_return"].tolist() == [2.0, 1.0]


def test_a_model_may_be_loaded_for_another_number_of_copies(trained, tmp_path):
    trained.save(tmp_path / "model")
    model = PCN.load(tmp_path / "model", env=chains(3), device="cpu")
    model.learn(200, reset_num_timesteps=False)
    assert model.num_timesteps > 2_000


def test_predictions_carry_the_softmax(trained):
    rows = {"observation": np.zeros((4, 2)), "desired_return": np.ones((4, 2)), "desired_horizon": np.ones((4, 1))}
    rows = {key: value.astype(np.float32) for key, value in rows.items()}
    for deterministic in (True, False):
        actions, _ = trained.predict(rows, deterministic=deterministic)
        assert isinstance(actions, Choices) and actions.shape == (4,)
        np.testing.assert_allclose(actions.probabilities.sum(axis=1), 1, atol=1e-6)
        assert actions.probabilities.min() > 0
        single, _ = trained.predict({key: value[0] for key, value in rows.items()}, deterministic=deterministic)
        assert isinstance(single, Choices) and single.shape == () and single.probabilities.shape == (3,)
    assert np.array_equal(trained.predict(rows, deterministic=True)[0], actions.probabilities.argmax(axis=1))


def test_a_command_may_have_any_precision(trained):
    row = {"observation": np.zeros(2), "desired_return": np.array([3.0, 0.0]), "desired_horizon": np.array([3])}
    actions, _ = trained.predict(row, deterministic=True)
    again, _ = trained.predict({key: value.astype(np.float32) for key, value in row.items()}, deterministic=True)
    assert np.array_equal(actions.probabilities, again.probabilities)


class Recorder(BaseCallback):
    def __init__(self, stop_after=np.inf):
        super().__init__()
        self.stop_after, self.started, self.ended, self.seen = stop_after, 0, 0, None

    def _on_rollout_start(self):
        self.started += 1

    def _on_rollout_end(self):
        self.ended += 1

    def _on_step(self):
        self.seen = self.locals["infos"], self.locals["rewards"].shape, self.locals["dones"].shape
        return self.n_calls < self.stop_after


def test_callbacks_see_every_step_and_rollout():
    recorder = Recorder()
    model = model_on(chains(2)).learn(100, callback=recorder)
    assert recorder.n_calls * 2 == model.num_timesteps
    assert recorder.started == recorder.ended > 3
    assert recorder.seen[1:] == ((2, 2), (2,))


@pytest.mark.parametrize("stop_after", [3, 40])
def test_a_callback_stops_training(stop_after):
    model = model_on(chains(2)).learn(10_000, callback=Recorder(stop_after))
    assert model.num_timesteps == 2 * stop_after


def test_the_progress_bar_runs(capsys):
    model_on(chains(2)).learn(100, progress_bar=True)


def test_every_iteration_is_a_row_of_the_log(tmp_path):
    model = model_on(chains(2), eval_freq=0.5, n_eval_episodes=2)
    model.set_logger(configure(str(tmp_path), ["csv", "tensorboard"]))
    model.learn(300)
    model.learn(100, reset_num_timesteps=False)
    model.logger.close()
    header, *rows = (tmp_path / "progress.csv").read_text().splitlines()
    assert {
        "train/loss",
        "train/entropy",
        "rollout/ep_rew_mean",
        "rollout/ep_len_mean",
        "pcn/desired_left",
        "pcn/reached_right",
        "pcn/desired_horizon",
        "pcn/hypervolume",
        "pcn/front_size",
        "eval/hypervolume",
        "eval/epsilon_mean",
        "time/total_timesteps",
    } <= set(header.split(","))
    assert len(rows) > 5
    assert [time for time, _ in model.evaluations] == [150, 306, 366, 414]


def test_evaluation_steps_do_not_count_as_training():
    model = model_on(chains(2), eval_freq=30, n_eval_episodes=2).learn(300)
    assert model.n_eval_timesteps > 100
    assert model.num_timesteps < 330


# -------------------------------------------------------------------- errors


def test_predicting_without_a_command_names_what_has_one(trained):
    with pytest.raises(ValueError, match=r"model\.follow\(env\).*eval_freq.*load_agent"):
        trained.predict(np.zeros(2, dtype=np.float32))


def test_following_without_a_command_says_how_to_choose_one():
    with pytest.raises(ValueError, match=r"model\.set_command"):
        model_on(Chain()).follow(Chain())


def test_a_command_must_be_one(trained):
    rule = EvaluatedPolicy("rule", ("left", "right"), np.zeros((1, 2)), np.ones(1))
    for wrong in (rule, [1.0, 2.0]):
        with pytest.raises(TypeError, match="command must be a Command"):
            trained.set_command(wrong)


def test_an_env_without_a_vector_reward_is_refused():
    with pytest.raises(ValueError, match="env must have a vector reward"):
        model_on("CartPole-v1")


@pytest.mark.parametrize("space", [spaces.Box(-np.inf, np.inf, (1,)), spaces.Text(3)])
def test_actions_without_bounds_or_numbers_are_refused(space):
    env = Chain()
    env.action_space = space
    with pytest.raises(ValueError, match="bounded Box actions"):
        model_on(env)


def test_a_reward_that_is_not_finite_is_an_error():
    with pytest.raises(ValueError, match="vector reward must be finite"):
        model_on(Chain(noise=float("nan"))).learn(100)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("objectives", ["up"], "objectives must be among"),
        ("objectives", [2], "objectives must be among"),
        ("objectives", ["left", 0], "none of them twice"),
        ("objectives", [], "at least one"),
        ("n_episodes", 0, "n_episodes must be a positive integer, got 0"),
        ("batch_size", 1.5, "batch_size must be a positive integer"),
        ("crowding_penalty", "none", "crowding_penalty must be one of"),
        ("fill", "all", "fill must be one of"),
        ("noise", -1, "noise must be a non-negative number"),
        ("gamma", 0, r"gamma must be in \(0, 1\]"),
        ("held", {"left": 2.0}, r"held must be a dict \(each value in \[0, 1\]\)"),
        ("held", {"up": 0.9}, "held must be about the optimised objectives"),
        ("max_return", [1.0], "max_return must be one number per optimised objective"),
        ("ref_point", {"up": 1.0}, "ref_point must be about"),
        ("scaling_factor", [1.0, 1.0], "scaling_factor must be .*'auto'"),
        ("scaling_factor", "none", "scaling_factor must be .*'auto'"),
        ("policy_kwargs", {"net_arch": {"body": [3]}}, "net_arch must be a dict"),
        ("policy_kwargs", {"net_arch": [3]}, r"net_arch must be a dict \(each key one of 'embedding', 'head'"),
        ("policy_kwargs", {"net_arch": {"embedding": []}}, "net_arch must have at least one layer in 'embedding'"),
    ],
)
def test_a_wrong_argument_is_named(argument, value, message):
    with pytest.raises(ValueError, match=message):
        model_on(Chain(), **{argument: value})


def test_a_file_of_another_algorithm_is_refused_by_name(tmp_path):
    DQN("MlpPolicy", "CartPole-v1").save(tmp_path / "dqn")
    with pytest.raises(TypeError, match=r"got stable_baselines3\.dqn\.policies\.DQNPolicy"):
        PCN.load(tmp_path / "dqn")


def test_an_env_with_other_objectives_is_refused(trained, tmp_path):
    trained.save(tmp_path / "model")
    with pytest.raises(ValueError, match="env must have the objectives"):
        PCN.load(tmp_path / "model", env=Chain(named=False))


def test_an_env_that_cannot_be_copied_asks_for_eval_env():
    venv = make_vec_env(Chain, 2, vec_env_cls=SubprocVecEnv)
    model = model_on(venv, eval_freq=0.5)
    with pytest.warns(UserWarning, match="no evaluations during training"):
        model.learn(100)
    with pytest.raises(ValueError, match="eval_env must be given"):
        model.coverage_set()
    assert len(model.coverage_set(n_eval_episodes=1, eval_env=Chain()))
    venv.close()


def test_a_training_that_ends_with_its_random_episodes_is_warned_of():
    with pytest.warns(
        UserWarning, match=r"nothing was learned: the 5 random episodes at the beginning took \d+ of 3 steps"
    ):
        model_on(chains(1), n_fill_episodes=5).learn(3)


def test_idle_copies_are_warned_of():
    with pytest.warns(UserWarning, match="3 of 7 copies of the environment will be idle"):
        model_on(chains(7))


def test_without_episodes_there_is_no_coverage_set():
    with pytest.raises(ValueError, match=r"call learn\(\) first"):
        model_on(Chain()).coverage_set()


def test_the_policy_can_be_saved_alone(trained, tmp_path):
    trained.policy.save(tmp_path / "policy")
    loaded = PCNPolicy.load(tmp_path / "policy", device="cpu")
    obs = {key: value[None] for key, value in trained.observation_space.sample().items()}
    assert np.array_equal(loaded.predict(obs)[0].probabilities, trained.policy.predict(obs)[0].probabilities)


def hiring(objectives=("R", "SP"), emit="difference"):
    settings = {"team_size": 4, "episode_length": 12}
    return make_vec("sb3_fair/JobHiring-Small-v0", 2, seed=0, objectives=objectives, emit=emit, **settings)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"emit": "level"}, "env must have emit='difference', as in training, got 'level'"),
        ({"objectives": ("SP", "R")}, r"env must have the objectives \('R', 'SP'\).* got \('SP', 'R'\)"),
        ({"objectives": ("R", "EO")}, r"env must have the objectives \('R', 'SP'\).* got \('R', 'EO'\)"),
    ],
)
def test_another_environment_must_pay_as_the_first_one_did(tmp_path, other, message):
    model = model_on(hiring(), n_fill_episodes=2, n_episodes=2).learn(1)
    model.set_command(Command([0.0, 0.0], 12))
    model.save(tmp_path / "model")
    for use in (
        model.set_env,
        model.follow,
        lambda env: model.follow(model_on(env).get_env()),
        lambda env: model.coverage_set(1, eval_env=env),
        lambda env: sb3_fair.evaluate(model, env, 1),
        lambda env: PCN.load(tmp_path / "model", env),
    ):
        with pytest.raises(ValueError, match=message):
            use(hiring(**other))


def test_observations_of_another_shape_are_refused():
    model = model_on(hiring(), n_fill_episodes=2, n_episodes=2).learn(1)
    model.set_command(Command([0.0, 0.0], 12))
    other = make_vec("sb3_fair/Lending-v0", 2, objectives=("R", "SP"), emit="difference", episode_length=20)
    for use in (lambda: model.coverage_set(1, eval_env=other), lambda: sb3_fair.evaluate(model, other, 1)):
        with pytest.raises(ValueError, match="observation shape"):
            use()


def test_objectives_after_those_of_training_do_not_change_what_is_done():
    model = model_on(hiring(), n_fill_episodes=2, n_episodes=2).learn(1)
    model.set_command(Command([5.0, 0.0], 12))
    expected = sb3_fair.evaluate(model, hiring(), 4).returns
    np.testing.assert_array_equal(sb3_fair.evaluate(model, hiring(("R", "SP", "EO")), 4).returns[:, :2], expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_updates": -3}, "n_updates must be"),
        ({"n_episodes": 10_000}, "buffer_size must be at least"),
        ({"fill": "x"}, "fill must be one of"),
        ({"standardise": True}, "standardise.* cannot be changed"),
    ],
)
def test_settings_that_are_loaded_are_checked(trained, settings, message, tmp_path):
    trained.save(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        PCN.load(tmp_path / "model", **settings)


def test_the_model_s_own_environment_follows_the_chosen_command():
    model = model_on(chains(2)).learn(60)
    wish = np.array([1.0, -2.0])
    model.set_command(Command(wish, 3.0))
    wish[:] = 0  # the caller's own
    own, followed = model.get_env(), model.follow(model.get_env())
    for venv in (own, followed):
        np.testing.assert_array_equal(venv.reset()["desired_return"], [[1, -2]] * 2)


def commanded(model):
    """The same environments with a command in one layer or another."""
    yield model.follow(Chain())
    yield DummyVecEnv([lambda: model.follow(Chain())] * 2)
    yield VecMonitor(model.follow(chains(2)))
    yield model.get_env()


def test_the_chosen_command_is_set_in_whichever_layer_has_one(trained):
    trained.set_command(Command([3.0, 0.0], 3.0))
    envs = list(commanded(trained))
    trained.set_command(Command([0.0, 3.0], 3.0))
    for env in envs:
        assert trained.follow(env) is env
        assert sb3_fair.evaluate(trained, env, 2).mean.tolist() == [0, 3]
    other = model_on(chains(2), gamma=0.5)
    other.set_command(Command([0.0, 3.0], 3.0))
    for env in envs:
        with pytest.raises(ValueError, match=r"env must pursue commands with gamma=0.5, as the model, got 1.0"):
            other.follow(env)


def test_an_environment_that_follows_is_evaluated_as_without_its_command():
    settings = {"n_envs": 2, "objectives": ("R", "SP"), "emit": "difference", "team_size": 4, "episode_length": 12}
    venv = make_vec("sb3_fair/JobHiring-Small-v0", **settings)
    model = model_on(venv).learn(100)
    model.set_command(model.coverage_set(1, n_commands=1)[0])
    expected = sb3_fair.evaluate(model, make_vec("sb3_fair/JobHiring-Small-v0", **settings), 4)
    for env in (model.follow(venv), model.get_env()):
        np.testing.assert_array_equal(sb3_fair.evaluate(model, env, 4).returns, expected.returns)
