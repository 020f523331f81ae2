"""Do groups act and learn by their own networks inside a policy that Stable-Baselines3 takes for its own?"""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_fair.fair_ppo import GroupedActorCriticPolicy
from sb3_fair.wrappers import GroupLabelObs
from tests.models import weights

VECTOR = spaces.Box(-1, 1, (3,), np.float32)
KEYED = spaces.Dict({"state": VECTOR, "group": spaces.Discrete(3)})
ACTIONS = {
    "discrete": spaces.Discrete(4),
    "parts": spaces.MultiDiscrete([2, 3]),
    "bits": spaces.MultiBinary(2),
    "box": spaces.Box(-1, 1, (2,), np.float32),
}


def policy_of(space=VECTOR, actions=ACTIONS["discrete"], seed=0, **settings):
    th.manual_seed(seed)
    if isinstance(space, spaces.Box) and not settings.get("shared"):
        settings = {"group_index": 2, **settings}
    return GroupedActorCriticPolicy(space, actions, lambda _: 1e-2, **settings)


def observations(groups, seed=0):
    """Vectors (n, 3) whose last column is the group."""
    vectors = np.random.default_rng(seed).uniform(-1, 1, (len(groups), 3))
    vectors[:, 2] = groups
    return th.as_tensor(vectors, dtype=th.float32)


@pytest.mark.parametrize("actions", ACTIONS.values(), ids=ACTIONS.keys())
def test_every_observation_is_answered_by_the_networks_of_its_group(actions):
    policy = policy_of(actions=actions, ortho_init=False)
    if isinstance(actions, spaces.Box):
        policy.networks[1].log_std.data += 0.7
    obs = observations([0, 1, 1, 0, 1])
    given = th.as_tensor(np.stack([actions.sample() for _ in obs])).float()
    values, log_probs, entropies = policy.evaluate_actions(obs, given)
    for row, group in enumerate([0, 1, 1, 0, 1]):
        own = policy.networks[group].evaluate_actions(obs[row : row + 1], given[row : row + 1])
        for found, expected in zip((values, log_probs, entropies), own, strict=True):
            assert_allclose(found[row].detach(), expected[0].detach(), atol=1e-6)
    assert_allclose(policy.predict_values(obs).detach(), values.detach(), atol=1e-6)
    assert_allclose(policy.get_distribution(obs).log_prob(given).detach(), log_probs.detach(), atol=1e-6)
    drawn, same_values, its_log_probs = policy(obs)
    assert drawn.shape == given.shape and its_log_probs.shape == (5,)
    assert_allclose(same_values.detach(), values.detach(), atol=1e-6)


def test_a_network_learns_from_its_own_group_alone():
    policy = policy_of()
    before = [weights(network) for network in policy.networks]

    def step(groups):
        values, log_probs, _ = policy.evaluate_actions(observations(groups), th.zeros(len(groups)))
        policy.optimizer.zero_grad()
        (values.sum() + log_probs.sum()).backward()
        policy.optimizer.step()

    step([1, 1, 1])
    assert th.equal(weights(policy.networks[0]), before[0])
    assert not th.equal(weights(policy.networks[1]), before[1])
    step([0, 0])  # the momentum of group 1 does not move it either
    after = weights(policy.networks[1])
    step([0, 0])
    assert th.equal(weights(policy.networks[1]), after)
    assert not th.equal(weights(policy.networks[0]), before[0])


def test_the_gradient_of_a_group_does_not_depend_on_the_other_ones_observations():
    def gradient(first):
        policy = policy_of()
        obs = th.cat([observations([0, 0], seed=first), observations([1, 1], seed=5)])
        values, log_probs, _ = policy.evaluate_actions(obs, th.zeros(4))
        (values.sum() + log_probs.sum()).backward()
        return [[p.grad.flatten() for p in network.parameters()] for network in policy.networks]

    (own, other), (changed, same) = gradient(1), gradient(2)
    assert any(not th.equal(a, b) for a, b in zip(own, changed, strict=True))
    for a, b in zip(other, same, strict=True):
        assert_allclose(a, b, atol=1e-7)


def test_actor_and_critic_are_complete_and_apart():
    def touched(policy, values_only):
        values, log_probs, _ = policy.evaluate_actions(observations([0, 1]), th.zeros(2))
        (values if values_only else log_probs).sum().backward()
        return {name for name, parameter in policy.named_parameters() if parameter.grad is not None}

    assert not touched(policy_of(), True) & touched(policy_of(), False)


def test_shared_is_the_policy_of_sb3():
    obs = observations([0, 1, 1])
    ours = policy_of(shared=True)
    th.manual_seed(0)
    theirs = ActorCriticPolicy(VECTOR, ACTIONS["discrete"], lambda _: 1e-2)
    assert th.equal(weights(ours), weights(theirs))
    evaluated = (policy.evaluate_actions(obs, th.ones(3)) for policy in (ours, theirs))
    for found, expected in zip(*evaluated, strict=True):
        assert th.equal(found, expected)


