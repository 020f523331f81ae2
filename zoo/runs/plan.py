"""The plan of a training run: algorithm, environment and all settings, from defaults and what is asked for."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sb3_fair.common.plain import plain
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.fairness.arguments import described, fits, hints
from sb3_fair.fairness.validation import integer, number
from sb3_fair.zoo import names
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import FORMERLY, Algorithm, find_algorithm
from sb3_fair.zoo.registry.pairs import check_pair, fitting, named_in_full
from sb3_fair.zoo.registry.registration import SHIPPED, find
from sb3_fair.zoo.runs.settings import AROUND, OURS, PLAN_KEYS, default_settings, has_settings

AUDIT = ("SP", "EO", "OAE", "PP", "PE", "IF", "CSC")
"""Notions that every final evaluation measures, besides the objectives."""
SCHEDULE = re.compile(r"lin(_\d[\d.]*(e-?\d+)?){1,2}")
"""A number that falls linearly to 0, as in rl-zoo: ``"lin_0.001"``; or to another one: ``"lin_0.3_0.02"``."""

_WORDS = {NoneType: "null", bool: "true or false", Callable: "a schedule such as lin_0.001", dict: "settings by name"}


@dataclass(frozen=True)
class Plan:
    """A training run, complete: what ``config.yml`` holds.

    :param env: ID with the module that registers it, if that can be imported
    :param weights: of the objectives in the reward of an algorithm that learns from one number; None for others
    :param audit: notions measured in the final evaluation
    :param env_kwargs: keyword arguments of the ID, with ``objectives``
    :param hyperparams: arguments of the algorithm
    :param normalize: arguments of SB3's VecNormalize around the copies of the environment; None: there is none
    :param env_wrapper: Gymnasium wrappers around every copy, innermost first: a dotted name, a dict of such a name and
        arguments, or a list of these; the copies are single environments then, and much slower
    :param vec_env_wrapper: the same for SB3's wrappers around all copies at once
    """

    algo: str
    env: str
    seed: int
    n_timesteps: int
    n_envs: int
    policy: str | None
    n_eval_episodes: int = 10
    weights: tuple[float, ...] | None = None
    audit: tuple[str, ...] = AUDIT
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    hyperparams: dict[str, Any] = field(default_factory=dict)
    normalize: dict[str, Any] | None = None
    env_wrapper: Any = None
    vec_env_wrapper: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "algo", FORMERLY.get(self.algo, self.algo))

    @property
    def algorithm(self) -> Algorithm:
        return find_algorithm(self.algo)

    @property
    def objectives(self) -> tuple[str, ...]:
        return tuple(self.env_kwargs["objectives"])

    @property
    def config(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts, from which :meth:`from_config` rebuilds the plan."""
        config: dict[str, Any] = plain(self)
        return {key: value for key, value in config.items() if key not in AROUND or value is not None}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Plan":
        entries = dict(config)
        for key in ("weights", "audit"):
            if entries.get(key) is not None:
                entries[key] = tuple(entries[key])
        return cls(**entries)

    @classmethod
    def of_run(cls, run: RunFolder) -> "Plan":
        """What a run trained; refused if ``config.yml`` says something else than a run writes, or names code of
        others.
        """
        from sb3_fair.zoo.registry.layers import check_wrappers

        try:
            plan = cls.from_config(config := run.config)
            _check_settings(_by_name("env_kwargs", plan.env_kwargs))
            if not (run.trust or run.is_ours):
                _check_modules(plan)
            known = names.environment(plan.env, fairness="spec" in plan.env_kwargs)
            if plan.env != known:
                raise ValueError(f"env must have its prefix, as in {known}, got {plan.env!r}")
            _objectives(plan.env_kwargs.get("objectives"))
            for name in config["audit"]:
                names.notions(name)
            plan = plan.checked()
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"{run.path / 'config.yml'} must hold the settings of a run: {error}") from error
        if not (run.trust or run.is_ours):
            check_wrappers(plan)
        return plan

    def checked(self) -> "Plan":
        """The plan, if its settings are of the kinds that the algorithm wants."""
        with names.input_errors():
            for name in ("n_timesteps", "n_envs", "n_eval_episodes", "seed"):
                integer(name, getattr(self, name), name != "seed")
        given = _by_name("hyperparams", self.hyperparams)
        for name in given:
            names.choose("hyperparameter", name, self.algorithm.settings)
        hyperparams = {name: of_its_kind(self.algorithm.cls, name, value) for name, value in given.items()}
        return replace(self, hyperparams=hyperparams, normalize=_normalisation(self.normalize))


