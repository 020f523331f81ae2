"""Is what SB3 lacks for vector rewards in one public place, and does it serve SB3's own algorithms?"""

import importlib

import numpy as np
from stable_baselines3 import PPO

import sb3_fair
from sb3_fair import vector


def test_the_package_has_the_module_and_the_module_explains_its_names():
    for name in ("audit", "vector"):
        assert sb3_fair.__getattr__(name) is importlib.import_module(f"sb3_fair.{name}")
        assert name in dir(sb3_fair)
    for name in vector.__all__:
        assert f"``{name}``" in vector.__doc__ and getattr(vector, name).__doc__, name


def test_a_learner_of_sb3_hears_of_vector_returns_and_is_evaluated_with_them():
    venv = sb3_fair.make_vec("sb3_fair/JobHiring-Small-v0", n_envs=2, seed=0, objectives=("R", "SP"), emit="terminal")
    model = PPO("MlpPolicy", vector.VectorMonitor(venv), n_steps=100, batch_size=50, n_epochs=1, seed=0).learn(200)
    heard = np.array([episode["v"] for episode in model.ep_info_buffer])
    assert len(heard) >= 2 and heard.shape[1] == len(vector.objective_names(venv, 2))
    np.testing.assert_allclose(heard[:, 0], [episode["r"] for episode in model.ep_info_buffer], atol=1e-4)
    front = vector.front_of(vector.evaluate_vector(model, venv, 2, seed=seed) for seed in (0, 100))
    assert vector.nondominated(front.means).all()
    assert vector.hypervolume(front.means, vector.reference_point(heard)) >= 0
