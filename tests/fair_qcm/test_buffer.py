"""Are relabelled transitions those that another past would have brought, and does SB3's buffer stay what it is?"""

import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from sb3_fair import make_vec
from sb3_fair.fair_qcm import CounterfactualBoxReplayBuffer, CounterfactualReplayBuffer, FairQCM, MemoryExtractor
from sb3_fair.fairness import Scheme
from sb3_fair.wrappers.events import FairEvent
from sb3_fair.wrappers.memories import FullMemory, make_memory
from sb3_fair.wrappers.memory import MemoryAugmentation, VecMemoryAugmentation
from tests.fair_qcm.sharing import Sharing

LOG_NASH = Scheme(welfare="log_nash")


def sharing(n=3, memory="full", flatten=False, **settings):
    return VecMemoryAugmentation(
        DummyVecEnv([lambda: Sharing(**settings) for _ in range(n)]), memory=memory, flatten=flatten
    )


def attributes(venv):
    return {"memory": venv.get_attr("memory")[0], "scheme": venv.get_attr("scheme")[0]}


def buffer_for(venv, size=200, **more):
    flat = isinstance(venv.observation_space, spaces.Box)
    kind = CounterfactualBoxReplayBuffer if flat else CounterfactualReplayBuffer
    arguments = {"device": "cpu", "n_envs": venv.num_envs, "seed": 0, **attributes(venv), **more}
    return kind(size, venv.observation_space, venv.action_space, **arguments)


def final(next_obs, dones, infos):
    """As SB3 stores them: the terminal observation instead of the next episode's first."""
    for index in np.flatnonzero(dones):
        last = infos[index]["terminal_observation"]
        if isinstance(next_obs, dict):
            for key in next_obs:
                next_obs[key][index] = last[key]
        else:
            next_obs[index] = last
    return next_obs


def play(venv, buffers, n_steps=20, seed=0):
    """The same random steps into every buffer."""
    rng = np.random.default_rng(seed)
    venv.seed(seed)
    obs = venv.reset()
    for _ in range(n_steps):
        actions = rng.integers(venv.action_space.n, size=venv.num_envs)
        following, rewards, dones, infos = venv.step(actions)
        stored = {key: value.copy() for key, value in following.items()} if isinstance(obs, dict) else following.copy()
        for buffer in buffers:
            buffer.add(obs, final(stored, dones, infos), actions, rewards, dones, infos)
        obs = following


def drawn(buffer, size=256, seed=0, env=None):
    np.random.seed(seed)  # noqa: NPY002 (SB3 draws from it)
    return buffer.sample(size, env)


def same(batch, other):
    for mine, theirs in zip(batch, other, strict=True):
        if isinstance(mine, dict):
            assert mine.keys() == theirs.keys()
            assert all(th.equal(mine[key], theirs[key]) for key in mine)
        else:
            assert mine is theirs is None or th.equal(mine, theirs)


@dataclass(frozen=True)
class Scripted(FullMemory):
    """Counterfactuals are the real counts and ``others`` (m, n)."""

    others: tuple = ()

    def sample_counterfactuals(self, memory, rng):
        return memory + np.asarray(self.others, dtype=np.float32)


class OneCount:
    """A memory of one's own: how often each action took effect; it has no window and no rows."""

    name, dim, high = "one", 2, np.full(2, 5.0)

    def initial(self, batch):
        return np.zeros((*batch, 2), dtype=np.float32)

    def update(self, memory, action, event):
        return memory + np.eye(2)[action] * event[..., :1]

    def encode(self, memory):
        return memory.astype(np.float32)

    def status(self, memory):
        return memory

    def sample_counterfactuals(self, memory, rng):
        return rng.integers(0, 3, memory.shape)


class Wide(OneCount):
    """One whose window is its own affair."""

    window = 2


def filled(memory, memories, actions, granted):
    """A buffer of single steps (m,) from these memories (m, n)."""
    people = memory.dim
    space = spaces.Dict({"state": spaces.Box(0, 1, (1,)), "memory": spaces.Box(memory.low, memory.high)})
    buffer = CounterfactualReplayBuffer(
        len(actions), space, spaces.Discrete(people), "cpu", memory=memory, scheme=LOG_NASH, n_counterfactual=1, seed=0
    )
    for before, action, took in zip(memories, actions, granted, strict=True):
        after = np.array(before) + took * np.eye(people)[action]
        state = np.zeros((1, 1), dtype=np.float32)
        reward = np.log(after + 1).sum() * took
        buffer.add(
            {"state": state, "memory": np.array([before], dtype=np.float32)},
            {"state": state, "memory": np.array([after], dtype=np.float32)},
            np.array([action]),
            np.array([reward]),
            np.array([False]),
            [{"fair_event": FairEvent(took, 0.0, took)}],
        )
    return buffer


