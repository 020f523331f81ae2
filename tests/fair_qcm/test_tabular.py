"""Does the table learn what Q-learning written row by row learns, about every memory that a step teaches about?"""

from functools import lru_cache
from itertools import permutations, product

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_fair import evaluate, make_vec
from sb3_fair.fair_qcm.states import MemoryCode, StateNumbers
from sb3_fair.fair_qcm.table import UNSEEN, QTable
from sb3_fair.fair_qcm.tabular import TabularFairQCM
from sb3_fair.fair_qcm.windows import Window
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.memories import ProductMemory, make_memory
from sb3_fair.wrappers.memory import VecMemoryAugmentation
from sb3_fair.wrappers.scheme import FairnessScheme
from sb3_fair.zoo.envs.doughnut.exact import optimum, policy_value
from tests.wrappers.town import Tally

SMALL = "sb3_fair/Doughnut-Small-v0"
TWO = {"n_people": 2, "episode_length": 3, "presence": 0.5}


def doughnuts(n_envs=4, **config):
    return make_vec("sb3_fair/Doughnut-v0", n_envs=n_envs, **{**TWO, **config})


def greedy_value(model, **config):
    def policy(present, counts, time):
        state = present.astype(np.float32)
        if model.observation_space["state"].shape[0] > present.shape[1]:
            clock = np.full((len(state), 1), time / config["episode_length"], dtype=np.float32)
            state = np.concatenate((state, clock), axis=1)
        return model.predict({"state": state, "memory": counts.astype(np.float32)}, deterministic=True)[0]

    return policy_value(policy, **config)


# ---------------------------------------------------------------- table


@pytest.mark.parametrize("most_dense", [2**20, 0], ids=["dense", "hashed"])
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.floats(-5, 5)), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_entries_met_several_times_get_the_mean_over_all_orders_in_turn(most_dense, updates):
    table = QTable(2, initial_value=1.0, most_dense=most_dense)
    codes, actions, targets = (np.array(column) for column in zip(*updates, strict=True))
    table.learn(table.add(codes), actions, targets, 0.1)
    in_turn = []
    for order in permutations(updates):
        values = dict.fromkeys(product(range(6), range(2)), 1.0)
        for code, action, target in order:
            values[code, action] += 0.1 * (target - values[code, action])
        in_turn.append([values[code, action] for code, action in zip(codes, actions, strict=True)])
    np.testing.assert_allclose(table.values[actions, table.find(codes)], np.mean(in_turn, axis=0), atol=1e-12)


@given(st.lists(st.lists(st.integers(0, 2**61), min_size=1, max_size=40), min_size=1, max_size=8), st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_every_state_keeps_its_own_value_while_a_table_grows(batches, most_dense):
    table = QTable(1, initial_value=-1.0, most_dense=most_dense)
    known = {}
    for batch in batches:
        for code in batch:
            known[code] = float(code % 1013)
        codes = np.array(batch)
        places = table.add(codes)
        table.values[0, places] = [known[code] for code in batch]
        everything = np.array(list(known))
        assert table.values[0, table.find(everything)].tolist() == list(known.values())
    unknown = np.array([code for code in range(50) if code not in known])
    assert table.keys is None or (table.find(unknown) == UNSEEN).all()
    assert (table.best(table.find(unknown)) == -1.0).all()


def test_a_dense_table_that_becomes_too_large_is_hashed_without_loss():
    table = QTable(2, most_dense=4096)
    early = np.array([3, 4000])
    table.learn(table.add(early), np.array([1, 0]), np.array([1.0, 2.0]), 1.0)
    table.visits[table.find(early)] = [7, 8]
    assert table.keys is None
    table.add(np.array([10**12]))
    assert table.keys is not None
    assert table.n_states == 3
    assert table.values[:, table.find(early)].T.tolist() == [[0, 1], [2, 0]]
    assert table.visits[table.find(early)].tolist() == [7, 8]


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=5), st.randoms())
def test_memories_and_their_codes_are_one_to_one(bounds, random):
    memory = make_memory("full", (0,), 1)
    low = np.array([low for low, _ in bounds], dtype=np.float32)
    high = low + np.array([size for _, size in bounds], dtype=np.float32)
    boxed = type("Boxed", (), {"low": low, "high": high, "dim": len(low), "name": memory.name})()
    code = MemoryCode(boxed)
    codes = np.arange(code.n_codes)
    sizes = [size + 1 for _, size in bounds]
    memories = np.stack(np.unravel_index(codes, sizes, order="F"), axis=-1) + low
    assert ((memories >= low) & (memories <= high)).all()
    np.testing.assert_array_equal(code(memories.astype(np.float32)), codes)
    np.testing.assert_array_equal(code.of_columns(list(memories.T)), codes)


