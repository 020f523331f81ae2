"""Algorithms that can be trained from the command line, and their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pkgutil import resolve_name
from typing import Any

from sb3_fair.zoo.names import choose


@dataclass(frozen=True)
class Algorithm:
    """A row of the table :data:`ALGORITHMS`.

    :param path: ``"module:Class"``, imported when it is used
    :param vector: whether it learns from the vector of objectives; others learn from a weighted sum
    :param policy: policy by default; None: it takes none
    :param tells_chances: whether its actions carry their probabilities; others' get them from VecChoices
    :param needs: of an environment, rows of :data:`~sb3_fair.zoo.registry.pairs.NEEDS`
    :param like: an algorithm whose tasks it is trained on, where its own settings do not say anything else
    """

    name: str
    path: str
    vector: bool = False
    policy: str | None = "MlpPolicy"
    tells_chances: bool = False
    needs: tuple[str, ...] = ()
    like: str | None = None

    @property
    def cls(self) -> Any:
        """The algorithm's class."""
        return resolve_name(self.path)

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments that a user may set, with their defaults."""
        given = {"self", "policy", "env", "eval_env", "seed", "device", "_init_setup_model"}
        logs = {"verbose", "tensorboard_log"}  # of which a run has its own
        parameters = signature(self.cls.__init__).parameters
        return {name: parameter.default for name, parameter in parameters.items() if name not in given | logs}

    @property
    def blank(self) -> Any:
        """A model of it without an environment and networks."""
        return self.cls(*(() if self.policy is None else (self.policy,)), None, _init_setup_model=False)


def which_saved(attributes: Mapping[str, Any]) -> list[str]:
    """Names of the algorithms whose models have those settings of all algorithms that are among the attributes of a
    file of SB3; if there are several, those whose own policies are in the module of the file's."""
    settings = {name for algorithm in ALGORITHMS.values() for name in algorithm.settings}
    blanks = {name: vars(algorithm.blank) for name, algorithm in ALGORITHMS.items()}
    fitting = [name for name, own in blanks.items() if settings & own.keys() == settings & attributes.keys()]
    home = dict(attributes.get("policy_class") or {}).get("__module__")
    return [name for name in fitting if getattr(blanks[name].get("policy_class"), "__module__", "") == home] or fitting


ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            "pcn", "sb3_fair.pcn:PCN", vector=True, tells_chances=True, needs=("decisions", "groups", "episodes")
        ),
        Algorithm("f_ppo", "sb3_fair.f_ppo:FPPO", needs=("starts", "disparity")),
        Algorithm("ppo_lagrangian", "sb3_fair.f_ppo:PPOLagrangian", needs=("starts", "disparity"), like="ppo"),
        Algorithm("fair_ppo", "sb3_fair.fair_ppo:FairPPO", needs=("starts", "individual")),
        Algorithm(
            "fair_qcm",
            "sb3_fair.fair_qcm:FairQCM",
            policy="MultiInputPolicy",
            tells_chances=True,
            needs=("starts", "discrete", "scheme"),
        ),
        Algorithm(
            "tabular_fair_qcm",
            "sb3_fair.fair_qcm:TabularFairQCM",
            policy=None,
            tells_chances=True,
            needs=("starts", "discrete", "scheme"),
        ),
        Algorithm("recurrent_dqn", "sb3_fair.fair_qcm:RecurrentDQN", tells_chances=True, needs=("starts", "discrete")),
        Algorithm("ppo", "stable_baselines3:PPO", needs=("starts",)),
        Algorithm("a2c", "stable_baselines3:A2C", needs=("starts",), like="ppo"),
        Algorithm("dqn", "stable_baselines3:DQN", needs=("starts", "discrete"), like="ppo"),
        Algorithm("trpo", "sb3_contrib:TRPO", needs=("starts",), like="ppo"),
        Algorithm("qrdqn", "sb3_contrib:QRDQN", needs=("starts", "discrete"), like="ppo"),
        Algorithm("ppo_lstm", "sb3_contrib:RecurrentPPO", policy="MlpLstmPolicy", needs=("starts",), like="ppo"),
    )
}


FORMERLY = {"cpo": "ppo_lagrangian"}
"""Former names, which older runs and scripts have."""


def find_algorithm(name: str) -> Algorithm:
    """The row of an algorithm; an unknown name is an error that names the nearest."""
    return ALGORITHMS[choose("algorithm", FORMERLY.get(name, name), ALGORITHMS)]
