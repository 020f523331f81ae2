"""Evaluates a model from a file."""

import io
import json
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from stable_baselines3.common.utils import check_for_correct_spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_fair.common.connection import connected
from sb3_fair.common.front import EvaluatedPolicy
from sb3_fair.common.means import VecMeans
from sb3_fair.common.run_folder import NORMALISER, DamagedError, RunFolder
from sb3_fair.common.shell import shell_line
from sb3_fair.fairness import NOTIONS
from sb3_fair.fairness.descriptions import Words
from sb3_fair.wrappers.choices import random_actions
from sb3_fair.wrappers.infos import figures_in
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.vector_reward import PERFORMANCE, VecVectorReward
from sb3_fair.zoo import names
from sb3_fair.zoo.evaluation.evaluate import (
    COPIES,
    evaluate_model,
    evaluate_rules,
    evaluation_env,
    words_in,
)
from sb3_fair.zoo.names import InputError, input_errors, one_line, why
from sb3_fair.zoo.registry.algorithms import find_algorithm, which_saved
from sb3_fair.zoo.registry.build import unseen
from sb3_fair.zoo.registry.layers import copies
from sb3_fair.zoo.registry.registration import ROWS, bare
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.weights import check_weights

DISPARITIES = ("d_s", "d_l")
"""Short- and long-term disparity: after the last step, and on average over all steps."""
SCHEDULES = {"learning_rate": 0.0, "lr_schedule": lambda _: 0.0, "clip_range": lambda _: 0.0}
"""Only learning needs those of a model, and being pickled code, only its own version of Python could read them."""


def evaluate_file(
    path: str | Path,
    algo: str,
    env: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    fairness: str | None = None,
    audit: Sequence[str] | None = None,
    n_eval_episodes: int = 20,
    seed: int = 10_000,
    device: str = "auto",
    trust: bool = True,
) -> tuple[list[EvaluatedPolicy], list[EvaluatedPolicy], Words]:
    """A model on fresh episodes, and the rules of the environment on the same ones.

    ``vecnormalize.pkl`` beside the model is taken for the scale of its observations. An environment that is not of this
    package has no rules; what it publishes is measured: objectives, notions if it is a fairness MDP, disparities.

    :param path: a ``.zip`` that SB3, sb3-contrib or one of our algorithms saved, which can run code when it is loaded
    :param algo: the algorithm that saved it
    :param env: ID of any environment that Gymnasium can make, also ``"module:ID"``
    :param env_kwargs: its keyword arguments, such as the memory that the model knows
    :param fairness: ``"module:name"`` of a fairness spec for the environment, or in place of its own
    :param audit: notions to measure; None: all that the environment can have. An environment that is not of this
        package needs ``fairness`` for it
    :param seed: of the first copy of the environment
    :param trust: whether the file may run code, as with SB3's ``load``, also if it is not of a run of this user's; the
        command line asks for it
    :return: the policies of the model, several if it has learned a trade-off, the rules, and what the environment calls
        its measures
    :raises InputError: if there is no such model, Gymnasium cannot make the environment, or the model's observations or
        actions are not those of the environment, or another algorithm saved it
    :raises DamagedError: if ``vecnormalize.pkl`` cannot be read
    :raises PermissionError: if the file is not to be trusted
    """
    path = Path(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"model must be a .zip that {algo} saved, got {str(path)!r}")
    algorithm = find_algorithm(algo)
    known = names.environment(env, fairness=True)
    settings: dict[str, Any] = {"objectives": [PERFORMANCE], **(env_kwargs or {})}
    if fairness is not None:
        settings["spec"] = fairness
    if ours := fairness is not None or bare(known) in ROWS:
        settings |= unseen(known, settings)
    plan = Plan(
        algo=algo,
        env=known,
        seed=seed,
        n_timesteps=0,
        n_envs=1,
        policy=algorithm.policy,
        n_eval_episodes=n_eval_episodes,
        audit=tuple(NOTIONS if audit is None else audit),
        env_kwargs=settings,
    )
    size = min(COPIES, n_eval_episodes)
    if audit is not None and not ours:
        raise InputError(f"audit must be left out: {env} measures what its own spec says, unless fairness is given")
    with ExitStack() as stack:
        foreign = None if ours else stack.enter_context(closing(_foreign(plan.env, size, env_kwargs or {})))
        model = _load(plan, path, device, foreign, trust)
        with input_errors():
            if algorithm.vector and ours:
                settings["objectives"] = list(model.objective_names)
                if model.emit is not None:
                    settings.setdefault("emit", model.emit)
            n_envs = COPIES if algorithm.vector else size
            venv = stack.enter_context(closing(evaluation_env(plan, n_envs))) if foreign is None else foreign
            words = words_in(venv)
            if attribute(venv, "objective_names") is None:
                rewards, emit = (model.objective_names, model.emit) if algorithm.vector else ([PERFORMANCE], None)
                venv = VecVectorReward(venv, rewards, emit=emit or "level")
            if algorithm.vector:
                policies = [*model.coverage_set(n_eval_episodes, eval_env=venv, seed=seed)]
                return policies, evaluate_rules(plan, seed=seed) if ours else [], words
            check_for_correct_spaces(connected(model, venv), model.observation_space, model.action_space)
        averaged = partial(VecMeans, names=_disparities(venv))
        policy = evaluate_model(plan, model, averaged(venv), n_eval_episodes, seed)
        rules = evaluate_rules(plan, seed=seed, around=averaged) if ours else []
        return [policy], rules, words


