"""Does the epidemic keep its rules?"""

from functools import partial

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import sb3_fair
from sb3_fair.zoo.envs.epidemic import picture as epidemic_picture
from sb3_fair.zoo.envs.epidemic.world import EpidemicWorld
from sb3_fair.zoo.envs.world import WorldEnv
from tests.zoo.forms import begun

HUB = {"initial_infected": (0,), "burn_in": 1}
NOBODY = 34

started = partial(begun, EpidemicWorld)


def put(world, infected=(), recovered=()):
    """All copies get this state; the others are susceptible."""
    world.infected[:] = np.isin(np.arange(world.nodes), infected)
    world.susceptible[:] = ~np.isin(np.arange(world.nodes), [*infected, *recovered])
    return world


def states(obs, columns=4):
    """(n, nodes, columns)"""
    return obs.reshape(len(obs), -1, columns)


def within_errors(values, expected, digit=None):
    """Three standard errors; with a last ``digit``, ``expected`` is printed, and the mean of as many values itself."""
    errors, rounding = (3, 0) if digit is None else (3 * np.sqrt(2), digit / 2)
    assert abs(np.mean(values) - expected) <= errors * np.std(values) / np.sqrt(len(values)) + rounding


def test_an_episode_begins_with_one_random_node_infected():
    obs = states(EpidemicWorld(4000).reset(np.arange(4000), [np.random.default_rng(i) for i in range(4000)]))
    assert_array_equal(obs.sum(axis=1), [[33, 1, 0, 0]] * 4000)
    counts = obs[..., 1].sum(axis=0)
    assert ((counts - 4000 / 34) ** 2 / (4000 / 34)).sum() < 66  # chi-square with 33 degrees of freedom: p = 0.0006
    several = started(50, initial_infected=5).infected
    assert_array_equal(several.sum(axis=1), [5] * 50)
    assert len(np.unique(several, axis=0)) > 40
    assert_array_equal(np.flatnonzero(started(initial_infected=[3, 1]).infected[0]), [1, 3])


def test_the_burn_in_infects_half_of_the_neighbours_of_the_hub_and_counts_nothing():
    world = started(2000, seed=20_000, **HUB)
    numbers = world.infected.sum(axis=1)
    within_errors(numbers, 1 - 0.005 + 16 * 0.5)
    assert not world.infected[:, 1:][:, world.adjacency[0, 1:] == 0].any()
    assert_array_equal(world.massage()["new_infections"], np.zeros((2000, 2)))
    assert not world.time.any() and not world.vaccinated.any() and not world.d_s.any()


@pytest.mark.parametrize("node, infected, probability", [(11, [0], 0.5), (12, [0, 3], 0.75), (17, [0, 1], 0.75)])
def test_infection_follows_the_number_of_infected_neighbours(node, infected, probability):
    world = put(started(3000), infected)
    world.step(np.full(3000, NOBODY))
    within_errors(world.infected[:, node], probability)


def test_three_infected_neighbours_infect_with_seven_eighths_and_none_never():
    world = put(started(3000, infection_probability=0.5), [0, 1, 2])
    *_, record = world.step(np.full(3000, NOBODY))
    neighbours = record["individual"]["features"][0, :, 1]
    assert neighbours[3] == neighbours[7] == neighbours[13] == 3
    within_errors(world.infected[:, [3, 7, 13]].ravel(), 0.875)
    assert not world.infected[:, neighbours == 0].any()


@pytest.mark.parametrize("tau, share", [(0, 0.0), (1, 1.0)])
def test_infection_may_be_impossible_or_certain(tau, share):
    world = put(started(500, infection_probability=tau, recovery_probability=0), [33])
    *_, record = world.step(np.full(500, NOBODY))
    exposed = record["individual"]["features"][0, :, 1] > 0
    assert exposed.sum() == 17
    assert (world.infected[:, exposed] == share).all() and world.infected[:, 33].all()


