"""Does RecurrentDQN remember, learn from episodes as they were played, and keep SB3's habits?"""

import copy
import time

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize
from stable_baselines3.dqn.policies import DQNPolicy
from torch.nn import functional

from sb3_fair import make_vec
from sb3_fair.fair_qcm.recurrent import RecurrentDQN
from sb3_fair.fair_qcm.recurrent_buffer import Windows
from tests.models import weights

SMALL = {"learning_starts": 20, "train_freq": 4, "batch_size": 24, "policy_kwargs": {"hidden_size": 8}, "device": "cpu"}


class Recall(gym.Env):
    """The first observation shows a sign, the action ``steps`` later must repeat it: 1, else 0. Unseen: 0.5 at best."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, steps=4):
        self.steps = steps

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sign, self.now = int(self.np_random.integers(2)), 0
        return np.array([2 * self.sign - 1, 0], np.float32), {}

    def step(self, action):
        last = self.now == self.steps
        self.now += 1
        shown = np.array([0, self.now == self.steps], np.float32)
        return shown, float(last and action == self.sign), last, False, {}


def episode_length(number, copy_number):
    return 3 + (5 * number + 2 * copy_number) % 7


def ending(number):
    """Every third episode is truncated, the others terminate."""
    return "truncated" if number % 3 == 0 else "terminated"


def reward_of(copy_number, number, now, action):
    return copy_number + number / 100 + now / 10 + 7.0 * action


class Diary(gym.Env):
    """Shows (copy, episode, step), so that every stored row tells where it belongs."""

    action_space = gym.spaces.Discrete(3)

    def __init__(self, copy_number=0, kind="box"):
        box = gym.spaces.Box(-1, 1000, (3,), np.float32)
        self.kind = kind
        self.observation_space = box if kind == "box" else gym.spaces.Dict(a=box, b=gym.spaces.Discrete(20))
        self.copy_number, self.number = copy_number, -1

    def show(self):
        page = np.array([self.copy_number, self.number, self.now], np.float32)
        return page if self.kind == "box" else {"a": page, "b": self.now}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number, self.now = self.number + 1, 0
        return self.show(), {}

    def step(self, action):
        reward = reward_of(self.copy_number, self.number, self.now, action)
        self.now += 1
        over = self.now == episode_length(self.number, self.copy_number)
        how = ending(self.number)
        return self.show(), reward, over and how == "terminated", over and how == "truncated", {}


def diaries(n=3, kind="box", vec_env=DummyVecEnv):
    how = {"start_method": "fork"} if vec_env is SubprocVecEnv else {}
    return vec_env([lambda i=i: Diary(i, kind) for i in range(n)], **how)


def recalls(n, steps=4):
    return DummyVecEnv([lambda: Recall(steps)] * n)


def model_on(env, seed=0, policy="MlpPolicy", **more):
    model = RecurrentDQN(policy, env, seed=seed, **{**SMALL, **more})
    model.set_logger(configure(None, []))
    return model


def pages(observations):
    return (observations["a"] if isinstance(observations, dict) else observations).numpy()


@pytest.fixture(scope="module")
def trained():
    model = RecurrentDQN(
        "MlpPolicy",
        recalls(4),
        learning_rate=1e-2,
        batch_size=100,
        learning_starts=100,
        train_freq=4,
        target_update_interval=100,
        exploration_fraction=0.5,
        policy_kwargs={"hidden_size": 16},
        seed=0,
        device="cpu",
    )
    return model.learn(3_000)


# -------------------------------------------------------------------- remembering


def test_it_remembers_where_no_memoryless_network_can(trained):
    assert evaluate_policy(trained, recalls(5), 100, warn=False) == (1.0, 0.0)
    settings = {"learning_rate": 1e-2, "target_update_interval": 100, "exploration_fraction": 0.5}
    memoryless = DQN("MlpPolicy", recalls(4), seed=0, device="cpu", **settings).learn(3_000)
    assert evaluate_policy(memoryless, recalls(5), 100, warn=False)[0] < 0.75


def test_the_hidden_state_is_forgotten_where_an_episode_starts_and_only_there(trained):
    observations = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)
    _, state = trained.predict(observations[0], deterministic=True)
    _, carried = trained.predict(observations[1], state, np.zeros(3, dtype=bool), deterministic=True)
    _, mixed = trained.predict(observations[1], state, np.array([False, True, False]), deterministic=True)
    _, fresh = trained.predict(observations[1], deterministic=True)
    assert carried[0].shape == (3, 16)
    assert np.array_equal(mixed[0][[0, 2]], carried[0][[0, 2]])
    assert np.array_equal(mixed[0][1], fresh[0][1])
    assert not np.allclose(carried[0], fresh[0])


def test_without_a_state_episodes_begin(trained):
    observations = np.ones((2, 2), np.float32)
    _, started = trained.predict(observations, deterministic=True)
    _, zeros = trained.predict(observations, (np.zeros((2, 16), np.float32),), deterministic=True)
    assert np.array_equal(started[0], zeros[0])


def test_a_single_environment_gives_a_single_action(trained):
    action, state = trained.predict(np.ones(2, np.float32))
    assert action.shape == () and action.item() in (0, 1)
    action, state = trained.predict(np.ones(2, np.float32), state, np.array([False]), deterministic=True)
    assert action in (0, 1)
    assert state[0].shape == (1, 16)


def test_in_training_every_copy_carries_the_state_of_its_own_episode():
    model = model_on(diaries(), gradient_steps=0).learn(60)
    for page, state in zip(model._last_obs, model._last_state[0], strict=True):
        hidden = th.zeros(1, 8)
        for now in range(int(page[2])):
            observation = th.tensor([[page[0], page[1], now]])
            hidden = model.q_net.step(observation, hidden)[1]
        if page[2] > 0:  # else the state of the episode before is still there
            np.testing.assert_allclose(hidden[0].detach().numpy(), state, atol=1e-6)


# -------------------------------------------------------------------- windows


def check_rows(sample, n_copies, n_episodes):
    """Every row must be what the diary's rules say; returns what was drawn, one (copy, episode, steps) per window."""
    now, following = sample.observations, sample.next_observations
    assert isinstance(now, Windows)
    shown, after = pages(now.observations), pages(following.observations)
    here, there = shown[now.wanted.numpy()], after[following.wanted.numpy()]
    assert len(here) == len(there) == len(sample.actions) == len(sample.rewards) == len(sample.dones)
    assert np.array_equal(there, here + [0, 0, 1])
    copies, numbers, steps = here.T.astype(int)
    assert copies.max() < n_copies
    assert numbers.max() < n_episodes
    actions = sample.actions.numpy()[:, 0]
    np.testing.assert_allclose(sample.rewards.numpy()[:, 0], reward_of(copies, numbers, steps, actions), rtol=1e-5)
    last = steps + 1 == [episode_length(*who) for who in zip(numbers, copies, strict=True)]
    terminal = last & [ending(number) == "terminated" for number in numbers]
    assert np.array_equal(sample.dones.numpy()[:, 0], terminal)
    drawn = []
    for window in range(shown.shape[1]):
        mine = shown[now.wanted[:, window].numpy(), window]
        assert len({(page[0], page[1]) for page in mine}) == 1
        assert np.array_equal(np.diff(mine[:, 2]), np.ones(len(mine) - 1))
        length = int(now.past_lengths[window])
        if length:
            before = pages(now.past)[:length, window]
            assert np.array_equal(before, [[*mine[0, :2], mine[0, 2] - length + back] for back in range(length)])
        drawn.append((int(mine[0, 0]), int(mine[0, 1]), mine[:, 2].astype(int).tolist(), length))
    return drawn


