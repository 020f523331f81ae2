"""Do fixed rules reach the figures known for this scenario, and do its dynamics point the right way?

The known figures are means of 8 episodes of an independent simulation, with the range of the fraud share; here 40
episodes are played. Tolerances are about three standard errors of those 8 episodes: lengths vary by some 30, the share
of fraud by .025 and those of continents by .04 from one episode to the next, since there are few fraudsters.
"""

import numpy as np
import pytest

from sb3_fair.zoo.envs.fraud.world import FraudWorld
from tests.zoo.forms import begun

EPISODES = 40
STATIC = {"customer_dynamics": False}
# Settings, rule, transactions, return, share of fraud, shares of EU and NA, customers and fraudsters at the end and
# satisfaction then.
FIGURES = [
    (STATIC | {"fraud_proportion": None}, "ignore", 1000, 999, 0.001, (0.82, 0.12), (180, 10, 1)),
    (STATIC | {"fraud_proportion": None}, "authenticate", 1000, 714, 0.000, (0.82, 0.12), (178, 10, 1)),
    (STATIC | {"fraud_proportion": 0.5}, "ignore", 962, 779, 0.095, (0.81, 0.14), (169, 46, 1)),
    (STATIC | {"fraud_proportion": 0.5}, "random", 943, 692, 0.089, (0.80, 0.13), (164, 46, 1)),
    (STATIC | {"fraud_proportion": 0.5}, "authenticate", 928, 604, 0.089, (0.80, 0.14), (167, 48, 1)),
    (STATIC | {"fraud_proportion": 0.5}, "oracle", 962, 870, 0.095, (0.81, 0.14), (169, 46, 1)),
    ({"fraud_proportion": 0.5}, "ignore", 502, 438, 0.065, (0.83, 0.12), (75, 31, 0.931)),
    ({"fraud_proportion": 0.5}, "random", 473, 370, 0.059, (0.82, 0.12), (71, 30, 0.889)),
    ({"fraud_proportion": 0.5}, "authenticate", 422, 279, 0.069, (0.81, 0.13), (62, 32, 0.855)),
    ({"fraud_proportion": 0.5}, "oracle", 531, 500, 0.058, (0.83, 0.13), (80, 34, 0.932)),
    ({"fraud_proportion": 0.6}, "random", 407, 298, 0.092, None, None),
    ({"fraud_proportion": 0.65}, "random", 363, 254, 0.115, None, None),
]


def play(rule, episodes=EPISODES, **settings):
    """Lengths, returns, share of fraud and end (genuine, fraudsters, satisfaction) of episodes; all transactions."""
    world = begun(FraudWorld, episodes, seed=1000, detail=True, **settings)
    rng = np.random.default_rng(0)
    going, lengths, returns, frauds, ends = (
        np.ones(episodes, dtype=bool),
        *np.zeros((3, episodes)),
        np.zeros((episodes, 3)),
    )
    seen = []
    while going.any():
        actions = (rng.random(episodes) < world.rules[rule](world)[:, 1]).astype(int)
        obs, reward, terminated, truncated, record = world.step(actions)
        assert ((obs >= 0) & (obs <= 1)).all()
        detail = record["detail"]
        lengths += going
        returns += reward * going
        frauds += detail["fraud"] * going
        seen.append(
            np.stack([detail["continent"], detail["fraud"], detail["amount"], actions, detail["passed"]])[:, going]
        )
        over = going & (terminated | truncated)
        if over.any():
            end = np.stack([world.customers.genuine, world.fraudsters, world.customers.satisfaction], axis=1)
            ends[over] = end[over]
        going &= ~over
    return lengths, returns, frauds / lengths, ends, np.concatenate(seen, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("settings, rule, length, total, share, continents, end", FIGURES)
def test_rules_reach_their_figures(settings, rule, length, total, share, continents, end):
    lengths, returns, frauds, ends, (continent, _, _, actions, passed) = play(rule, **settings)
    assert lengths.mean() == pytest.approx(length, abs=30)
    assert returns.mean() == pytest.approx(total, abs=30)
    assert frauds.mean() == pytest.approx(share, abs=0.025)
    if continents is not None:
        assert [np.mean(continent == code) for code in (0, 2)] == pytest.approx(continents, abs=0.04)
        assert ends.mean(axis=0) == pytest.approx(end, abs=8)
        assert ends[:, 2].mean() == pytest.approx(end[2], abs=0.01)
    if rule == "authenticate":
        assert passed.sum() / (actions.sum() * (1 - share)) == pytest.approx(0.72, abs=0.03)


def test_amounts_and_authentications_are_plausible():
    """Published, of single episodes: amounts of 340 in the mean, 87 in the median and 5700 at most; 73 % succeed."""
    *_, (_, fraud, amount, actions, passed) = play("random", 20, **STATIC, fraud_proportion=0.5)
    assert amount.mean() == pytest.approx(310, abs=60) and np.median(amount) == pytest.approx(75, abs=20)
    assert 4500 < amount.max() < 7836
    assert passed[(actions == 1) & (fraud == 0)].mean() == pytest.approx(0.72, abs=0.03)
    assert not passed[(actions == 1) & (fraud == 1)].any() and passed[actions == 0].all()


def test_authenticating_everybody_drives_customers_away():
    (ignoring, _, _, left, _), (authenticating, _, _, right, _) = (
        play(rule, 24) for rule in ("ignore", "authenticate")
    )
    assert right[:, 2].mean() < left[:, 2].mean() - 0.05, "satisfaction falls"
    assert right[:, 0].mean() < left[:, 0].mean() - 5, "customers leave"
    assert authenticating.mean() < ignoring.mean() - 30, "and less is bought"


def test_corrupted_cards_drive_customers_away_so_that_the_share_of_fraud_rises():
    few, many = (
        play("ignore", 40, fraud_cards_in_genuine=share, stay_after_fraud=0.0, fraud_proportion=0.9)
        for share in (0.0, 1.0)
    )
    assert many[3][:, 0].mean() < few[3][:, 0].mean() - 3
    assert many[2].mean() > few[2].mean() + 0.01


def test_more_fraud_comes_with_the_proportion_and_in_summer():
    shares = [play("random", 20, **settings)[2].mean() for settings in (
        {"fraud_proportion": 0.0}, {"fraud_proportion": 0.3}, {"fraud_proportion": 0.6},
        {"fraud_proportion": 0.6, "start": "2016-06-01", "max_transactions": 300},
    )]  # fmt: skip
    assert shares[0] == 0 and shares[0] < shares[1] < shares[2] < shares[3] and shares[3] > 0.4