def test_states_are_numbered_as_they_come_and_minus_zero_is_zero():
    numbers = StateNumbers(spaces.Dict({"state": spaces.Box(-1, 1, (2,)), "memory": spaces.Box(0, 1, (1,))}), 1)
    rows = np.array([[0.0, 1.0], [0.5, 1.0], [-0.0, 1.0]], dtype=np.float32)
    assert numbers(rows).tolist() == [0, 1, 0]
    assert numbers(np.array([[1.0, 1.0], [0.5, 1.0]]), add=False).tolist() == [-1, 1]


# ---------------------------------------------------------------- windows


@given(
    st.sampled_from(["full", "full+clock", "difference", "rounds(5)"]),
    st.sampled_from([(1, None), (8, None), (40, None), (8, 1), ("all", 1), ("all", 2), (8, "uniform"), (20, 4)]),
    st.integers(0, 2**32),
)
@settings(max_examples=100, deadline=None)
def test_counterfactual_memories_are_others_within_bounds_and_at_the_same_time(name, choice, seed):
    memory = make_memory(name, (0, 1), 6)
    if name == "rounds(5)" and choice[1] is not None:
        with pytest.raises(ValueError, match="draws its counterfactuals itself"):
            Window(memory, *choice)
        return
    window = Window(memory, *choice)
    rng = np.random.default_rng(seed)
    now = rng.integers(memory.low, memory.high + 1, size=(5, memory.dim)).astype(np.float32)
    if name == "rounds(5)":
        now = np.minimum(now, now[:, -1:])
    copies, others = window(now, rng)
    assert others.shape == (len(copies), memory.dim)
    assert ((others >= memory.low) & (others <= memory.high)).all()
    assert (others != now[copies]).any(axis=1).all()
    assert len({(copy, *other) for copy, other in zip(copies, others.tolist(), strict=True)}) == len(copies)
    if name in ("full+clock", "rounds(5)"):
        assert (others[:, -1] == now[copies, -1]).all()
    if isinstance(choice[1], int):
        assert np.abs(others - now[copies]).max(initial=0) <= choice[1]


@pytest.mark.parametrize(("n", "window", "rows"), [("all", 1, 26), ("all", 2, 124), ("all", "paper", 8)])
def test_windows_have_as_many_rows_as_they_should(n, window, rows):
    memory = make_memory("full", (0, 1, 2), 12)
    now = np.array([[5.0, 6.0, 7.0]], dtype=np.float32)
    copies, others = Window(memory, n, window)(now, np.random.default_rng(0))
    assert len(copies) == rows
    if window == "paper":
        assert set(map(tuple, others - now)) == set(product((1.0, 2.0), repeat=3))


# ---------------------------------------------------------------- learning


class Recorder:
    """A callback that keeps what happened in every step."""

    def __init__(self):
        self.steps = []

    def __call__(self, local, _):
        self.steps.append({name: np.copy(local[name]) for name in ("copies", "memories", "now", "actions", "rewards")})
        step, model = self.steps[-1], local["self"]
        step["state"] = model._last_obs["state"].copy()
        last = [
            info["terminal_observation"] if done else {key: value[index] for key, value in local["new_obs"].items()}
            for index, (done, info) in enumerate(zip(local["dones"], local["infos"], strict=True))
        ]
        step["following"] = [observation["state"] for observation in last]
        step["following_memory"] = [observation["memory"] for observation in last]
        step["terminated"] = [
            done and not info["TimeLimit.truncated"] for done, info in zip(local["dones"], local["infos"], strict=True)
        ]
        step["granted"] = [info["fair_event"][0] for info in local["infos"]]
        return True