@pytest.mark.parametrize(
    ("kind", "sequence_length", "vec_env"),
    [
        ("box", None, DummyVecEnv),
        ("box", 4, DummyVecEnv),
        ("dict", None, DummyVecEnv),
        ("dict", 4, DummyVecEnv),
        ("dict", 4, SubprocVecEnv),
    ],
)
def test_windows_are_the_episodes_as_they_were_played(kind, sequence_length, vec_env):
    policy = "MlpPolicy" if kind == "box" else "MultiInputPolicy"
    env = diaries(3, kind, vec_env)
    model = model_on(env, policy=policy, sequence_length=sequence_length, buffer_size=120).learn(99).learn(201)
    env.close()
    buffer = model.replay_buffer
    assert buffer.full
    assert buffer.pos  # the oldest step is somewhere in the middle
    seen = [window for _ in range(60) for window in check_rows(buffer.sample(40), 3, 30)]
    rows = buffer.observations if kind == "box" else buffer.observations["a"]
    stored = {tuple(page) for page in rows.reshape(-1, 3)}
    drawn = {(copy_number, number, step) for copy_number, number, steps, _ in seen for step in steps}
    beheaded = {page for page in stored if (page[0], page[1], 0) not in stored}
    if sequence_length is None:
        assert all(steps[0] == 0 and not past for _, _, steps, past in seen)
        assert drawn == stored - beheaded
    else:
        assert drawn == stored
        assert all(past == steps[0] for copy_number, number, steps, past in seen if (copy_number, number, 0) in stored)


