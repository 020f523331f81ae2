"""Is every registered ID a proper environment, and the same one in each of its forms?"""

import copy
import pickle
from itertools import chain, pairwise

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers.vector import DictInfoToList
from numpy.testing import assert_allclose, assert_equal
from stable_baselines3.common import env_checker as sb3

import sb3_fair
from sb3_fair.fairness import FairnessSpec, FullHistory, SlidingWindow, group_notion
from sb3_fair.wrappers import FairMDP
from sb3_fair.wrappers.infos import stack
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo.registry.registration import WORLDS
from tests.zoo.forms import SINGLE, path_of

SMALL = "sb3_fair:sb3_fair/JobHiring-Small-v0"
OBJECTIVES = {"objectives": ("R", "SP", "IF"), "window": 30, "emit": "difference"}


PLACES = "sb3_fair/AttentionAllocation"  # individuals are places, and notions need discrete actions and features
OPTIONS = [{}, {"objectives": ("R", "SP", "CSC"), "scalarise": (1, 1, 0), "window": 20}]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("env_id", "settings"),
    [(env_id, each) for env_id in SINGLE for each in OPTIONS[: 1 if env_id.startswith(PLACES) else None]],
)
def test_both_checkers_are_content(env_id, settings):
    check_env(gym.make(env_id, **settings), skip_render_check=True)
    check_env(gym.make(env_id, render_mode="rgb_array", **settings).unwrapped)
    sb3.check_env(gym.make(env_id, **settings))


def test_the_specification_names_the_ids():
    assert {
        "sb3_fair/JobHiring-v0",
        "sb3_fair/JobHiring-Small-v0",
        "sb3_fair/JobHiring-Gender-v0",
        "sb3_fair/JobHiring-NationalityGender-v0",
        "sb3_fair/JobHiring-Marital-v0",
        "sb3_fair/JobHiring-BiasMen-v0",
        "sb3_fair/JobHiring-Gender-BiasBelgianMen-v0",
    } <= set(WORLDS)
    assert gym.make("sb3_fair/JobHiring-Gender-BiasMen-v0").unwrapped.world.config.bias == 1
    assert gym.make(SMALL).unwrapped.max_steps == 100


def test_what_monitor_must_see_is_inside_the_id():
    env = gym.make(SMALL, **OBJECTIVES, scalarise=(1, 1, 1))
    names = []
    while env is not env.unwrapped:
        names.append(type(env).__name__)
        env = env.env
    assert names == ["OrderEnforcing", "PassiveEnvChecker", "Scalarise", "VectorReward", "FairMDP"]


@pytest.mark.parametrize("form", ["sb3", "subproc", "batch", "gymnasium"])
def test_all_forms_take_the_same_path(form):
    actions = (np.random.default_rng(0).random((150, 3)) < 0.4).astype(int)
    single, ours = (chain(*path_of(each, SMALL, actions, 11, **OBJECTIVES)) for each in ("single", form))
    for (_, reward, over, info), (_, reward_, over_, info_) in zip(single, ours, strict=True):
        assert (reward_, over_) == (pytest.approx(reward, rel=1e-6), over)
        assert_allclose(info_["vector_reward"], info["vector_reward"])
        figures, figures_ = ([told["fairness"][name] for name in ("SP", "IF")] for told in (info, info_))
        assert_allclose(np.array(figures_, dtype=float), np.array(figures, dtype=float))  # None is NaN
        assert info_["individual"]["id"] == info["individual"]["id"]
        assert_equal(info_["individual"]["features"], info["individual"]["features"])


@pytest.mark.parametrize("env_id", ["Doughnut-Small", "JobHiring-Small", "EpidemicControl"])
def test_infos_of_gymnasium_s_batch_become_those_of_its_copies(env_id):
    envs = [gym.make(f"sb3_fair/{env_id}-v0") for _ in range(2)]
    batch = DictInfoToList(gym.make_vec(f"sb3_fair/{env_id}-v0", num_envs=2))
    batch.reset(seed=3)
    for seed, env in enumerate(envs, 3):
        env.reset(seed=seed)
    actions = batch.action_space.sample()
    for env, action, told in zip(envs, actions, batch.step(actions)[4], strict=True):
        info = env.step(action)[4]
        assert told.keys() == info.keys() and told.get("fair_event") == info.get("fair_event")


def test_hiring_all_men_and_no_women_is_as_unfair_as_can_be():
    env = gym.make("sb3_fair/JobHiring-v0", audit=("SP", "EO", "PE", "OAE"))
    obs, _ = env.reset(seed=0)
    for _ in range(80):
        obs, *_, info = env.step(int(obs[13] == 0))
    assert info["fairness"]["SP"] == info["fairness"]["EO"] == info["fairness"]["PE"] == -1


def test_defaults_are_the_performance_reward_with_figures_in_info():
    env = gym.make(SMALL, detail=True)
    env.reset(seed=0)
    reward, info = env.step(1)[1], env.step(0)[4]
    assert isinstance(reward, float)
    assert set(info) == {"individual", "fairness", "detail", "massage"}
    assert set(info["fairness"]) == {"SP", "EO"}


