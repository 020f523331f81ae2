"""Are reference points those of the rule, and used only where they belong?"""

import numpy as np
import pytest
from gymnasium import spaces
from numpy.testing import assert_array_equal

from sb3_fair.zoo.registry.reference import (
    EPISODES,
    OBJECTIVES,
    policies,
    shipped_reference,
    with_all_objectives,
    worst_returns,
)

SMALL = "sb3_fair/JobHiring-Small-v0"


@pytest.mark.parametrize("env_id", with_all_objectives())
def test_every_id_that_can_have_all_notions_has_one(env_id):
    point = shipped_reference(env_id, {"objectives": OBJECTIVES, "emit": "difference"})
    assert point is not None and all(value < 0 for name, value in point.items() if name != "R")


@pytest.mark.parametrize(
    "settings", [{}, {"emit": "difference", "probabilities": "executed"}, {"emit": "terminal"}], ids=str
)
def test_the_table_holds_what_the_rule_gives(settings):
    assert shipped_reference(SMALL, {"objectives": OBJECTIVES, **settings}) == pytest.approx(
        worst_returns(SMALL, **settings), abs=1e-4
    )


def test_actions_that_are_no_numbers_from_0_on_are_the_smallest_and_the_largest():
    _, low, high = policies(spaces.Box(-1, 2, (2,)))
    for policy, action in ((low, -1), (high, 2)):
        assert_array_equal(policy.predict(np.zeros((EPISODES, 3)))[0], np.full((EPISODES, 2), action))


def test_it_covers_the_objectives_in_their_order():
    point = shipped_reference(f"sb3_fair:{SMALL}", {"objectives": ["IF", "R"]})
    assert point is not None and list(point) == ["IF", "R"]


@pytest.mark.parametrize("settings", [{"window": 20}, {"team_size": 5}, {"objectives": ["SP@gender"]}])
def test_other_settings_have_none(settings):
    assert shipped_reference(SMALL, {"objectives": ["R"], **settings}) is None


def test_other_environments_have_none():
    assert shipped_reference("CartPole-v1", {"objectives": ["R"]}) is None
