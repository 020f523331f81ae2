"""Is what an evaluation reports what happened, for any agent, and does it leave the agent as it was?"""

import csv
import json
from itertools import permutations

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from sb3_fair import FPPO, PCN, make_vec
from sb3_fair.f_ppo.agents import EqualOpportunityAgent, MaxProfitAgent, RandomAgent
from sb3_fair.f_ppo.evaluated import summarise_seeds, write_summary, write_table
from sb3_fair.f_ppo.evaluation import evaluate_fairness
from sb3_fair.f_ppo.legacy_cloud import cloud_distance, steps_of
from sb3_fair.fairness import FairnessSpec
from sb3_fair.fairness.disparity.parity import DemographicParity
from sb3_fair.fairness.intervals import mean_and_interval
from sb3_fair.wrappers.fmdp import FairMDP
from sb3_fair.zoo.envs.lending.measures import LendingMeasures
from tests.models import Always

LENDING = "sb3_fair/Lending-v0"


class Watched:
    """An agent whose observations and actions are noted."""

    def __init__(self, agent):
        self.agent, self.seen, self.done = agent, [], []

    def bind(self, venv):
        self.agent.bind(venv)
        return self

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        actions, state = self.agent.predict(observation, state, episode_start, deterministic)
        self.seen.append(observation)
        self.done.append(np.asarray(actions))
        return actions, state


def cart_pole(**settings):
    spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0), groups=(0, 1))
    return FairMDP(gym.make("CartPole-v1", **settings), spec)


gym.register("tests/FairCartPole-v0", entry_point=cart_pole)


@pytest.mark.parametrize(
    "env_id", [LENDING, "sb3_fair:sb3_fair/AttentionAllocation-v0", "sb3_fair/EpidemicControl-Hub-v0"]
)
def test_figures_are_those_of_single_environments_under_the_same_actions(env_id):
    agent = Watched(RandomAgent())
    found = evaluate_fairness(agent, env_id, n_episodes=3, n_steps=12, seed=5)
    assert found.seeds == (5, 6, 7)
    assert {"utility", "short_term", "long_term"} <= set(found.figures)
    for copy, seed in enumerate(found.seeds):
        env = gym.make(env_id, episode_length=12)
        env.reset(seed=seed)
        for step in range(12):
            action = agent.done[step][copy]
            _, reward, _, truncated, info = env.step(action if np.ndim(action) else int(action))
            told = {**info["fairness"], "reward": reward}
            for figure, key in found.keys.items():
                assert found.figures[figure][copy, step] == told[key]
        assert truncated
    assert found.lengths.tolist() == [12] * 3


def test_episodes_do_not_depend_on_how_many_are_played_at_once():
    together = evaluate_fairness(MaxProfitAgent(), LENDING, 5, 20, seed=1)
    in_turn = evaluate_fairness(MaxProfitAgent(), LENDING, 5, 20, seed=1, n_envs=2)
    for figure in together.figures:
        np.testing.assert_array_equal(together.figures[figure], in_turn.figures[figure])


@pytest.mark.parametrize("agent", [RandomAgent(), EqualOpportunityAgent("histogram")])
def test_same_seed_same_figures(agent):
    one, same, other = (evaluate_fairness(agent, LENDING, 3, 30, seed=seed) for seed in (2, 2, 3))
    np.testing.assert_array_equal(one.figures["short_term"], same.figures["short_term"])
    assert (one.figures["short_term"] != other.figures["short_term"]).any()


def test_the_gap_is_averaged_over_episodes():
    """Not the gap of averages, which is smaller since gaps go either way."""
    found = evaluate_fairness(EqualOpportunityAgent(), LENDING, 12, 60, seed=0, legacy_cloud=True)
    gaps = found.figures["short_term"]
    np.testing.assert_allclose(found.curve("short_term").mean, [gaps[:, step].mean() for step in range(60)], rtol=1e-6)
    at_steps = found.curve("short_term").mean[found.legacy.steps - 1]
    assert (found.legacy.gap_of_mean_tpr <= at_steps + 1e-7).all()
    assert found.legacy.gap_of_mean_tpr.mean() < 0.7 * at_steps.mean()


def test_curves_have_the_interval_of_student():
    found = evaluate_fairness(MaxProfitAgent(), LENDING, 4, 10, seed=0)
    for part, expected in zip(found.curve("long_term"), mean_and_interval(found.figures["long_term"]), strict=True):
        assert part.shape == (10,)
        np.testing.assert_array_equal(part, expected)


