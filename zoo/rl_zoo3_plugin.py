"""Plugin for rl_zoo3's train and enjoy.

``python -m sb3_fair.zoo.rl_zoo3_plugin train ...`` is ``python -m rl_zoo3.train ...`` after :func:`register`; so is
``enjoy``. rl_zoo3 is imported when it is asked for, and not otherwise: its import changes Gymnasium.
"""

import sys
from collections.abc import Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.common.extras import extra
from sb3_fair.common.plain import plain
from sb3_fair.fair_qcm import TabularFairQCM
from sb3_fair.fair_qcm.environment import memory_of, remembering
from sb3_fair.pcn.pcn import SETTLED
from sb3_fair.wrappers import VecChoices
from sb3_fair.zoo.registry.algorithms import ALGORITHMS, FORMERLY, find_algorithm
from sb3_fair.zoo.registry.build import make_vec
from sb3_fair.zoo.registry.reference import shipped_reference
from sb3_fair.zoo.registry.registration import WORLDS, register_all
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.settings import AROUND
from sb3_fair.zoo.runs.train import arguments

COMMANDS = ("train", "enjoy")
COMMANDED = "sb3_fair.wrappers.VecDesiredReturn"


class DevicelessFairQCM(TabularFairQCM):
    """TabularFairQCM, which is told a device like all algorithms of rl_zoo3, and does not need it."""

    def __init__(self, env: Any, *, device: Any = "auto", **settings: Any) -> None:
        super().__init__(env, **settings)


def register() -> None:
    """Adds our algorithms and IDs to rl_zoo3, and our settings for the IDs to its train."""
    with extra("rl-zoo3", "the plugin"):
        import rl_zoo3
        import rl_zoo3.train
    register_all()
    for name in (*ALGORITHMS, *FORMERLY):
        rl_zoo3.ALGOS.setdefault(name, find_algorithm(name).cls)
    rl_zoo3.ALGOS["tabular_fair_qcm"] = DevicelessFairQCM
    rl_zoo3.train.ExperimentManager = experiment_manager()