def by_hand(steps, gamma=0.9, alpha=0.5):
    """Q-learning row by row over recorded steps of one copy."""
    values = {}

    def q(state, memory):
        return values.setdefault((tuple(state.tolist()), tuple(map(float, memory))), np.zeros(2))

    for step in steps:
        action, granted = int(step["actions"][0]), bool(step["granted"][0])
        rows = []
        for memory in step["memories"].tolist():
            following = list(memory)
            following[action] = min(following[action] + granted, 3.0)
            reward = sum(np.log(count + 1) for count in following) if granted else 0.0
            target = reward
            if not step["terminated"][0]:
                target += gamma * q(step["following"][0], following).max()
            rows.append((memory, target))
        for memory, target in rows:
            entry = q(step["state"][0], memory)
            entry[action] += alpha * (target - entry[action])
    return values


@pytest.mark.parametrize("most_dense", [2**20, 0], ids=["dense", "hashed"])
@pytest.mark.parametrize(("n_counterfactual", "config"), [(6, {}), (0, {}), (6, {"clock": True, "end": "terminated"})])
def test_the_table_is_that_of_q_learning_row_by_row(n_counterfactual, config, most_dense):
    env = doughnuts(1, **config)
    recorder = Recorder()
    model = TabularFairQCM(
        env, n_counterfactual=n_counterfactual, learning_rate=0.5, gamma=0.9, initial_value=0.0, seed=3
    )
    model.table = QTable(2, most_dense=most_dense)
    model.learn(200, callback=recorder)
    assert len(recorder.steps) == 200
    expected = by_hand(recorder.steps)
    learned = [key for key, values in expected.items() if values.any()]
    assert len(learned) > (30 if n_counterfactual else 5)
    for state, memory in expected:
        observation = {"state": np.array(state, dtype=np.float32), "memory": np.array(memory, dtype=np.float32)}
        np.testing.assert_allclose(model.q_values(observation), expected[state, memory], atol=1e-9)


def test_the_rewards_of_real_rows_are_those_of_the_environment_and_memories_follow():
    recorder = Recorder()
    TabularFairQCM(doughnuts(3, episode_length=5), seed=1).learn(300, callback=recorder)
    for step in recorder.steps:
        granted = np.array(step["granted"])
        following = step["now"].copy()
        following[np.arange(3), step["actions"]] += granted
        np.testing.assert_array_equal(following, step["following_memory"])
        np.testing.assert_allclose(step["rewards"], granted * np.log(following + 1).sum(axis=1))
        np.testing.assert_array_equal(step["memories"][:3], step["now"])


@lru_cache
def trained():
    """Learned with a clock and without discount: the finite problem itself."""
    env = doughnuts(16, clock=True, end="terminated")
    model = TabularFairQCM(env, gamma=1.0, n_counterfactual=8, learning_rate=lambda left: 0.01 + 0.2 * left, seed=0)
    return model.learn(20_000)


def test_a_small_problem_is_solved_exactly():
    assert greedy_value(trained(), **TWO) == pytest.approx(optimum(**TWO), abs=1e-9)


def test_notions_that_compare_probabilities_are_measured_of_a_table():
    env = doughnuts(2, audit=["IF"], clock=True, end="terminated")
    assert np.isfinite(evaluate(trained(), env, 2).final["IF"]).all()


def test_what_was_never_learned_is_as_good_as_an_episode_can_be():
    env = doughnuts(1)
    model = TabularFairQCM(env)
    observation = model.get_env().reset()
    assert model.q_values(observation).tolist() == [[env.get_attr("max_return")[0]] * 2]
    assert TabularFairQCM(env, initial_value=3.0).q_values(observation).tolist() == [[3.0, 3.0]]


def test_of_memories_that_cannot_be_nothing_was_learned():
    model = trained()
    observation = model.get_env().reset()
    known = model.q_values(observation)
    assert (known != known[0, 0]).any()
    high = model.memory.high
    for beyond in (observation["memory"] - 1, observation["memory"] + high + 1):
        values = model.q_values(observation | {"memory": beyond})
        assert (values == model.initial_value).all()


def test_without_counterfactuals_any_memory_learns():
    for memory in ("min", "reset"):
        model = TabularFairQCM(doughnuts(8), memory=memory, n_counterfactual=0, seed=0).learn(2000)
        assert model.recompute is None
        assert model._n_updates == 2000


