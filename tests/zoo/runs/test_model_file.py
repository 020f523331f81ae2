"""Is a model from anybody's file measured as it is, in the environment that was named?"""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import sb3_fair
from sb3_fair import PCN, FairQCM
from sb3_fair.common.connection import channels_first
from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.common.run_folder import DamagedError
from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.wrappers import FairMDP, VectorReward
from sb3_fair.zoo.evaluation.tables import figure_table
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS, which_saved
from sb3_fair.zoo.runs.model_file import evaluate_file
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.train import built, train

ROOT = Path(__file__).parents[3]
SMALL = "sb3_fair/JobHiring-Small-v0"
LENDING = "sb3_fair/Lending-v0"
ROLLOUTS = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "seed": 0}


def cells(table):
    """Figure -> what stands in its row."""
    columns = [list(column.cells) for column in table.columns]
    return {row[0].rstrip(" ↑↓"): row[1:] for row in zip(*columns, strict=True)}


def test_a_model_of_sb3_is_measured_in_every_notion_beside_the_rules(tmp_path):
    model = PPO("MlpPolicy", sb3_fair.make_vec(SMALL, 2, seed=0), **ROLLOUTS).learn(64)
    model.save(tmp_path / "mine.zip")
    ((policy,), rules, _) = evaluate_file(tmp_path / "mine.zip", "ppo", SMALL, n_eval_episodes=3, seed=5)
    venv = sb3_fair.make_vec(SMALL, 3, objectives=("R",), monitor=False)
    np.testing.assert_array_equal(policy.returns, evaluate_vector(model, venv, 3, seed=5).returns)
    assert len(rules) == 6
    table = cells(figure_table([policy], rules))
    notions = {"SP", "EO", "OAE", "PP", "PE", "EqOdds", "CUAE", "TE", "IF", "LIP", "CSC"}
    assert {"R", "steps"} <= table.keys() <= {"R", "steps", *notions}
    low, high = policy.ci[0]
    assert table["R"][0] == f"{policy.mean[0]:.3f} ± {(high - low) / 2:.3f}"
    assert table["SP"][-1] == f"{policy.chance['SP']:.3f}"


def test_disparities_are_told_after_the_last_step_and_on_average(tmp_path):
    short = {"episode_length": 30}
    PPO("MlpPolicy", sb3_fair.make_vec(LENDING, 2, seed=0, **short), **ROLLOUTS).save(tmp_path / "bank.zip")
    found = evaluate_file(tmp_path / "bank.zip", "ppo", LENDING, env_kwargs=short, audit=("SP",), n_eval_episodes=2)
    table = cells(figure_table(*found))
    assert {"d_s", "d_l", "mean_d_s", "mean_d_l", "SP"} <= table.keys() and "EO" not in table
    assert all("±" in cell for cell in table["mean_d_l"][:-1])
    assert [name for name in found[0][0].final if name.startswith("mean_")] == ["mean_d_s", "mean_d_l"]


def test_the_scale_beside_a_model_is_its_own(tmp_path):
    venv = VecNormalize(sb3_fair.make_vec(SMALL, 2, seed=0))
    model = PPO("MlpPolicy", venv, **ROLLOUTS).learn(256)
    model.save(tmp_path / "mine.zip")
    alone = evaluate_file(tmp_path / "mine.zip", "ppo", SMALL, audit=("IF",), n_eval_episodes=2)[0][0]
    venv.save(str(tmp_path / "vecnormalize.pkl"))
    scaled = evaluate_file(tmp_path / "mine.zip", "ppo", SMALL, audit=("IF",), n_eval_episodes=2)[0][0]
    assert (alone.final["IF"] != scaled.final["IF"]).any()


