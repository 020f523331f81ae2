"""``train`` and ``tune`` build the same environments and the same model for every pair of the zoo."""

import pytest
from optuna.trial import FixedTrial
from stable_baselines3.common.vec_env import VecEnvWrapper

from sb3_fair.zoo.runs import train as training
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.tuning import trial
from sb3_fair.zoo.tuning.tune import make_tuning
from tests.zoo.registry.test_pairs import CHOSEN, SENSIBLE


class Built(Exception):
    """What was built: layers from the outside, spaces, environments, and the settings of model and environment."""


def told(plan, venv, device):
    layers, inside = [], venv
    while isinstance(inside, VecEnvWrapper):
        layers.append(type(inside))
        inside = inside.venv
    settings = {key: value for key, value in plan.hyperparams.items() if key != "ref_point"}
    normaliser = plan.normalize and {name: getattr(venv, name) for name in ("gamma", "norm_obs", "norm_reward")}
    spaces = venv.observation_space, venv.action_space
    seeds = list(venv.unwrapped._seeds)
    venv.close()
    raise Built(layers, type(inside), spaces, venv.num_envs, seeds, normaliser, plan.env_kwargs, plan.weights, settings)


@pytest.mark.slow
@pytest.mark.parametrize(("algo", "env"), [(algo, env) for algo in CHOSEN for env in sorted(SENSIBLE[algo])])
def test_train_and_tune_build_the_same_stack(algo, env, tmp_path, monkeypatch):
    tuning = make_tuning(algo, env, only=["gamma" if algo != "pcn" else "learning_rate"], seed=3)
    monkeypatch.setattr(training, "build_model", told)
    with pytest.raises(Built) as trained:
        training.train(make_plan(algo, env, seed=3), log_dir=tmp_path)
    (name,) = tuning.space
    tried = FixedTrial({name: tuning.plan.hyperparams.get(name, tuning.plan.algorithm.settings[name])})
    with pytest.raises(Built) as tuned:
        trial.run_trial(tried, tuning)
    expected, found = (list(caught.value.args) for caught in (trained, tuned))
    found[-1] = {key: value for key, value in found[-1].items() if key in expected[-1] or key != name}
    assert found == expected
