"""A few kills of trainings; ``python -m tests.kill_training`` makes a hundred over all algorithms."""

import random
import signal

import pytest

from tests.kill_training import chain


@pytest.mark.parametrize(
    ("algo", "number"),
    [("fair_ppo", signal.SIGINT), ("tabular_fair_qcm", signal.SIGTERM), ("ppo_lagrangian", signal.SIGKILL)],
)
def test_a_training_that_is_killed_ends_like_one_that_is_not(algo, number, tmp_path):
    done = chain(algo, 1, random.Random(1), tmp_path, [number])
    assert not done.wrong and done.kills.total() == 1