def test_a_reset_in_the_middle_of_an_episode_ends_its_window():
    model = model_on(diaries(1), train_freq=1, gradient_steps=0).learn(2).learn(1)
    windows = check_rows(model.replay_buffer.sample(30), 1, 2)
    assert sorted({str(window) for window in windows}) == ["(0, 0, [0, 1], 0)", "(0, 1, [0], 0)"]


@pytest.mark.parametrize("burn_in", [0, 2])
def test_burn_in_limits_the_steps_before_a_window(burn_in):
    model = model_on(diaries(), gradient_steps=0, sequence_length=2, burn_in=burn_in).learn(200)
    for _, _, steps, past in check_rows(model.replay_buffer.sample(200), 3, 30):
        assert past == min(steps[0], burn_in)


def test_batch_size_counts_transitions():
    env = recalls(2, steps=9)  # episodes of 10 steps
    model = model_on(env, gradient_steps=0, sequence_length=4).learn(200)
    assert len(model.replay_buffer.sample(42).rewards) == 40
    model = model_on(env, gradient_steps=0).learn(200)
    assert len(model.replay_buffer.sample(50).rewards) == 50
    assert len(model.replay_buffer.sample(5).rewards) == 10


def test_ends_of_episodes_are_drawn_as_often_as_beginnings():
    model = model_on(recalls(2, steps=9), gradient_steps=0, sequence_length=4).learn(200)
    model.replay_buffer.begin(np.ones(2, dtype=bool))
    counts = np.zeros(10)
    for _ in range(50):
        now = model.replay_buffer.sample(400).observations
        wanted = now.wanted.nonzero()
        np.add.at(counts, (wanted[:, 0] + now.past_lengths[wanted[:, 1]]).numpy(), 1)
    assert counts[0] == pytest.approx(counts[-1], rel=0.1)
    assert counts.max() < 2.5 * counts.min()


def test_normalised_environments_give_normalised_windows():
    env = VecNormalize(diaries())
    model = model_on(env, gradient_steps=0, sequence_length=2).learn(90)
    raw, normalised = copy.deepcopy(model.replay_buffer).sample(8), model.replay_buffer.sample(8, env)
    np.testing.assert_allclose(
        env.normalize_obs(raw.observations.observations.numpy()), normalised.observations.observations, rtol=1e-5
    )
    np.testing.assert_allclose(env.normalize_reward(raw.rewards.numpy()), normalised.rewards, rtol=1e-5)


# -------------------------------------------------------------------- learning


def values_one_by_one(network, copy_number, number, first, last):
    """Q-values after each of the steps first..last of a diary, observation by observation from a zero state."""
    hidden, rows = th.zeros(1, 8), []
    for now in range(first, last + 1):
        values, hidden = network.step(th.tensor([[copy_number, number, now]], dtype=th.float32), hidden)
        rows.append(values[0])
    return rows


@pytest.mark.parametrize("settings", [{}, {"sequence_length": 3}, {"sequence_length": 3, "burn_in": 1}])
def test_the_loss_is_the_one_computed_step_by_step(settings):
    model = model_on(diaries(), learning_rate=0.0, gamma=0.9, **settings).learn(100)
    with th.no_grad():  # two different networks, neither of them fresh
        for network in (model.q_net, model.q_net_target):
            for values in network.parameters():
                values.add_(0.1 * th.randn_like(values))
    sample = copy.deepcopy(model.replay_buffer).sample(model.batch_size)
    actions = iter(sample.actions[:, 0].tolist())
    chosen = {tuple(page): action for page, action in zip(
        pages(sample.observations.observations)[sample.observations.wanted.numpy()].tolist(), actions, strict=True
    )}  # fmt: skip
    errors = []
    for copy_number, number, steps, _ in check_rows(sample, 3, 40):
        first = max(0, steps[0] - settings["burn_in"]) if "burn_in" in settings else 0
        online = values_one_by_one(model.q_net, copy_number, number, first, steps[-1] + 1)
        target = values_one_by_one(model.q_net_target, copy_number, number, first, steps[-1] + 1)
        for now in steps:
            action = chosen[copy_number, number, now]
            over = now + 1 == episode_length(number, copy_number) and ending(number) == "terminated"
            best = 0.0 if over else float(target[now + 1 - first].detach().max())
            aim = reward_of(copy_number, number, now, action) + 0.9 * best
            errors.append(aim - float(online[now - first][action].detach()))
    model.train(1, model.batch_size)
    expected = float(functional.smooth_l1_loss(th.tensor(errors), th.zeros(len(errors))))
    assert model.logger.name_to_value["train/loss"] == pytest.approx(expected, rel=1e-4)


