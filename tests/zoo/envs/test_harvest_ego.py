"""Is the registered harvest one agent of an ordinary one, in every form the same?"""

from itertools import chain

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env

import sb3_fair
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.harvest.ego import EgoHarvestWorld
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from sb3_fair.zoo.registry.rules import RuleAgent
from tests.zoo.forms import EGO, LAYOUT, path_of

HARVEST = "sb3_fair:sb3_fair/AllelopathicHarvest-v0"


def started(world):
    """The observations with which copies seeded 0, 1, ... begin."""
    return world.reset(np.arange(world.n_worlds), [np.random.default_rng(index) for index in range(world.n_worlds)])


def test_the_ego_is_an_agent_of_an_ordinary_harvest():
    n = 3
    for ego in (0, 25):
        world = EgoHarvestWorld(n, ego=ego, others="stay")
        harvest = HarvestWorld(n)
        obs, own = started(harvest), started(world)
        for actions in np.random.default_rng(0).integers(8, size=(30, n)):
            assert_array_equal(own, obs[:, ego])
            joint = np.zeros((n, 40), dtype=int)
            joint[:, ego] = actions
            obs, paid, _, _, told = harvest.step(joint)
            own, rewards, _, _, record = world.step(actions)
            assert_array_equal(rewards, paid[:, ego])
            for key in ("group", "lf", "agent", "action"):
                assert_array_equal(record["individual"][key], told["individual"][key][:, ego])
            assert_array_equal(world.action_masks(), harvest.action_masks()[:, ego])


@pytest.mark.parametrize("form", ["batch", "sb3", "gymnasium", pytest.param("subproc", marks=pytest.mark.slow)])
def test_all_forms_take_the_same_path(form):
    actions = np.random.default_rng(0).integers(8, size=(30, 2))
    single, ours = (chain(*path_of(each, HARVEST, actions, 11, **EGO)) for each in ("single", form))
    for (obs, reward, over, info), (obs_, reward_, over_, info_) in zip(single, ours, strict=True):
        assert_array_equal(obs_, obs)
        assert (reward_, over_, info_["individual"]["agent"]) == (reward, over, info["individual"]["agent"])
        assert_array_equal(info_["detail"]["all_rewards"], info["detail"]["all_rewards"])


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("ego", [3, 30, "random"])
def test_the_ego_has_the_attribute_that_was_asked_for_and_the_counts_stay(ego, group):
    world, plain = EgoHarvestWorld(50, ego=ego, ego_group=group), EgoHarvestWorld(50, ego=ego)
    started(world), started(plain)
    slow, drawn, egos = world.game.group, plain.game.group, world.game.ego
    rows = np.arange(50)
    assert_array_equal(egos, plain.game.ego)
    assert (slow[rows, egos] == group).all()
    assert 10 < (drawn[rows, egos] == group).sum() < 40
    assert (slow[:, :20].sum(axis=1) == 10).all() and (slow[:, 20:].sum(axis=1) == 10).all()
    fits = drawn[rows, egos] == group
    assert_array_equal((slow != drawn).sum(axis=1), np.where(fits, 0, 2))
    swapped = slow != drawn
    swapped[rows, egos] = False
    assert swapped.any(axis=0).sum() > 8


def test_without_anybody_of_the_group_there_is_an_error():
    world = EgoHarvestWorld(1, ego_group=1, sensitive_share=0)
    with pytest.raises(ValueError, match="ego_group must be 'any' or a group that somebody is in, got 1"):
        started(world)


def test_a_partner_of_another_colour_helps_out():
    world = EgoHarvestWorld(20, ego=0, ego_group=1, n_agents=4, sensitive_share=0.25, stratified=False)
    started(world)
    assert_array_equal(world.game.group, [[1, 0, 0, 0]] * 20)


def test_a_random_ego_is_another_one_in_every_episode():
    env = gym.make(HARVEST, ego="random", horizon=1)
    env.reset(seed=0)
    egos = []
    for _ in range(30):
        egos.append(env.step(0)[4]["individual"]["agent"])
        env.reset()
    assert len(set(egos)) > 15 and min(egos) < 10 and max(egos) > 29


def test_others_are_asked_with_what_they_see_in_the_order_of_their_numbers():
    asked = []

    def others(obs, rng):
        asked.append((obs, rng))
        return np.arange(39) % 8

    world = EgoHarvestWorld(1, ego=5, others=others)
    started(world)
    before = world.game.observe()[0]
    own = world.step(np.array([7]))[0]
    ((obs, rng),) = asked
    assert_array_equal(obs, np.delete(before, 5, axis=0))
    assert isinstance(rng, np.random.Generator)
    harvest = HarvestWorld(1)
    started(harvest)
    assert_array_equal(own[0], harvest.step(np.insert(np.arange(39) % 8, 5, 7)[None])[0][0, 5])
    assert_array_equal(world.game.observe(), harvest.observe())


def test_a_model_plays_the_others_by_its_probabilities_and_always_the_same_way():
    model = PPO("MlpPolicy", gym.make(HARVEST), n_steps=8, batch_size=8, seed=0, device="cpu").learn(8)
    model.predict = lambda *_, **__: pytest.fail("it was asked for actions instead of probabilities")
    env = gym.make(HARVEST, others=model, detail=True, slow="moves_only")
    paths = []
    for _ in range(2):
        env.reset(seed=1)
        paths.append([env.step(0)[4]["detail"]["all_rewards"] for _ in range(15)])
    assert_array_equal(*paths)
    world = EgoHarvestWorld(20, others=model)
    started(world)
    world.tapes.advance()
    joint = world._joint(np.zeros(20, dtype=int))[:, 1:]
    seen = model.policy.obs_to_tensor(world.game.observe()[:, 1:].reshape(-1, 10))[0]
    expected = model.policy.get_distribution(seen).distribution.probs.detach().numpy().mean(axis=0)
    np.testing.assert_allclose(np.bincount(joint.ravel(), minlength=8) / joint.size, expected, atol=0.05)