def test_our_own_models_bring_their_memory_and_their_trade_off(tmp_path):
    doughnuts = "sb3_fair/Doughnut-Small-v0"
    FairQCM("MultiInputPolicy", sb3_fair.make_vec(doughnuts, 2), learning_starts=10, seed=0).save(tmp_path / "q.zip")
    ((policy,), *_) = evaluate_file(tmp_path / "q.zip", "fair_qcm", doughnuts, n_eval_episodes=2)
    assert {"spread", "SP"} <= policy.final.keys()
    short = {"team_size": 5, "episode_length": 20}
    env = sb3_fair.make_vec(SMALL, 2, objectives=("R", "SP"), **short)
    PCN("MlpPolicy", env, n_fill_episodes=4, n_updates=1, seed=0).learn(100).save(tmp_path / "pcn.zip")
    policies, rules, _ = evaluate_file(tmp_path / "pcn.zip", "pcn", SMALL, env_kwargs=short, n_eval_episodes=1)
    assert policies[0].objectives == ("R", "SP") and len(rules) == 6


SPEC = FairnessSpec(group=lambda obs, info: int(obs[2] > 0), notions=("SP",), history=SlidingWindow(50))


def test_a_model_that_sees_through_wrappers_is_evaluated_in_its_run(tmp_path):
    around = {"env_wrapper": {"gymnasium.wrappers.RescaleObservation": {"min_obs": -1.0, "max_obs": 1.0}}}
    plan = make_plan("ppo", SMALL, n_timesteps=64, hyperparams={**around, "n_steps": 32, "n_eval_episodes": 2})
    run = train(plan, log_dir=tmp_path / "my logs", progress=False)
    with pytest.raises(InputError, match=f"in the wrappers of its run: use evaluate --run '{run.path}'"):
        evaluate_file(run.path / "model.zip", "ppo", SMALL, n_eval_episodes=2)


def carts(objectives=None):
    env = FairMDP(gym.make("CartPole-v1"), SPEC)
    return env if objectives is None else VectorReward(env, objectives)


@pytest.fixture
def cart_ids():
    """Environments that somebody registered elsewhere."""
    gym.register("FairCarts-v0", entry_point=carts)
    yield "FairCarts-v0"
    del gym.registry["FairCarts-v0"]


def test_an_environment_of_somebody_else_is_measured_by_what_it_publishes(tmp_path, cart_ids):
    PPO("MlpPolicy", "CartPole-v1", **ROLLOUTS).learn(64).save(tmp_path / "cart.zip")
    ((plain,), rules, _) = evaluate_file(tmp_path / "cart.zip", "ppo", "CartPole-v1", n_eval_episodes=3, seed=5)
    assert plain.objectives == ("R",) and not plain.final and not rules
    np.testing.assert_array_equal(plain.returns[:, 0], plain.lengths)
    ((policy,), *_) = evaluate_file(tmp_path / "cart.zip", "ppo", cart_ids, n_eval_episodes=3, seed=5)
    np.testing.assert_array_equal(policy.returns, plain.returns)
    assert set(policy.final) == {"SP"}
    both = {"objectives": ("R", "SP")}
    ((policy,), *_) = evaluate_file(tmp_path / "cart.zip", "ppo", cart_ids, env_kwargs=both, n_eval_episodes=3)
    assert policy.objectives == ("R", "SP")


def test_a_fairness_spec_makes_any_environment_measurable(tmp_path):
    PPO("MlpPolicy", "CartPole-v1", **ROLLOUTS).learn(64).save(tmp_path / "cart.zip")
    asked = {"fairness": "tests.own_env.bank:leaning", "audit": ("SP",)}
    ((policy,), *_) = evaluate_file(tmp_path / "cart.zip", "ppo", "CartPole-v1", **asked, n_eval_episodes=3, seed=5)
    ((plain,), *_) = evaluate_file(tmp_path / "cart.zip", "ppo", "CartPole-v1", n_eval_episodes=3, seed=5)
    np.testing.assert_array_equal(policy.returns, plain.returns)
    assert set(policy.final) == {"SP"} and policy.groups[""].keys() == {"left", "right"}
    with pytest.raises(InputError, match="fairness must be 'module:name'"):
        evaluate_file(tmp_path / "cart.zip", "ppo", "CartPole-v1", fairness="leaning")