def test_the_target_network_follows_the_online_network():
    model = model_on(diaries(), target_update_interval=30, tau=1.0).learn(60)
    before = copy.deepcopy(model.q_net_target.state_dict())
    for key, values in model.q_net.state_dict().items():
        assert "gru" not in key or not th.equal(values, before[key])
    model.target_update_interval = 1
    model.learn(12, reset_num_timesteps=False)
    assert any(not th.equal(values, before[key]) for key, values in model.q_net_target.state_dict().items())


def test_the_network_has_the_layers_it_was_asked_for():
    model = RecurrentDQN("MlpPolicy", diaries(), device="cpu")
    widths = [layer.out_features for layer in model.q_net.layers if isinstance(layer, th.nn.Linear)]
    assert (widths, model.q_net.gru.input_size, model.q_net.gru.hidden_size) == ([32, 16], 16, 256)
    model = model_on(diaries(), policy_kwargs={"net_arch": [], "hidden_size": 4})
    assert (len(model.q_net.layers), model.q_net.gru.input_size, model.q_net.gru.hidden_size) == (0, 3, 4)


def test_every_environment_has_a_coin_of_its_own():
    model = model_on(diaries(64))
    model.exploration_rate = 0.6
    observations = np.zeros((64, 3), np.float32)
    greedy, _ = model.predict(observations, deterministic=True)
    assert len(set(greedy)) == 1
    differing = [(model.predict(observations)[0] != greedy).sum() for _ in range(50)]
    assert min(differing) > 0 and max(differing) < 64
    assert np.mean(differing) == pytest.approx(64 * 0.6 * 2 / 3, rel=0.1)


def test_the_first_steps_are_random_whatever_epsilon(monkeypatch):
    greedy = {"exploration_initial_eps": 0.0, "exploration_final_eps": 0.0}
    model = model_on(diaries(3), learning_starts=30, **greedy)
    explored, rates = model._explored, []
    monkeypatch.setattr(model, "_explored", lambda actions, rate: rates.append(rate) or explored(actions, rate))
    model.learn(60)
    assert rates == [1.0] * 10 + [0.0] * 10


def test_rewards_are_scaled_in_training_only():
    model = model_on(diaries(), gradient_steps=0).learn(60)
    unscaled = copy.deepcopy(model.replay_buffer).sample(20).rewards
    model.replay_buffer.reward_scale = 0.25
    assert th.equal(model.replay_buffer.sample(20).rewards, unscaled / 4)
    assert model_on(diaries(), reward_scale=0.25).replay_buffer.reward_scale == 0.25