def test_statistics_of_each_episode():
    found = evaluate_fairness(MaxProfitAgent(), LENDING, 4, 30, seed=0)
    figures = {name: values.astype(np.float64) for name, values in found.figures.items()}
    fair_below = float(np.median(figures["short_term"][0, 10:19]))  # the gap of some step: that one is not fair
    each = found.per_episode(after=10, fair_below=fair_below)
    for figure, values in figures.items():
        np.testing.assert_allclose(each[figure]["final"], values[:, -1])
        np.testing.assert_allclose(each[figure]["mean"], values[:, 10:].mean(axis=1))
        np.testing.assert_allclose(each[figure]["area"], values.sum(axis=1))
    share = (figures["short_term"][:, 10:] < fair_below).mean(axis=1)
    np.testing.assert_allclose(each["short_term"]["share_fair"], share)
    assert "share_fair" not in each["utility"]
    np.testing.assert_array_equal(
        found.summary(10, fair_below)["utility"]["final"], mean_and_interval(each["utility"]["final"])
    )
    with pytest.raises(ValueError, match=r"after must be a number of steps from 0 to 29, got 30"):
        found.summary(after=30)


def test_an_episode_that_ends_early_has_no_figures_afterwards():
    found = evaluate_fairness(Always(1), LENDING, 20, 40, seed=0, starting_cash=2.0)
    early = found.lengths < 40
    assert early.any() and not early.all()
    for values in found.figures.values():
        np.testing.assert_array_equal((~np.isnan(values)).sum(axis=1), found.lengths)
    np.testing.assert_array_equal(found.per_episode()["utility"]["final"][early], 0.0)
    cash = found.figures["utility"]
    np.testing.assert_allclose(found.per_episode()["utility"]["area"], np.nansum(cash, axis=1))
    np.testing.assert_allclose(found.curve("utility").mean[-1], cash[~early, -1].mean())


def test_episodes_may_be_shorter_than_what_is_evaluated():
    found = evaluate_fairness(Always(1), LENDING, 2, 10, seed=0, episode_length=4)
    np.testing.assert_array_equal(found.lengths, 4)
    assert found.n_steps == 10


def test_training_seeds_are_summarised_by_their_means():
    evaluations = [evaluate_fairness(MaxProfitAgent(), LENDING, 3, 10, seed=seed) for seed in (0, 10, 20)]
    finals = [evaluation.summary()["utility"]["final"].mean for evaluation in evaluations]
    np.testing.assert_array_equal(summarise_seeds(evaluations)["utility"]["final"], mean_and_interval(finals))
    with pytest.raises(ValueError, match="at least one evaluation"):
        summarise_seeds([])


def test_the_table_has_every_mean(tmp_path):
    agents = {"EO": [evaluate_fairness(EqualOpportunityAgent(), LENDING, 2, 25, seed=0, legacy_cloud=True)]}
    agents["greedy"] = [evaluate_fairness(MaxProfitAgent(), LENDING, 1, 25, seed=seed) for seed in (0, 7)]
    write_table(tmp_path / "table.csv", agents, every=10)
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["agent"] for row in rows} == {"EO", "greedy"}
    chosen = {
        key: row for row in rows for key in [tuple(row[name] for name in ("agent", "training", "figure", "step"))]
    }
    mine = [row for row in rows if (row["agent"], row["training"], row["figure"]) == ("greedy", "1", "utility")]
    assert [row["step"] for row in mine] == ["10", "20", "25"]
    last = agents["EO"][0].curve("long_term")
    row = chosen["EO", "0", "long_term", "25"]
    assert [float(row[name]) for name in ("mean", "low", "high")] == [part[-1] for part in last]
    assert mine[0]["low"] == ""  # of one episode there is no interval
    assert {len(row) for row in rows} == {7} and all(None not in row.values() for row in rows)
    distance = agents["EO"][0].legacy.distance[-1]
    assert float(chosen["EO", "0", "cloud distance", "25"]["mean"]) == distance
    assert ("EO", "0", "gap of mean TPR", "25") in chosen


