"""Does PCN learn every trade-off of an env whose front is known, and does it keep SB3's habits?"""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize, VecTransposeImage

from sb3_fair import make_vec
from sb3_fair.common.front import Command, EvaluatedPolicy
from sb3_fair.common.pareto import nondominated
from sb3_fair.pcn import PCN
from sb3_fair.pcn.coverage import evaluated
from sb3_fair.pcn.policies import PCNPolicy
from sb3_fair.wrappers.choices import Choices
from tests.pcn.chain import FRONT, SPACES, Chain

QUICK = {"n_fill_episodes": 10, "n_episodes": 4, "n_updates": 2, "batch_size": 16, "eval_freq": 0, "device": "cpu"}


def model_on(env, seed=0, **more):
    return PCN("MlpPolicy", env, seed=seed, **{**QUICK, **more})


def chains(n, **kind):
    return DummyVecEnv([lambda: Chain(**kind) for _ in range(n)])


def weights(model):
    return th.nn.utils.parameters_to_vector(model.policy.parameters()).detach().numpy()


@pytest.fixture(scope="module")
def trained():
    return PCN("MlpPolicy", chains(5), seed=0, eval_freq=0, n_updates=30, learning_rate=1e-2, device="cpu").learn(2_000)


# -------------------------------------------------------------------- learning


def test_it_finds_the_whole_front_and_reaches_it(trained):
    front = trained.coverage_set(n_eval_episodes=5)
    assert {tuple(mean) for mean in front.means} == FRONT
    assert {tuple(point) for point in trained.buffer_points()} == FRONT


def test_a_chosen_trade_off_is_followed_in_single_and_vectorised_envs(trained):
    for policy in trained.coverage_set(n_eval_episodes=1):
        trained.set_command(policy)
        for env in (Chain(), chains(3)):
            reward, deviation = evaluate_policy(trained, trained.follow(env), n_eval_episodes=3, warn=False)
            assert (reward, deviation) == (policy.mean[0], 0.0)


def test_the_front_is_sorted_named_and_carries_commands(trained):
    front = trained.coverage_set(n_eval_episodes=4)
    assert front.objectives == ("left", "right")
    assert list(front.means[:, 0]) == sorted(front.means[:, 0], reverse=True)
    assert all(policy.command is not None and policy.returns.shape == (4, 2) for policy in front)


def test_fewer_commands_are_the_least_crowded_ones(trained):
    assert {tuple(mean) for mean in trained.coverage_set(n_eval_episodes=1, n_commands=2).means} == {(3, 0), (0, 3)}


def test_the_evaluation_env_may_have_any_number_of_copies(trained):
    """Episode j has the same seed under every command, so that the figures do not depend on the number of copies."""
    returns = [
        [policy.returns for policy in trained.coverage_set(3, eval_env=chains(n, noise=0.1))] for n in (1, 3, 40)
    ]
    assert np.array_equal(returns[0], returns[1])
    assert np.array_equal(returns[0], returns[2])


def test_an_array_reward_is_taken_as_it_is():
    model = model_on(Chain(array=True), n_updates=30, learning_rate=1e-2).learn(800)
    front = model.coverage_set(n_eval_episodes=1)
    assert {tuple(mean) for mean in front.means} == FRONT
    model.set_command(front[0])
    assert evaluate_policy(model, model.follow(Chain(array=True)), n_eval_episodes=1, warn=False)[0] == 3.0


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("n", [1, 4])
def test_box_discrete_and_dict_observations_are_learnt_from(kind, n):
    policy = "MultiInputPolicy" if kind == "dict" else "MlpPolicy"
    model = PCN(policy, chains(n, kind=kind), seed=0, **{**QUICK, "n_updates": 10, "learning_rate": 2e-2}).learn(1_000)
    assert len(model.coverage_set(n_eval_episodes=1)) >= 3


