"""Do the constructors of the algorithms say what settings may be?"""

import pytest
from stable_baselines3 import DQN

from sb3_fair.zoo.algorithms import ALGORITHMS
from sb3_fair.zoo.kinds import of_its_kind
from sb3_fair.zoo.names import InputError


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_all_defaults_are_of_their_kind(algo):
    algorithm = ALGORITHMS[algo]
    for name, value in algorithm.settings.items():
        assert of_its_kind(algorithm.cls, name, value) is value


@pytest.mark.parametrize(
    ("algo", "name", "value", "words"),
    [
        ("ppo", "ent_coef", "lin_0.01", "must be a number, got 'lin_0.01'"),
        ("ppo", "gamma", None, "must be a number"),
        ("ppo", "gamma", [1], "must be a number"),
        ("ppo", "target_kl", "abc", "must be a number or null"),
        ("ppo", "batch_size", 1.5, "must be an integer"),
        ("ppo", "batch_size", True, "must be an integer"),
        ("ppo", "policy_kwargs", "small", "must be settings by name or null"),
        ("ppo", "learning_rate", "fast", "must be a number or a schedule such as lin_0.001"),
        ("ppo", "use_sde", 1, "must be true or false"),
        ("pcn", "noise", float("nan"), "must be finite, got nan"),
        ("ppo", "clip_range", float("inf"), "must be finite, got inf"),
        ("ppo", "max_grad_norm", float("nan"), "must be finite, got nan"),
        ("dqn", "policy_kwargs", {"net_arch": [float("nan")]}, "must be finite"),
        ("fair_ppo", "lam", "free", "must be a number or 'auto' or 'dual'"),
    ],
)
def test_other_kinds_are_refused(algo, name, value, words):
    with pytest.raises(InputError, match=f"hyperparameter '{name}' {words}"):
        of_its_kind(ALGORITHMS[algo].cls, name, value)


@pytest.mark.parametrize(
    ("algo", "name", "value"),
    [
        ("ppo", "learning_rate", "lin_1e-3"),
        ("ppo", "clip_range_vf", "lin_0.2"),
        ("ppo", "clip_range", 1),
        ("fair_ppo", "lam", "dual"),
        ("tabular_fair_qcm", "n_counterfactual", "all"),
        ("pcn", "held", {"R": 0.9}),
        ("ppo", "max_grad_norm", float("inf")),
    ],
)
def test_what_constructors_allow_stays(algo, name, value):
    assert of_its_kind(ALGORITHMS[algo].cls, name, value) == value


def test_whole_numbers_become_integers_where_these_are_wanted():
    found = of_its_kind(DQN, "buffer_size", 1e4)
    assert found == 10_000 and isinstance(found, int)
    assert isinstance(of_its_kind(DQN, "gamma", 1.0), float)