def test_a_box_with_the_memory_last_is_the_same_problem():
    flat, nested = (
        TabularFairQCM(make_vec(SMALL, n_envs=4, memory="full", flatten=flatten), seed=2).learn(800)
        for flatten in (True, False)
    )
    state, memory = np.ones(3, dtype=np.float32), np.zeros(3, dtype=np.float32)
    values = nested.q_values({"state": state, "memory": memory})
    assert values.any()
    np.testing.assert_array_equal(flat.q_values(np.concatenate((state, memory))), values)


def test_epsilon_falls_with_every_visit_or_only_with_explorations():
    every = TabularFairQCM(doughnuts(4), seed=0).learn(4000)
    some = TabularFairQCM(doughnuts(4), seed=0, epsilon_on="explore").learn(4000)
    assert every.table.visits.sum() == 4000
    assert 800 < some.table.visits.sum() < 4000


def test_a_table_learns_the_same_in_a_batch_as_from_single_environments():
    batch, singles = (
        TabularFairQCM(venv, seed=5).learn(400) for venv in (make_vec(SMALL, 4, seed=5), make_vec_env(SMALL, 4, seed=5))
    )
    np.testing.assert_array_equal(batch.table.values, singles.table.values)


def test_an_environment_that_is_reset_during_learning_is_named_as_a_cause():
    model = TabularFairQCM(make_vec(SMALL, 2, memory="full+clock"), seed=0)
    with pytest.raises(ValueError, match="resets the environment during learning, as an EvalCallback on it does"):
        model.learn(400, callback=EvalCallback(model.get_env(), n_eval_episodes=1, eval_freq=30, verbose=0))


def test_a_table_is_handed_on_as_arrays():
    model, other, learned = (TabularFairQCM(doughnuts(), seed=seed) for seed in (5, 6, 7))
    model.learn(20), learned.learn(200)
    with pytest.raises(ValueError, match=r"call set_table_arrays\(other.table_arrays\(\)\)"):
        other.set_parameters(model.get_parameters())
    observation = model.get_env().reset()
    for taker in (other, learned):
        taker.set_table_arrays(model.table_arrays())
        np.testing.assert_array_equal(taker.q_values(observation), model.q_values(observation))
        for name, array in model.table_arrays().items():
            np.testing.assert_array_equal(taker.table_arrays()[name], array)


def test_a_saved_model_predicts_the_same_and_goes_on_the_same(tmp_path):
    model = TabularFairQCM(doughnuts(4), seed=5).learn(2000)
    model.save(tmp_path / "model.zip")
    loaded = TabularFairQCM.load(tmp_path / "model.zip", env=doughnuts(4))
    observation = model.get_env().reset()
    np.testing.assert_array_equal(model.q_values(observation), loaded.q_values(observation))
    for each in (model, loaded):
        each.set_env(doughnuts(4))
        each.get_env().seed(9)
        each.learn(1000, reset_num_timesteps=False)
    assert model.num_timesteps == loaded.num_timesteps == 3000
    np.testing.assert_array_equal(model.table.values, loaded.table.values)
    np.testing.assert_array_equal(model.predict(observation)[0], loaded.predict(observation)[0])
    assert TabularFairQCM.load(tmp_path / "model.zip").predict(observation)[0].shape == (4,)


def test_a_loaded_model_learns_with_another_number_of_copies(tmp_path):
    trained().save(tmp_path / "model.zip")
    loaded = TabularFairQCM.load(tmp_path / "model.zip", env=doughnuts(3, clock=True, end="terminated"))
    assert loaded.learn(30, reset_num_timesteps=True).num_timesteps == 30


def test_arguments_can_be_changed_on_loading(tmp_path):
    trained().save(tmp_path / "model.zip")
    env = doughnuts(3, clock=True, end="terminated")
    loaded = TabularFairQCM.load(tmp_path / "model.zip", env=env, learning_rate=0.9, n_counterfactual=1)
    assert loaded.lr_schedule(1) == 0.9
    assert loaded.counterfactuals.n == 1
    with pytest.raises(ValueError, match="gamma must be in"):
        TabularFairQCM.load(tmp_path / "model.zip", gamma=2.0)


