"""Do the baselines of lending, attention and epidemics follow their rules, wherever they act?"""

from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from sb3_fair import make_vec
from sb3_fair.f_ppo.agents import EqualOpportunityAgent, MaxAgent, MaxProfitAgent, RandomAgent
from sb3_fair.f_ppo.equal_opportunity import equal_opportunity
from tests.pcn.chain import Chain

LENDING = "sb3_fair:sb3_fair/Lending-v0"
REPAYS = (0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7)
START = np.array([[0, 0.1, 0.1, 0.2, 0.3, 0.3, 0], [0.1, 0.1, 0.2, 0.3, 0.3, 0, 0]])


def applicants(groups, scores, counts=None):
    """Observations of applicants with scores from 1 on, after these counts (2, 7) in the window."""
    n = len(groups)
    histogram = np.zeros((n, 14)) if counts is None else np.tile(np.ravel(counts), (n, 1))
    return np.hstack([np.eye(7)[np.array(scores) - 1], np.eye(2)[groups], np.zeros((n, 2)), histogram])


class Simulators:
    """As much of a VecEnv as agents ask for: attributes shared by all copies."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,))

    def __init__(self, action_space=None, rules=("max-profit",), **attributes):
        self.attributes, self.action_space = {"world": SimpleNamespace(rules=rules), **attributes}, action_space

    def has_attr(self, name):
        return name in self.attributes

    def get_attr(self, name, indices=None):
        return [self.attributes[name]] * 3


def bank(**changes):
    settings = {"repay_probability": REPAYS, "group_probability": (0.5, 0.5), "loan_amount": 1.0, "interest_rate": 1.0}
    return SimpleNamespace(**{**settings, **changes})


def test_equal_opportunity_grants_with_the_probabilities_of_the_best_rate():
    venv = Simulators(config=bank(), distributions=np.tile(START, (2000, 1, 1)))
    agent = EqualOpportunityAgent(seed=0).bind(venv)
    at_the_cut = applicants([1] * 2000, [3] * 2000)
    actions, state = agent.predict(at_the_cut)
    assert state is None
    assert actions.mean() == pytest.approx(0.7274, abs=0.03)
    np.testing.assert_allclose(actions.probabilities[0], [1 - 0.7274, 0.7274], atol=5e-5)
    groups, scores = np.repeat([0, 1], 7), np.tile(np.arange(1, 8), 2)
    venv.attributes["distributions"] = np.tile(START, (14, 1, 1))
    sure = agent.predict(applicants(groups, scores))[0].probabilities[:, 1]
    np.testing.assert_allclose(sure, [0, 0, 0, 1, 1, 1, 1, 0, 0, 0.7274, 1, 1, 1, 1], atol=5e-5)


def test_equal_opportunity_follows_the_distributions_of_each_copy():
    rng = np.random.default_rng(0)
    distributions = rng.dirichlet(np.ones(7), (5, 2))
    venv = Simulators(config=bank(), distributions=distributions)
    agent = EqualOpportunityAgent().bind(venv)
    obs = applicants([0] * 5, [4] * 5)
    for _ in range(4):
        expected = equal_opportunity(venv.attributes["distributions"], REPAYS, (0.5, 0.5)).accept
        np.testing.assert_array_equal(agent.acceptance(obs), expected)
        distributions = distributions.copy()
        distributions[rng.integers(5)] = rng.dirichlet(np.ones(7), 2)
        venv.attributes["distributions"] = distributions


def test_equal_opportunity_knows_the_scores_it_has_seen():
    counts = np.array([[0, 1, 1, 2, 3, 3, 0], [1, 1, 2, 3, 3, 0, 0]]) / 21
    agent = EqualOpportunityAgent("histogram", seed=0).bind(Simulators(config=bank()))
    np.testing.assert_allclose(agent.acceptance(applicants([0], [1], counts))[0, 1, 2], 0.7274, atol=5e-5)
    nobody = applicants([0], [1])
    np.testing.assert_allclose(agent.distributions(nobody), 1 / 7)
    assert agent.predict(nobody)[0].tolist() == [0]


def test_what_is_missing_is_told():
    with pytest.raises(ValueError, match="source must be one of"):
        EqualOpportunityAgent("guess")
    for agent in (EqualOpportunityAgent(), MaxProfitAgent(), MaxAgent(), RandomAgent()):
        with pytest.raises(ValueError, match=r"must be bound to the environments it acts in"):
            agent.predict(applicants([0], [1]))
    with pytest.raises(ValueError, match="needs observations of 25 numbers"):
        EqualOpportunityAgent("histogram").bind(Simulators(config=bank())).predict(applicants([0], [1])[:, :11])
    with pytest.raises(ValueError, match=r"bound to \(2\), got 1"):
        venv = Simulators(config=bank(), distributions=np.tile(START, (2, 1, 1)))
        EqualOpportunityAgent().bind(venv).predict(applicants([0], [1]))
    for agent in (EqualOpportunityAgent(), MaxProfitAgent()):
        with pytest.raises(ValueError, match="vec_env must hold environments of lending"):
            agent.bind(Simulators(rules=()))
    with pytest.raises(ValueError, match="vec_env must hold environments of epidemic control"):
        MaxAgent().bind(Simulators())


@pytest.mark.parametrize("interest_rate", [0.5, 1.0])
def test_max_profit_grants_what_pays(interest_rate):
    venv = make_vec(LENDING, n_envs=200, seed=0, interest_rate=interest_rate)
    agent, obs = MaxProfitAgent().bind(venv), venv.reset()
    actions = agent.predict(obs)[0]
    pays = np.array(REPAYS) * interest_rate > 1 - np.array(REPAYS)
    np.testing.assert_array_equal(actions, pays[obs[:, :7].argmax(axis=1)])
    one, _ = MaxProfitAgent().bind(make_vec(LENDING, seed=0)).predict(obs[0])
    assert np.shape(one) == ()


@pytest.mark.parametrize("vec_env_cls", [DummyVecEnv, SubprocVecEnv])
def test_equal_opportunity_knows_single_environments_as_well_as_batches(vec_env_cls):
    """Also in other processes, whose distributions change there."""
    batched = make_vec(LENDING, n_envs=2, seed=4)
    forked = {"start_method": "fork"} if vec_env_cls is SubprocVecEnv else {}
    single = make_vec_env(LENDING, 2, seed=4, vec_env_cls=vec_env_cls, vec_env_kwargs=forked)
    agents = [EqualOpportunityAgent(seed=0).bind(venv) for venv in (batched, single)]
    seen = [venv.reset() for venv in (batched, single)]
    for _ in range(25):
        actions = [agent.predict(obs)[0] for agent, obs in zip(agents, seen, strict=True)]
        np.testing.assert_array_equal(actions[0].probabilities, actions[1].probabilities)
        seen = [venv.step(actions[0])[0] for venv in (batched, single)]
    single.close()


def test_the_rules_of_the_max_agent_have_names():
    with pytest.raises(ValueError, match=r"rule must be one of .* \(did you mean 'degree'\?\)"):
        MaxAgent("degrees")
    with pytest.raises(ValueError, match="when_exhausted must be one of"):
        MaxAgent(when_exhausted="first")


def test_the_hub_is_treated_when_nobody_else_can_be():
    venv = make_vec("sb3_fair/EpidemicControl-v0", n_envs=40, seed=0)
    agents, obs, exhausted = [MaxAgent(when_exhausted=who).bind(venv) for who in ("nobody", "hub")], venv.reset(), 0
    for _ in range(20):
        nobody, hub = (agent.predict(obs)[0] for agent in agents)
        nodes = venv.get_attr("world")[0].nodes
        np.testing.assert_array_equal(hub, np.where(nobody == nodes, venv.get_attr("degrees")[0].argmax(), nobody))
        exhausted += (nobody == nodes).sum()
        obs = venv.step(hub)[0]
    assert exhausted


@pytest.mark.parametrize(
    ("rule", "agent"), [("infected-neighbours", MaxAgent()), ("highest-degree", MaxAgent("degree"))]
)
def test_the_max_agent_does_what_the_rule_of_the_scenario_does(rule, agent):
    venv = make_vec("sb3_fair/EpidemicControl-v0", n_envs=40, seed=0)
    world = venv.get_attr("world")[0]
    obs = venv.reset()
    agent.bind(venv)
    for _ in range(15):
        actions = agent.predict(obs)[0]
        np.testing.assert_array_equal(np.eye(35)[actions], world.rules[rule](world))
        obs = venv.step(actions)[0]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, start=2),
        spaces.MultiDiscrete([2, 5]),
        spaces.MultiBinary(3),
        spaces.Box(-1, np.array([1, 3], dtype=np.float32)),
    ],
    ids=["discrete", "multi-discrete", "multi-binary", "box"],
)
def test_random_actions_are_all_over_the_space(space):
    agent = RandomAgent(seed=0).bind(Simulators(space))
    actions, _ = agent.predict(np.zeros((4000, 2)))
    assert all(space.contains(action) for action in actions[:50])
    if isinstance(space, spaces.Box):
        np.testing.assert_allclose(actions.mean(axis=0), [0, 1], atol=0.1)
    else:
        for column in actions.reshape(4000, -1).T:
            _, counts = np.unique(column, return_counts=True)
            np.testing.assert_allclose(counts / 4000, 1 / len(counts), atol=0.03)
            assert len(counts) in (2, 3, 5)


@pytest.mark.parametrize(
    "name", ["AttentionAllocation-v0", "AttentionAllocation-Units-v0", "AttentionAllocation-Discrete-v0"]
)
def test_random_attention_sends_every_unit_anywhere(name):
    venv = make_vec(f"sb3_fair/{name}", n_envs=4000, seed=0)
    agent = RandomAgent(seed=1).bind(venv)
    _, _, _, infos = venv.step(agent.predict(venv.reset())[0])
    units = infos[0].record["fairness"]["allocation"]
    # numbers of units at a location are binomial(6, 1/5)
    np.testing.assert_allclose(units.mean(axis=0), 6 / 5, atol=0.06)
    np.testing.assert_allclose(units.var(axis=0), 6 / 5 * 4 / 5, atol=0.1)


def test_random_units_stay_inside_narrow_bounds():
    venv = make_vec("sb3_fair/AttentionAllocation-v0", n_envs=50, seed=0, logit_bound=1.0)
    agent = RandomAgent(seed=1).bind(venv)
    assert all(map(venv.action_space.contains, agent.predict(venv.reset())[0]))


def test_random_vaccines_are_not_wasted():
    venv = make_vec("sb3_fair/EpidemicControl-v0", n_envs=300, seed=0)
    agent, obs, given = RandomAgent(seed=1).bind(venv), venv.reset(), set()
    for _ in range(20):
        actions = agent.predict(obs)[0]
        susceptible = obs.reshape(300, 34, 4)[..., 0] > 0
        able = np.concatenate([susceptible, ~susceptible.any(axis=1, keepdims=True)], axis=1)
        assert able[np.arange(300), actions].all()
        given.update(np.asarray(actions).tolist())
        obs = venv.step(actions)[0]
    assert given == set(range(35))


def test_same_seed_same_random_actions():
    venv = Simulators(spaces.Discrete(50))
    one, same, other = (RandomAgent(seed).bind(venv).predict(np.zeros((20, 1)))[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_any_environment_has_random_actions():
    venv = make_vec_env("CartPole-v1", 2)
    assert set(RandomAgent(seed=0).bind(venv).predict(np.zeros((100, 4)))[0].tolist()) == {0, 1}
    assert RandomAgent(seed=0).bind(venv).predict(np.zeros(4))[0] in (0, 1)


def test_observations_may_be_lists():
    venv = make_vec(LENDING, 3, seed=0)
    obs = venv.reset()
    agent = EqualOpportunityAgent(seed=0).bind(venv)
    assert len(agent.predict(obs.tolist())[0]) == 3


@pytest.mark.parametrize("kind", ["box", "discrete", "dict"])
def test_there_are_as_many_random_actions_as_observations(kind):
    venv = DummyVecEnv([lambda: Chain(kind)] * 3)
    agent = RandomAgent(seed=0).bind(venv)
    obs = venv.reset()
    for _ in range(5):
        actions, _ = agent.predict(obs)
        assert np.shape(actions) == (3,)
        obs = venv.step(actions)[0]