def test_objectives_that_are_not_optimised_are_recorded_only():
    model = model_on(Chain(), objectives=["right"], n_updates=20, learning_rate=1e-2).learn(1_000)
    front = model.coverage_set(n_eval_episodes=2)
    assert front.objectives == ("right",)
    assert front[0].mean == [3.0]
    assert front[0].final["left (return)"].tolist() == [0.0, 0.0]
    assert model.observation_space["desired_return"].shape == (1,)


def test_objectives_without_names_are_numbered():
    model = model_on(Chain(named=False), objectives=[1]).learn(100)
    assert model.objective_names == ("R0", "R1")
    assert model.optimised == ("R1",)


def test_pictures_may_have_their_channels_last_in_a_single_env():
    """As Gymnasium's have them; in training they are channels first."""
    model = model_on(Pictures()).learn(60)
    model.set_command(Command(np.ones(2), 3.0))
    venv = DummyVecEnv([Pictures])
    first, last = (model.follow(env).reset() for env in (VecTransposeImage(venv), venv))
    single, _ = model.follow(Pictures()).reset()
    shapes = [shown["observation"].shape for shown in (first, last, single)]
    assert shapes == [(1, 3, 40, 36), (1, 40, 36, 3), (40, 36, 3)]
    expected = model.predict(first)[0].probabilities
    assert np.allclose(model.predict(last)[0].probabilities, expected)
    assert np.allclose(model.predict(single)[0].probabilities, expected[0])


class Pictures(Chain):
    """:class:`Chain`, photographed."""

    def __init__(self):
        super().__init__()
        self.observation_space = gym.spaces.Box(0, 255, (40, 36, 3), np.uint8)
        self.picture = np.random.default_rng(0).integers(256, size=(40, 36, 3), dtype=np.uint8)

    def _obs(self):
        return self.picture


def test_the_best_random_episodes_stay_where_there_is_no_room_for_all():
    for seed in range(5):
        all_kept, few_kept = (
            model_on(chains(1), seed, n_episodes=1, n_fill_episodes=40, buffer_size=size).learn(1).buffer
            for size in (40, 10)
        )
        best = {tuple(point) for point in all_kept.points[nondominated(all_kept.points)]}
        assert best <= {tuple(point) for point in few_kept.points}
    with pytest.raises(ValueError, match=r"buffer_size must be at least n_episodes \(4\), got 3"):
        model_on(chains(1), buffer_size=3)


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


# -------------------------------------------------------------------- randomness