def _load(plan: Plan, path: Path, device: str, venv: VecEnv | None, trust: bool) -> Any:
    """The model, to predict, with the scale of its observations.

    :param venv: what the scale is for; None: the plan's environment, which must be of this package
    """
    run = RunFolder(path.parent, trust=trust)
    content, scale = run.read_program(path.name), run.read_program(NORMALISER)
    assert content is not None
    if scale is None and run.is_run and run.config.get("normalize") is not None:
        raise InputError(f"{run.normaliser} must be beside a model that was trained with normalize, but is missing")
    if run.is_run and (run.config.get("env_wrapper") or run.config.get("vec_env_wrapper")):
        command = shell_line(["evaluate", "--run", str(path.parent)])
        raise InputError(f"model must see its environment in the wrappers of its run: use {command}")
    try:
        _check_algorithm(plan, path, content)
        model = plan.algorithm.cls.load(io.BytesIO(content), device=device, custom_objects=SCHEDULES)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"model must be a .zip that {plan.algo} saved, got {str(path)!r} ({why(error)})") from error
    check_weights(model)
    if scale is None:
        return model
    with closing(copies(plan, 1)) if venv is None else nullcontext(venv) as scaled:
        try:
            normaliser = pickle.loads(scale)
            normaliser.set_venv(scaled)
        except AssertionError as error:  # of SB3, about spaces
            raise InputError(
                f"env must have the observations that {run.normaliser} is the scale of, got {plan.env} ({error})"
            ) from error
        except Exception as error:
            raise DamagedError(run.normaliser, f"it is no scale ({why(error)})") from error
    model._vec_normalize_env = normaliser
    return model


def _check_algorithm(plan: Plan, path: Path, content: bytes) -> None:
    """Refuses a file whose attributes are those of models of other algorithms."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        attributes = json.loads(file.read("data"))
    saved = which_saved(attributes)
    if saved and plan.algo not in saved:
        raise InputError(f"algo must be {' or '.join(saved)}, which saved {str(path)!r}, got {plan.algo!r}")


def _foreign(env: str, n: int, env_kwargs: Mapping[str, Any]) -> VecEnv:
    """Copies of somebody else's environment."""
    try:
        with input_errors():
            return DummyVecEnv([lambda: gym.make(env, **env_kwargs)] * n)
    except (ImportError, gym.error.Error) as error:  # of a package that it needs
        raise InputError(f"env must be an ID that Gymnasium can make, got {env!r}: {one_line(error)}") from error


def _disparities(venv: VecEnv) -> list[str]:
    """The disparities that every step publishes."""
    venv.reset()
    infos = venv.step(random_actions(venv))[3]
    return [name for name in DISPARITIES if name in figures_in(infos[0])]
