"""Does PCN learn every trade-off of an env whose front is known, reproducibly and with every setting?"""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage

from sb3_fair import make_vec
from sb3_fair.common.front import Command
from sb3_fair.common.pareto import nondominated
from sb3_fair.pcn import PCN
from sb3_fair.pcn.actions import Categorical, Continuous
from sb3_fair.pcn.coverage import evaluated
from tests.models import weights
from tests.pcn.chain import FRONT, SPACES, Chain
from tests.pcn.models import QUICK, chains, model_on

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
    env = Chain()
    env.max_return, env.ref_point = [1.0, 2.0], [-1.0, -2.0]
    model = model_on(env, objectives=["right"])
    assert (model.max_return.tolist(), model.ref_point.tolist()) == ([2.0], [-2.0])


def test_objectives_may_be_an_array():
    assert model_on(Chain(), objectives=np.array(["right", "left"])).optimised == ("right", "left")


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


# -------------------------------------------------------------------- actions and settings


ACTIONS = {
    "discrete": (spaces.Discrete(3, start=-1), lambda action: action + 1),
    "unequal parts": (spaces.MultiDiscrete([3, 2]), lambda action: action[0]),
    "a grid": (spaces.MultiDiscrete([[3, 4]], start=[[2, 1]]), lambda action: action[0, 0] - 2),
    "binary": (spaces.MultiBinary(2), lambda action: action[0] + action[1]),
    "box": (spaces.Box(-2, 7, (1,), np.float32), lambda action: min(int((action[0] + 2) / 3), 2)),
    "whole numbers": (spaces.Box(0, 254, (1,), np.uint8), lambda action: int(action[0]) // 85),
    "a fixed entry": (
        spaces.Box(np.array([0, 1], np.float32), np.array([3, 1], np.float32)),
        lambda action: min(int(action[0]), 2),
    ),
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
        if not isinstance(venv.action_space, spaces.Box):
            np.testing.assert_allclose(actions.probabilities.sum(axis=-1), 1, atol=1e-6)
            assert single.probabilities.shape == actions.probabilities.shape[1:]
    model.save(tmp_path / "model")
    loaded = PCN.load(tmp_path / "model", venv, device="cpu")
    np.testing.assert_array_equal(loaded.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])


def test_an_action_of_several_parts_is_as_likely_as_all_of_them_together():
    head = Categorical(spaces.MultiDiscrete([2, 3]))
    loss = head.loss(head.outputs(th.zeros(4, 5)), th.zeros((4, 2), dtype=th.long))
    assert float(loss) == pytest.approx(np.log(2 * 3))
    assert head.entropy(head.outputs(th.zeros(4, 5))) == pytest.approx(np.log(2 * 3))


def test_what_a_part_does_not_have_is_never_drawn():
    head = Categorical(spaces.MultiDiscrete([2, 2], start=[0, 1]))
    rows = head.rows(head.outputs(th.zeros(1, 4)))
    assert [head.draw(rows, np.full((1, 2), luck)).tolist() for luck in (0.0, 1 - 2**-24)] == [[[0, 1]], [[1, 2]]]


@pytest.mark.parametrize(("low", "high", "dtype"), [(0, 255, np.uint8), (-128, 90, np.int8), (0, 3, np.int64)])
def test_whole_numbers_are_drawn_evenly_and_imitated_exactly(low, high, dtype):
    head = Continuous(spaces.Box(low, high, (1,), dtype), 0.0)
    drawn = head.fill(200_000, False, np.random.default_rng(0))(None, np.ones(200_000, bool))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(low, high + 1)) and drawn.dtype == dtype
    np.testing.assert_allclose(counts / counts.mean(), 1, atol=0.25)
    outputs = th.linspace(-1, 1, 4001)[:, None]
    for value in {low, low + 1, high - 1, high}:
        actions = th.full(outputs.shape, value, dtype=th.as_tensor(values).dtype)
        errors = [float(head.loss(*pair)) for pair in zip(outputs[:, None], actions[:, None], strict=True)]
        assert head.draw(outputs[np.argmin(errors)][None].double().numpy(), None) == value and min(errors) < 1e-6


def test_episodes_that_never_end_are_not_waited_for(monkeypatch):
    class Endless(Chain):
        def step(self, action):
            self.t = 0
            return super().step(action)

    monkeypatch.setattr("sb3_fair.pcn.pcn.ENDLESS", 50)
    for other in (Endless, Chain):
        with pytest.raises(ValueError, match="env must end its episodes, as by a TimeLimit, got one of 50 steps"):
            model_on(DummyVecEnv([Endless, other])).learn(100)