def test_the_seed_covers_everything():
    one, same, other = (model_on(chains(3, noise=0.1), seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(weights(one), weights(same))
    assert not np.array_equal(weights(one), weights(other))
    th.rand(7)
    one.learn(300)
    th.rand(3)
    same.learn(300)
    assert np.array_equal(weights(one), weights(same))
    assert np.array_equal(one.buffer.returns, same.buffer.returns)


def test_evaluation_leaves_training_as_it_is():
    quiet = model_on(chains(2, noise=0.1, early=0.1)).learn(600)
    watched = model_on(chains(2, noise=0.1, early=0.1), eval_freq=50, n_eval_episodes=2, eval_deterministic=False)
    watched.learn(600)
    assert len(watched.evaluations) >= 8
    assert np.array_equal(weights(quiet), weights(watched))


def test_evaluations_are_reproducible(trained):
    args = {"n_eval_episodes": 3, "deterministic": False}
    one, two = trained.coverage_set(**args), trained.coverage_set(**args)
    assert np.array_equal(one.means, two.means)


def test_resuming_from_a_file_in_fresh_envs_is_the_uninterrupted_run(tmp_path):
    def envs():
        return chains(2, noise=0.3, early=0.2)

    options = {"standardise": True, "fill": "mixed", "held": {"left": 0.9}, "noise": 0.1, "updates_per_step": 0.2}
    whole = model_on(envs(), **options).learn(300)
    part = model_on(envs(), **options).learn(300)
    part.save(tmp_path / "model")
    part = PCN.load(tmp_path / "model", env=envs(), device="cpu")
    for model in (whole, part):
        model.learn(300, reset_num_timesteps=False)
    assert whole.num_timesteps == part.num_timesteps >= 600
    assert np.array_equal(weights(whole), weights(part))
    assert np.array_equal(whole.buffer.returns, part.buffer.returns)
    assert whole.rng.random() == part.rng.random()


def test_dummy_and_subproc_envs_give_the_same_run():
    runs = []
    for kind in (DummyVecEnv, SubprocVecEnv):
        venv = make_vec_env(Chain, 2, env_kwargs={"noise": 0.2}, vec_env_cls=kind)
        runs.append(weights(model_on(venv).learn(200)))
        venv.close()
    assert np.array_equal(*runs)


# -------------------------------------------------------------------- SB3's habits


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


ACTIONS = {
    "discrete": (spaces.Discrete(3, start=-1), lambda action: action + 1),
    "unequal parts": (spaces.MultiDiscrete([3, 2]), lambda action: action[0]),
    "a grid": (spaces.MultiDiscrete([[3, 4]], start=[[2, 1]]), lambda action: action[0, 0] - 2),
    "binary": (spaces.MultiBinary(2), lambda action: action[0] + action[1]),
    "box": (spaces.Box(-2, 7, (1,), np.float32), lambda action: min(int((action[0] + 2) / 3), 2)),
}
"""Spaces, and what Chain makes of their actions."""


class Renamed(gym.ActionWrapper):
    """Chain under actions of another space."""

    def __init__(self, env, space, meaning):
        super().__init__(env)
        self.action_space, self.meaning = space, meaning

    def action(self, action):
        assert self.action_space.contains(np.asarray(action)), action
        return self.meaning(action)


@pytest.mark.parametrize("fill", ["uniform", "mixed"])
@pytest.mark.parametrize("kind", ACTIONS)
def test_actions_of_any_space_are_learnt(kind, fill, tmp_path):
    venv = DummyVecEnv([lambda: Renamed(Chain(), *ACTIONS[kind])] * 3)
    settings = QUICK | {"n_updates": 20, "batch_size": 64, "learning_rate": 0.01, "n_fill_episodes": 40}
    model = PCN("MlpPolicy", venv, seed=1, fill=fill, **settings).learn(900)
    reached = {tuple(point) for point in model.buffer_points()}
    assert len(reached & FRONT) >= 3
    front = model.coverage_set(n_eval_episodes=1)
    assert max(policy.mean.sum() for policy in front) == 3
    model.set_command(front[0])
    env = model.follow(venv)
    obs = env.reset()
    for deterministic in (True, False):
        actions, _ = model.predict(obs, deterministic=deterministic)
        assert actions.shape == (3, *venv.action_space.shape)
        single, _ = model.predict({key: rows[0] for key, rows in obs.items()}, deterministic=deterministic)
        assert venv.action_space.contains(np.asarray(single) if np.ndim(single) else int(single))
        if kind != "box":
            np.testing.assert_allclose(actions.probabilities.sum(axis=-1), 1, atol=1e-6)
            assert single.probabilities.shape == actions.probabilities.shape[1:]
    model.save(tmp_path / "model")
    loaded = PCN.load(tmp_path / "model", venv, device="cpu")
    np.testing.assert_array_equal(loaded.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])


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
    assert [time for time, _ in model.evaluations] == [150, 306]


def test_evaluation_steps_do_not_count_as_training():
    model = model_on(chains(2), eval_freq=30, n_eval_episodes=2).learn(300)
    assert model.n_eval_timesteps > 100
    assert model.num_timesteps < 330


def test_episodes_are_shared_out_over_the_copies_and_all_finished():
    for n in (1, 3, 4):
        model = model_on(chains(n), buffer_size=1_000).learn(200)
        n_iterations = (len(model.buffer) - 10) // 4
        assert (len(model.buffer) - 10) % 4 == 0
        assert model.num_timesteps == 3 * n * (-(-10 // n) + n_iterations * -(-4 // n))


def test_extra_options_change_what_they_say():
    options = {"standardise": True, "fill": "mixed", "scaling_floor": {"left": 10.0}, "scaling_factor": "auto"}
    model = model_on(Chain(), **options, seed=3).learn(200)
    assert not th.equal(model.policy.feature_scale, th.ones(2))
    assert model.policy.command_scale[0] == pytest.approx(0.1)
    assert model.policy.command_scale[1] == pytest.approx(1 / 3)
    fixed = model_on(Chain(), scaling_factor=[1.0, 2.0, 0.1]).learn(50)
    assert fixed.policy.command_scale.tolist() == pytest.approx([1.0, 2.0, 0.1])
    per_step = model_on(Chain(), updates_per_step=0.5).learn(30)
    assert per_step._n_updates == 0
    per_step.learn(10, reset_num_timesteps=False)
    assert per_step._n_updates == 15


def test_a_held_objective_is_commanded_by_its_mean_and_not_reduced():
    model = model_on(Chain(), held={"left": 0.5}).learn(200)
    best = model.buffer.points[:, 0].argmax()
    assert model.buffer.points[best, 0] == 3
    assert model.buffer.asks[best] == pytest.approx([(1.75 + 1.5 + 1) / 3, 0])
    model.set_command(Command([1.5, 2.0], 3))
    env = model.follow(Chain())
    env.reset()
    assert env.step(0)[0]["desired_return"] == pytest.approx([1.5, 2.0])
    assert env.step(1)[0]["desired_return"] == pytest.approx([1.5, 1.0])


def test_a_single_layer_more_or_a_relu_layer_first_is_a_setting():
    kwargs = {"net_arch": {"embedding": [32, 16], "head": []}, "hidden_fn": th.nn.ReLU}
    model = PCN("MlpPolicy", Chain(), policy_kwargs=kwargs, device="cpu", seed=0)
    shapes = [tuple(parameter.shape) for parameter in model.policy.parameters() if parameter.ndim == 2]
    assert shapes == [(32, 2), (16, 32), (16, 3), (3, 16)]
    assert isinstance(model.policy.embed_observation[1], th.nn.ReLU)


def test_the_network_multiplies_the_embeddings():
    policy = PCN("MlpPolicy", Chain(), device="cpu", seed=0).policy
    obs, desired, horizon = th.rand(5, 2), th.rand(5, 2), th.rand(5, 1)
    policy.command_scale.copy_(th.tensor([0.5, 2.0, 0.1]))
    first, second = policy.embed_observation[0], policy.embed_command[0]
    command = th.cat([desired * th.tensor([0.5, 2.0]), horizon * 0.1], dim=1)
    hidden = th.sigmoid(obs @ first.weight.T + first.bias) * th.sigmoid(command @ second.weight.T + second.bias)
    hidden = th.relu(hidden @ policy.head[0].weight.T + policy.head[0].bias)
    logits = hidden @ policy.head[2].weight.T + policy.head[2].bias
    th.testing.assert_close(policy(obs, desired, horizon), th.log_softmax(logits, dim=1))


# -------------------------------------------------------------------- errors


def test_predicting_without_a_command_names_follow(trained):
    with pytest.raises(ValueError, match=r"model\.follow\(env\)"):
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


# -------------------------------------------------------------------- well-known environments


def test_a_fairness_mdp_is_learnt_followed_and_reported():
    settings = {"objectives": ("R", "SP", "IF"), "audit": ("EO",), "window": 100, "emit": "difference"}
    model = model_on(make_vec("sb3_fair/JobHiring-Small-v0", 4, **settings), held={"R": 0.9}).learn(2_000)
    assert model.optimised == ("R", "SP", "IF")
    assert model.max_return.tolist() == [100, 1, 2]
    front = model.coverage_set(3, deterministic=True)
    assert {"SP", "IF", "EO"} <= set(front[0].final)
    np.testing.assert_allclose(front[0].returns[:, 1:], np.stack([front[0].final[k] for k in ("SP", "IF")], axis=1))
    batch = model.coverage_set(3, True, eval_env=make_vec("sb3_fair/JobHiring-Small-v0", 3, **settings))
    np.testing.assert_allclose(front.means, batch.means)
    model.set_command(front[0])
    env = model.follow(gym.make("sb3_fair/JobHiring-Small-v0", **settings))
    obs, _ = env.reset(seed=0)
    action, _ = model.predict(obs, deterministic=True)
    _, _, _, _, info = env.step(action)
    assert set(info["fairness"]) == {"SP", "IF", "EO"}


@pytest.mark.slow
def test_it_finds_the_known_front_of_deep_sea_treasure():
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    env = mo_gymnasium.make("deep-sea-treasure-v0")
    known = {tuple(np.round(point, 3)) for point in env.unwrapped.pareto_front(gamma=1.0)}
    model = PCN("MlpPolicy", env, seed=0, n_updates=50, scaling_factor=[0.1, 0.1, 0.1], eval_freq=0, device="cpu")
    front = model.learn(20_000).coverage_set(n_eval_episodes=1)
    assert len(known & {tuple(np.round(mean, 3)) for mean in front.means}) >= 9


def test_minecart_trains():
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    env = gym.wrappers.TimeLimit(mo_gymnasium.make("minecart-v0"), 50)
    model = model_on(env, n_fill_episodes=3, n_episodes=1).learn(300)
    assert model.buffer_points().shape[1] == 3


def test_commands_are_evaluated_both_ways():
    model = model_on(chains(2, noise=0.1, early=0.1)).learn(200)
    policies = evaluated(model, 3, "both", None, None)
    ways = [policy.deterministic for policy in policies]
    assert sum(ways) == len(ways) / 2
    asked = [policy.command.desired_return.tolist() for policy in policies]
    assert asked[: len(ways) // 2] == asked[len(ways) // 2 :]
    assert all(policy.aim is not None for policy in policies)
    front = model.coverage_set(3, deterministic="both")
    assert [policy.name for policy in front] == [f"PCN {index}" for index in range(len(front))]


def test_optimistic_evaluation_asks_for_more_than_was_reached():
    model = model_on(chains(2, noise=0.1, early=0.1), eval_optimism=(1, 2)).learn(200)
    policies = evaluated(model, 3, True, None, None)
    plain = [policy for policy in policies if policy.aim is not None]
    raised = [policy for policy in policies if policy.aim is None]
    k = len(model.optimised)
    assert len(raised) == 2 * k
    spread = np.std([policy.command.desired_return for policy in plain], axis=0)
    best = np.argmax([policy.mean for policy in plain], axis=0)
    for objective in range(k):
        for times in (1, 2):
            more = raised.pop(0).command.desired_return - plain[best[objective]].command.desired_return
            np.testing.assert_allclose(more, times * spread * np.eye(k)[objective])


def hiring(emit="difference"):
    return make_vec("sb3_fair/JobHiring-Small-v0", 2, seed=0, objectives=("R", "SP"), emit=emit)


def test_another_environment_must_pay_as_the_first_one_did(tmp_path):
    model = model_on(hiring(), n_fill_episodes=2, n_episodes=2).learn(1)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="env must have emit='difference', as in training, got 'level'"):
        model.set_env(hiring("level"))
    with pytest.raises(ValueError, match="env must have emit='difference'"):
        PCN.load(tmp_path / "model", hiring("level"))


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
    command = Command(np.array([1.0, -2.0]), 3.0)
    model.set_command(command)
    own, followed = model.get_env(), model.follow(model.get_env())
    for venv in (own, followed):
        np.testing.assert_array_equal(venv.reset()["desired_return"], [[1, -2]] * 2)
