"""Do rules of thumb act like models?"""

import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

from sb3_fair import make_vec
from sb3_fair.wrappers import Choices
from sb3_fair.zoo.registry.rules import RuleAgent

SMALL = "sb3_fair/JobHiring-Small-v0"


def test_rules_draw_from_the_probabilities_they_report():
    venv = make_vec(SMALL, 4000, seed=0)
    venv.reset()
    actions, _ = RuleAgent("hire-at-random", venv, seed=0).predict(None)
    assert isinstance(actions, Choices)
    np.testing.assert_allclose(actions.probabilities[:, 1], 0.04)
    assert np.asarray(actions).mean() == pytest.approx(0.04, abs=0.01)


def test_a_rule_looks_into_batched_and_single_environments_alike():
    batch = make_vec(SMALL, 3, seed=5)
    singles = make_vec_env(SMALL, 3, seed=5)
    for venv in (batch, singles):
        venv.seed(5)
        venv.reset()
    agents = [RuleAgent("patient-oracle", venv) for venv in (batch, singles)]
    for _ in range(50):
        first, second = (agent.predict(None)[0] for agent in agents)
        np.testing.assert_array_equal(first, second)
        batch.step(first)
        singles.step(second)


def test_an_unknown_rule_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'patient-oracle'"):
        RuleAgent("patient_oracle", make_vec(SMALL, 1))


def test_a_rule_sees_simulators_in_other_processes_as_they_are_now():
    here, elsewhere = (make_vec_env(f"sb3_fair:{SMALL}", 2, seed=5, vec_env_cls=cls) for cls in (None, SubprocVecEnv))
    agents = [RuleAgent("patient-oracle", venv) for venv in (here, elsewhere)]
    for venv in (here, elsewhere):
        venv.reset()
    for _ in range(30):
        first, second = (agent.predict(None)[0] for agent in agents)
        np.testing.assert_array_equal(first, second)
        here.step(first)
        elsewhere.step(second)
    elsewhere.close()
