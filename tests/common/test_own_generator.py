"""Do learners with generators of their own draw anew with another seed, and go on with the same one?"""

import numpy as np
import pytest

from sb3_fair import PCN, FairQCM, RecurrentDQN, TabularFairQCM, make_vec


def doughnuts():
    return make_vec("sb3_fair/Doughnut-Small-v0", 2)


def bank():
    return make_vec("sb3_fair/Lending-v0", 2)


def hiring():
    return make_vec("sb3_fair/JobHiring-Small-v0", 2, objectives=("R", "SP"), emit="difference")


MODELS = {
    "PCN": lambda seed: PCN("MlpPolicy", hiring(), seed=seed),
    "FairQCM": lambda seed: FairQCM("MlpPolicy", doughnuts(), buffer_size=100, seed=seed),
    "RecurrentDQN": lambda seed: RecurrentDQN("MlpPolicy", bank(), buffer_size=100, seed=seed),
    "TabularFairQCM": lambda seed: TabularFairQCM(doughnuts(), seed=seed),
}


def drawn(model):
    return model.rng.random(3).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_seeds_reach_the_generator_whenever_they_are_given(name, tmp_path):
    model = MODELS[name](0)
    first = drawn(model)
    assert drawn(MODELS[name](0)) == first and drawn(MODELS[name](1)) != first
    model.save(tmp_path / "model")
    second = drawn(model)
    assert second != first and drawn(type(model).load(tmp_path / "model")) == second
    assert drawn(type(model).load(tmp_path / "model", seed=0)) == second
    assert drawn(type(model).load(tmp_path / "model", seed=1)) == drawn(MODELS[name](1))
    model.set_random_seed(0)
    assert drawn(model) == first
    assert len(np.unique(first)) == 3
