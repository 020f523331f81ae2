"""Do learners built on an algorithm of SB3 describe its arguments with their own, and may others be built on them?"""

from functools import wraps

import pytest

from sb3_fair import FPPO, FairPPO, FairQCM, PPOLagrangian, RecurrentDQN


@pytest.mark.parametrize("indentation", ["", "    "], ids=["stripped", "kept"])  # as from Python 3.13 on, and before
@pytest.mark.parametrize("algorithm", [FPPO, FairPPO, PPOLagrangian, FairQCM, RecurrentDQN])
def test_the_arguments_of_the_algorithm_are_described_too(algorithm, indentation):
    for name in ("learning_rate", "policy_kwargs", "_init_setup_model"):
        assert algorithm.__doc__.count(f":param {name}:") == 1
    assert f"``{algorithm.buffer_classes[0].__name__}``" in algorithm.__doc__
    place = f"(The arguments of {algorithm.built_on.__name__}.)"
    lines = "\n".join(indentation + line for line in (place, ":param mine: one more", ""))
    own = type("Own", (algorithm,), {"__doc__": f"My learner.\n\n{lines}"})
    assert own.__doc__.index("\n:param learning_rate:") < own.__doc__.index("\n:param mine:")


def test_constructors_of_subclasses_have_arguments_and_decorators_of_their_own():
    def noted(function):
        return wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))

    class Own(FairPPO):
        @noted
        def __init__(self, policy, env, n_steps: str = "few"):
            super().__init__(policy, env, n_steps={"few": 4}[n_steps], batch_size=4)

    assert Own("MlpPolicy", "CartPole-v1").n_steps == 4
