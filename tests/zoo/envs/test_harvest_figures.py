"""Does a population that acts at random fare as the Allelopathic Harvest's rules make it fare?

Rewards per agent and step of both groups, their normalised disparity per episode (U - S) / (U + S), the share of
agent-steps in which one moves, and how many are obstructed at the end, in 64 worlds and 1000 steps.
"""

from importlib.util import find_spec

import numpy as np
import pytest

from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from tests.zoo.forms import begun


def figures(n_worlds, steps, config=None, **settings):
    """Mean reward of the fast and of the slow (B,), share moved, and obstructed at the end (B,)."""
    world = begun(HarvestWorld, n_worlds, config=config, horizon=steps, **settings)
    rng, moved = np.random.default_rng(7), 0.0
    for _ in range(steps):
        before = world.positions
        world.step(rng.integers(0, 8, (n_worlds, world.n_agents)))
        moved += (world.positions != before).any(axis=2).mean() / steps
    slow = world.group == 1
    rates = [
        np.where(who, world.returns, 0).sum(axis=1) / np.maximum(who.sum(axis=1), 1) / steps for who in (~slow, slow)
    ]
    return *rates, moved, world.obstructed.sum(axis=1)


def test_slow_agents_earn_half_and_about_a_quarter_of_all_steps_are_moves():
    fast, slow, moved, obstructed = figures(48, 120)
    assert ((fast - slow) / (fast + slow)).mean() == pytest.approx(1 / 3, abs=0.03)
    assert moved == pytest.approx(0.24, abs=0.03)
    assert 0 < obstructed.mean() < 2


def test_random_play_is_fair_where_slow_agents_only_move_slowly():
    fast, slow, _, _ = figures(48, 120, slow="moves_only")
    assert ((fast - slow) / (fast + slow)).mean() == pytest.approx(0, abs=0.03)


def test_nobody_moves_and_obstruction_lasts_in_the_published_variant():
    _, _, moved, obstructed = figures(16, 40, HarvestConfig.published())
    assert moved == 0 and obstructed.mean() > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("published", "settings", "expected"),
    [
        (False, {}, (0.347, 0.174, 0.330, 0.250, 0.6)),
        (False, {"scan": "all"}, (0.351, 0.177, 0.330, 0.250, 0.6)),
        (False, {"order": "fixed"}, (0.346, 0.175, 0.329, 0.249, 0.8)),
        (False, {"slow": "moves_only"}, (0.342, 0.338, 0.005, 0.248, 0.7)),
        (False, {"sensitive_share": 0}, (0.339, None, None, 0.331, 0.9)),
        (False, {"sensitive_share": 1}, (None, 0.177, None, 0.168, 0.8)),
        (True, {}, (0.676, 0.328, 0.343, 0, 6.5)),
        (True, {"movement": "on"}, (0.115, 0.047, 0.38, 0.07, 37)),
        (True, {"movement": "on", "obstruct_turns": 1}, (0.535, 0.265, 0.337, 0.38, 1.25)),
        (True, {"obstruct_turns": 1}, (0.76, 0.375, 0.341, 0, 1.6)),
        (True, {"movement": "on", "obstruct_turns": 1, "invalid": "noop"}, (0.350, 0.176, 0.331, 0.25, 0.8)),
    ],
    ids=str,
)
def test_random_play_fares_as_known(published, settings, expected):
    if find_spec("numba"):
        settings = settings | {"backend": "numba"}
    config = HarvestConfig.published(**settings) if published else HarvestConfig(**settings)
    fast, slow, moved, obstructed = figures(64, 1000, config)
    varied = config.movement == "off" or config.obstruct_turns > 1
    with np.errstate(invalid="ignore"):
        disparity = ((fast - slow) / (fast + slow)).mean()
    for figure, known, tolerance in zip(
        (fast.mean(), slow.mean(), disparity, moved, obstructed.mean()),
        expected,
        (0.06, 0.06, 0.06, 0.01, 1.5) if varied else (0.012, 0.012, 0.02, 0.01, 0.8),
        strict=True,
    ):
        if known is not None:
            assert figure == pytest.approx(known, abs=tolerance)
