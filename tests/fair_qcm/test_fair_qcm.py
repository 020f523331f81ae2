"""Does FairQCM learn exact values, keep SB3's habits, and refuse what counterfactual memories cannot do?"""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from sb3_fair import FairQCM, make_vec
from sb3_fair.common.rollout import seeded
from sb3_fair.fair_qcm import CounterfactualBoxReplayBuffer, CounterfactualReplayBuffer, TabularFairQCM
from sb3_fair.fairness import Scheme
from sb3_fair.wrappers import FairnessScheme, MemoryAugmentation, VecMemoryAugmentation
from tests.fair_qcm.sharing import Sharing, exact_values
from tests.models import Watch, weights

QUICK = {"learning_starts": 40, "batch_size": 16, "buffer_size": 1000, "device": "cpu"}


def sharing(n=2, **settings):
    return DummyVecEnv([lambda: Sharing(**settings) for _ in range(n)])


def model_on(env, seed=0, **more):
    return FairQCM("MultiInputPolicy", env, seed=seed, **{**QUICK, **more})


def observations(n=64, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "state": rng.integers(0, 2, (n, 2)).astype(np.float32),
        "memory": rng.integers(0, 6, (n, 2)).astype(np.float32),
    }


def values(model, obs):
    with th.no_grad():
        return model.q_net(model.policy.obs_to_tensor(obs)[0]).cpu().numpy()


def stored(buffer):
    return {name: value for name, value in vars(buffer).items() if name not in ("rng", "recompute", "memory", "device")}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, dict):
            assert_same(value, other[name])
        else:
            np.testing.assert_array_equal(value, other[name])


# ---------------------------------------------------------------- learning


@pytest.mark.slow
def test_it_learns_the_exact_values_also_of_memories_that_episodes_do_not_reach():
    length, gamma = 3, 0.9
    env = sharing(8, presence=1.0, length=length, end="terminated")
    model = FairQCM(
        "MultiInputPolicy",
        env,
        seed=0,
        memory="full+clock",
        gamma=gamma,
        learning_starts=200,
        batch_size=64,
        target_update_interval=200,
        learning_rate=2e-3,
        exploration_final_eps=0.5,
        device="cpu",
    ).learn(8_000)
    exact = exact_values(length, gamma)
    states = [((a, b), t) for a in range(3) for b in range(3) for t in range(length)]  # most cannot be at that time
    memory = np.array([(*counts, t) for counts, t in states], dtype=np.float32)
    learned = values(model, {"state": np.ones((len(states), 2), dtype=np.float32), "memory": memory})
    expected = np.array([exact(*state) for state in states])
    assert np.abs(learned - expected).max() < 0.35
    assert np.abs(learned - expected).mean() < 0.1
    uneven = np.array([counts[0] != counts[1] for counts, _ in states])
    np.testing.assert_array_equal(learned.argmax(axis=1)[uneven], expected.argmax(axis=1)[uneven])


def test_without_counterfactuals_and_own_coins_it_is_sb3_s_dqn_bit_for_bit():
    settings = {**QUICK, "gamma": 0.9, "train_freq": 2, "gradient_steps": 3, "target_update_interval": 50, "seed": 4}
    plain = {"n_counterfactual": 0, "per_env_exploration": False}
    mine = FairQCM("MultiInputPolicy", sharing(3), **plain, **settings).learn(250)
    theirs = DQN(
        "MultiInputPolicy",
        VecMemoryAugmentation(sharing(3)),
        learning_rate=1e-3,
        policy_kwargs=mine.policy_kwargs,
        **settings,
    ).learn(250)
    assert mine._n_updates > 100
    np.testing.assert_array_equal(weights(mine), weights(theirs))


@pytest.mark.parametrize("n_envs", [1, 2, 3, 8, 16])
def test_there_is_one_gradient_step_per_four_real_steps_whatever_the_number_of_envs(n_envs):
    model = model_on(sharing(n_envs)).learn(400)
    assert abs(model._n_updates - (400 - QUICK["learning_starts"]) / 4) <= 5