def test_a_model_without_probabilities_plays_greedily():
    model = DQN("MlpPolicy", gym.make(HARVEST), seed=0, device="cpu")
    world = EgoHarvestWorld(2, others=model)
    started(world)
    greedy = model.predict(world.game.observe()[:, 1:].reshape(-1, 10), deterministic=True)[0]
    world.tapes.advance()
    assert_array_equal(world._joint(np.zeros(2, dtype=int))[:, 1:].ravel(), greedy)


def test_lonely_agents_work():
    env = gym.make(HARVEST, n_agents=1, width=3, height=3, n_bushes=1)
    obs, _ = env.reset(seed=0)
    assert obs[9] == 6 and env.step(0)[1] == 0
    narrow = gym.make(HARVEST, n_agents=1, width=1, height=3, n_bushes=1)  # where all have the same x
    assert narrow.reset(seed=0)[0][0] == 0


def test_detail_and_features_are_those_of_the_ego():
    env = gym.make(HARVEST, ego_group=1, detail=True)
    obs, _ = env.reset(seed=0)
    info = env.step(5)[4]
    assert info["detail"]["executed_action"] == -1 and info["detail"]["all_rewards"].shape == (40,)
    assert info["individual"]["lf"] == 1 and info["individual"]["group"] == 1
    assert_array_equal(info["individual"]["features"], obs)
    assert "detail" not in gym.make(HARVEST).reset(seed=0)[1]


def test_egos_are_compared_over_episodes():
    settings = {"objectives": ("R", "SP", "IF"), "reset_on_episode": False, "group": ["group", "lf"]}
    venv = sb3_fair.make_vec(HARVEST, 3, seed=0, horizon=5, ego="random", **settings)
    venv.reset()
    for actions in np.random.default_rng(0).integers(2, size=(40, 3)):
        infos = venv.step(actions)[3]
    figures = stack(infos, "fairness")
    assert (figures["SP@group"] < 0).all() and (figures["SP@lf"] < 0).all() and np.isfinite(figures["IF"]).all()


def test_masks_reach_maskable_algorithms():
    venv = sb3_fair.make_vec(HARVEST, 2, seed=0, ego_group=1)
    venv.reset()
    env = gym.make(HARVEST, ego_group=1)
    env.reset(seed=0)
    for form, copies in ((venv, 2), (env, 1)):
        assert_array_equal(np.atleast_2d(get_action_masks(form)), [[True] + [False] * 7] * copies)
    model = MaskablePPO("MlpPolicy", make_vec_env(HARVEST, 2), n_steps=16, batch_size=32, n_epochs=1, device="cpu")
    assert model.learn(32).num_timesteps == 32


def test_a_layout_is_installed_through_the_options_of_a_reset():
    env = gym.make(HARVEST, others="stay", width=6, height=5, n_agents=2, n_bushes=1, growth_interval=None)
    obs, _ = env.reset(seed=0, options={"layout": LAYOUT})
    assert_array_equal(obs, [2, 2, 1, 0, 1, 1, 0, 1, 11, 5])
    assert [env.step(5)[1] for _ in range(4)] == [0, 3, 0, 5]
    batch = gym.make_vec(HARVEST, 2, others="stay", width=6, height=5, n_agents=2, n_bushes=1, growth_interval=None)
    assert_array_equal(batch.reset(seed=0, options={"layout": LAYOUT})[0], [obs, obs])
    with pytest.raises(ValueError, match="options must not have 'layout' for a HiringWorld"):
        gym.make("sb3_fair/JobHiring-Small-v0").reset(options={"layout": LAYOUT})


@pytest.mark.parametrize("rule", ["stay", "random", "busy"])
def test_rules_play_valid_probabilities(rule):
    venv = sb3_fair.make_vec(HARVEST, 8, seed=0, ego_group=0)
    agent = RuleAgent(rule, venv, seed=0)
    venv.reset()
    total = 0.0
    for _ in range(60):
        actions, _ = agent.predict(None)
        np.testing.assert_allclose(actions.probabilities.sum(axis=1), 1)
        total += venv.step(actions)[1].sum()
    assert total == 0 if rule == "stay" else total > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ego": 40}, "ego must be 'random' or a number below 40, got 40"),
        ({"ego": -1}, "ego must be"),
        ({"ego": "any"}, "ego must be"),
        ({"ego_group": 2}, "ego_group must be one of"),
        ({"others": "rondom"}, "others must be .* got 'rondom' .did you mean 'random'"),
        ({"others": 3}, "others must be a callable, a model, or one of .* got 3"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        gym.make(HARVEST, **settings)


def test_a_model_for_other_observations_is_refused():
    model = PPO("MlpPolicy", gym.make(HARVEST, obs_extra=True), n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ValueError, match="others must be a model for Box"):
        gym.make(HARVEST, others=model)


@pytest.mark.parametrize("answer", [np.zeros(40, int), np.full(39, 8), np.zeros(39)])
def test_others_that_answer_something_else_are_an_error(answer):
    env = gym.make(HARVEST, others=lambda obs, rng: answer)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="others must return 39 actions from 0 to 7"):
        env.step(0)