def test_the_summary_can_be_read_back(tmp_path):
    agents = {"greedy": [evaluate_fairness(MaxProfitAgent(), LENDING, 2, 25, seed=seed, window=50) for seed in (0, 7)]}
    write_summary(tmp_path / "summary.json", agents, after=5)
    content = json.loads((tmp_path / "summary.json").read_text())
    one = content["agents"]["greedy"]["trainings"][1]
    assert (one["env_id"], one["settings"], one["seeds"]) == (LENDING, {"window": 50}, [7, 8])
    assert one["summary"]["utility"]["final"] == [
        float(part) for part in agents["greedy"][1].summary(5)["utility"]["final"]
    ]
    expected = summarise_seeds(agents["greedy"], after=5)["short_term"]["share_fair"]
    assert content["agents"]["greedy"]["over trainings"]["short_term"]["share_fair"] == [float(p) for p in expected]
    write_summary(tmp_path / "single.json", {"greedy": agents["greedy"][:1]})
    single = json.loads((tmp_path / "single.json").read_text())["agents"]["greedy"]["over trainings"]
    assert single["utility"]["final"][1:] == [None, None]


def test_the_cloud_distance_pairs_episodes_in_the_best_way():
    groups = np.random.default_rng(0).random((5, 2, 3))
    distances = np.linalg.norm(groups[:, None, 0] - groups[None, :, 1], axis=-1)
    best = min(distances[np.arange(5), list(order)].mean() for order in permutations(range(5)))
    assert cloud_distance(groups) == pytest.approx(best)
    third = groups[:, :1] + np.array([5.0, 0, 0])
    assert cloud_distance(np.concatenate([groups, third], axis=1)) > 4


def test_the_published_measure_of_lending_begins_at_its_published_value():
    """Where a loan of the first step moves a share of 0.01, it moves the distance by 0.015 at most."""
    found = evaluate_fairness(Always(0), LENDING, 4, 700, seed=0, legacy_cloud=True)
    assert found.legacy.distance[0] == pytest.approx(0.346, abs=5e-4)
    assert (found.legacy.steps == steps_of(700)).all()
    assert (steps_of(700)[[0, -1]] == [1, 700]).all() and len(steps_of(700)) == 201
    assert steps_of(5).tolist() == [1, 2, 3, 4, 5]


def test_the_published_measures_are_of_all_chunks():
    whole, parts = (
        evaluate_fairness(MaxProfitAgent(), LENDING, 5, 8, seed=0, legacy_cloud=True, n_envs=n).legacy for n in (256, 2)
    )
    np.testing.assert_array_equal(whole.distance, parts.distance)
    np.testing.assert_array_equal(whole.gap_of_mean_tpr, parts.gap_of_mean_tpr)


def model_of(cls=PPO, venv=None, **settings):
    venv = make_vec(LENDING, n_envs=2, seed=0, window=50) if venv is None else venv
    return cls("MlpPolicy", venv, n_steps=8, batch_size=16, policy_kwargs={"net_arch": [8]}, seed=0, **settings)


def test_the_published_measures_need_the_hidden_groups():
    with pytest.raises(ValueError, match=r"legacy_cloud must be False without info\['detail'\]\['groups'\], got True"):
        evaluate_fairness(RandomAgent(), "sb3_fair/JobHiring-v0", 2, 5, legacy_cloud=True)


def test_a_model_samples_on_as_if_it_had_not_been_evaluated():
    first, second = model_of(), model_of()
    obs = first.get_env().reset()
    evaluated = []
    for model in (first, second):
        model.set_random_seed(3)
        if model is first:
            evaluated = [evaluate_fairness(model, LENDING, 2, 30, seed=1) for _ in range(2)]
        model.drawn = [model.predict(obs)[0].tolist() for _ in range(20)]
    assert first.drawn == second.drawn
    np.testing.assert_array_equal(evaluated[0].figures["utility"], evaluated[1].figures["utility"])


def test_observations_are_normalised_as_in_training():
    venv = VecNormalize(make_vec(LENDING, n_envs=4, seed=0), clip_obs=3.0)
    model = model_of(venv=venv)
    model.learn(32)
    shown = []
    predict = model.policy.predict
    model.policy.predict = lambda obs, *rest: shown.append(obs) or predict(obs, *rest)
    before = venv.obs_rms.mean.copy()
    evaluate_fairness(model, LENDING, 3, 5, seed=9)
    raw = make_vec(LENDING, n_envs=3, seed=9).reset()
    np.testing.assert_allclose(shown[0], venv.normalize_obs(raw))
    assert np.abs(shown[0] - raw).max() > 0.5
    np.testing.assert_array_equal(venv.obs_rms.mean, before)