def test_train_freq_and_gradient_steps_are_sb3_s_where_given():
    assert model_on(sharing(8), train_freq=2).gradient_steps == 1
    model = model_on(sharing(1), train_freq=(1, "episode"), gradient_steps=-1).learn(100)
    assert 40 <= model._n_updates <= 60


@pytest.mark.parametrize("storage", ["virtual", "rows"])
@pytest.mark.parametrize("shaping", [None, "potential"])
def test_all_settings_train_and_log_the_share_of_counterfactual_rows(storage, shaping):
    model = model_on(sharing(2), storage=storage, shaping=shaping, reward_scale=0.1, window=1).learn(200)
    share = model.logger.name_to_value["train/cf_share"]
    assert share == 12 / 16 if storage == "virtual" else 0 < share < 1


def test_the_policy_may_be_called_mlp_policy_and_observations_may_be_flat():
    keyed, flat = (
        FairQCM("MlpPolicy", VecMemoryAugmentation(sharing(), flatten=flatten), seed=0, **QUICK).learn(100)
        for flatten in (False, True)
    )
    assert type(keyed.replay_buffer) is CounterfactualReplayBuffer
    assert type(flat.replay_buffer) is CounterfactualBoxReplayBuffer
    np.testing.assert_array_equal(weights(keyed), weights(flat))


# ---------------------------------------------------------------- the environment


def test_the_memory_is_the_argument_the_environment_s_default_or_full():
    assert model_on(sharing(), memory="full+clock").memory.name == "full+clock"
    assert model_on(sharing()).memory.name == "full"
    assert model_on(make_vec("sb3_fair/LoanAllocation-v0", 2)).memory.name == "difference"
    model = model_on(MemoryAugmentation(Sharing(), memory="full+clock"))
    assert model.memory.name == "full+clock"
    assert model_on(sharing()).get_env().observation_space["memory"].shape == (2,)


def test_the_scheme_is_the_environment_s_also_of_a_wrapper():
    assert model_on(sharing()).scheme == Sharing.scheme
    rawls = Scheme(welfare="rawls")
    model = model_on(FairnessScheme(gym.make("CartPole-v1"), rawls)).learn(200)
    assert model.scheme == rawls and model.replay_buffer.cf_share > 0


@pytest.mark.parametrize(
    "kind", ["id", "env", "dummy", pytest.param("subproc", marks=pytest.mark.slow), "batched", "dict"]
)
def test_every_kind_of_environment_trains(kind):
    name = "sb3_fair:sb3_fair/Doughnut-Small-v0"
    env = {
        "id": lambda: "sb3_fair/Doughnut-Small-v0",
        "env": lambda: gym.make(name),
        "dummy": lambda: DummyVecEnv([lambda: gym.make(name)] * 2),
        "subproc": lambda: SubprocVecEnv([lambda: gym.make(name)] * 2),
        "batched": lambda: make_vec("sb3_fair/Doughnut-Small-v0", 4),
        "dict": lambda: sharing(kind="dict"),
    }[kind]()
    model = model_on(env).learn(100)
    assert model._n_updates > 0 and model.replay_buffer.cf_share > 0
    mean, _ = evaluate_policy(model, model.get_env(), n_eval_episodes=2, warn=False)
    assert np.isfinite(mean)
    model.get_env().close()


def test_evaluation_needs_the_memory_which_follow_adds():
    model = model_on(sharing(), memory="full+clock")
    with pytest.raises(ValueError, match=r"use model.follow\(env\)"):
        evaluate_policy(model, Sharing(), n_eval_episodes=1, warn=False)
    flat = model_on(VecMemoryAugmentation(sharing(), flatten=True))
    with pytest.raises(ValueError, match=r"use model.follow\(env\)"):
        flat.predict(np.zeros((1, 2), dtype=np.float32))
    rewards, _ = evaluate_policy(model, model.follow(Sharing()), 3, warn=False, return_episode_rewards=True)
    assert len(rewards) == 3


def test_observations_may_be_normalised_except_the_memory():
    venv = VecNormalize(VecMemoryAugmentation(sharing()), norm_obs_keys=["state"])
    assert model_on(venv).learn(100).replay_buffer.cf_share > 0