def test_predictions_have_the_shape_of_the_observation_and_break_ties():
    model = TabularFairQCM(doughnuts(1), seed=0)
    one = {"state": np.ones(2, dtype=np.float32), "memory": np.zeros(2, dtype=np.float32)}
    many = {key: np.repeat(value[None], 50, axis=0) for key, value in one.items()}
    assert np.shape(model.predict(one)[0]) == ()
    assert set(model.predict(many)[0]) == {0, 1}
    assert set(model.predict(many, deterministic=True)[0]) == {0}
    for expected in ({0, 1}, {1}):
        model.table.values[1] += 6e-6  # two such steps are more than a tie
        assert set(model.predict(many)[0]) == expected
    assert model.q_values(one).shape == (2,)
    assert model.q_values(many).shape == (50, 2)


def test_callbacks_the_progress_bar_and_the_log_work(tmp_path):
    model = TabularFairQCM(doughnuts(4), seed=0, tensorboard_log=None)
    evaluation = EvalCallback(
        model.follow(doughnuts(2)), eval_freq=100, best_model_save_path=str(tmp_path), verbose=0, warn=False
    )
    checkpoint = CheckpointCallback(save_freq=100, save_path=str(tmp_path))
    model.learn(1200, callback=[evaluation, checkpoint], log_interval=10, progress_bar=True)
    assert evaluation.last_mean_reward > 0
    assert (tmp_path / "best_model.zip").exists()
    assert (tmp_path / "rl_model_400_steps.zip").exists()
    assert model.figures.means().keys() >= {"spread", "wasted"}
    model.learn(40)
    assert len(model.figures.figures["spread"]) == len(model.ep_info_buffer) < 100


def test_the_learning_rate_follows_its_schedule(monkeypatch):
    model = TabularFairQCM(doughnuts(4), learning_rate=lambda left: 0.5 * left, seed=0)
    learn, rates = model.table.learn, []
    monkeypatch.setattr(model.table, "learn", lambda *given: rates.append(given[-1]) or learn(*given))
    model.learn(40)
    np.testing.assert_allclose(rates, 0.5 * np.arange(1.0, 0.0, -0.1))


class Walk(gym.Env):
    """A state that is a number or a point; both actions take effect."""

    max_steps = 5

    def __init__(self, space):
        self.observation_space, self.action_space = space, spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.time += 1
        return self.observation_space.sample(), 0.0, False, self.time == self.max_steps, {}


def walk(space):
    return FairnessScheme(Walk(space), Scheme())


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, start=-1),
        spaces.MultiBinary(2),
        spaces.MultiDiscrete([2, 3]),
        spaces.Dict({"a": spaces.Discrete(2), "b": spaces.MultiBinary(2)}),
    ],
    ids=str,
)
def test_any_discrete_state_will_do(space):
    model = TabularFairQCM(walk(space), seed=0, n_counterfactual=4).learn(100)
    observation = model.get_env().reset()
    assert model.q_values(observation).shape == (1, 2)
    assert model.predict(observation)[0].shape == (1,)
    assert 2 <= len(model.states) <= 8


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_counterfactual": -1}, "n_counterfactual must be a non-negative integer or 'all', got -1"),
        ({"n_counterfactual": "some"}, "n_counterfactual must be"),
        ({"window": 0}, "window must be a positive integer or .*, got 0"),
        ({"window": "wide"}, "window must be a positive integer or one of 'paper', 'uniform' or None, got 'wide'"),
        ({"window": "uniform", "n_counterfactual": "all"}, "n_counterfactual must be a number"),
        ({"gamma": 1.5}, r"gamma must be in \[0, 1\], got 1.5"),
        ({"learning_rate": 0.0}, r"learning_rate must be in \(0, 1\], got 0.0"),
        ({"epsilon_on": "look"}, "epsilon_on must be one of 'visit', 'explore', got 'look'"),
        ({"memory": "min"}, "memory 'min' does not hold the status"),
    ],
    ids=str,
)
def test_what_is_not_allowed_is_said(settings, message):
    with pytest.raises(ValueError, match=message):
        TabularFairQCM(doughnuts(1), **settings)


def test_a_memory_of_ones_own_stores_no_rows():
    for memory in (Tally(), ProductMemory((Tally(), make_memory("clock", (0, 1), 8)))):
        with pytest.raises(ValueError, match=r"must have a .*method rows"):
            Window(memory, 4, "paper")