def relabelled(buffer):
    """The rows of the buffer in order, with counterfactual memories."""
    rows = np.arange(buffer.size())
    batch = buffer._get_samples(np.concatenate((rows, rows)))
    first = slice(len(rows))
    return batch.observations["memory"][first], batch.next_observations["memory"][first], batch.rewards[first, 0]


@settings(max_examples=50, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=12),
    start=st.tuples(*[st.integers(0, 5)] * 3),
)
def test_relabelling_equals_replaying_the_trace_with_the_other_memory(steps, start):
    def replay(counts):
        counts, before, after, rewards = list(counts), [], [], []
        for action, took in steps:
            before.append(tuple(counts))
            counts[action] += took
            after.append(tuple(counts))
            rewards.append(sum(np.log(count + 1) for count in counts) if took else 0.0)
        return before, after, rewards

    actions, granted = zip(*steps, strict=True)
    memory = Scripted((0, 1, 2), 20, others=(start,) * len(steps))
    others, following, rewards = relabelled(filled(memory, replay((0, 0, 0))[0], actions, granted))
    expected = replay(start)
    np.testing.assert_array_equal(others, expected[0])
    np.testing.assert_array_equal(following, expected[1])
    np.testing.assert_allclose(rewards, expected[2], rtol=1e-6)


def test_relabelled_rewards_and_next_memories_are_those_worked_out_by_hand():
    real = np.array([(2, 1, 0)] * 3)
    others = np.array([(3, 1, 2), (0, 3, 1), (3, 2, 1)])
    memory = Scripted((0, 1, 2), 8, others=tuple(map(tuple, others - real)))
    _, following, rewards = relabelled(filled(memory, real, [2, 0, 1], [True, True, False]))
    np.testing.assert_array_equal(following, [(3, 1, 3), (1, 3, 1), (3, 2, 1)])
    np.testing.assert_allclose(rewards, [3.465736, 2.772589, 0], atol=1e-6)


