"""Does the extra critic credit any signal as SB3 credits rewards, and does it learn values?"""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from sb3_fair.common.columns import ColumnDictRolloutBuffer, ColumnRolloutBuffer, figure
from sb3_fair.common.extra_critic import ExtraCritic, gae, steps_of
from sb3_fair.wrappers.infos import Infos

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
KEYED = spaces.Dict({"place": spaces.Discrete(4), "view": spaces.Box(0, 255, (1, 36, 36), np.uint8), "x": BOX})


def filled(buffer_class=ColumnRolloutBuffer, space=BOX, steps=5, n=3, seed=0, note=None):
    """A full buffer of random steps with some ends of episodes."""
    rng = np.random.default_rng(seed)
    space.seed(seed)
    buffer = buffer_class(steps, space, spaces.Discrete(2), device="cpu", gamma=0.9, gae_lambda=0.8, n_envs=n)
    for step in range(steps):
        if note is not None:
            note(buffer, step)
        samples = [space.sample() for _ in range(n)]
        keyed = isinstance(space, spaces.Dict)
        obs = {key: np.stack([s[key] for s in samples]) for key in space} if keyed else np.stack(samples)
        values, log_probs = th.as_tensor(rng.normal(size=(2, n)), dtype=th.float32)
        rewards = rng.normal(size=n)
        buffer.add(obs, rng.integers(2, size=n), rewards, rng.random(n) < 0.3, values, log_probs)
    return buffer


# -------------------------------------------------------------------- credit


def test_gae_has_the_numbers_of_sb3():
    buffer = filled(RolloutBuffer, steps=20, n=4)
    last_values, last_dones = th.tensor([1.0, -2.0, 3.0, 0.5]), np.array([True, False, False, True])
    buffer.compute_returns_and_advantage(last_values, last_dones)
    advantages = gae(buffer.rewards, buffer.values, last_values.numpy(), last_dones, buffer.episode_starts, 0.9, 0.8)
    np.testing.assert_array_equal(advantages, buffer.advantages)


def test_gae_of_a_worked_example():
    signal, values = np.array([[1.0], [2.0], [4.0]]), np.array([[0.5], [1.0], [3.0]])
    starts = np.array([[True], [False], [True]])  # the second step ends an episode
    advantages = gae(signal, values, [10.0], [False], starts, gamma=0.5, gae_lambda=0.5)
    last = 4 + 0.5 * 10 - 3
    second = 2 - 1
    first = 1 + 0.5 * 1 - 0.5 + 0.25 * second
    np.testing.assert_allclose(advantages.ravel(), [first, second, last])


def test_judging_is_gae_on_the_critics_own_values():
    buffer, critic = filled(), ExtraCritic(BOX, seed=0, device="cpu")
    signal, last_obs = np.random.default_rng(1).random((5, 3)), np.ones((3, 3), np.float32)
    last_dones = np.array([False, True, False])
    credit = critic.judge(buffer, signal, last_obs, last_dones, gamma=0.7, gae_lambda=0.6)
    values = np.stack([critic.values(obs) for obs in buffer.observations])
    last = critic.values(last_obs)
    np.testing.assert_allclose(credit.values, values, rtol=1e-5)
    expected = gae(signal, values, last, last_dones, buffer.episode_starts, 0.7, 0.6)
    np.testing.assert_allclose(credit.advantages, expected, rtol=1e-5)
    np.testing.assert_allclose(credit.returns, expected + values, rtol=1e-5)


