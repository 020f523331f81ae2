"""Does an evaluation of harvests play what it says, and count what happened?"""

import numpy as np
import pytest
import torch as th
from numpy.testing import assert_allclose, assert_array_equal
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from sb3_fair.fairness import Welfare
from sb3_fair.wrappers import VecStanding
from sb3_fair.wrappers.layer import seed_copies
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv
from sb3_fair.zoo.evaluation.harvest_evaluation import ACTIONS, evaluate_harvest
from tests.models import Always


class Gatherer:
    """Ripens or eats where a bush is near, else walks by what it sees: no chance involved."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        near = np.minimum(observation[:, 7], observation[:, 8]) <= 1
        walk = 1 + (observation[:, 0] + 3 * observation[:, 1] + observation[:, 3]).astype(int) % 4
        return np.where(near, 5, walk), None


def test_figures_are_those_of_playing_the_world_by_hand():
    rows = evaluate_harvest(Gatherer(), 2, 40, [7, 3])
    for number, seed in enumerate((7, 3)):
        venv = HarvestVecEnv(1, {"horizon": 40}, detail=True)
        seed_copies(venv, [seed])
        observation, returns, chosen = venv.reset(), np.zeros(40), np.zeros((2, 8))
        group, colour = venv.slot_group.copy(), venv.slot_lf.copy()
        for _ in range(40):
            actions, _ = Gatherer().predict(observation)
            observation, rewards, _, _ = venv.step(actions)
            returns += rewards
            np.add.at(chosen, (group, actions), 1)
        row = rows.iloc[number]
        first, second = returns[group == 0].sum(), returns[group == 1].sum()
        assert (row.seed, row.U, row.S, row.n_U, row.n_S) == (seed, first, second, 20, 20)
        assert row.dp == first - second and row.dp_norm == pytest.approx((first - second) / (first + second))
        assert row.mean_U == first / 20 and row.dp_pc == pytest.approx((first - second) / 20)
        reds = returns[(group == 0) & (colour == 1)].sum(), returns[(group == 1) & (colour == 1)].sum()
        assert reds == (row.U_G1, row.S_G1) and row.csp_G1 == reds[0] - reds[1]
        assert row.csp_G1_pc_norm == pytest.approx((reds[0] - reds[1]) / sum(reds))
        assert row.pairs == pytest.approx(
            np.mean([abs(x - y) for x in returns[group == 0] for y in returns[group == 1]])
        )
        assert row.jain == Welfare("jain")(returns)
        shares = chosen / chosen.sum(axis=1, keepdims=True)
        assert_allclose([row[f"chosen_S_{action}"] for action in ACTIONS], shares[1])


def test_episodes_do_not_depend_on_how_many_are_played_at_once():
    together = evaluate_harvest(Gatherer(), 5, 30, 11)
    apart = evaluate_harvest(Gatherer(), 5, 30, 11, n_worlds=2)
    assert together.equals(apart)
    assert together.seed.tolist() == [11, 12, 13, 14, 15]
    assert len(set(together.U)) == 5


def test_random_play_is_the_same_for_the_same_seeds_and_leaves_no_trace():
    before = th.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (evaluate_harvest("random", 3, 20, 0) for _ in range(2))
    assert first.equals(second)
    assert_array_equal(before[0], th.get_rng_state())
    assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_random_play_costs_the_slow_a_third():
    rows = evaluate_harvest("random", 20, 300, 0)
    assert rows.dp_norm.mean() == pytest.approx(1 / 3, abs=0.03)
    assert rows.chosen_U_obstruct.mean() == pytest.approx(1 / 8, abs=0.01)
    assert np.isnan(rows.value).all()


def test_actions_are_counted_as_chosen_and_as_carried_out():
    (row,) = evaluate_harvest(Always(ACTIONS.index("stay")), 1, 10, 0).itertuples()
    assert (row.chosen_U_stay, row.executed_U_stay, row.executed_S_stay) == (1, 1, 1)
    assert (row.void_U, row.void_S) == (0, 0.5) and (row.obstructed_U, row.obstructed_S) == (0, 0)
    (row,) = evaluate_harvest(Always(ACTIONS.index("stay")), 1, 1, 0).itertuples()
    assert (row.void_U, row.void_S) == (0, 1)
    (row,) = evaluate_harvest(Always(ACTIONS.index("obstruct")), 1, 30, 0).itertuples()
    assert row.chosen_S_obstruct == 1 and row.void_U > 0 and 0 < row.obstructed_S < 1
    assert 0 < row.executed_U_obstruct < 1 and row.executed_U_obstruct + row.executed_U_stay == pytest.approx(1)


def test_a_row_of_twins_is_a_pair_of_worlds_from_one_seed():
    rows = evaluate_harvest(Gatherer(), 3, 40, 5, counterfactual="none_vs_all")
    alone = evaluate_harvest(Gatherer(), 3, 40, 5, sensitive_share=0.0)
    assert rows.n_U.tolist() == rows.n_S.tolist() == [40, 40, 40] and alone.n_S.tolist() == [0, 0, 0]
    assert rows.F.tolist() == rows.U.tolist() and rows.K.tolist() == rows.S.tolist()
    assert_array_equal(rows.cf, rows.F - rows.K)
    assert_allclose(rows.cf_norm, (rows.F - rows.K) / (rows.F + rows.K))
    assert (rows.void_U == 0).all() and (rows.void_S == 0.5).all()
    assert rows.seed.tolist() == [5, 6, 7]


def test_who_swaps_is_compared_by_the_attribute():
    rows = evaluate_harvest(Gatherer(), 3, 40, 5, counterfactual="swap")
    assert_allclose(rows.cf, rows.U - rows.S)
    assert (rows.cf_norm > 0.1).all() and (np.abs(rows.F - rows.K) < rows.cf).all()


def test_models_of_stable_baselines_play_and_tell_what_they_expect():
    game = {"horizon": 20, "obs_scale": True}
    model = PPO("MlpPolicy", HarvestVecEnv(1, game), n_steps=4, batch_size=80, seed=0, device="cpu")
    first, second = (evaluate_harvest(model, 2, 20, 1, obs_scale=True) for _ in range(2))
    assert first.equals(second) and np.isfinite(first.value).all()
    greedy = evaluate_harvest(model, 2, 20, 1, deterministic=True, obs_scale=True)
    assert greedy.equals(evaluate_harvest(model, 2, 20, 1, deterministic=True, n_worlds=1, obs_scale=True))


def test_a_model_trained_on_normalised_observations_sees_them():
    venv = VecNormalize(HarvestVecEnv(1, {"horizon": 20}), norm_reward=False)
    venv.reset()
    model = PPO("MlpPolicy", venv, n_steps=4, batch_size=80, seed=0, device="cpu")
    seen = []
    predict = model.predict
    model.predict = lambda observation, **given: seen.append(observation) or predict(observation, **given)
    evaluate_harvest(model, 1, 3, 0)
    assert np.abs(seen[0]).max() < 11 and seen[0].std() < 3


def test_expected_values_are_on_the_scale_of_the_game_s_rewards():
    venv = VecNormalize(HarvestVecEnv(1, {"horizon": 20}), norm_obs=False)
    model = PPO("MlpPolicy", venv, n_steps=4, batch_size=80, seed=0, device="cpu")
    venv.ret_rms.var = 4.0
    found = evaluate_harvest(model, 1, 3, 0).value
    venv.norm_reward = False
    assert_allclose(found, 2 * evaluate_harvest(model, 1, 3, 0).value)


def test_an_agent_stays_bound_to_its_environments():
    class Staying:
        venv = None

        def bind(self, venv):
            self.venv = venv
            return self

        def predict(self, observation, **given):
            assert self.venv is not None
            return np.zeros(len(observation), dtype=int), None

    agent = Staying()
    evaluate_harvest(agent, 1, 3, 0)
    assert agent.venv is None


@pytest.mark.parametrize("inside", [lambda venv: venv, lambda venv: VecNormalize(venv, norm_reward=False)])
def test_a_model_that_saw_the_standing_of_its_group_sees_it(inside):
    venv = inside(VecStanding(HarvestVecEnv(1, {"horizon": 20})))
    venv.reset()
    model = PPO("MlpPolicy", venv, n_steps=4, batch_size=80, seed=0, device="cpu")
    found = evaluate_harvest(model, 2, 20, 1)
    assert np.isfinite(found.value).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("random", 0, 10, 0), "n_episodes must be a positive integer, got 0"),
        (("random", 2, 0, 0), "horizon must be a positive integer"),
        (("random", 3, 10, [1, 2]), r"seeds must be one number or one per episode \(3\), got 2"),
        (("random", 1, 10, 0, "all"), "mode must be one of"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        evaluate_harvest(*given)