# ---------------------------------------------------------------- exploration


def test_every_environment_tosses_its_own_coin_and_actions_carry_their_probabilities():
    model = model_on(sharing(8))
    model.exploration_rate = 0.5
    obs = observations(8)
    greedy = model.predict(obs, deterministic=True)[0]
    differs = np.array([model.predict(obs)[0] != greedy for _ in range(2000)])
    np.testing.assert_allclose(differs.mean(axis=0), 0.25, atol=0.05)
    together = np.corrcoef(differs.T)[~np.eye(8, dtype=bool)]
    assert np.abs(together).max() < 0.1
    actions = model.predict(obs)[0]
    assert actions.dtype == np.int64 and actions.shape == (8,)
    np.testing.assert_allclose(actions.probabilities, np.eye(2)[greedy] * 0.5 + 0.25)
    single = model.predict({key: rows[0] for key, rows in obs.items()})[0]
    assert single.shape == () and single.probabilities.shape == (2,)


def test_seeded_evaluation_draws_the_same_actions_and_leaves_the_generator_as_it_was():
    model = model_on(sharing(8))
    model.exploration_rate = 1.0
    state = model.rng.bit_generator.state

    def actions(seed):
        with seeded(seed, model):
            return np.array([model.predict(observations(8))[0] for _ in range(5)]).tolist()

    assert actions(3) == actions(3) != actions(4)
    assert model.rng.bit_generator.state == state


def test_environments_see_the_probabilities_uniform_ones_before_learning():
    venv = sharing(2)
    model_on(venv, exploration_final_eps=0.2, exploration_fraction=0.5).learn(200)
    given = np.array(venv.envs[0].unwrapped.given)
    np.testing.assert_allclose(given[:20], 0.5)
    np.testing.assert_allclose(np.sort(given[-20:]), [(0.1, 0.9)] * 20)


def test_epsilon_decays_with_the_episodes_of_all_environments():
    rates = []
    watch = Watch(lambda model, _: rates.append(model.exploration_rate))
    model = model_on(sharing(2, length=5), exploration_decay=0.9, exploration_final_eps=0.3)
    model.learn(200, callback=watch)
    finished = 2 * (np.arange(1, 100) // 5)  # before the second step, ..., the last
    np.testing.assert_allclose(rates[1:], np.maximum(0.3, 0.9**finished))
    model.learn(20, callback=watch)
    assert model.exploration_rate == pytest.approx(0.9**4)  # a new run starts anew


# ---------------------------------------------------------------- logs


def test_fairness_of_finished_episodes_is_logged(tmp_path):
    model = model_on(sharing(2, presence=1.0))
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(300, log_interval=10)
    header = (tmp_path / "progress.csv").read_text().splitlines()[0].split(",")
    assert {"fairness/spread", "train/cf_share"} <= set(header)
    assert not {"fairness/counts", "fairness/undefined"} & set(header)
    assert len(model.figures.figures["spread"]) == 60
    assert 1 <= model.figures.means()["spread"] <= 5  # five things for two people
    model.learn(100)
    assert len(model.figures.figures["spread"]) == 20, "a new training, as for the returns of episodes"


# ---------------------------------------------------------------- seeds, save and load


def test_the_seed_decides_everything():
    def trained(seed):
        return model_on(make_vec("sb3_fair/Doughnut-Small-v0", 4), seed=seed).learn(200)

    first, again, other = trained(3), trained(3), trained(4)
    np.testing.assert_array_equal(weights(first), weights(again))
    assert_same(stored(first.replay_buffer), stored(again.replay_buffer))
    assert not np.array_equal(weights(first), weights(other))


def test_a_loaded_model_has_the_same_values_memory_and_buffer_and_goes_on_learning(tmp_path):
    settings = {"memory": "full+clock", "storage": "virtual", "exploration_decay": 0.99, "window": 1}
    model = model_on(sharing(), **settings).learn(200)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    obs = observations()
    obs["memory"] = np.pad(obs["memory"], ((0, 0), (0, 1)))
    continued = []
    for _ in range(2):
        copy = FairQCM.load(tmp_path / "model", env=sharing(), device="cpu")
        copy.load_replay_buffer(tmp_path / "buffer")
        np.testing.assert_array_equal(values(copy, obs), values(model, obs))
        assert_same(stored(copy.replay_buffer), stored(model.replay_buffer))
        assert copy.memory == model.memory and copy.scheme == model.scheme
        assert copy.replay_buffer.memory.parts[0].window == 1
        assert copy.rng.bit_generator.state == model.rng.bit_generator.state
        assert copy.replay_buffer.rng.bit_generator.state == model.replay_buffer.rng.bit_generator.state
        copy.learn(100, reset_num_timesteps=False)
        assert copy.num_timesteps == 300
        continued.append(weights(copy))
    np.testing.assert_array_equal(*continued)
    assert not np.array_equal(continued[0], weights(model))


def test_a_model_loads_without_or_with_another_number_of_environments(tmp_path):
    model = model_on(sharing(8), memory="full+clock").learn(100)
    model.save(tmp_path / "model")
    single = FairQCM.load(tmp_path / "model", env=Sharing())
    assert (single.n_envs, single.train_freq.frequency, single.gradient_steps) == (1, 4, 1)
    single.learn(100)
    alone = FairQCM.load(tmp_path / "model")
    assert alone.get_env() is None
    obs = {key: rows[:8] for key, rows in observations().items()}
    obs["memory"] = np.pad(obs["memory"], ((0, 0), (0, 1)))
    np.testing.assert_array_equal(alone.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])
    alone.set_env(sharing(8))
    assert alone.get_env().get_attr("memory")[0].name == "full+clock"
    alone.learn(100)
    with pytest.raises(ValueError, match="memory must be None for an environment that has one already"):
        FairQCM.load(tmp_path / "model", env=VecMemoryAugmentation(sharing(8)))


