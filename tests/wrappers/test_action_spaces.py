"""Fairness MDPs with Box, MultiDiscrete and MultiBinary actions: figures, and training with PPO and PCN."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

from sb3_fair import PCN, FairPPO, PPOLagrangian
from sb3_fair.common.evaluation import evaluate_vector
from sb3_fair.fairness import FairnessSpec, group_notion
from sb3_fair.wrappers import FairMDP, Scalarise, VecChoices, VecFairMDP, VectorReward
from sb3_fair.wrappers.choices import Choices
from tests.wrappers.bank import Bank, faces

SPACES = {
    "MultiDiscrete": (spaces.MultiDiscrete([3, 2]), lambda actions: actions[:, 0] > 0),
    "MultiBinary": (spaces.MultiBinary(3), lambda actions: actions.sum(axis=1) > 1),
    "Box": (spaces.Box(-2, 2, (1,), np.float32), lambda actions: actions[:, 0] > 0),
}
"""Actions of an application, and which of them are favourable."""


class Applications(gym.Env):
    """One applicant per step, of one of two groups; the favourable decision pays."""

    def __init__(self, kind):
        self.action_space, self.favourable = SPACES[kind]
        self.observation_space = spaces.Box(0, 1, (2,), np.float32)

    def _next(self):
        self.applicant = self.np_random.random(2).astype(np.float32)
        return self.applicant

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._next(), {}

    def step(self, action):
        assert self.action_space.contains(np.asarray(action, dtype=self.action_space.dtype)), action
        reward = float(self.favourable(np.asarray(action)[None])[0])
        self.t += 1
        return self._next(), reward, False, self.t == 20, {}


def fair(env, favourable, notions=("SP",), **features):
    spec = FairnessSpec(
        group=lambda obs, info: int(obs[0] > 0.5), favourable=favourable, notions=notions, feedback=None, **features
    )
    return VectorReward(FairMDP(env, spec), ("R", *notions))


def pendulum():
    return fair(gym.make("Pendulum-v1", max_episode_steps=20), SPACES["Box"][1])


def envs(kind, **more):
    return fair(Applications(kind), SPACES[kind][1], **more)


@pytest.mark.parametrize("make", [pendulum, *(lambda kind=kind: envs(kind) for kind in SPACES)])
@pytest.mark.parametrize("algorithm", [PPO, PCN])
def test_actions_of_any_space_are_trained_on_r_and_sp(make, algorithm):
    if algorithm is PPO:
        venv = DummyVecEnv([lambda: Scalarise(make(), (1.0, 0.5))] * 2)
        model = PPO("MlpPolicy", venv, n_steps=40, batch_size=20, n_epochs=1, seed=0, device="cpu").learn(160)
    else:
        venv = DummyVecEnv([make] * 2)
        model = PCN("MlpPolicy", venv, n_fill_episodes=4, n_episodes=4, eval_freq=0, seed=0, device="cpu").learn(200)
        assert np.isfinite(model.buffer_points()).all() and model.buffer_points().shape[1] == 2
        model.set_command(model.coverage_set(2, n_commands=2)[0])
        venv = model.follow(venv)
    obs = venv.reset()
    for _ in range(20):
        obs, _, _, infos = venv.step(model.predict(obs)[0])
    assert all(-1 <= info["fairness"]["SP"] <= 0 for info in infos if info["fairness"]["SP"] is not None)


def no_cost(infos):
    return np.zeros(len(infos))


COMPARED = {"features": slice(0, 2), "low": 0, "high": 1, "sensitive": [0]}
LEARNERS = {
    "PPO": lambda venv, **more: PPO("MlpPolicy", venv, **more),
    "FairPPO": lambda venv, **more: FairPPO("MlpPolicy", venv, **more),
    "PPOLagrangian": lambda venv, **more: PPOLagrangian("MlpPolicy", venv, cost=no_cost, **more),
}


def compared(kind):
    return Scalarise(envs(kind, notions=("IF", "SP"), **COMPARED))


def multi_discrete():
    return compared("MultiDiscrete")


@pytest.mark.parametrize("kind", ["MultiDiscrete", "MultiBinary"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_notions_see_the_policy_of_actions_with_parts_in_training_and_evaluation(learner, kind):
    inner = DummyVecEnv([lambda: compared(kind)] * 2)
    venv = VecChoices(inner) if learner == "PPO" else inner
    model = LEARNERS[learner](venv, n_steps=20, batch_size=20, n_epochs=1, seed=0, device="cpu")
    if learner == "PPO":
        venv.follow(model)
    model.learn(40)
    assert inner.get_attr("probabilities_used") == ["policy"] * 2
    fresh = DummyVecEnv([lambda: compared(kind)])
    assert evaluate_vector(model, VecChoices(fresh).follow(model), 2).probabilities == "policy"
    with pytest.warns(UserWarning, match="executed actions stand for them"):
        assert evaluate_vector(model, DummyVecEnv([lambda: compared(kind)]), 1).probabilities == "executed"


def test_probabilities_of_actions_with_parts_reach_other_processes():
    inner = SubprocVecEnv([multi_discrete] * 2)
    venv = VecChoices(inner)
    model = PPO("MlpPolicy", venv, n_steps=10, batch_size=20, n_epochs=1, seed=0, device="cpu")
    venv.follow(model)
    model.learn(20)
    assert inner.get_attr("probabilities_used") == ["policy"] * 2
    venv.close()


def pays_much(actions):
    return actions[..., 0] > 0.5


@pytest.mark.parametrize("face", [0, 1])
@pytest.mark.parametrize(
    ("space", "favourable"),
    [
        (gym.spaces.Box(-1, 3, (2,), np.float64), pays_much),
        (gym.spaces.MultiDiscrete([3, 4]), pays_much),
        (gym.spaces.MultiBinary(3), pays_much),
        (gym.spaces.Discrete(3, start=-1), lambda actions: actions > 0),
        (gym.spaces.Discrete(3, start=5), (6, 7)),
    ],
)
def test_actions_of_any_space_are_favourable_or_not(space, favourable, face):
    space.seed(0)
    actions = [space.sample() for _ in range(20)]
    people = np.random.default_rng(0).random((20, 2))

    def tell(t):
        right = 1 if callable(favourable) else int(favourable[0])
        return {"group": t % 2, "features": people[t], "feedback": right}

    spec = FairnessSpec(notions=("SP", "EO", "IF"), favourable=favourable, feedback_missing="ignore")
    info = faces(lambda: Bank(space, tell), spec)[face](actions)[-1]
    stacked = np.array(actions)
    hits = favourable(stacked) if callable(favourable) else np.isin(stacked, favourable)
    parity = -abs(hits[::2].mean() - hits[1::2].mean())
    assert info["fairness"]["SP"] == info["fairness"]["EO"] == pytest.approx(parity)
    if isinstance(space, gym.spaces.Box):
        apart = np.linalg.norm(stacked[:, None] - stacked[None], axis=2) / 4 / np.sqrt(2)
    else:
        parts = stacked.reshape(20, -1)
        apart = np.sqrt((parts[:, None] != parts[None]).mean(axis=2))
    similar = np.abs(people[:, None] - people[None]).mean(axis=2)
    pairs = np.triu_indices(20, 1)
    assert info["fairness"]["IF"] == pytest.approx(-1 + (similar - apart)[pairs].mean())


@pytest.mark.parametrize("n_envs", [1, 2, 3])
def test_a_predicate_must_take_the_actions_of_all_copies(n_envs):
    spec = FairnessSpec(group=lambda obs, info: 0, favourable=lambda action: action[0] > 0.5)
    venv = VecFairMDP(DummyVecEnv([lambda: Bank(gym.spaces.Box(-1, 1, (2,)), lambda t: {})] * n_envs), spec)
    venv.reset()
    with pytest.raises(ValueError, match=r"favourable must return one bool per action .*, as lambda actions: actions"):
        venv.step(np.zeros((n_envs, 2)))


@pytest.mark.parametrize("face", [0, 1])
def test_each_entry_of_an_action_decides_on_one_of_several_people(face):
    groups = np.array([0, 1, 1])
    spec = FairnessSpec(notions=("SP",))
    actions = np.random.default_rng(1).integers(0, 2, (15, 3)).astype(np.int8)
    infos = faces(lambda: Bank(gym.spaces.MultiBinary(3), lambda t: {"group": groups}), spec)[face](list(actions))
    expected = group_notion("SP", actions=actions.ravel(), groups=np.tile(groups, 15))
    assert infos[-1]["fairness"]["SP"] == pytest.approx(expected)
    assert infos[-1]["individual"]["id"].tolist() == [42, 43, 44]


def test_own_treatment_takes_the_place_of_probabilities():
    spec = FairnessSpec(notions=("IF",), favourable=pays_much, treatment=lambda actions: np.clip(actions[:, :1], 0, 1))
    people, actions = np.zeros((4, 1)), np.array([[0.0], [1.0], [0.25], [9.0]])
    make = lambda: Bank(gym.spaces.Box(-np.inf, np.inf, (1,)), lambda t: {"features": people[t]})  # noqa: E731
    value = faces(make, spec)[0](list(actions))[-1]["fairness"]["IF"]
    paid = np.clip(actions[:, 0], 0, 1)
    assert value == pytest.approx(-1 - np.abs(paid[:, None] - paid[None])[np.triu_indices(4, 1)].mean())


@pytest.mark.parametrize(
    ("space", "favourable"),
    [
        (gym.spaces.Box(-1, 1, (2,)), pays_much),
        (gym.spaces.MultiDiscrete([2, 3]), pays_much),
        (gym.spaces.MultiBinary(2), pays_much),
        (gym.spaces.MultiBinary(2), (1,)),
    ],
)
def test_ppo_trains_on_performance_and_parity_with_actions_of_any_space(space, favourable):
    def make():
        groups = (lambda t: {"group": t % 2}) if callable(favourable) else (lambda t: {"group": np.array([0, 1])})
        env = FairMDP(Bank(space, groups), FairnessSpec(notions=("SP",), favourable=favourable))
        return Scalarise(VectorReward(env, ("R", "SP")), (1.0, 1.0))

    model = PPO("MlpPolicy", VecMonitor(DummyVecEnv([make] * 2)), n_steps=32, batch_size=32, n_epochs=1, seed=0).learn(
        128
    )
    assert -40 <= np.mean([info["r"] for info in model.ep_info_buffer]) <= 0


def test_ppo_trains_on_pendulum():
    features = {"features": slice(0, 2), "low": -1, "high": 1}
    spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0), favourable=pays_much, notions=("SP", "IF"), **features)
    env = Scalarise(VectorReward(FairMDP(gym.make("Pendulum-v1"), spec), ("R", "SP", "IF")), (1.0, 1.0, 1.0))
    PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, seed=0).learn(256)
    env.reset()
    for _ in range(199):
        figures = env.step(env.action_space.sample())[4]["fairness"]
    assert -1 <= figures["SP"] <= 0 and -2 <= figures["IF"] <= 0


@pytest.mark.parametrize("space", [gym.spaces.MultiBinary(2), gym.spaces.MultiDiscrete([3, 3])])
@pytest.mark.parametrize("favourable", [pays_much, (1,)])
def test_probabilities_of_the_parts_of_an_action_reach_the_notions(space, favourable):
    def tell(t):
        several = np.array([[0.1 * t], [0.2]]) % 1
        return {"features": several[0]} if callable(favourable) else {"features": several, "group": np.array([0, 1])}

    spec = FairnessSpec(notions=("IF", "SP") if not callable(favourable) else ("IF",), favourable=favourable)
    batched = VecFairMDP(DummyVecEnv([lambda: Bank(space, tell)]), spec)
    single = DummyVecEnv([lambda: FairMDP(Bank(space, tell), spec)])
    for inner in (batched, single):
        venv = VecChoices(inner)
        model = PPO("MlpPolicy", venv, n_steps=20, batch_size=20, n_epochs=1, seed=0)
        venv.follow(model)
        model.learn(20)
        assert inner.get_attr("probabilities_used") == ["policy"]


@pytest.mark.parametrize("face", [FairMDP, VecFairMDP])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.log([[0.5, 0.2, 0.3], [0.5, 0.5, 1.0]]), "probabilities must be finite, not negative and sum to 1"),
        (np.full((2, 3), 5.0), "probabilities must be finite, not negative and sum to 1"),
        (np.full((2, 3), np.nan), "probabilities must be finite, not negative and sum to 1"),
        (np.full((2, 4), 0.25), "probabilities must have one row of 3 numbers"),
    ],
    ids=["logarithms", "Q-values", "nan", "width"],
)
def test_probabilities_of_the_parts_of_an_action_must_be_distributions(face, rows, message):
    inner = Applications("MultiDiscrete")
    spec = FairnessSpec(features=slice(0, 2), notions=("IF",), favourable=inner.favourable)
    env = face(inner if face is FairMDP else DummyVecEnv([lambda: inner]), spec)
    env.reset()
    chosen = Choices(np.zeros((1, 2), dtype=int), rows[None])
    with pytest.raises(ValueError, match=message):
        env.step(chosen if face is VecFairMDP else chosen[0])