SCENARIOS = {
    "sharing": lambda: sharing(3, length=5),
    "terminated": lambda: sharing(3, memory="full+clock", length=5, end="terminated", kind="dict"),
    "flat": lambda: sharing(3, length=5, flatten=True),
    "doughnut": lambda: VecMemoryAugmentation(make_vec("sb3_fair/Doughnut-v0", 3, episode_length=5)),
    "loans": lambda: VecMemoryAugmentation(
        make_vec("sb3_fair/LoanAllocation-v0", 3, episode_length=5), memory="difference"
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_update_gives_the_stored_next_memory_and_reward_of_every_real_row_also_of_last_steps(scenario):
    venv = SCENARIOS[scenario]()
    buffer = buffer_for(venv, 60)
    play(venv, [buffer])
    assert buffer.full and buffer.dones.sum() == 12
    event = FairEvent(buffer.granted, buffer.base, buffer.mask).array
    following, rewards = buffer.recompute(buffer._memory_of(buffer.observations), buffer.actions[..., 0], event)
    np.testing.assert_array_equal(following, buffer._memory_of(buffer.next_observations))
    np.testing.assert_allclose(rewards, buffer.rewards, atol=1e-5)


@pytest.mark.parametrize(("k", "share"), [(1, 128), (4, 204), (32, 248)])
def test_a_share_of_k_in_k_plus_1_of_every_batch_is_relabelled(k, share):
    venv = sharing(3, presence=1.0)
    buffer = buffer_for(venv, n_counterfactual=k)
    play(venv, [buffer])
    batch = drawn(buffer)
    assert len(batch.rewards) == 256
    assert buffer.cf_share == share / 256
    steps = batch.observations["memory"].sum(dim=1)  # everybody is there, so real counts add up to the steps passed
    possible = {float(total) for total in buffer.observations["memory"].sum(axis=2).ravel()}
    assert set(steps[share:].tolist()) <= possible
    assert not set(steps[:share].tolist()) <= possible


@pytest.mark.parametrize("window", [None, 1, 3])
def test_counterfactual_counts_stay_within_the_window_and_the_possible_counts(window):
    venv = sharing(1, presence=1.0)
    buffer = buffer_for(venv, 1, n_counterfactual=99, window=window)
    play(venv, [buffer], n_steps=4)
    (real,) = buffer.observations["memory"][0]
    others = drawn(buffer, 2000).observations["memory"].numpy()
    reach = window or 2
    np.testing.assert_array_equal(others.min(axis=0), np.maximum(real - reach, 0))
    np.testing.assert_array_equal(others.max(axis=0), np.minimum(real + reach, 5))


@pytest.mark.parametrize(("flatten", "kind"), [(False, DictReplayBuffer), (True, ReplayBuffer)])
def test_without_counterfactuals_batches_are_those_of_sb3(flatten, kind):
    venv = sharing(flatten=flatten, tells=False)
    mine = buffer_for(venv, n_counterfactual=0)
    theirs = kind(200, venv.observation_space, venv.action_space, "cpu", n_envs=3)
    play(venv, [mine, theirs])
    same(drawn(mine), drawn(theirs))
    assert mine.cf_share == 0 and not hasattr(mine, "rng")


def test_the_flat_buffer_draws_what_the_dict_buffer_draws():
    buffers = []
    for flatten in (False, True):
        venv = sharing(flatten=flatten)
        buffers.append(buffer_for(venv))
        play(venv, buffers[-1:])
    keyed, flat = (drawn(buffer) for buffer in buffers)
    for name in ("observations", "next_observations"):
        keys = getattr(keyed, name)
        assert th.equal(th.cat((keys["state"], keys["memory"]), dim=1), getattr(flat, name))
    same(keyed[1:2] + keyed[3:], flat[1:2] + flat[3:])


def test_the_seed_decides_the_counterfactuals_and_by_default_sb3_s_seed_does():
    venv = sharing()

    def batch(seed, global_seed=0):
        np.random.seed(global_seed)  # noqa: NPY002
        buffer = buffer_for(venv, seed=seed)
        play(venv, [buffer])
        return drawn(buffer).observations["memory"]

    assert th.equal(batch(3), batch(3, global_seed=1))
    assert not th.equal(batch(3), batch(4))
    assert th.equal(batch(None), batch(None))
    assert not th.equal(batch(None), batch(None, global_seed=1))


# ---------------------------------------------------------------- the paper's stored rows


def test_stored_rows_are_the_memories_above_the_real_one_and_consistent_transitions():
    venv = sharing(2, presence=1.0, length=5)
    buffer, exact = (buffer_for(venv, size, storage="rows") for size in (10_000, 10))
    play(venv, [buffer, exact], n_steps=1)
    assert exact.full and exact.size() == 10
    rows = slice(buffer.pos)
    assert buffer.pos == 2 * (1 + 4)
    memory = buffer.observations["memory"][rows, 0]
    assert memory[:5].tolist() == memory[5:].tolist() == [[0, 0], [1, 1], [1, 2], [2, 1], [2, 2]]
    assert buffer.counterfactual[rows].tolist() == [False, True, True, True, True] * 2
    served = np.eye(2)[buffer.actions[rows, 0, 0]]
    following = buffer.next_observations["memory"][rows, 0]
    np.testing.assert_array_equal(following, memory + served)
    np.testing.assert_allclose(buffer.rewards[rows, 0], np.log(following + 1).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("flatten", [False, True])
def test_stored_rows_wrap_around_and_keep_the_newest(flatten):
    venv = sharing(3, flatten=flatten)
    small, large = (buffer_for(venv, size, storage="rows") for size in (50, 10_000))
    play(venv, [small, large], n_steps=40)
    assert small.full and not large.full
    newest = (np.arange(large.pos - 50, large.pos), 0)
    slots = (np.arange(small.pos - 50, small.pos) % 50, 0)
    for name in ("rewards", "actions", "dones", "timeouts"):
        np.testing.assert_array_equal(getattr(small, name)[slots], getattr(large, name)[newest])
    for stored, whole in ((small.observations, large.observations), (small.next_observations, large.next_observations)):
        np.testing.assert_array_equal(small._memory_of(stored)[slots], large._memory_of(whole)[newest])
    assert len(drawn(small, 64).rewards) == 64
    assert 0.5 < small.cf_share < 1


def test_one_step_may_have_more_rows_than_the_buffer():
    venv = sharing(3)
    small, large = (buffer_for(venv, size, storage="rows") for size in (7, 100))
    play(venv, [small, large], n_steps=1)
    newest = large.observations["memory"][large.pos - 7 : large.pos, 0]
    slots = np.arange(large.pos - 7, large.pos) % 7
    np.testing.assert_array_equal(small.observations["memory"][slots, 0], newest)


# ---------------------------------------------------------------- rewards


@pytest.mark.parametrize("storage", ["virtual", "rows"])
@pytest.mark.parametrize("end", ["truncated", "terminated"])
def test_shaping_adds_the_change_of_the_potential_which_is_0_after_a_real_end(end, storage):
    gamma, scale = 0.9, 0.5
    venv = sharing(3, memory="full+clock", end=end)
    buffer = buffer_for(venv, 1000, shaping="potential", gamma=gamma, reward_scale=scale, storage=storage)
    play(venv, [buffer])
    batch = drawn(buffer, 500)

    def potential(memory):
        return th.log(memory[:, :2] + 1).sum(dim=1) / (1 - gamma)

    before, after = batch.observations["memory"], batch.next_observations["memory"]
    granted = (after - before)[:, :2].sum(dim=1)
    ended = batch.dones[:, 0]
    assert (end == "terminated") == bool(ended.any())
    plain = granted * th.log(after[:, :2] + 1).sum(dim=1)
    shaped = plain + gamma * (1 - ended) * potential(after) - potential(before)
    inside = (after[:, :2] < 5).all(dim=1)  # saturated counts do not show whether they were granted
    np.testing.assert_allclose(batch.rewards[inside, 0], scale * shaped[inside], atol=1e-4)


def test_without_counterfactuals_shaping_stores_and_relabels_real_rows_only():
    venv = sharing(3)
    buffer = buffer_for(venv, n_counterfactual=0, shaping="potential", gamma=0.9, storage="rows")
    play(venv, [buffer], n_steps=5)
    assert buffer.size() == 5 and buffer.n_envs == 3
    state = buffer.rng.bit_generator.state
    real = {tuple(memory) for memory in buffer.observations["memory"].reshape(-1, 2)}
    assert {tuple(memory) for memory in drawn(buffer).observations["memory"].numpy()} <= real
    assert buffer.rng.bit_generator.state == state


@pytest.mark.parametrize("storage", ["virtual", "rows"])
@pytest.mark.parametrize("handled", [True, False])
def test_time_limits_may_count_as_ends(handled, storage):
    venv = sharing(3)
    buffer = buffer_for(venv, 1000, storage=storage, handle_timeout_termination=handled)
    play(venv, [buffer])
    assert bool(drawn(buffer, 500).dones.any()) != handled


def test_reward_scale_also_scales_batches_without_counterfactuals():
    venv = sharing()
    plain, scaled = (buffer_for(venv, n_counterfactual=0, reward_scale=scale) for scale in (1.0, 0.5))
    play(venv, [plain, scaled])
    assert th.equal(drawn(scaled).rewards, drawn(plain).rewards * 0.5)


def test_rows_are_relabelled_raw_and_normalised_afterwards():
    venv = VecNormalize(sharing(), norm_obs_keys=["state"])
    venv.reset()
    for _ in range(20):
        venv.step(np.zeros(3, dtype=int))
    raw, normalised = (buffer_for(venv.venv) for _ in range(2))
    play(venv.venv, [raw, normalised])
    plain, batch = drawn(raw), drawn(normalised, env=venv)
    assert th.equal(batch.observations["memory"], plain.observations["memory"])
    np.testing.assert_array_equal(batch.rewards, venv.normalize_reward(plain.rewards.numpy()).astype(np.float32))
    seen = {key: value.numpy() for key, value in plain.observations.items()}
    np.testing.assert_array_equal(batch.observations["state"], venv.normalize_obs(seen)["state"])


# ---------------------------------------------------------------- other algorithms


@pytest.mark.parametrize("algorithm", [DQN, QRDQN])
@pytest.mark.parametrize("flatten", [False, True])
def test_dqn_and_qrdqn_train_on_counterfactuals(algorithm, flatten):
    venv = sharing(3, flatten=flatten)
    given = attributes(venv)
    model = algorithm(
        "MlpPolicy" if flatten else "MultiInputPolicy",
        venv,
        learning_starts=50,
        batch_size=30,
        seed=0,
        replay_buffer_class=CounterfactualBoxReplayBuffer if flatten else CounterfactualReplayBuffer,
        replay_buffer_kwargs=given,
        policy_kwargs={
            "features_extractor_class": MemoryExtractor,
            "features_extractor_kwargs": {"memory": given["memory"]},
        },
        device="cpu",
    )
    before = th.nn.utils.parameters_to_vector(model.policy.parameters()).clone()
    model.learn(150)
    assert not th.equal(before, th.nn.utils.parameters_to_vector(model.policy.parameters()))
    assert model.replay_buffer.cf_share == 24 / 30


def test_a_memory_of_one_s_own_is_relabelled():
    venv = sharing(3, memory=OneCount())
    buffer = buffer_for(venv)
    play(venv, [buffer])
    batch = drawn(buffer)
    granted = (batch.next_observations["memory"] - batch.observations["memory"]).sum(dim=1)
    welfare = th.log(batch.next_observations["memory"] + 1).sum(dim=1)
    np.testing.assert_allclose(batch.rewards[:, 0], granted * welfare, rtol=1e-5)


@pytest.mark.parametrize("encoder", ["log", "raw", "relative", "binary"])
@pytest.mark.parametrize("flatten", [False, True])
def test_the_extractor_shows_the_rest_and_the_encoded_memory(encoder, flatten):
    venv = VecMemoryAugmentation(DummyVecEnv([Sharing]), "full+clock", encoder=encoder, flatten=flatten)
    memory = venv.get_attr("memory")[0]
    extractor = MemoryExtractor(venv.observation_space, memory)
    state, counts = np.array([[1.0, 0.0]], dtype=np.float32), np.array([[2.0, 1.0, 3.0]], dtype=np.float32)
    rows = np.concatenate((state, counts), axis=1) if flatten else {"state": state, "memory": counts}
    shown = extractor(th.as_tensor(rows) if flatten else {key: th.as_tensor(value) for key, value in rows.items()})
    np.testing.assert_array_equal(shown, np.concatenate((state, memory.encode(counts)), axis=1))
    assert extractor.features_dim == shown.shape[1]


def test_a_memory_that_wrappers_outside_moved_is_refused():
    first = FlattenObservation(MemoryAugmentation(Sharing()))  # sorts keys: the memory comes before the state
    for env in (first, VecFrameStack(sharing(), 2)):
        with pytest.raises(ValueError, match="observation_space must hold the 2 numbers of the memory 'full'"):
            FairQCM("MlpPolicy", env, n_counterfactual=0, device="cpu")


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": None}, "memory and scheme must be given"),
        ({"scheme": None}, "memory and scheme must be given"),
        ({"n_counterfactual": -1}, "n_counterfactual must be a non-negative integer, got -1"),
        ({"storage": "row"}, "storage must be one of .*got 'row'"),
        ({"shaping": "phi"}, "shaping must be 'potential' or None, got 'phi'"),
        ({"shaping": "potential"}, "gamma must be the algorithm's"),
        ({"shaping": "potential", "gamma": 1.0}, "gamma must be the algorithm's"),
        ({"reward_scale": 0}, "reward_scale must be a positive number, got 0"),
        ({"window": 0}, "window must be a positive integer or None, got 0"),
        ({"window": 3, "memory": OneCount()}, "window must be None for the memory 'one'"),
        ({"window": 3, "memory": Wide()}, "window must be None for the memory 'one'"),
        ({"optimize_memory_usage": True}, "optimize_memory_usage must be False"),
        ({"n_steps": 3}, "n_steps must be 1"),
        ({"memory": make_memory("min", (0, 1), 5)}, "does not hold the status"),
        ({"memory": make_memory("reset", (0, 1), 5)}, "does not hold the status"),
        ({"memory": make_memory("full", (0, 1, 2), 5)}, "observation_space must hold the 3 numbers"),
        ({"memory": OneCount(), "storage": "rows"}, "memory must have a method rows for storage='rows', got 'one'"),
    ],
)
def test_arguments_that_are_not_allowed_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        buffer_for(sharing(), **arguments)


def test_unknown_arguments_are_an_error():
    with pytest.raises(TypeError, match="n_counterfactuals"):
        buffer_for(sharing(), n_counterfactuals=3)


def test_each_buffer_wants_its_own_observations():
    keyed, flat = sharing(), sharing(flatten=True)
    for kind, venv in ((CounterfactualReplayBuffer, flat), (CounterfactualBoxReplayBuffer, keyed)):
        with pytest.raises(ValueError, match="observation_space must be a"):
            kind(10, venv.observation_space, venv.action_space, **attributes(venv))


def test_on_policy_algorithms_are_told_that_they_cannot_use_it():
    venv = sharing()
    with pytest.raises(ValueError, match="rollout_buffer_class must be a rollout buffer"):
        PPO("MultiInputPolicy", venv, rollout_buffer_class=CounterfactualReplayBuffer, device="cpu")


def test_steps_without_an_event_are_an_error_that_says_what_to_wrap():
    venv = sharing(tells=False)
    with pytest.raises(ValueError, match="wrap the environment in FairnessScheme"):
        play(venv, [buffer_for(venv)])


@pytest.mark.parametrize("column", ["granted", "mask"])
def test_flags_that_are_neither_0_nor_1_are_an_error(column):
    venv = sharing(1)
    obs = venv.reset()
    event = FairEvent(1, 0.0, 1)._replace(**{column: 0.5})
    with pytest.raises(ValueError, match=f"{column} of the fair_event must be 0 or 1"):
        buffer_for(venv).add(obs, obs, np.zeros(1), np.zeros(1), np.zeros(1), [{"fair_event": event}])


def test_rewards_that_do_not_follow_from_memory_and_scheme_are_an_error():
    venv = sharing()
    buffer = buffer_for(venv, scheme=Scheme(welfare="utilitarian"))
    play(venv, [buffer])
    with pytest.raises(ValueError, match="memory 'full' and scheme must be the environment's"):
        drawn(buffer)
    with pytest.raises(ValueError, match="memory 'full' and scheme must be the environment's"):
        play(venv, [buffer_for(venv, scheme=Scheme(welfare="utilitarian"), storage="rows")])


@dataclass(frozen=True)
class Misbehaving(FullMemory):
    """``how`` it does."""

    how: str = ""

    def update(self, memory, action, event):
        return memory[..., :1] if self.how == "shape" else super().update(memory, action, event)

    def sample_counterfactuals(self, memory, rng):
        return memory + 100 if self.how == "range" else super().sample_counterfactuals(memory, rng)


@pytest.mark.parametrize(
    ("how", "message"), [("shape", "update of the memory 'full' must return"), ("range", "must stay between low")]
)
def test_memories_that_misbehave_are_an_error(how, message):
    venv = sharing()
    buffer = buffer_for(venv, memory=Misbehaving((0, 1), 5, how=how))
    play(venv, [buffer])
    with pytest.raises(ValueError, match=message):
        drawn(buffer)


def test_a_welfare_that_is_undefined_for_some_memory_is_an_error():
    venv = sharing()
    buffer = buffer_for(venv, scheme=Scheme(welfare=lambda status: np.where(status.min(axis=-1) == 0, np.nan, 0.0)))
    play(venv, [buffer])
    with pytest.raises(ValueError, match="welfare must be finite"):
        drawn(buffer)


def test_normalised_memories_are_an_error():
    venv = VecNormalize(sharing())
    buffer = buffer_for(venv)
    play(venv.venv, [buffer])
    with pytest.raises(ValueError, match="norm_obs_keys of VecNormalize must leave out 'memory'"):
        drawn(buffer, env=venv)


# ---------------------------------------------------------------- cost


def test_the_buffer_takes_at_most_a_tenth_more_memory_than_sb3_s():
    venv = VecMemoryAugmentation(make_vec("sb3_fair/Doughnut-v0", 4))

    def n_bytes(buffer):
        arrays = list(vars(buffer).values()) + list(buffer.observations.values()) * 2
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    plain = DictReplayBuffer(10_000, venv.observation_space, venv.action_space, "cpu", n_envs=4)
    assert n_bytes(plain) < n_bytes(buffer_for(venv, 10_000)) <= 1.1 * n_bytes(plain)


def test_relabelling_2048_rows_is_a_matter_of_milliseconds():
    venv = VecMemoryAugmentation(make_vec("sb3_fair/Doughnut-v0", 8))
    buffer = buffer_for(venv, 10_000)
    play(venv, [buffer], n_steps=200)

    def seconds():
        start = time.thread_time()
        buffer.sample(2048)
        return time.thread_time() - start

    assert min(seconds() for _ in range(20)) < 5e-3