@pytest.mark.parametrize("tau", [0, 1e-9, 1e-6, 0.5, 1])
def test_an_infection_next_to_impossible_or_certain_is_as_likely_as_is_said(tau):
    contagion = started(infection_probability=tau).tapes.derive
    for neighbours in (1, 3):
        infection = -np.expm1(neighbours * np.log1p(-tau)) if tau < 1 else 1.0
        uniforms = np.array([1e-20, 1e-12, 0.999 * infection, 1.001 * infection, 1 - 2.0**-53])
        uniforms = uniforms[(uniforms > 0) & (uniforms < 1)]
        assert_array_equal(neighbours > contagion(uniforms).withstands, uniforms < infection)


def test_only_those_infected_before_recover():
    world = put(started(4000, recovery_probability=0.1), [0, 1])
    world.step(np.full(4000, NOBODY))
    recovered = ~(world.susceptible | world.infected)
    within_errors(recovered[:, :2].ravel(), 0.1)
    assert not recovered[:, 2:].any()
    world = put(started(100, infection_probability=1, recovery_probability=1), [0])
    world.step(np.full(100, NOBODY))
    assert world.infected[:, 1].all() and not world.infected[:, 0].any()


def test_the_immune_never_change_and_everybody_is_in_one_state():
    world, rng = started(200, **HUB), np.random.default_rng(0)
    before = np.zeros((200, 34), dtype=bool)
    for _ in range(20):
        obs, reward, *_, record = world.step(rng.integers(0, 35, 200))
        shown = states(obs)
        assert_array_equal(shown[..., :3].sum(axis=2), np.ones((200, 34)))
        immune = shown[..., 2].astype(bool)
        assert (immune | ~before).all()
        assert_allclose(reward, 1 - shown[..., 1].mean(axis=1), rtol=1e-6)
        assert_allclose(record["fairness"]["proportions"].sum(axis=2), 1)
        before = immune
    assert before.any(axis=1).mean() > 0.9


def test_treatment_comes_before_the_spread():
    world = put(started(300, infection_probability=1), infected=[0], recovered=[2])
    obs, *_, record = world.step(np.repeat([1, 0, 2], 100))  # susceptible, infected, immune
    shown = states(obs)
    assert (shown[:100, 1, 2] == 1).all()
    assert (shown[100:, 1, 1] == 1).all() and (shown[100:200, 0, 1] == 1).mean() > 0.95
    assert_array_equal(record["fairness"]["wasted"], np.repeat([0, 1, 1], 100))
    assert_array_equal(record["fairness"]["vaccines"], np.repeat([[1, 0], [1, 0], [0, 1]], 100, axis=0))
    world = put(started(2, count_wasted=False, infection_probability=0), infected=[0])
    *_, record = world.step(np.array([0, 1]))
    assert_array_equal(record["fairness"]["vaccines"], [[0, 0], [1, 0]])
    assert_array_equal(record["fairness"]["wasted"], [1, 0])


def test_a_vaccine_shows_in_the_own_row_and_nobody_in_none():
    world = started(3, infection_probability=0)
    obs, *_ = world.step(np.array([0, 33, NOBODY]))
    given = states(obs)[..., 3]
    assert_array_equal(given, [np.eye(34)[0], np.eye(34)[33], np.zeros(34)])
    obs, *_ = world.step(np.array([5, NOBODY, NOBODY]))
    assert_array_equal(states(obs)[..., 3].sum(axis=1), [2, 1, 0])
    assert not states(world.reset(np.arange(3)))[..., 3].any()


def test_the_fourth_column_may_be_left_out():
    with_it, without = started(5, **HUB), started(5, observe_vaccinated=False, **HUB)
    assert with_it.observation_space.shape == (136,) and without.observation_space.shape == (102,)
    actions = np.arange(5)
    assert_array_equal(states(with_it.step(actions)[0])[..., :3], states(without.step(actions)[0], 3))