def make_plan(
    algo: str,
    env: str,
    *,
    fairness: str | None = None,
    seed: int = 0,
    objectives: Sequence[str] | None = None,
    audit: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    n_timesteps: int | None = None,
    n_envs: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    hyperparams: Mapping[str, Any] | None = None,
    preset: str | None = None,
    conf_file: str | Path | None = None,
    own_code: bool = True,
) -> Plan:
    """The defaults of the algorithm for this environment, with everything that is given in their place.

    :param fairness: ``"module:name"`` of a fairness spec for the environment, or in place of its own
    :param preset: other defaults than the usual ones, e.g. ``"paper"``
    :param conf_file: a YAML file with defaults instead of those of the zoo, as ``sb3-fair tune`` writes them
    :param own_code: whether wrappers and a ``spec`` in ``env_kwargs`` may be of any module, whose code runs
    :raises InputError: if a name is unknown, weights and objectives do not match, or the algorithm makes no sense in
        the environment
    """
    algorithm = find_algorithm(algo)
    env = names.environment(env, fairness is not None or "spec" in (env_kwargs or {}))
    defaults = default_settings(algorithm, env, preset, conf_file)
    usual = _by_name("env_kwargs", defaults.pop("env_kwargs", {}))
    settings = {**usual, **(env_kwargs or {})}
    _check_settings(settings)
    if "spec" in settings and fairness is None and not own_code:
        raise InputError(
            f"spec must be left out of the environment's settings: give --fairness, got {settings['spec']!r}"
        )
    if fairness is not None:
        settings["spec"] = fairness
    if not find(env).is_shipped:
        settings.setdefault("emit", "difference")  # whose sum is the notion at the end, as tables are read
    if objectives is None and "objectives" not in (env_kwargs or {}) and not has_settings(algorithm, env, conf_file):
        settings["objectives"] = fitting(settings["objectives"], env, settings)
    if objectives is not None:
        settings["objectives"] = list(objectives)
    asked = _objectives(settings.get("objectives"))
    wishes = dict(hyperparams or {})
    for name in wishes:
        names.choose("hyperparameter", name, [*algorithm.settings, *OURS, *AROUND])
    given = {**defaults, **wishes}
    if not (given.get("env_wrapper") or given.get("vec_env_wrapper")):  # which change what it is
        check_pair(algorithm, env, settings, given)
    chosen = settings["objectives"] = named_in_full(env, settings)
    ours = {key: defaults.pop(key) for key in PLAN_KEYS if key in defaults}
    ours |= {key: wishes.pop(key) for key in PLAN_KEYS if key in wishes}
    ours |= {key: value for key, value in (("n_timesteps", n_timesteps), ("n_envs", n_envs)) if value is not None}
    if weights is not None and algorithm.vector:
        raise InputError(f"weights must be left out for {algo}, which learns all trade-offs, got {list(weights)}")
    default_weights = _default_weights(usual.get("objectives"), ours.pop("weights", None))
    plan = Plan(
        algo=algo,
        env=env,
        seed=seed,
        weights=None if algorithm.vector else _weights(weights, default_weights, asked, chosen),
        audit=tuple(AUDIT if audit is None else audit),
        env_kwargs=settings,
        hyperparams={**{key: _about(chosen, value) for key, value in defaults.items()}, **wishes},
        **{"policy": algorithm.policy, **ours},
    ).checked()
    if not own_code:
        from sb3_fair.zoo.registry.layers import check_wrappers

        check_wrappers(plan)
    return plan