def test_several_attributes_have_figures_of_their_own():
    env = gym.make(SMALL, objectives=("R", "SP"), group=["gender", "nationality", ("gender", "nationality")])
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    history = []
    for _ in range(15):
        action = int(rng.random() < 0.5)
        info = env.step(action)[4]
        history.append((action, info["individual"]["features"][1], info["individual"]["features"][4]))
    actions, gender, nationality = map(np.array, zip(*history, strict=True))
    names = env.get_wrapper_attr("objective_names")
    assert names == ("R", "SP@gender", "SP@nationality", "SP@gender+nationality")
    for name, groups in zip(names[1:], (gender, nationality, 2 * gender + nationality), strict=True):
        assert info["fairness"][name] == pytest.approx(
            group_notion("SP", actions=actions, feedback=actions, groups=groups)
        )


def test_an_objective_of_one_attribute_goes_with_the_notion_of_all():
    env = gym.make(SMALL, objectives=("R", "SP@nationality", "SP"), audit=("EO", "SP"), group=["gender", "nationality"])
    assert env.get_wrapper_attr("objective_names") == ("R", "SP@nationality", "SP@gender")
    assert env.get_wrapper_attr("fairness_names") == ("SP@nationality", "SP@gender", "EO@gender", "EO@nationality")


def test_names_in_arrays_are_those_of_tuples():
    given = {"objectives": np.array(["R", "SP"]), "audit": np.array(["EO", "IF"])}
    for env in (gym.make(SMALL, **given), sb3_fair.make_vec(SMALL, 2, **given)):
        assert attribute(env, "objective_names") == ("R", "SP")
        assert {*attribute(env, "fairness_names")} == {"SP", "EO", "IF"}


def test_a_product_partition_is_one_attribute():
    env = gym.make(SMALL, objectives=("R", "SP"), group=("gender", "nationality"))
    env.reset(seed=0)
    assert set(env.step(1)[4]["individual"]["group"]) == {"gender", "nationality"}
    assert env.get_wrapper_attr("objective_names") == ("R", "SP")


def test_several_distances_have_figures_of_their_own():
    env = gym.make(SMALL, objectives=("R", "IF"), distance=["heom", "braycurtis"])
    assert env.get_wrapper_attr("objective_names") == ("R", "IF@heom", "IF@braycurtis")


@pytest.mark.parametrize(
    ("env_id", "most"),
    [
        ("Lending-v0", 2000),
        ("EpidemicControl-v0", 20),
        ("AllelopathicHarvest-v0", 5 * 3000),
        ("FraudDetection-BiasEU-v0", 1.1 * 1000),
    ],
)
def test_the_bound_of_a_return_is_the_best_of_all_steps(env_id, most):
    assert gym.make(f"sb3_fair/{env_id}").get_wrapper_attr("max_return") == pytest.approx(most)