@pytest.mark.parametrize(("kind", "space"), [(ColumnRolloutBuffer, BOX), (ColumnDictRolloutBuffer, KEYED)])
def test_where_a_time_limit_cuts_off_the_value_of_the_last_observation_stands_for_the_rest(kind, space):
    ends = [space.sample() for _ in range(3)]

    def note(buffer, step):
        infos = [
            {"terminal_observation": ends[0], "TimeLimit.truncated": True},
            {"terminal_observation": ends[1], "TimeLimit.truncated": False},  # the end itself
            {"terminal_observation": ends[2], "TimeLimit.truncated": True},  # not done: left from another step
        ]
        buffer.note_truncations(infos, np.array([True, True, False]) & (step == 1))

    buffer, critic = filled(kind, space, note=note), ExtraCritic(space, seed=0, device="cpu")
    buffer.episode_starts[2, :2] = 1
    signal = np.zeros((5, 3))
    last_obs = {key: np.stack([end[key] for end in ends]) for key in space} if space is KEYED else np.stack(ends)
    judged = critic.judge(buffer, signal, last_obs, np.zeros(3, bool), 0.9, 0.0)
    bootstrap = judged.returns[1]  # with lambda 0: signal + gamma * what follows
    assert bootstrap[0] == pytest.approx(0.9 * critic.values(last_obs)[0], rel=1e-5)
    assert bootstrap[1] == 0
    assert not signal.any()


# -------------------------------------------------------------------- learning


def test_it_learns_the_returns_of_observations_whatever_their_scale():
    observations = np.random.default_rng(0).uniform(-1, 1, (512, 3)).astype(np.float32)
    shape = observations[:, 0] - 2 * observations[:, 1] ** 2
    for scale, shift in ((1.0, 0.0), (1e-3, 0.0), (1000.0, -5000.0)):
        critic = ExtraCritic(BOX, learning_rate=0.01, seed=0, device="cpu")
        critic.fit(observations, scale * shape + shift, epochs=20, batch_size=64)
        errors = critic.values(observations) - (scale * shape + shift)
        assert errors.std() < 0.1 * scale * shape.std()


def test_a_moving_scale_of_the_targets_leaves_the_values_where_they_are():
    observations = np.random.default_rng(0).uniform(-1, 1, (64, 3)).astype(np.float32)
    critic = ExtraCritic(BOX, seed=0, device="cpu")
    critic.fit(observations, observations[:, 0], epochs=5, batch_size=16)
    before, mean = critic.values(observations), critic.mean.clone()
    critic.fit(observations, 100 + 50 * observations[:, 0], epochs=0, batch_size=16)
    assert critic.mean > mean + 10
    np.testing.assert_allclose(critic.values(observations), before, atol=1e-4)
    for target in (0, 1):
        for _ in range(50):
            critic.fit(observations, np.full(64, target), epochs=0, batch_size=16)
    assert critic.mean > 0.99, "what was long ago no longer counts"


def test_targets_that_are_all_alike_do_no_harm():
    observations = np.zeros((32, 3), np.float32)
    critic = ExtraCritic(BOX, seed=0, device="cpu")
    critic.fit(observations, np.full(32, 7.0), epochs=3, batch_size=8)
    np.testing.assert_allclose(critic.values(observations), 7, atol=0.01)


def test_dict_discrete_and_image_observations_are_flattened():
    sizes = {"Box": BOX, "Discrete": spaces.Discrete(6), "MultiDiscrete": spaces.MultiDiscrete([2, 5]), "Dict": KEYED}
    for name, width in (("Box", 3), ("Discrete", 6), ("MultiDiscrete", 7), ("Dict", 4 + 36 * 36 + 3)):
        critic = ExtraCritic(sizes[name], hidden=(8,), seed=0, device="cpu")
        kind = ColumnDictRolloutBuffer if name == "Dict" else ColumnRolloutBuffer
        buffer = filled(kind, sizes[name])
        assert critic.body[0].in_features == width
        assert critic.values(steps_of(buffer.observations)).shape == (15,)
        critic.fit(steps_of(buffer.observations), np.zeros(15), epochs=1, batch_size=4)
    pixels = {"place": np.array([1]), "view": np.full((1, 1, 36, 36), 255, np.uint8), "x": np.zeros((1, 3))}
    assert critic.values(pixels).item() == pytest.approx(
        critic.values(pixels | {"view": np.full((1, 1, 36, 36), 255.0)}).item()
    )


