"""Settings of the zoo: what an algorithm is trained with in an environment where nothing else is asked for.

Each file of ``zoo/hyperparams`` belongs to one algorithm. Its entry ``default`` holds everywhere. The entry of a
scenario (``sb3_fair/JobHiring-v0``) adds to it in all variants of the scenario (``sb3_fair/JobHiring-Gender-v0``), the
entry of a variant in that variant alone. What an algorithm's file does not say about the task, such as its length and
the form of the environment, is as for the algorithm that it is ``like``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sb3_fair.zoo import names
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.packaged import packaged
from sb3_fair.zoo.registry.algorithms import Algorithm, find_algorithm
from sb3_fair.zoo.registry.registration import bare, find

# Settings of a run that stand among those of the algorithm.
OURS = ("policy", "n_timesteps", "n_envs", "n_eval_episodes")
# Those that may be left out: arguments of SB3's VecNormalize, or true; wrappers by dotted name, as in rl-zoo.
AROUND = ("normalize", "env_wrapper", "vec_env_wrapper")
PLAN_KEYS = (*OURS, *AROUND, "env_kwargs", "weights")
TASK = ("n_timesteps", "n_eval_episodes", "env_kwargs", "weights")
"""Settings that similar algorithms share."""
TUNED = "tuned"
"""Under this key, an entry says how its settings were found."""
DEFAULT = "default"
"""The entry that all others of its file begin with; a preset of all environments."""


def default_settings(
    algorithm: Algorithm, env: str, preset: str | None = None, conf_file: str | Path | None = None
) -> dict[str, Any]:
    """The algorithm's settings in this environment: those of the zoo, or those registered with it.

    :param preset: of the entry ``"<env>: <preset>"``, which is complete, or ``"default"`` for the file's ``default``
    :param conf_file: a YAML file instead of those of the zoo, read in the same way; what it does not say of the task is
        as in the ``default`` of the algorithm's own file
    """
    registered = find(env).hyperparams.get(algorithm.name)
    given = registered if conf_file is None else conf_file
    source, table, beneath = f"{algorithm.name}.yml", _table(algorithm), {}
    like = {} if algorithm.like is None else _table(find_algorithm(algorithm.like))
    if given is not None:
        argument = "hyperparams" if conf_file is None else "conf-file"
        source = argument if isinstance(given, Mapping) else Path(given).name
        beneath, like = _task(table[DEFAULT], PLAN_KEYS), {}
        table = _given(given, env, argument)
        if preset is None and table.keys().isdisjoint((DEFAULT, find(env).scenario, bare(env))):
            raise InputError(f"{argument} must have an entry for {bare(env)}, got {', '.join(map(str, table))}")
    found = _merged(table, bare(env), like) if preset is None else _preset(algorithm, table, bare(env), preset)
    entry = {**beneath, **found}
    for key in entry:
        names.choose(f"setting in {source}", key, [TUNED, *PLAN_KEYS, *algorithm.settings])
    return {key: value for key, value in entry.items() if key != TUNED}


def tuning(algorithm: Algorithm, env: str) -> dict[str, Any] | None:
    """How the zoo's settings of the algorithm for this environment were found: ``trials``, ``seeds`` and ``date`` of
    their tuning, ``by`` which figure, of ``sampled`` actions if so, and where they were noted its values ``before`` and
    ``after``; None: they are inherited."""
    found: dict[str, Any] | None = _table(algorithm).get(bare(env), {}).get(TUNED)
    return found


def has_settings(algorithm: Algorithm, env: str, conf_file: str | Path | None = None) -> bool:
    """Whether somebody chose the form of the environment: it is shipped, or its own settings say it."""
    row = find(env)
    given = conf_file or row.hyperparams.get(algorithm.name)
    return row.is_shipped or (given is not None and "env_kwargs" in _merged(_given(given, env), bare(env), {}))


def _merged(table: Mapping[str, Any], env: str, like: Mapping[str, Any]) -> dict[str, Any]:
    """The default of a table, the entry of the scenario and that of the environment, each added to those before.

    :param like: the table of a similar algorithm, for the tasks
    """
    row, entry = find(env), dict(table.get(DEFAULT, {}))
    for name in dict.fromkeys((row.scenario, env)):
        entry |= _task(like.get(name, {})) | table.get(name, {})
        told = entry.get("env_kwargs")
        if name != env and isinstance(told, Mapping):  # a scenario does not say what makes a variant
            entry["env_kwargs"] = {key: value for key, value in told.items() if key not in row.defaults}
    return entry


def _preset(algorithm: Algorithm, table: Mapping[str, Any], env: str, preset: str) -> dict[str, Any]:
    """An entry as it stands in the table, complete."""
    name = DEFAULT if preset == DEFAULT else f"{env}: {preset}"
    if name not in table:
        presets = [key.split(": ")[1] for key in table if key.startswith(f"{env}: ")]
        known = f"one of {', '.join(presets)}" if presets else "left out"
        raise InputError(f"preset must be {known} for {algorithm.name} on {env}, got {preset!r}")
    return dict(table[name])


def _task(entry: Mapping[str, Any], keys: Sequence[str] = TASK) -> dict[str, Any]:
    return {key: entry[key] for key in keys if key in entry}


def _table(algorithm: Algorithm) -> dict[str, Any]:
    """Environment ID -> settings, as shipped."""
    return packaged("hyperparams", algorithm.name)


def _given(given: Any, env: str, argument: str = "conf-file") -> dict[str, Any]:
    """Environment ID -> settings, of a file or registered with the environment.

    :param argument: that gave them
    """
    if isinstance(given, Mapping):
        return {bare(env): dict(given)}
    try:
        table = yaml.safe_load(Path(given).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{argument} must be a YAML file, got {str(given)!r}: {error}") from error
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise InputError(f"{argument} must have settings by environment ID, got {str(given)!r}")
    return table