class Lopsided(gym.Env):
    """Publishes a measure of its own, which is best at 0."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2)
    words: ClassVar = {"gap": {"title": "gap in credit", "better": "zero"}}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        gap = self.np_random.choice([-0.3, 0.3])
        return np.zeros(1, np.float32), 1.0, True, False, {"fairness": {"gap": gap}}


def test_measures_mean_what_their_environment_says(tmp_path, request):
    gym.register("Lopsided-v0", entry_point=Lopsided)
    request.addfinalizer(lambda: gym.registry.pop("Lopsided-v0"))
    PPO("MlpPolicy", "Lopsided-v0", **ROLLOUTS).save(tmp_path / "mine.zip")
    found = evaluate_file(tmp_path / "mine.zip", "ppo", "Lopsided-v0", n_eval_episodes=20, seed=5)
    assert cells(figure_table(*found))["gap →0"][0] == "0.300 ± 0.000"


def test_words_of_another_kind_are_not_about_measures(tmp_path, request):
    class Game(Lopsided):
        words: ClassVar = ["crane", "slate"]

    gym.register("Game-v0", entry_point=Game)
    request.addfinalizer(lambda: gym.registry.pop("Game-v0"))
    PPO("MlpPolicy", "Game-v0", **ROLLOUTS).save(tmp_path / "mine.zip")
    assert evaluate_file(tmp_path / "mine.zip", "ppo", "Game-v0", n_eval_episodes=1)[2] == {}


def test_the_scale_beside_a_model_is_its_own_in_an_environment_of_somebody_else_too(tmp_path):
    def two_carts():
        return DummyVecEnv([lambda: gym.make("CartPole-v1")] * 2)

    venv = VecNormalize(two_carts())
    model = PPO("MlpPolicy", venv, **ROLLOUTS).learn(256)
    model.save(tmp_path / "cart.zip")
    alone = evaluate_file(tmp_path / "cart.zip", "ppo", "CartPole-v1", n_eval_episodes=2, seed=5)[0][0]
    venv.save(str(tmp_path / "vecnormalize.pkl"))
    scaled = evaluate_file(tmp_path / "cart.zip", "ppo", "CartPole-v1", n_eval_episodes=2, seed=5)[0][0]
    again = VecNormalize.load(str(tmp_path / "vecnormalize.pkl"), two_carts())
    again.training = again.norm_reward = False
    again.seed(5)
    expected, _ = evaluate_policy(model, again, 2, return_episode_rewards=True, warn=False)
    assert sorted(scaled.returns[:, 0]) == sorted(expected) != sorted(alone.returns[:, 0])


class Pictures(gym.Env):
    """Three steps, each of which shows a picture; those of a Dict stand beside a number."""

    def __init__(self, named=False):
        picture = gym.spaces.Box(0, 255, (40, 36, 3), np.uint8)
        number = gym.spaces.Box(-1, 1, (1,))
        self.observation_space = gym.spaces.Dict(picture=picture, number=number) if named else picture
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), 1.0, False, self.steps == 3, {}


@pytest.fixture
def picture_id():
    gym.register("Pictures-v0", entry_point=Pictures)
    yield "Pictures-v0"
    del gym.registry["Pictures-v0"]


@pytest.mark.parametrize(("policy", "named"), [("CnnPolicy", False), ("MultiInputPolicy", True)])
@pytest.mark.parametrize("scaled", [False, True])
def test_pictures_are_shown_as_sb3_shows_them_in_training(tmp_path, picture_id, policy, named, scaled):
    venv = DummyVecEnv([lambda: gym.make(picture_id, named=named)])
    if scaled:
        venv = VecNormalize(venv, norm_obs=named, norm_obs_keys=["number"] if named else None)
        venv.save(str(tmp_path / "vecnormalize.pkl"))
    PPO(policy, venv, **ROLLOUTS).save(tmp_path / "eye.zip")
    found = evaluate_file(tmp_path / "eye.zip", "ppo", picture_id, env_kwargs={"named": named}, n_eval_episodes=2)
    np.testing.assert_array_equal(found[0][0].returns, [[3.0], [3.0]])


def test_pictures_that_a_model_was_shown_as_they_are_stay_so():
    venv = DummyVecEnv([Pictures])
    assert channels_first(venv, venv.observation_space) is venv
    assert channels_first(venv, gym.spaces.Box(0, 255, (3, 40, 36), np.uint8)).reset().shape == (1, 3, 40, 36)


@pytest.fixture
def lander_id():
    """An environment that needs a package which is not there."""

    def lander():
        raise gym.error.DependencyNotInstalled("Box2D is not installed,\nyou can install it")

    gym.register("Lander-v0", entry_point=lander)
    yield "Lander-v0"
    del gym.registry["Lander-v0"]


def test_an_environment_that_cannot_be_made_is_one_line(tmp_path, lander_id):
    PPO("MlpPolicy", "CartPole-v1", **ROLLOUTS).save(tmp_path / "cart.zip")
    unmakeable = "env must be an ID that Gymnasium can make, got"
    with pytest.raises(InputError, match=f"^{unmakeable} 'Lander-v0': Box2D is not installed, you can install it$"):
        evaluate_file(tmp_path / "cart.zip", "ppo", lander_id)
    for env in (":CartPole-v1", ".carts:CartPole-v1"):
        with pytest.raises(InputError, match=f"env must name a module that can be imported, got '{re.escape(env)}': "):
            evaluate_file(tmp_path / "cart.zip", "ppo", env)
    with pytest.raises(InputError, match="unexpected keyword argument 'sped'"):
        evaluate_file(tmp_path / "cart.zip", "ppo", "CartPole-v1", env_kwargs={"sped": 2})


@pytest.mark.parametrize("env_kwargs", [{}, {"objectives": ("R", "SP")}])
def test_a_trade_off_learned_elsewhere_is_measured_too(tmp_path, cart_ids, env_kwargs):
    env = gym.make(cart_ids, objectives=("R", "SP"))
    PCN("MlpPolicy", env, n_fill_episodes=4, n_updates=1, seed=0).learn(200).save(tmp_path / "pcn.zip")
    policies, rules, _ = evaluate_file(tmp_path / "pcn.zip", "pcn", cart_ids, env_kwargs=env_kwargs, n_eval_episodes=2)
    assert policies and not rules and all(policy.objectives == ("R", "SP") for policy in policies)


def test_a_trade_off_is_evaluated_with_notions_paid_for_as_in_training(tmp_path, cart_ids):
    settings = {"n_fill_episodes": 4, "n_updates": 1, "eval_freq": 0, "seed": 0}
    env = VectorReward(gym.make(cart_ids), ("R", "SP"), emit="terminal")
    PCN("MlpPolicy", env, **settings).learn(200).save(tmp_path / "pcn.zip")
    policies, *_ = evaluate_file(tmp_path / "pcn.zip", "pcn", cart_ids, n_eval_episodes=2)
    np.testing.assert_allclose(policies[0].returns[:, 1], np.nan_to_num(policies[0].final["SP"]))
    with pytest.raises(InputError, match="eval_env must have emit='terminal', as in training, got 'level'"):
        evaluate_file(tmp_path / "pcn.zip", "pcn", cart_ids, env_kwargs={"objectives": ("R", "SP")}, n_eval_episodes=2)


MODULE = """
import gymnasium as gym
gym.register("Elsewhere-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=30)
"""


def test_a_module_that_registers_its_environment_is_imported_first(tmp_path):
    PPO("MlpPolicy", "CartPole-v1", **ROLLOUTS).save(tmp_path / "cart.zip")
    (tmp_path / "elsewhere.py").write_text(MODULE)
    command = [sys.executable, "-m", "sb3_fair.zoo", "evaluate", "--model", "cart.zip", "--algo", "ppo", "--trust"]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    given = {"cwd": tmp_path, "env": paths, "capture_output": True, "text": True}
    ran = subprocess.run([*command, "--env", "elsewhere:Elsewhere-v0", "--n-eval-episodes", "2"], **given)
    assert ran.returncode == 0 and "steps" in ran.stdout, ran.stderr
    for env, told in {
        "nowhere:Elsewhere-v0": "env must name a module that can be imported, got 'nowhere:Elsewhere-v0'",
        "elsewhere:Elsewere-v0": "env must be an ID that its module registers, got 'elsewhere:Elsewere-v0'",
    }.items():
        ran = subprocess.run([*command, "--env", env], **given)
        assert ran.returncode == 2 and told in ran.stderr


@pytest.mark.parametrize("algo", ["a2c", "trpo", "f_ppo", "fair_ppo", "ppo_lstm"])
def test_a_model_of_another_algorithm_is_refused(tmp_path, algo):
    PPO("MlpPolicy", "CartPole-v1", **ROLLOUTS).save(tmp_path / "cart.zip")
    with pytest.raises(InputError, match=rf"algo must be ppo, which saved '.*cart\.zip', got '{algo}'$"):
        evaluate_file(tmp_path / "cart.zip", algo, "CartPole-v1")


PAIRS = {"f_ppo": LENDING, "ppo_lagrangian": LENDING, "fair_ppo": "sb3_fair/AllelopathicHarvest-All-v0"}
PAIRS |= dict.fromkeys(("fair_qcm", "tabular_fair_qcm"), "sb3_fair/Doughnut-Small-v0")


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_algorithm_knows_its_models_by_their_attributes(tmp_path, algo):
    with built(make_plan(algo, PAIRS.get(algo, SMALL)), "cpu") as model:
        model.save(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as file:
        attributes = json.loads(file.read("data"))
    assert which_saved(attributes) == [algo]


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"model must be a \.zip that ppo saved"):
        evaluate_file(tmp_path / "none.zip", "ppo", SMALL)
    with pytest.raises(InputError, match="did you mean 'sb3_fair/JobHiring-v0'"):
        PPO("MlpPolicy", "CartPole-v1").save(tmp_path / "cart.zip")
        evaluate_file(tmp_path / "cart.zip", "ppo", "sb3_fair/JobHirng-v0")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("data", "{}")
    with pytest.raises(InputError, match=r"^model must be a \.zip that f_ppo saved, got '[^']*other\.zip' \(\w+: "):
        evaluate_file(tmp_path / "other.zip", "f_ppo", "CartPole-v1")
    with pytest.raises(InputError, match="audit must be left out: CartPole-v1 measures what"):
        evaluate_file(tmp_path / "cart.zip", "ppo", "CartPole-v1", audit=("SP",))
    DQN("MlpPolicy", sb3_fair.make_vec(SMALL, 1)).save(tmp_path / "dqn.zip")
    with pytest.raises(InputError, match="Observation spaces do not match"):
        evaluate_file(tmp_path / "dqn.zip", "dqn", LENDING)
    scale = tmp_path / "vecnormalize.pkl"
    VecNormalize(sb3_fair.make_vec(SMALL, 1)).save(str(scale))
    with pytest.raises(InputError, match=r"env must have the observations that .*vecnormalize\.pkl is the scale of"):
        evaluate_file(tmp_path / "dqn.zip", "dqn", LENDING)
    scale.write_bytes(b"")
    with pytest.raises(DamagedError, match=r"vecnormalize\.pkl is damaged: it is no scale"):
        evaluate_file(tmp_path / "dqn.zip", "dqn", SMALL)
