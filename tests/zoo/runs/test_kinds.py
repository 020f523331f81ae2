"""Do the constructors of the algorithms say what settings may be?"""

import pytest
from stable_baselines3 import DQN

from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs.plan import of_its_kind


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_all_defaults_are_of_their_kind(algo):
    algorithm = ALGORITHMS[algo]
    for name, value in algorithm.settings.items():
        assert of_its_kind(algorithm.cls, name, value) is value


@pytest.mark.parametrize(
    ("algo", "name", "value", "words"),
    [
        ("ppo", "ent_coef", "lin_0.01", "must be a finite number, got 'lin_0.01'"),
        ("ppo", "gamma", None, r"must be in \[0, 1\], got None"),
        ("ppo", "gamma", [1], r"must be in \[0, 1\]"),
        ("dqn", "gamma", 2, r"must be in \[0, 1\], got 2"),
        ("ppo", "target_kl", "abc", "must be a positive number or null"),
        ("ppo", "batch_size", 1.5, "must be a positive integer"),
        ("ppo", "batch_size", True, "must be a positive integer"),
        ("ppo", "policy_kwargs", "small", "must be settings by name or null"),
        ("ppo", "learning_rate", "fast", "must be a non-negative number or a schedule such as lin_0.001"),
        ("ppo", "use_sde", 1, "must be true or false"),
        ("pcn", "noise", float("nan"), "must be a non-negative number, got nan"),
        ("ppo", "clip_range", float("inf"), "must be a positive number .*, got inf"),
        ("ppo", "max_grad_norm", float("nan"), "must be a positive number, got nan"),
        ("trpo", "target_kl", -1, "must be a positive number"),
        ("a2c", "n_steps", 0, "must be a positive integer"),
        ("qrdqn", "tau", 1.5, r"must be in \[0, 1\]"),
        ("ppo_lstm", "n_epochs", 0, "must be a positive integer"),
        ("pcn", "updates_per_step", float("inf"), "must be a non-negative number or null"),
        ("tabular_fair_qcm", "initial_value", float("nan"), "must be a finite number or null"),
        ("dqn", "policy_kwargs", {"net_arch": [float("nan")]}, "must be finite"),
        ("fair_ppo", "lam", "free", "must be a non-negative number or one of 'auto', 'dual'"),
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