def test_dicts_tell_the_group_and_how_many_there_are():
    policy = policy_of(KEYED)
    assert len(policy.networks) == 3
    state = observations([0, 0, 0])
    obs = {"state": state, "group": th.tensor([2, 0, 1])}
    values = policy.predict_values(obs).detach()
    assert_array_equal(policy.groups(obs), [2, 0, 1])
    assert_array_equal(policy.groups({"state": state, "group": th.tensor([[2.0], [0.0], [1.0]])}), [2, 0, 1])
    for row, group in enumerate([2, 0, 1]):
        one = {key: value[row : row + 1] for key, value in obs.items()}
        assert_allclose(policy.networks[group].predict_values(one).detach(), values[row : row + 1], atol=1e-6)


def test_every_group_has_its_own_features_extractor():
    space = spaces.Dict({"image": spaces.Box(0, 255, (1, 36, 36), np.uint8), "group": spaces.Discrete(2)})
    policy = policy_of(space, net_arch=[8])
    first, second = (dict(network.features_extractor.named_parameters()) for network in policy.networks)
    assert first and not any(first[name] is second[name] for name in first)
    assert len(weights(policy)) == len(weights(policy.networks[0])) + len(weights(policy.networks[1]))
    assert policy.predict({"image": np.zeros((2, 1, 36, 36), np.uint8), "group": np.array([0, 1])})[0].shape == (2,)
    apart = policy_of(space, net_arch=[8], share_features_extractor=False)
    obs = {"image": th.randint(256, (2, 1, 36, 36), dtype=th.uint8), "group": th.tensor([0, 1])}
    assert_allclose(apart(obs)[1].detach(), apart.predict_values(obs).detach(), atol=1e-6)


class Side(gym.Env):
    """Group 0 is paid for action 0, group 1 for action 1; all see the same."""

    observation_space, action_space = spaces.Box(0, 1, (1,), np.float32), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.group = int(self.np_random.integers(2))
        return np.ones(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), float(action == self.group), True, False, {}


def sides(flatten, n=4):
    return DummyVecEnv([lambda: GroupLabelObs(Side(), "group", flatten=flatten)] * n)


@pytest.mark.parametrize("algorithm", [PPO, A2C])
@pytest.mark.parametrize("flatten", [False, True])
def test_any_algorithm_of_sb3_learns_saves_and_loads_it(algorithm, flatten, tmp_path):
    settings = {"group_index": -1} if flatten else {}
    more = {"batch_size": 64, "n_epochs": 3} if algorithm is PPO else {"use_rms_prop": False}
    model = algorithm(
        GroupedActorCriticPolicy,
        sides(flatten),
        policy_kwargs={"net_arch": [8], **settings},
        n_steps=32,
        learning_rate=0.03,
        seed=0,
        device="cpu",
        **more,
    ).learn(1024)
    obs = sides(flatten).observation_space
    seen = {"state": np.ones((2, 1), np.float32), "group": np.array([0, 1])}
    seen = seen if not flatten else np.array([[1, 0], [1, 1]], np.float32)
    assert_array_equal(model.predict(seen, deterministic=True)[0], [0, 1])
    model.save(tmp_path / "model")
    loaded = algorithm.load(tmp_path / "model", sides(flatten))
    assert th.equal(weights(loaded.policy), weights(model.policy))
    assert loaded.predict({k: v[0] for k, v in seen.items()} if not flatten else seen[0], deterministic=True)[0] == 0
    loaded.learn(128, reset_num_timesteps=False)
    model.policy.save(tmp_path / "policy")
    alone = GroupedActorCriticPolicy.load(tmp_path / "policy")
    assert alone.observation_space == obs
    assert_array_equal(alone.predict(seen, deterministic=True)[0], [0, 1])


def test_what_is_not_allowed_is_named():
    for settings, word in (
        ({"group_index": None}, "group_index must be the column"),
        ({"group_index": 3}, "got 3"),
        ({"use_sde": True}, "use_sde must be False"),
        ({"n_groups": 0}, "n_groups must be a positive integer, got 0"),
    ):
        with pytest.raises(ValueError, match=word):
            policy_of(**settings)
    with pytest.raises(ValueError, match="must have the key 'group'"):
        policy_of(spaces.Dict({"state": VECTOR}))


def test_a_label_that_is_no_group_is_an_error_that_thinks_of_vec_normalize():
    with pytest.raises(ValueError, match=r"group from 0 to 1, got 2 \(VecNormalize"):
        policy_of()(observations([0, 2]))
    venv = VecNormalize(sides(flatten=True))
    model = PPO(GroupedActorCriticPolicy, venv, policy_kwargs={"group_index": 1}, n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ValueError, match="norm_obs=False"):
        model.learn(32)