def settings(algo: str, env: str, env_kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What ``zoo/hyperparams`` has for an algorithm and an ID, as an entry of rl_zoo3's YAML files; ``env_kwargs`` take
    the place of those of the file.
    """
    wished = dict(env_kwargs or {})
    plan = make_plan(algo, env, env_kwargs={key: value for key, value in wished.items() if key != "scalarise"})
    given, hyperparams = {**plan.env_kwargs, **wished}, dict(plan.hyperparams)
    if plan.weights is not None:
        given.setdefault("scalarise", list(plan.weights))
    if algo.endswith("fair_qcm"):
        given["memory"] = _memory(env, given)  # which FairQCM adds to its own environment only
    if plan.algorithm.vector:
        hyperparams.setdefault("ref_point", shipped_reference(plan.env, plan.env_kwargs))
    if plan.policy is not None:
        hyperparams["policy"] = plan.policy
    around = {key: getattr(plan, key) for key in AROUND if getattr(plan, key) is not None}
    return {"n_timesteps": plan.n_timesteps, "n_envs": plan.n_envs, "env_kwargs": given, **around, **hyperparams}


def _memory(env: str, env_kwargs: Mapping[str, Any]) -> str:
    """The name of the memory with which FairQCM trains in an environment."""
    with closing(make_vec(env, **env_kwargs)) as venv:
        memory = memory_of(remembering(venv))
    assert memory is not None
    return memory.name


def experiment_manager() -> Any:
    """rl_zoo3's ExperimentManager, with what our IDs need."""
    with extra("rl-zoo3", "the plugin"):
        from rl_zoo3.exp_manager import ExperimentManager

    class FairExperimentManager(ExperimentManager):
        """Our settings where no file is given; action probabilities for the environments; a command for PCN."""

        env_kwargs: dict[str, Any]

        def __init__(self, *args: Any, config: str | None = None, **kwargs: Any) -> None:
            super().__init__(*args, config=config, **kwargs)
            ours = self.env_name.gym_id in WORLDS
            self.algorithm = find_algorithm(self.algo) if ours and self.algo in (*ALGORITHMS, *FORMERLY) else None
            self.has_file = config is not None
            self.choices: list[VecChoices] = []

        def read_hyperparameters(self) -> tuple[dict[str, Any], dict[str, Any]]:
            if self.algorithm is None or self.has_file:
                return super().read_hyperparameters()
            entry = settings(self.algo, self.env_name.gym_id, self.env_kwargs)
            if self.env_kwargs:
                self.env_kwargs = self.args.env_kwargs = entry["env_kwargs"]
            self.eval_env_kwargs = {**entry["env_kwargs"], **(self._eval_env_kwargs_args or {})}
            with TemporaryDirectory() as folder:
                file = Path(folder) / f"{self.algo}.yml"
                file.write_text(yaml.safe_dump({self.env_name.gym_id: plain(entry)}), encoding="utf-8")
                self.config = str(file)
                return super().read_hyperparameters()

        def _preprocess_hyperparams(self, hyperparams: dict[str, Any]) -> tuple[Any, ...]:
            given, *others = super()._preprocess_hyperparams(hyperparams)
            return arguments(given), *others

        def _load_pretrained_agent(self, hyperparams: dict[str, Any], env: VecEnv) -> Any:
            settled = SETTLED if self.algorithm is not None and self.algorithm.vector else ()
            kept = {name: value for name, value in hyperparams.items() if name not in settled}
            return super()._load_pretrained_agent({"policy": None, **kept}, env)

        def create_callbacks(self) -> None:
            if self.algorithm is not None and self.algorithm.vector:
                self.eval_freq = -1  # rl_zoo3 would evaluate without a command; PCN evaluates itself
            super().create_callbacks()

        def create_envs(self, n_envs: int, eval_env: bool = False, no_log: bool = False) -> VecEnv:
            venv = super().create_envs(n_envs, eval_env, no_log)
            has_chances = not isinstance(venv.action_space, spaces.Box)
            if self.algorithm is None or self.algorithm.tells_chances or not has_chances:
                return venv
            self.choices.append(VecChoices(venv))
            return self.choices[-1]

        def setup_experiment(self) -> Any:
            found = super().setup_experiment()
            if found is not None:
                self.saved = found[1]
                for venv in self.choices:
                    venv.follow(found[0])
            return found

        def save_trained_model(self, model: Any) -> None:
            if self.algorithm is not None and self.algorithm.vector:
                self._command(model)
            super().save_trained_model(model)

        def _command(self, model: Any) -> None:
            """Evaluates the trade-offs of most probable actions, as enjoy takes; it is to follow the one with the best
            performance."""
            venv = self.create_envs(1, eval_env=True, no_log=True)
            front = model.coverage_set(self.n_eval_episodes, deterministic=True, eval_env=venv)
            front.save(Path(self.save_path) / "front.json")
            model.set_command(front[0])
            aim = {"desired_return": model.command.desired_return, "desired_horizon": model.command.desired_horizon}
            self.saved["vec_env_wrapper"] = [{COMMANDED: plain({**aim, **model.pursuit})}]
            self._save_config(self.saved)  # where enjoy looks

    return FairExperimentManager


def main() -> None:
    """``rl_zoo3 train`` or ``rl_zoo3 enjoy``, with what is ours."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command not in COMMANDS:
        sys.exit(f"{COMMANDS[0]} or {COMMANDS[1]} must come first, then options of rl_zoo3, got {command!r}")
    try:
        register()
    except ImportError as error:
        sys.exit(str(error))
    del sys.argv[1]
    getattr(import_module(f"rl_zoo3.{command}"), command)()  # rl_zoo3's own command line also needs what it plots with


if __name__ == "__main__":
    main()
