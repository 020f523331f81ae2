"""A PCN model that has learnt the whole front of the chain."""

import pytest

from sb3_fair.pcn import PCN
from tests.pcn.models import chains


@pytest.fixture(scope="module")
def trained():
    return PCN("MlpPolicy", chains(5), seed=0, eval_freq=0, n_updates=30, learning_rate=1e-2, device="cpu").learn(2_000)