def test_figures_after_a_step_are_the_formulas():
    world = put(started(400), infected=[0, 33], recovered=[5])
    _, _, _, _, record = world.step(np.full(400, 8))
    caught = record["individual"]["feedback"] == 1
    first = world.communities == 0
    infections = np.stack([caught[:, first].sum(axis=1), caught[:, ~first].sum(axis=1)], axis=1)
    figures = record["fairness"]
    assert_array_equal(figures["new_infections"], infections)
    assert_array_equal(figures["vaccines"], [[0, 1]] * 400)
    assert_allclose(figures["d_s"], 1 / (infections[:, 1] + 1))
    for code, members in enumerate((first, ~first)):
        for state, mask in enumerate((world.susceptible, world.infected, ~world.susceptible & ~world.infected)):
            assert_allclose(figures["proportions"][:, code, state], mask[:, members].mean(axis=1))
    shares = figures["proportions"]
    assert_allclose(figures["d_l_next"], np.linalg.norm(shares[:, 0] - shares[:, 1], axis=1))
    counts = shares * np.array([[15], [19]])
    assert_allclose(figures["d_l_counts"], np.linalg.norm(counts[:, 0] - counts[:, 1], axis=1))


def test_disparity_is_measured_before_and_after_each_step():
    world, rng = started(30, distance="w1", **HUB), np.random.default_rng(1)
    d_s, d_l = np.zeros(30), world.d_l.copy()
    assert d_l.min() > 0
    for _ in range(20):
        *_, record = world.step(rng.integers(0, 35, 30))
        figures = record["fairness"]
        assert_array_equal(figures["d_s_prev"], d_s)
        assert_array_equal(figures["d_l"], d_l)
        assert_allclose(figures["d_l_next"], np.abs(np.diff(figures["proportions"], axis=1)[:, 0]).sum(axis=1) / 2)
        d_s, d_l = figures["d_s"], figures["d_l_next"]
    world.reset(np.arange(30))
    assert_array_equal(world.step(np.zeros(30, dtype=int))[4]["fairness"]["d_s_prev"], np.zeros(30))


@pytest.mark.parametrize("window", [0, 2, 7])
def test_a_window_counts_the_present_step_and_so_many_before_it(window):
    config = {"episode_length": 12, "infection_probability": 0.1, "initial_infected": 4}
    short, whole = started(20, window=window, **config), started(20, **config)
    rng, past = np.random.default_rng(0), [(np.zeros((20, 2)), np.zeros((20, 2)))]
    for step in range(1, 13):
        actions = rng.integers(0, 35, 20)
        staying = short.massage()
        figures, all_so_far = (world.step(actions)[4]["fairness"] for world in (short, whole))
        past.append((all_so_far["vaccines"], all_so_far["new_infections"]))
        for place, name in enumerate(("vaccines", "new_infections")):
            assert_array_equal(figures[name], past[step][place] - past[max(step - window - 1, 0)][place])
            assert_array_equal(staying[name], past[step - 1][place] - past[max(step - window - 1, 0)][place])
    short.reset(np.array([3]))
    staying = short.massage()
    assert staying["vaccines"][3].sum() == 0 and (window == 0 or staying["vaccines"].sum() > 0)


def test_individuals_are_those_who_could_be_infected():
    env = WorldEnv(EpidemicWorld, infection_probability=0.3, **HUB)
    obs, info = env.reset(seed=4)
    for action in (5, 5, NOBODY, 8, 20):
        present = states(obs[None])[0, :, 0] == 1
        assert_array_equal(info["massage"]["susceptible"], present)
        infected = states(obs[None])[0, :, 1]
        obs, *_, info = env.step(action)
        people = info["individual"]
        assert set(people) == {"group", "features", "action", "feedback"}
        nodes = np.flatnonzero(present)
        assert_array_equal(people["group"], env.get_wrapper_attr("communities")[nodes])
        assert_array_equal(people["action"], nodes == action)
        adjacency = env.get_wrapper_attr("adjacency")
        assert_array_equal(people["features"], np.stack([adjacency.sum(0), adjacency @ infected], axis=1)[nodes])
        now = states(obs[None])[0, nodes, 1]
        assert [*people["feedback"]] == [
            None if node == action else ill for node, ill in zip(nodes, now.tolist(), strict=True)
        ]
        assert_allclose(env.fairness_spec.select(people["features"]), people["features"] / 17)  # the most neighbours