def test_episodes_are_shared_out_over_the_copies_and_all_finished():
    for n in (1, 3, 4):
        model = model_on(chains(n), buffer_size=1_000).learn(200)
        n_iterations = (len(model.buffer) - 10) // 4
        assert (len(model.buffer) - 10) % 4 == 0
        assert model.num_timesteps == 3 * n * (-(-10 // n) + n_iterations * -(-4 // n))


def test_extra_options_change_what_they_say():
    options = {"standardise": True, "fill": "mixed", "scaling_floor": {"left": 10.0}, "scaling_factor": "auto"}
    model = model_on(Chain(), **options, seed=3).learn(200)
    filled = model_on(chains(2, early=0.3), standardise=True).learn(1)
    features = filled.policy.features(filled.policy.shown(filled.buffer.seen()))
    features = (features - filled.policy.feature_mean) * filled.policy.feature_scale
    np.testing.assert_allclose(features.mean(dim=0), 0, atol=1e-6)
    np.testing.assert_allclose(features.std(dim=0, correction=0), 1, rtol=1e-5)
    assert model.policy.command_scale[0] == pytest.approx(0.1)
    assert model.policy.command_scale[1] == pytest.approx(1 / 3)
    limited = model_on(TimeLimit(Chain(), 10), scaling_factor="auto").learn(30)
    assert limited.policy.command_scale[2] == pytest.approx(1 / 10)
    fixed = model_on(Chain(), scaling_factor=[1.0, 2.0, 0.1]).learn(50)
    assert fixed.policy.command_scale.tolist() == pytest.approx([1.0, 2.0, 0.1])
    per_step = model_on(Chain(), updates_per_step=0.5).learn(30)
    assert per_step._n_updates == 0
    per_step.learn(10, reset_num_timesteps=False)
    assert per_step._n_updates == 15
    collected = per_step.num_timesteps - 30
    per_step.learn(10, reset_num_timesteps=False)
    assert per_step._n_updates == 15 + round(0.5 * collected)
    slower = model_on(Chain(), learning_rate=lambda left: 1e-3 * left).learn(90)
    assert slower.policy.optimizer.param_groups[0]["lr"] == pytest.approx(1e-3 * (1 - 78 / 90))


def test_a_command_asks_for_a_little_more_of_one_objective_in_two_steps_less():
    model = model_on(chains(2, noise=0.1, early=0.2)).learn(200)
    model.buffer.asks[:, 1] *= 100
    slots = model.buffer.best(model.n_command_candidates)
    asks, lengths = model.buffer.asks[slots], model.buffer.lengths[slots]
    shares = ([], [])
    for _ in range(200):
        command = model._choose_command()
        more = command.desired_return - asks
        (chosen,) = np.flatnonzero((more == 0).sum(axis=1) == 1)
        objective = int(more[chosen].argmax())
        shares[objective].append(more[chosen, objective] / asks[:, objective].std())
        assert command.desired_horizon == max(lengths[chosen] - 2, 1)
    assert all(0 < min(share) < 0.1 and 0.9 < max(share) < 1 for share in shares)


def test_noise_is_in_units_of_the_spread_of_each_objective(monkeypatch):
    model = model_on(Chain(), noise=0.5, batch_size=5_000, n_updates=1).learn(100)
    model.buffer.returns[:, 1] *= 100
    sample, batches, seen = model.buffer.sample, [], []
    monkeypatch.setattr(model.buffer, "sample", lambda *given: batches.append(sample(*given)) or batches[-1])
    model.policy.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1].numpy()))
    model.train()
    added = (seen[0] - batches[0].returns).std(axis=0)
    np.testing.assert_allclose(added, 0.5 * model.buffer.points.std(axis=0), rtol=0.05)


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
    model = model_on(Chain(), held={"left": 0.5}, gamma=0.9, scaling_factor="auto").learn(100)
    assert model.buffer.discounts.tolist() == [0.5, 0.9]
    model.train()
    assert model.policy.command_scale[0] == pytest.approx(1 / (4 * model.buffer.labels()[:, 0].std()))


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
    model = model_on(chains(2, noise=0.1, early=0.1), eval_optimism=(1, 2), max_return={"left": 2.5}).learn(200)
    model.buffer.lengths[: len(model.buffer)] = np.arange(len(model.buffer)) % 7 + 1
    policies = evaluated(model, 3, False, None, None)
    plain = [policy for policy in policies if policy.aim is not None]
    raised = [policy for policy in policies if policy.aim is None]
    k = len(model.optimised)
    assert len(raised) == 2 * k
    spread = np.std([policy.command.desired_return for policy in plain], axis=0)
    best = np.argmax([policy.mean for policy in plain], axis=0)
    for objective in range(k):
        for times in (1, 2):
            own, more = plain[best[objective]].command, raised.pop(0).command
            wanted = own.desired_return + times * spread * np.eye(k)[objective]
            np.testing.assert_allclose(more.desired_return, np.minimum(wanted, [2.5, np.inf]))
            assert more.desired_horizon == own.desired_horizon