def _check_modules(plan: Plan) -> None:
    """Refuses an ID or a fairness spec whose module would be imported."""
    known = plan.env.rpartition(":")[0] in ("", SHIPPED, *sys.modules)
    if not known or "spec" in plan.env_kwargs:
        name = str(plan.env_kwargs["spec"]) if known else plan.env
        raise InputError(
            f"env and spec must name no modules, whose code would run, unless --trust is given, got {name!r}"
        )


def _check_settings(env_kwargs: Mapping[str, Any]) -> None:
    if "scalarise" in env_kwargs:
        raise InputError("scalarise must be left out of the environment's settings: the reward is made with weights")
    if "env_id" in env_kwargs:
        raise InputError("env_id must be left out of the environment's settings: the ID says which it is")


def _by_name(name: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InputError(f"{name} must be settings by name, got {given!r}")
    return given


def _objectives(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise InputError(f"objectives must be a list of names, such as [R, SP], got {given!r}")
    if len(set(given)) < len(given):
        raise InputError(f"objectives must name none twice, got {':'.join(given)}")
    return tuple(given)


def _default_weights(objectives: Any, given: Any) -> dict[str, float]:
    """Those of an entry by the names of its objectives."""
    if given is None:
        return {}
    names_ = _objectives(objectives)
    if not isinstance(given, list | tuple) or len(given) != len(names_):
        raise InputError(f"weights must be one number per objective {':'.join(names_)}, got {given!r}")
    return dict(zip(names_, given, strict=True))


def _normalisation(given: Any) -> dict[str, Any] | None:
    if given is None or isinstance(given, bool):
        return {} if given else None
    if not isinstance(given, dict):
        raise InputError(f"normalize must be true, false or arguments of VecNormalize by name, got {given!r}")
    return {key: of_its_kind(VecNormalize, key, value, "argument of normalize") for key, value in given.items()}


def _about(objectives: Sequence[str], value: Any) -> Any:
    """Settings per objective without those of objectives that are not there."""
    if not isinstance(value, dict) or not value.keys() & {"R", *AUDIT}:
        return value
    return _by_objective(objectives, value) or None


def _by_objective(objectives: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of those objectives that have one; what is said of SP holds for SP@gender, unless that is named."""
    keys = {name: name if name in values else name.partition("@")[0] for name in objectives}
    return {name: values[key] for name, key in keys.items() if key in values}


def _weights(
    given: Sequence[float] | None, default: Mapping[str, float], asked: Sequence[str], objectives: Sequence[str]
) -> tuple[float, ...]:
    """One weight per objective; by default those by name, where they are all known, else performance alone counts.

    :param given: one per objective, or per one that was ``asked`` for
    """
    if given is not None and len(given) == len(asked):
        given = list(_by_objective(objectives, dict(zip(asked, given, strict=True))).values())
    if given is None:
        known = _by_objective(objectives, default)
        known = known if len(known) == len(objectives) else {"R": 1.0}
        given = [known.get(name, 0.0) for name in objectives]
        if not any(given):
            raise InputError(f"weights must be given for objectives without R, got {':'.join(objectives)} alone")
    if len(given) != len(objectives):
        raise InputError(f"weights must be one number per objective {':'.join(objectives)}, got {list(given)}")
    with names.input_errors():
        return tuple(number("each of weights", weight) for weight in given)


def of_its_kind(cls: type, name: str, value: Any, what: str = "hyperparameter") -> Any:
    """``value`` for the argument ``name`` of an algorithm, a whole number as int where one is wanted.

    :raises InputError: if it is of another kind than the constructor says, or out of its range
    """
    if name.endswith("_kwargs") and not _is_finite(value):
        raise InputError(f"{what} {name!r} must be finite, got {value!r}")
    hint = hints(vars(cls)["__init__"], VecEnv=VecEnv).get(name, Any)  # SB3's aliases name VecEnv
    if isinstance(value, str) and SCHEDULE.fullmatch(value) and fits(name, SCHEDULE.fullmatch, hint):
        return value
    if isinstance(value, float) and value.is_integer() and not fits(name, value, hint):
        value = int(value)
    if not fits(name, value, hint):
        raise InputError(f"{what} {name!r} must be {described(name, value, hint, _WORDS)}, got {value!r}")
    return value


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict | list | tuple):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or isfinite(value)