def test_files_of_other_algorithms_are_refused(tmp_path):
    env = make_vec("sb3_fair/Doughnut-Small-v0", n_envs=1)
    DQN("MultiInputPolicy", make_vec("sb3_fair/Doughnut-Small-v0", n_envs=1, memory="full")).save(tmp_path / "dqn")
    FairQCM("MultiInputPolicy", env).save(tmp_path / "fair_qcm")
    for given in (env, None):
        with pytest.raises(ValueError, match=r"path must be a file of a FairQCM, got .*dqn"):
            FairQCM.load(tmp_path / "dqn", env=given)
    for file in ("dqn", "fair_qcm"):
        with pytest.raises(ValueError, match=rf"path must be a file of a TabularFairQCM, got .*{file}"):
            TabularFairQCM.load(tmp_path / file)


@pytest.mark.parametrize("flatten", [False, True])
def test_models_without_counterfactuals_and_flat_ones_load_too(tmp_path, flatten):
    venv = VecMemoryAugmentation(sharing(), memory="min", flatten=flatten)
    model = model_on(venv, n_counterfactual=0).learn(100)
    model.save(tmp_path / "model")
    loaded = FairQCM.load(tmp_path / "model", env=venv)
    assert loaded.n_counterfactual == 0
    loaded.learn(50)


def test_train_freq_and_gradient_steps_can_be_changed_on_loading(tmp_path):
    model_on(sharing(2)).save(tmp_path / "model.zip")
    loaded = FairQCM.load(tmp_path / "model.zip", sharing(2), train_freq=1, gradient_steps=7)
    assert (loaded.train_freq.frequency, loaded.gradient_steps) == (1, 7)
    assert FairQCM.load(tmp_path / "model.zip", sharing(2)).train_freq.frequency == 2