def test_an_episode_is_truncated_after_its_length():
    env = WorldEnv(EpidemicWorld, episode_length=3)
    for seed in (0, None):
        env.reset(seed=seed)
        assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_detail_tells_the_numbers_of_each_community():
    world = put(started(2, detail=True, infection_probability=0), infected=[0, 1], recovered=[2])
    assert_array_equal(world.step(np.array([3, NOBODY]))[4]["detail"]["groups"][1], [[13, 2, 0], [18, 0, 1]])
    assert "detail" not in started().step(np.array([0]))[4]


def play(rule, n=2000, when_exhausted=NOBODY, **config):
    """Rewards (steps, n) and the world after episodes of 20 steps under a rule, and the disparity at the start."""
    world, rng = started(n, seed=20_000, **config), np.random.default_rng(0)
    at_reset, rewards = world.d_l.copy(), []
    for _ in range(20):
        rows = world.rules[rule](world)
        assert_allclose(rows.sum(axis=1), 1)
        actions = (rows.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        _, reward, _, truncated, record = world.step(np.where(actions == NOBODY, when_exhausted, actions))
        rewards.append(reward)
        assert when_exhausted != NOBODY or not record["fairness"]["wasted"].any()
    assert truncated.all()
    return np.array(rewards), world, at_reset


RULES = [  # start, rule, when nobody is susceptible; last reward, mean reward, d_s, d_l at reset and at the end
    (HUB, "highest-degree", NOBODY, 0.283, 0.268, 0.70, 0.59, 0.457),
    (HUB, "highest-degree", 33, 0.283, 0.268, 1.83, 0.59, 0.457),
    (HUB, "infected-neighbours", NOBODY, 0.211, 0.198, 0.19, 0.59, 0.178),
    (HUB, "random", NOBODY, 0.196, 0.181, 0.19, 0.59, 0.203),
    (HUB, "nobody", NOBODY, 0.090, 0.081, 0.0, 0.59, 0.112),
    ({}, "highest-degree", NOBODY, 0.558, 0.581, 4.81, 0.083, 0.633),
    ({}, "infected-neighbours", NOBODY, 0.592, 0.613, 2.85, 0.083, 0.539),
    ({}, "random", NOBODY, 0.269, 0.320, 0.46, 0.083, 0.261),
    ({}, "nobody", NOBODY, 0.081, 0.160, 0.0, 0.083, 0.106),
]


@pytest.mark.parametrize("start, rule, when_exhausted, last, mean, d_s, at_reset, d_l", RULES)
def test_fixed_policies_do_as_well_as_is_known(start, rule, when_exhausted, last, mean, d_s, at_reset, d_l):
    rewards, world, first = play(rule, when_exhausted=when_exhausted, **start)
    within_errors(rewards[-1], last, 0.001)
    within_errors(rewards.mean(axis=0), mean, 0.001)
    within_errors(world.d_s, d_s, 0.01)
    within_errors(first, at_reset, 0.01)
    within_errors(world.d_l, d_l, 0.001)


def test_rules_take_the_lowest_number_of_several_and_nobody_if_all_are_ill():
    world = put(started(), infected=[33])
    assert world.rules["infected-neighbours"](world).argmax() == 8  # the first neighbour of node 33
    assert world.rules["highest-degree"](world).argmax() == 0
    assert world.rules["random"](world).argmin() == 33
    put(world, infected=range(34))
    assert all(rule(world).argmax() == NOBODY and rule(world).sum() == 1 for rule in world.rules.values())


def test_a_disconnected_graph_with_three_communities_runs():
    graph = nx.disjoint_union_all([nx.complete_graph(3), nx.star_graph(4), nx.path_graph(2)])
    world = started(40, graph=graph, communities=["a"] * 3 + ["b"] * 5 + ["c"] * 2, infection_probability=0.9)
    assert world.fairness_spec.group_names == ("a", "b", "c")
    ill = world.infected.copy()
    for _ in range(20):
        *_, record = world.step(np.full(40, world.nodes))
    figures = record["fairness"]
    shares = figures["proportions"]
    gaps = [np.linalg.norm(shares[:, i] - shares[:, j], axis=1) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert_allclose(figures["d_l_next"], np.max(gaps, axis=0))
    codes = world.communities
    assert all((~world.susceptible[copy] <= (codes == codes[ill[copy]][0])).all() for copy in range(40))


def test_a_large_sparse_graph_runs_and_is_the_same_epidemic():
    nodes = 10_000
    graph = nx.to_scipy_sparse_array(nx.random_regular_graph(4, nodes, seed=0))
    world = started(2, graph=graph, communities=np.arange(nodes) % 3, initial_infected=50, burn_in=2)
    assert sparse.issparse(world.adjacency)
    for _ in range(3):
        expected = world.infected.astype(int) @ graph
        obs, _, _, _, record = world.step(np.array([0, nodes]))
        assert_array_equal(record["individual"]["features"][..., 1], expected)
    assert obs.shape == (2, 4 * nodes) and world.infected.sum(axis=1).min() > 200


def test_the_ids_are_the_random_and_the_hub_start():
    random, hub = (sb3_fair.make_vec(f"sb3_fair/EpidemicControl{name}-v0", 30, seed=0) for name in ("", "-Hub"))
    random.reset()
    hub.reset()
    assert (random.get_attr("infected")[0].sum(axis=1) == 1).all()
    assert hub.get_attr("infected")[0][:, 0].mean() > 0.9 and hub.get_attr("infected")[0].sum(axis=1).mean() > 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"infection_probability": 1.5}, "infection_probability must be in"),
        ({"recovery_probability": -0.1}, "recovery_probability must be in"),
        ({"initial_infected": 0}, "initial_infected must be a positive integer or a sequence .*, got 0"),
        ({"initial_infected": 35}, "initial_infected must be at most the 34 nodes, got 35"),
        ({"initial_infected": [34]}, "each of initial_infected must be a node below 34, got 34"),
        ({"initial_infected": [2, 2]}, "initial_infected must name different nodes"),
        ({"initial_infected": []}, "initial_infected must name different nodes"),
        ({"initial_infected": "hub"}, "initial_infected must be a positive integer or .*, got 'hub'"),
        ({"burn_in": -1}, "burn_in must be a non-negative integer, got -1"),
        ({"episode_length": 0}, "episode_length must be a positive integer, got 0"),
        ({"window": -1}, "window must be a non-negative integer or None, got -1"),
        ({"distance": "l1"}, "distance must be one of"),
        ({"count_wasted": 2}, "count_wasted must be True or False"),
        ({"graph": nx.DiGraph([(0, 1)])}, "graph must be undirected"),
    ],
)
def test_settings_that_are_not_allowed_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        EpidemicWorld(1, **settings)


def test_a_picture_shows_the_network_and_who_is_ill(monkeypatch):
    env = WorldEnv(EpidemicWorld, render_mode="rgb_array", **HUB)
    env.reset(seed=0)
    first = env.render()
    layout = env.get_wrapper_attr("layout")
    env.step(NOBODY)
    assert first.shape == (400, 800, 3) and first.dtype == np.uint8 and (env.render() != first).any()
    assert env.get_wrapper_attr("layout") is layout and layout[1].shape == (78, 2)
    monkeypatch.setattr(epidemic_picture, "FORCES", 33)
    large = started().layout
    assert large[0].shape == (34, 2) and (large[0] != layout[0]).any()