def test_commands_join_normalised_observations_as_in_training():
    venv = VecNormalize(make_vec("sb3_fair/JobHiring-Small-v0", n_envs=2, seed=0, objectives=("R", "SP")))
    model = PCN("MlpPolicy", venv, n_fill_episodes=4, n_episodes=2, n_updates=1, eval_freq=0, seed=0, device="cpu")
    model.learn(200)
    model.set_command(model.coverage_set(n_eval_episodes=1)[0])
    assert evaluate_fairness(model, "sb3_fair/JobHiring-Small-v0", 2, 5, objectives=("R", "SP")).figures


def test_the_filter_can_be_switched_on_and_off():
    model = model_of(FPPO, reg_lambda=0)
    model.threshold = 0.9
    own = make_vec(LENDING, n_envs=2, seed=0)
    model.massage_on_predict = True
    bound = model.bind(own)
    figures = {
        massage: evaluate_fairness(model, LENDING, 4, 60, seed=0, massage=massage).figures["short_term"]
        for massage in (None, True, False)
    }
    np.testing.assert_array_equal(figures[None], figures[True])
    assert figures[True].mean() < figures[False].mean()
    assert model.massage_on_predict
    model.predict(bound.reset())  # still bound to its own environment
    with pytest.raises(ValueError, match="agent without massaging, got True"):
        evaluate_fairness(MaxProfitAgent(), LENDING, 1, 5, massage=True)
    evaluate_fairness(MaxProfitAgent(), LENDING, 1, 5, massage=False)


def test_an_agents_own_measures_are_not_what_is_reported():
    model = model_of(FPPO, reg_lambda=0, massage=False, measures=DemographicParity(window=5))
    figures = evaluate_fairness(model, LENDING, 4, 40, seed=0).figures
    model.given_measures = None
    for name, expected in evaluate_fairness(model, LENDING, 4, 40, seed=0).figures.items():
        np.testing.assert_array_equal(figures[name], expected)


def test_an_agent_stays_bound_to_its_environments():
    venv = make_vec(LENDING, n_envs=2, seed=0)
    agent = EqualOpportunityAgent().bind(venv)
    evaluate_fairness(agent, LENDING, 3, 5)
    assert agent.vec_env is venv


def test_any_fairness_mdp_is_measured_by_demographic_parity():
    agent = Watched(RandomAgent(seed=0))
    found = evaluate_fairness(agent, "tests/FairCartPole-v0", 3, 12, seed=0)
    env = cart_pole()
    for copy, seed in enumerate(found.seeds):
        env.reset(seed=seed)
        for step in range(found.lengths[copy]):
            _, reward, terminated, _, info = env.step(int(agent.done[step][copy]))
            parity = info["fairness"]["SP"]
            assert found.figures["short_term"][copy, step] == pytest.approx(-(parity or 0.0), abs=1e-6)
            assert found.figures["utility"][copy, step] == reward
        assert terminated or found.lengths[copy] == 12


def test_actions_may_be_the_likeliest():
    class Told(Always):
        def predict(self, observation, state=None, episode_start=None, deterministic=False):
            return super().predict(observation)[0] * deterministic, state

    assert (evaluate_fairness(Told(1), LENDING, 1, 20).figures["utility"] == 10_000).all()
    assert (evaluate_fairness(Told(1), LENDING, 1, 20, deterministic=True).figures["utility"] != 10_000).any()


@pytest.mark.parametrize("name", ["n_episodes", "n_steps", "n_envs"])
def test_numbers_must_be_positive(name):
    with pytest.raises(ValueError, match=f"{name} must be a positive integer, got 0"):
        evaluate_fairness(Always(0), LENDING, **{"n_episodes": 1, "n_steps": 1, name: 0})


class Misnamed(LendingMeasures):
    reported = {"utility": "cash", "short_term": "gap", "long_term": "w1"}  # noqa: RUF012


def test_a_figure_that_is_not_published_is_told():
    with pytest.raises(ValueError, match=r"must report what info\['fairness'\] has, .*'w1'.*, or 'reward', got 'gap'"):
        evaluate_fairness(Always(0), LENDING, 1, 5, measures=Misnamed())