def test_actions_carry_the_probabilities_they_were_drawn_from():
    model = model_on(diaries(2))
    model.exploration_rate = 0.3
    actions, _ = model.predict(np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(np.sort(actions.probabilities), [[0.1, 0.1, 0.8]] * 2)
    actions, _ = model.predict(np.zeros((2, 3), np.float32), deterministic=True)
    np.testing.assert_allclose(actions.probabilities, np.eye(3)[np.asarray(actions)])


def test_a_run_is_determined_by_its_seed():
    runs = [weights(model_on(diaries(), seed=seed, sequence_length=3).learn(120)) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_evaluation_in_between_changes_nothing():
    callback = EvalCallback(recalls(2), eval_freq=7, n_eval_episodes=3, verbose=0, warn=False)
    runs = [weights(model_on(recalls(3)).learn(120, callback=watch)) for watch in (None, callback)]
    assert np.array_equal(*runs)


def test_batched_worlds_and_the_progress_bar_work():
    env = make_vec("sb3_fair/JobHiring-v0", n_envs=4)
    policy = "MultiInputPolicy" if isinstance(env.observation_space, gym.spaces.Dict) else "MlpPolicy"
    model = model_on(env, policy=policy, sequence_length=5).learn(80, progress_bar=True)
    assert model.num_timesteps == 80
    assert model._n_updates > 0


# -------------------------------------------------------------------- keeping


def test_a_loaded_model_has_the_same_q_values_and_learns_on(trained, tmp_path):
    trained.save(tmp_path / "model")
    loaded = RecurrentDQN.load(tmp_path / "model", env=recalls(7), device="cpu")
    observations = th.randn(5, 2)
    for name in ("q_net", "q_net_target"):
        assert th.equal(getattr(trained, name)(observations), getattr(loaded, name)(observations))
    assert evaluate_policy(loaded, recalls(2), 20, warn=False) == (1.0, 0.0)
    before = weights(loaded)
    loaded.learn(210, reset_num_timesteps=False)
    assert loaded.num_timesteps >= 3_210
    assert not np.array_equal(weights(loaded), before)


def test_a_policy_can_be_kept_without_its_algorithm(trained, tmp_path):
    trained.policy.save(tmp_path / "policy")
    loaded = type(trained.policy).load(tmp_path / "policy", device="cpu")
    observations = np.ones((3, 2), np.float32)
    assert np.array_equal(loaded.predict(observations)[1][0], trained.policy.predict(observations)[1][0])


def test_a_loaded_replay_buffer_gives_the_same_windows(tmp_path):
    model = model_on(diaries(), sequence_length=4).learn(100)
    model.save_replay_buffer(tmp_path / "buffer")
    other = model_on(diaries(), sequence_length=2)
    other.load_replay_buffer(tmp_path / "buffer")
    assert {len(steps) for _, _, steps, _ in check_rows(other.replay_buffer.sample(20), 3, 30)} == {2}
    same = model_on(diaries(), sequence_length=4)
    same.load_replay_buffer(tmp_path / "buffer")
    assert check_rows(same.replay_buffer.sample(20), 3, 30) == check_rows(model.replay_buffer.sample(20), 3, 30)
    with pytest.raises(ValueError, match="path must hold a buffer of 1 environments, got one of 3"):
        model_on(diaries(1), train_freq=1).load_replay_buffer(tmp_path / "buffer")


def test_new_episodes_do_not_run_on_from_those_of_a_loaded_buffer(tmp_path):
    model = model_on(diaries(1), train_freq=1, gradient_steps=0).learn(2)
    model.save_replay_buffer(tmp_path / "buffer")
    other = model_on(diaries(1), train_freq=1, gradient_steps=0)
    other.load_replay_buffer(tmp_path / "buffer")
    other.learn(2)
    windows = check_rows(other.replay_buffer.sample(30), 1, 1)
    assert {str(window) for window in windows} == {"(0, 0, [0, 1], 0)"}


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_steps": 3}, "n_steps must be 1, got 3"),
        ({"sequence_length": 0}, "sequence_length must be a positive integer or None, got 0"),
        ({"sequence_length": 50}, r"batch_size must be at least sequence_length \(50\), got 24"),
        ({"burn_in": -1}, "burn_in must be a non-negative integer or None, got -1"),
        ({"reward_scale": np.nan}, "reward_scale must be a positive number, got nan"),
        ({"exploration_decay": 2}, r"exploration_decay must be in \(0, 1\] or None, got 2"),
        ({"optimize_memory_usage": True}, "optimize_memory_usage must be False, got True"),
        ({"policy_kwargs": {"hidden_size": 0}}, "hidden_size must be a positive integer, got 0"),
    ],
)
def test_arguments_that_are_not_allowed(settings, message):
    with pytest.raises(ValueError, match=message):
        model_on(diaries(), **settings)


def test_classes_that_know_no_windows(tmp_path):
    with pytest.raises(ValueError, match="policy must be a string or a subclass of RecurrentDQNPolicy"):
        model_on(diaries(), policy=DQNPolicy)
    with pytest.raises(TypeError, match="replay_buffer_class must be a WindowReplayBuffer, got ReplayBuffer"):
        model_on(diaries(), replay_buffer_class=ReplayBuffer)
    DQN("MlpPolicy", diaries(), device="cpu", buffer_size=10).save_replay_buffer(tmp_path / "buffer")
    with pytest.raises(TypeError, match="path must hold a WindowReplayBuffer, got a ReplayBuffer"):
        model_on(diaries()).load_replay_buffer(tmp_path / "buffer")


def test_whole_episodes_that_do_not_fit_into_the_buffer():
    with pytest.raises(ValueError, match="buffer_size must hold whole episodes of each environment, got 4 steps per"):
        model_on(recalls(2, steps=30), buffer_size=8).learn(60)


# -------------------------------------------------------------------- speed


@pytest.mark.slow
def test_speed_of_gradient_steps(record_property):
    """Windows of 50 steps, 512 transitions, GRU 256, one thread: about 50 ms each."""
    model = model_on(recalls(8, steps=99), sequence_length=50, batch_size=512, policy_kwargs={}, gradient_steps=0)
    model.learn(4_000)
    model.train(2, 512)
    started = time.process_time()
    model.train(20, 512)
    speed = 20 / (time.process_time() - started)
    record_property("gradient_steps_per_second", speed)
    assert speed > 2
