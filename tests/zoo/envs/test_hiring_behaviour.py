"""Do fixed rules reach the figures known for this scenario?

Each member counts once; lengths and returns per episode, qualified share P(G >= 0.5) overall, of men, of women.
Those of the large setting come from six episodes.
"""

import numpy as np
import pytest

from sb3_fair.zoo.envs.hiring.world import HiringWorld
from tests.zoo.forms import begun

SMALL, PAPER = (20, 100, 300), (100, 1000, 30)  # team, applicants, episodes played here
# Length, return, shares, goodness: about three standard errors of the known figures, which rest on 60 (small team,
# some 1200 applicants per gender) and 6 episodes.
TOLERANCE = {SMALL: (2.0, 0.8, 0.045, 0.015), PAPER: (12.0, 5.0, 0.05, 0.02)}

FIGURES = [
    ("level", SMALL, "random", 39.4, 0.2, (0.599, 0.580, 0.617), (0.557, 0.229)),
    ("level", SMALL, "hire-all", 20, 1.15, (0.594, 0.572, 0.617), (0.557, 0.230)),
    ("level", SMALL, "reject-all", 100, 3.7, (0.454, 0.419, 0.489), (0.463, 0.262)),
    ("level", SMALL, "threshold-oracle", 33.1, 6.9, (0.603, 0.586, 0.621), (0.563, 0.229)),
    ("level", PAPER, "random", 196, -0.7, (0.614, 0.609, 0.619), (0.565, 0.222)),
    ("level", PAPER, "hire-all", 100, 7.5, (0.623, 0.597, 0.649), (0.574, 0.223)),
    ("level", PAPER, "reject-all", 1000, 38.9, (0.455, 0.422, 0.488), (0.461, 0.260)),
    ("level", PAPER, "threshold-oracle", 161, 32.6, (0.621, 0.602, 0.639), (0.573, 0.222)),
    ("difference", SMALL, "random", 39.4, 0.1, (0.391, 0.355, 0.427), (0.401, 0.227)),
    ("difference", SMALL, "hire-all", 20, -1.9, (0.393, 0.357, 0.430), (0.403, 0.227)),
    ("difference", SMALL, "reject-all", 100, 3.7, (0.454, 0.419, 0.489), (0.463, 0.262)),
    ("difference", SMALL, "threshold-oracle", 50.8, 10.9, (0.394, 0.359, 0.430), (0.403, 0.225)),
    ("difference", PAPER, "random", 196, -1.4, (0.384, 0.356, 0.410), (0.398, 0.222)),
    ("difference", PAPER, "hire-all", 100, -9.5, (0.397, 0.359, 0.434), (0.405, 0.224)),
    ("difference", PAPER, "reject-all", 1000, 38.9, (0.455, 0.422, 0.488), (0.461, 0.260)),
    ("difference", PAPER, "threshold-oracle", 260, 55.7, (0.385, 0.371, 0.399), (0.397, 0.222)),
]


def play(rule, episodes, **settings):
    """Lengths and returns (episodes,), and goodness and gender of everybody seen."""
    world = begun(HiringWorld, episodes, seed=1000, detail=True, **settings)
    rng = np.random.default_rng(0)
    going, lengths, returns, seen = np.ones(episodes, dtype=bool), np.zeros(episodes), np.zeros(episodes), []
    space = world.observation_space
    while going.any():
        hire = rng.random(episodes) < world.rules[rule](world)[:, 1]
        obs, reward, terminated, truncated, record = world.step(hire.astype(int))
        assert ((obs >= space.low) & (obs <= space.high)).all()
        lengths += going
        returns += reward * going
        seen.append(np.stack([record["detail"]["goodness"], record["individual"]["group"]])[:, going])
        going &= ~(terminated | truncated)
    return lengths, returns, np.concatenate(seen, axis=1)


@pytest.mark.parametrize("entropy, setting, rule, length, total, shares, goodness", FIGURES)
def test_rules_reach_their_figures(entropy, setting, rule, length, total, shares, goodness):
    team_size, episode_length, episodes = setting
    tolerance = TOLERANCE[setting]
    lengths, returns, (worth, gender) = play(
        rule, episodes, entropy=entropy, team_size=team_size, episode_length=episode_length, leaving=False
    )
    assert lengths.mean() == pytest.approx(length, abs=tolerance[0])
    assert returns.mean() == pytest.approx(total, abs=tolerance[1])
    qualified = [np.mean(worth[among] >= 0.5) for among in (gender >= 0, gender == 0, gender == 1)]
    assert qualified == pytest.approx(shares, abs=tolerance[2])
    assert (worth.mean(), worth.std()) == pytest.approx(goodness, abs=tolerance[3])
    assert returns.max() <= episode_length


def test_leaving_hardly_moves_the_oracle():
    lengths, returns, _ = play("threshold-oracle", 30)
    assert lengths.mean() == pytest.approx(264, abs=12)
    assert returns.mean() == pytest.approx(57.0, abs=5)


def test_patience_pays():
    threshold, patient = (
        play(rule, 60, team_size=20, episode_length=100) for rule in ("threshold-oracle", "patient-oracle")
    )
    assert patient[1].mean() > threshold[1].mean() + 3
    assert (patient[0] == 100).all()