def test_nothing_hidden_is_a_linear_critic():
    critic = ExtraCritic(BOX, hidden=(), seed=0, device="cpu")
    obs = np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(critic.values(obs), critic.head.weight.detach().numpy()[0], rtol=1e-6)


# -------------------------------------------------------------------- chance, state


def test_it_draws_no_global_random_numbers_and_follows_its_seed():
    th.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 (SB3's own)
    states = th.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    observations, returns = np.random.default_rng(0).random((2, 40, 3)).astype(np.float32)
    critics = [ExtraCritic(BOX, seed=seed, device="cpu") for seed in (3, 3, 4)]
    for critic in critics:
        critic.fit(observations, returns[:, 0], epochs=2, batch_size=8)
    one, same, other = (critic.values(observations) for critic in critics)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert th.equal(states[0], th.get_rng_state())
    assert np.array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002


def test_without_a_seed_it_follows_pytorchs():
    obs = np.ones((1, 3), np.float32)
    values = []
    for seed in (1, 1, 2):
        th.manual_seed(seed)
        values.append(ExtraCritic(BOX, device="cpu").values(obs).item())
    assert values[0] == values[1] != values[2]


def test_a_restored_critic_learns_on_as_the_saved_one_would_have(tmp_path):
    observations, returns = np.random.default_rng(0).random((2, 40, 3)).astype(np.float32)
    critic = ExtraCritic(BOX, seed=0, device="cpu")
    critic.fit(observations, returns[:, 0], epochs=2, batch_size=8)
    th.save([critic.state_dict(), critic.optimizer.state_dict()], tmp_path / "critic.pt")
    restored = ExtraCritic(BOX, seed=9, device="cpu")
    weights, optimizer = th.load(tmp_path / "critic.pt", weights_only=True)
    restored.load_state_dict(weights)
    restored.optimizer.load_state_dict(optimizer)
    for one in (critic, restored):
        one.fit(observations, 3 * returns[:, 1], epochs=2, batch_size=8)
    np.testing.assert_array_equal(critic.values(observations), restored.values(observations))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden": (8, 0)}, r"hidden must be .*positive integer.*, got \(8, 0\)"),
        ({"learning_rate": 0}, "learning_rate must be a positive number, got 0"),
        ({"learning_rate": "fast"}, "learning_rate must be a positive number, got 'fast'"),
    ],
)
def test_arguments_that_are_not_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        ExtraCritic(BOX, **arguments)


# -------------------------------------------------------------------- columns


def test_columns_are_flattened_in_the_order_of_the_rewards_advantages():
    def note(buffer, step):
        buffer.note(step=step, copy=np.arange(3))

    buffer = filled(note=note)
    buffer.advantages[:] = 10 * buffer.columns["step"] + buffer.columns["copy"]
    for batch in buffer.get(4):
        assert len(batch.advantages) in (3, 4)
    np.testing.assert_array_equal(buffer.advantages.ravel(), 10 * buffer.columns["step"] + buffer.columns["copy"])
    assert buffer.columns["copy"].shape == (15,)
    buffer.reset()
    assert buffer.columns == {}


def test_a_row_that_was_not_noted_is_undefined():
    buffer = filled(note=lambda buffer, step: buffer.note(late=1.0) if step == 4 else None)
    assert np.isnan(buffer.columns["late"][:4]).all()
    assert (buffer.columns["late"][4] == 1).all()


def test_figures_are_read_from_dicts_and_from_shared_records_alike():
    dicts = [{"fairness": {"gap": None}}, {"fairness": {"gap": 0.5}}]
    record = Infos({"fairness": {"gap": np.array([np.nan, 0.5])}}, 2)
    for infos in (dicts, record):
        np.testing.assert_array_equal(figure(infos, "gap"), [np.nan, 0.5])
        with pytest.raises(KeyError, match="gaps"):
            figure(infos, "gaps")