def test_callbacks_and_the_progress_bar_work():
    seen = []
    watch = Watch(lambda _, locals_: seen.append(locals_["actions"].probabilities.shape), stop=30)
    model = model_on(sharing(2)).learn(1000, callback=watch, progress_bar=True)
    assert model.num_timesteps == 60 and set(seen) == {(2, 2)}


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("env", "arguments", "message"),
    [
        (lambda: sharing(end="terminated"), {}, "end must be 'truncated' unless the time is in the observation"),
        (lambda: sharing(), {"memory": "min"}, "does not hold the status"),
        (lambda: sharing(), {"memory": "reset"}, "does not hold the status"),
        (lambda: sharing(), {"n_steps": 3}, "n_steps must be 1"),
        (lambda: sharing(), {"optimize_memory_usage": True}, "optimize_memory_usage must be False"),
        (lambda: sharing(), {"exploration_decay": 1.5}, r"exploration_decay must be in \(0, 1\] or None, got 1.5"),
        (lambda: sharing(), {"memory": "ful"}, "did you mean 'full'"),
        (lambda: sharing(), {"scheme": Scheme(when=("period", 2))}, r"as 'full\+counter\(2\)'"),
        (lambda: sharing(), {"scheme": Scheme(when="end")}, r"full\+clock"),
        (
            lambda: sharing(),
            {"memory": "full+counter(3)", "scheme": Scheme(when=("period", 2))},
            "every 2 steps",
        ),
        (lambda: gym.make("CartPole-v1"), {}, "scheme must be given, or the environment wrapped in FairnessScheme"),
        (lambda: VecNormalize(sharing()), {}, "env must have its memory inside VecNormalize"),
        (
            lambda: VecNormalize(VecMemoryAugmentation(sharing())),
            {"n_counterfactual": 0},
            "norm_obs_keys of VecNormalize must leave out 'memory'",
        ),
        (lambda: VecMemoryAugmentation(sharing()), {"memory": "min"}, "has one already"),
        (lambda: None, {}, "env must be given"),
        (lambda: sharing(), {"replay_buffer_kwargs": {"window": 3}}, r"FairQCM fills in itself, got \['window'\]"),
        (lambda: sharing(), {"replay_buffer_class": PPO}, "replay_buffer_class must be"),
    ],
)
def test_what_counterfactual_memories_cannot_do_is_refused(env, arguments, message):
    with pytest.raises(ValueError, match=message):
        model_on(env(), **arguments)


@pytest.mark.parametrize(
    ("env", "arguments"),
    [
        (lambda: sharing(end="terminated"), {"memory": "full+clock"}),
        (lambda: sharing(end="terminated"), {"n_counterfactual": 0}),
        (lambda: sharing(), {"memory": "min", "n_counterfactual": 0}),
        (lambda: FairnessScheme(Sharing(), Scheme(when=("period", 2))), {"memory": "full+counter(4)"}),
        (lambda: FairnessScheme(Sharing(), Scheme(when=("period", 2))), {"memory": "full+clock"}),
        (lambda: FairnessScheme(Sharing(), Scheme(when="end")), {"memory": "full+clock"}),
        (lambda: gym.make("CartPole-v1"), {"n_counterfactual": 0}),
        (lambda: gym.make("sb3_fair/Doughnut-Clock-v0"), {}),
    ],
)
def test_what_they_can_do_trains(env, arguments):
    model_on(env(), **arguments).learn(80)


class Untold(Sharing):
    """Does not say how its episodes end: they terminate at the limit of steps, or early where both got something."""

    def __init__(self, early=False, clock=False):
        super().__init__(end=None)
        self.early, self.clock = early, clock

    def step(self, action):
        obs, reward, _, _, info = super().step(action)
        return obs, reward, self.t == self.max_steps or (self.early and self.counts.all()), False, info


@pytest.mark.parametrize("algorithm", [FairQCM, TabularFairQCM])
def test_episodes_that_turn_out_to_terminate_at_their_limit_need_a_clock(algorithm):
    def train(memory=None, n_counterfactual=4, steps=(50,), **settings):
        given = ("MlpPolicy", Untold(**settings)) if algorithm is FairQCM else (Untold(**settings),)
        more = QUICK if algorithm is FairQCM else {}
        model = algorithm(*given, memory=memory, n_counterfactual=n_counterfactual, seed=0, **more)
        for each in steps:
            model.learn(each, reset_num_timesteps=each != 60)
            model.set_env(model.get_env(), force_reset=False)

    for steps in ((50,), (8, 50), (8, 60)):  # the last goes on in mid-episode
        with pytest.raises(ValueError, match=r"env must truncate episodes at its limit of 5 steps .* got 10 that"):
            train(steps=steps)
    for allowed in ({"early": True}, {"clock": True}, {"memory": "full+clock"}, {"n_counterfactual": 0}):
        train(**allowed)
    given = ("MlpPolicy",) if algorithm is FairQCM else ()
    model = algorithm(*given, Untold(clock=True), seed=0, **(QUICK if algorithm is FairQCM else {})).learn(50)
    model.set_env(Untold())
    with pytest.raises(ValueError, match="env must truncate episodes"):
        model.learn(60)


