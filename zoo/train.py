"""How does a plan become a trained, evaluated and documented run?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from sb3_fair.common.front import Front
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.report import from_run
from sb3_fair.wrappers.choices import VecChoices
from sb3_fair.zoo.build import make_vec
from sb3_fair.zoo.evaluate import evaluate_rules, evaluation_env, policies_of, with_chances
from sb3_fair.zoo.names import InputError, input_errors
from sb3_fair.zoo.plan import Plan
from sb3_fair.zoo.reference import shipped_reference

EVALUATION_COPIES = 100


def train(
    plan: Plan,
    *,
    log_dir: str | Path = "logs",
    command: str = "",
    device: str = "auto",
    progress: bool = False,
) -> RunFolder:
    """Trains, evaluates on fresh episodes beside the rules of the environment, and writes everything into a new folder.

    :param plan: what to train
    :param log_dir: where the folder of the run is made: ``<log_dir>/<algo>/<env>_<n>``
    :param command: the command line, for the record
    :param progress: whether to show a progress bar
    :raises InputError: if the environment or the algorithm refuses its settings
    """
    with input_errors():
        venv = training_env(plan)
        model = build_model(plan, venv, device)
        evaluation_env(plan, 1).close()
    run = RunFolder.create(log_dir, plan.algo, plan.env)
    run.start(config=plan.config, args={"device": device, "log_dir": str(log_dir)}, command=command)
    model.set_logger(configure(str(run.path), ["csv"]))
    model.learn(plan.n_timesteps, progress_bar=progress)
    model.save(run.model)
    front = Front(tuple(policies_of(plan, model)))
    run.save_results(front, evaluate_rules(plan))
    from_run(run.path)
    venv.close()
    return run


def training_env(plan: Plan) -> VecEnv:
    """The environments a plan trains in, with the scalar reward for algorithms that need one."""
    scalarise: dict[str, Any] = {} if plan.weights is None else {"scalarise": plan.weights}
    venv = make_vec(plan.env, n_envs=plan.n_envs, seed=plan.seed, **plan.env_kwargs, **scalarise)
    return with_chances(plan, venv)


def arguments(hyperparams: Mapping[str, Any]) -> dict[str, Any]:
    """What an algorithm is given for the settings of a YAML file.

    ``"lin_0.001"`` falls linearly from 0.001 to 0 over the training, as in rl-zoo; ``activation_fn`` in
    ``policy_kwargs`` is the name of a class in ``torch.nn``; anything else is what it is.
    """
    given = {key: _scheduled(value) for key, value in hyperparams.items()}
    networks = given.get("policy_kwargs") or {}
    name = networks.get("activation_fn")
    if isinstance(name, str):
        if not hasattr(nn, name):
            raise InputError(f"activation_fn must be the name of a class in torch.nn, as ReLU, got {name!r}")
        given["policy_kwargs"] = {**networks, "activation_fn": getattr(nn, name)}
    return given


def _scheduled(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("lin_"):
        return LinearSchedule(float(value.removeprefix("lin_")), 0, 1)
    return value


def build_model(plan: Plan, venv: VecEnv, device: str) -> Any:
    """The algorithm with its hyperparameters; with a VecChoices it reports its action probabilities."""
    hyperparams = arguments(plan.hyperparams)
    if plan.algorithm.vector:
        hyperparams.setdefault("ref_point", shipped_reference(plan.env, plan.env_kwargs))
        hyperparams["eval_env"] = make_vec(plan.env, n_envs=EVALUATION_COPIES, **plan.env_kwargs)
    if plan.policy is not None:
        hyperparams |= {"policy": plan.policy, "device": device}
    model = plan.algorithm.cls(env=venv, seed=plan.seed, verbose=0, **hyperparams)
    if isinstance(venv, VecChoices):
        venv.follow(model)
    return model