def test_counterfactuals_need_the_time_where_it_ends_episodes():
    with pytest.raises(ValueError, match="end must be 'truncated' unless the time is in the observation"):
        TabularFairQCM(doughnuts(1, end="terminated"))
    TabularFairQCM(doughnuts(1, end="terminated"), n_counterfactual=0)
    TabularFairQCM(doughnuts(1, end="terminated"), memory="full+clock")


def test_a_continuous_state_is_refused():
    with pytest.raises(ValueError, match="states must be discrete for a table"):
        TabularFairQCM(walk(spaces.Box(0, 1, (1,))), seed=0, n_counterfactual=0).learn(3000)


def test_a_memory_without_bounds_is_refused():
    endless = type("Endless", (), {"low": np.zeros(1), "high": np.full(1, np.inf), "name": "endless", "dim": 1})()
    with pytest.raises(ValueError, match="memory must be whole numbers between finite bounds"):
        MemoryCode(endless)


def test_a_memory_of_fractions_is_refused():
    code, halves = MemoryCode(make_memory("full", (0, 1), 5)), np.array([[0.5, 0.0]])
    for coded in (lambda: code(halves), lambda: code.of_columns(list(halves.T))):
        with pytest.raises(ValueError, match=r"memory 'full' must be of whole numbers for a table, got 0\.5"):
            coded()


def test_normalised_observations_and_missing_memories_are_refused():
    env = VecNormalize(make_vec(SMALL, n_envs=1, memory="full"), norm_obs=False)
    with pytest.raises(ValueError, match="env must not be normalised"):
        TabularFairQCM(env)
    with pytest.raises(ValueError, match="env must be given"):
        TabularFairQCM(None)
    with pytest.raises(ValueError, match=r"model.follow\(env\) adds the memory"):
        trained().predict(np.ones(2, dtype=np.float32))


# ---------------------------------------------------------------- targets


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_nearly_the_optimum_of_the_small_doughnut_scenario_after_100_000_steps(seed):
    model = TabularFairQCM(make_vec(SMALL, n_envs=128), seed=seed).learn(100_000)
    assert greedy_value(model, n_people=3, episode_length=12) >= 36.88
    model.learn(500_000, reset_num_timesteps=False)
    assert greedy_value(model, n_people=3, episode_length=12) >= 37.5


def test_rewards_must_be_those_of_the_scheme():
    for env in (doughnuts(), VecMemoryAugmentation(doughnuts(), "full", high=1)):
        other = {} if env.has_attr("memory") else {"scheme": Scheme(welfare="rawls")}
        with pytest.raises(ValueError, match="recomputed as"):
            TabularFairQCM(env, seed=0, **other).learn(500)
    with pytest.raises(ValueError, match="must have a 'fair_event'"):
        TabularFairQCM(gym.make("FrozenLake-v1"), memory="full", scheme=Scheme(welfare="rawls"), seed=0).learn(50)
    model = TabularFairQCM(doughnuts(), seed=0).learn(100)
    model.set_env(doughnuts(scheme=Scheme(welfare="rawls")))
    with pytest.raises(ValueError, match="recomputed as"):
        model.learn(100)


def test_a_refused_environment_changes_nothing():
    model, alone = TabularFairQCM(doughnuts(), seed=0), TabularFairQCM(doughnuts(), seed=0)
    with pytest.raises(ValueError, match="spaces do not match"):
        model.set_env(doughnuts(3, n_people=3, memory="full"))
    found, expected = model.learn(100).table_arrays(), alone.learn(100).table_arrays()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


def test_another_environment_is_checked_as_the_first_one_was(tmp_path):
    model = TabularFairQCM(doughnuts(), seed=0).learn(100)
    with pytest.raises(ValueError, match="end must be 'truncated'"):
        model.set_env(doughnuts(end="terminated"))
    with pytest.raises(ValueError, match="must not be normalised"):
        model.set_env(VecNormalize(doughnuts(memory="full")))
    model.save(tmp_path / "table")
    with pytest.raises(ValueError, match="initial_value cannot be changed"):
        TabularFairQCM.load(tmp_path / "table", initial_value=0.0)
    with pytest.raises(ValueError, match="call set_env"):
        TabularFairQCM.load(tmp_path / "table").learn(10)