@pytest.mark.parametrize("algorithm", [FairQCM, TabularFairQCM])
def test_an_added_memory_begins_with_new_episodes(algorithm, tmp_path):
    venv = sharing()
    given = ("MlpPolicy", venv) if algorithm is FairQCM else (venv,)
    model = algorithm(*given, n_counterfactual=0, seed=0).learn(4)
    model.save(tmp_path / "model")
    for env, steps in ((model.get_env(), 4), (venv, 2)):
        loaded = algorithm.load(tmp_path / "model", env=env, force_reset=False)
        loaded.learn(4, reset_num_timesteps=False)
        assert venv.get_attr("t") == [steps] * 2
    model.set_env(venv, force_reset=False)
    model.learn(4, reset_num_timesteps=False)
    assert venv.get_attr("t") == [2] * 2


def test_steps_without_an_event_say_what_to_wrap():
    with pytest.raises(ValueError, match="wrap the environment in FairnessScheme"):
        model_on(sharing(tells=False)).learn(10)


def test_another_environment_is_checked_as_the_first_one_was():
    model = FairQCM("MlpPolicy", make_vec("sb3_fair/Doughnut-Small-v0", 2), seed=0, **QUICK)
    with pytest.raises(ValueError, match="end must be 'truncated'"):
        model.set_env(make_vec("sb3_fair/Doughnut-Small-v0", 2, end="terminated"))


def test_arguments_of_another_feature_extractor_are_refused():
    env = make_vec("sb3_fair/Doughnut-Small-v0", n_envs=1)
    with pytest.raises(TypeError, match=r"MemoryExtractor.* unexpected keyword argument 'cnn_output_dim'"):
        FairQCM("MlpPolicy", env, policy_kwargs={"features_extractor_kwargs": {"cnn_output_dim": 8}})


def test_a_refused_environment_changes_nothing():
    expected, model = weights(model_on(sharing()).learn(60)), model_on(sharing())
    with pytest.raises(AssertionError, match="number of environments"):
        model.set_env(sharing(3))
    np.testing.assert_array_equal(weights(model.learn(60)), expected)


def test_a_loaded_buffer_goes_on_with_the_settings_of_the_model(tmp_path):
    model_on(sharing()).learn(60).save_replay_buffer(tmp_path / "buffer")
    other = model_on(sharing(), n_counterfactual=1, reward_scale=0.1, window=1)
    other.load_replay_buffer(tmp_path / "buffer")
    assert other.replay_buffer.size() == 30 and other.replay_buffer.reward_scale == 0.1
    other.learn(60)
    assert other.replay_buffer.cf_share == 0.5 and other.replay_buffer.memory.window == 1
    plain = model_on(sharing(), n_counterfactual=0)
    plain.load_replay_buffer(tmp_path / "buffer")
    assert plain.learn(20).replay_buffer.relabels is False
    plain.save_replay_buffer(tmp_path / "plain")
    for settings in ({"storage": "rows"}, {}):
        with pytest.raises(ValueError, match="path must hold a buffer that was filled with"):
            model_on(sharing(), **settings).load_replay_buffer(tmp_path / ("buffer" if settings else "plain"))
    with pytest.raises(ValueError, match="got another n_envs"):
        model_on(sharing(3)).load_replay_buffer(tmp_path / "buffer")
    DQN("MultiInputPolicy", model_on(sharing()).get_env(), **QUICK).learn(40).save_replay_buffer(tmp_path / "dqn")
    with pytest.raises(TypeError, match="path must hold a CounterfactualReplayBuffer, got a DictReplayBuffer"):
        model_on(sharing()).load_replay_buffer(tmp_path / "dqn")