def test_another_spec_replaces_the_scenarios_own():
    spec = FairnessSpec(group=lambda obs, info: int(obs[17]), notions=("SP",), history=SlidingWindow(10))
    env = gym.make(SMALL, spec=spec)
    env.reset(seed=0)
    assert set(env.step(1)[4]["fairness"]) == {"SP"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objectives": ("R", "SPP")}, "SP"),
        ({"objectives": ("R", "w1")}, r"objectives must be 'R', a disparity \(d_...\) or one of .*, got 'w1'"),
        ({"audit": ("fairness",)}, "fairness"),
        ({"objectives": ("SP",), "scalarise": None, "window": 0}, "window"),
        ({"window": 10, "history": SlidingWindow(10)}, "exclude each other"),
        ({"scalarise": (1,)}, "need objectives"),
        ({"emit": "end"}, "emit must be one of"),
        ({"undefined": None}, "undefined must be a finite number"),
        ({"encoder": "binary"}, "need a memory"),
        ({"flatten": True}, "need a memory"),
        ({"reset_on_episode": "no"}, "reset_on_episode"),
        ({"objectives": ("R",), "scalarise": (1, 2)}, "weights"),
        ({"objectives": ("R", "SP"), "scalarise": (1, 1), "vector": True}, "exclude each other"),
        ({"group": "height"}, "height"),
        ({"team_size": 0}, "team_size"),
        ({"team_sise": 3}, "team_size"),
        ({"objective": ("R",)}, "did you mean 'objectives'"),
        ({"vec_env_cls": None}, "every ID also takes objectives, audit, "),
        ({"probabilities": "soft"}, "probabilities"),
        ({"objectives": ("R", "IF"), "distance": "euclid"}, "euclid"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        gym.make(SMALL, **settings)
    if "vector" not in settings:
        with pytest.raises((ValueError, TypeError), match=message):
            sb3_fair.make_vec(SMALL, 2, **settings)


@pytest.mark.parametrize("action", [2, -1, 0.5, "hire"])
def test_actions_outside_the_space_are_refused(action):
    env = gym.make(SMALL).unwrapped
    env.reset(seed=0)
    with pytest.raises((ValueError, TypeError), match="action"):
        env.step(action)


def test_a_second_fairness_mdp_is_an_error():
    with pytest.raises(ValueError, match="already is a fairness MDP"):
        FairMDP(gym.make(SMALL), gym.make(SMALL).unwrapped.fairness_spec)


def test_the_spec_of_a_registered_id_travels_to_workers():
    spec = gym.make(SMALL).unwrapped.fairness_spec
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize(("env_id", "settings"), [(SMALL, {}), ("CartPole-v1", {"spec": FairnessSpec(notions=())})])
def test_make_vec_takes_numpy_s_seeds(env_id, settings):
    first, second = (sb3_fair.make_vec(env_id, 2, seed=seed, **settings).reset() for seed in (3, np.int64(3)))
    np.testing.assert_array_equal(first, second)
    with pytest.raises(TypeError, match="float"):
        gym.make_vec(SMALL, num_envs=2).reset(seed=[3.7, 3.7])


def test_make_vec_wants_a_fairness_spec():
    with pytest.raises(ValueError, match="fairness must be a FairnessSpec for CartPole-v1, got nothing: give spec="):
        sb3_fair.make_vec("CartPole-v1", 2)


def test_make_vec_records_episodes():
    venv = sb3_fair.make_vec(SMALL, 2, seed=0)
    venv.reset()
    episodes = [info["episode"] for _ in range(30) for info in venv.step([1, 1])[3] if "episode" in info]
    assert len(episodes) >= 2 and all(later["t"] >= earlier["t"] for earlier, later in pairwise(episodes))


def test_a_vector_reward_is_the_reward_on_request():
    env = gym.make(SMALL, objectives=("R", "SP"), vector=True, disable_env_checker=True)
    env.reset(seed=0)
    reward = env.step(1)[1]
    assert reward.shape == (2,) and env.unwrapped.reward_space.shape == (2,)


@pytest.mark.parametrize("env_id", ["Lending-v0", "AttentionAllocation-v0", "EpidemicControl-v0"])
def test_the_window_of_a_scenario_that_has_one_is_set_through_its_id(env_id):
    assert gym.make(f"sb3_fair/{env_id}", window=7).unwrapped.world.config.window == 7
    assert sb3_fair.make_vec(f"sb3_fair/{env_id}", 2, window=7).get_attr("config")[0].window == 7


@pytest.mark.parametrize(
    ("settings", "lending", "others"),
    [
        ({}, SlidingWindow(301), SlidingWindow(500)),
        ({"window": 7}, SlidingWindow(8), SlidingWindow(7)),
        ({"window": 7, "history": FullHistory()}, FullHistory(), FullHistory()),
    ],
)
def test_a_window_that_is_given_is_also_that_of_notions_unless_they_have_a_history(settings, lending, others):
    for env_id, history in (("Lending", lending), ("AttentionAllocation", others), ("EpidemicControl", others)):
        spec = gym.make(f"sb3_fair/{env_id}-v0", **settings).get_wrapper_attr("fairness_spec")
        assert spec.history == history


@pytest.mark.parametrize("env_id", [env_id for env_id in SINGLE if not env_id.startswith(PLACES)])
def test_a_copy_in_the_middle_of_an_episode_goes_on_like_its_original(env_id):
    env = gym.make(env_id, audit=("SP", "EO", "CSC"), disable_env_checker=True)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = rng.integers(env.action_space.n, size=60)
    for action in actions[:8]:
        env.step(action)
    twin = copy.deepcopy(env)
    for action in actions[8:]:
        ours, theirs = env.step(action), twin.step(action)
        assert_equal([*theirs[:4], theirs[4]["fairness"]], [*ours[:4], ours[4]["fairness"]])
        if ours[2] or ours[3]:
            break


def test_a_sample_of_the_past_is_that_of_the_single_environment():
    settings = {"objectives": ("IF",), "history": FullHistory(reservoir=8), "end_when_full": False}
    venv = sb3_fair.make_vec(SMALL, 3, seed=0, **settings)
    venv.reset()
    single = [gym.make(SMALL, **settings) for _ in range(3)]
    for index, env in enumerate(single):
        env.reset(seed=index)
    for step in range(60):
        figures = stack(venv.step([step % 2] * 3)[3], "fairness")["IF"]
        assert_allclose(figures, [env.step(step % 2)[4]["fairness"]["IF"] for env in single])


def test_a_setting_of_the_scenario_is_set_through_its_id_though_ours_has_the_same_name():
    assert gym.make("sb3_fair/EpidemicControl-v0", distance="w1").unwrapped.world.config.distance == "w1"


def test_gymnasium_s_batch_does_not_swallow_the_options_of_a_reset():
    envs = gym.make_vec(SMALL, num_envs=2)
    with pytest.raises(ValueError, match="options must not have 'layout'"):
        envs.reset(options={"layout": {}})
    envs.reset()
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.array([True, False])})
