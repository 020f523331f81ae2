"""The registry: one row per environment ID, the shipped ones and those that users add with ``sb3_fair.register``.

The shipped IDs exist after ``import sb3_fair``. ``"module:ID"`` imports the module that registers the ID first, also
in the workers of a ``SubprocVecEnv``; for the shipped ones the module is ``sb3_fair``.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium as gym

from sb3_fair.fairness import FairnessSpec
from sb3_fair.fairness.arguments import Count, checked
from sb3_fair.fairness.descriptions import check_words
from sb3_fair.zoo.names import InputError, choose, why

SHIPPED = "sb3_fair"
"""The module of the IDs that come with the package."""


@checked
@dataclass(frozen=True)
class Row:
    """What is known of an ID: the arguments of :func:`register`, and the module whose import registers it, if any
    does.
    """

    id: str
    entry_point: Any
    fairness: Any = None
    max_episode_steps: Count | None = None
    rules: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    reference_point: Mapping[str, float] | None = None
    title: str | None = None
    words: Mapping[str, Any] = field(default_factory=dict)
    hyperparams: Mapping[str, Mapping[str, Any] | str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    module: str | None = None

    @property
    def name(self) -> str:
        """The ID with its module, as processes find it that have not imported the module."""
        return self.id if self.module is None else f"{self.module}:{self.id}"

    @property
    def is_shipped(self) -> bool:
        return self.module == SHIPPED

    @property
    def scenario(self) -> str:
        """The first ID that was registered with the same entry point: ``sb3_fair/Lending-v0`` of
        ``sb3_fair/Lending-Long-v0``."""
        return next((row.id for row in ROWS.values() if row.entry_point == self.entry_point), self.id)


ROWS: dict[str, Row] = {}
"""All registered IDs, in the order of their registration."""


def register(
    id: str,
    entry_point: Any,
    fairness: FairnessSpec | str | Callable[..., FairnessSpec] | None = None,
    *,
    max_episode_steps: int | None = None,
    rules: Mapping[str, Callable[..., Any]] | None = None,
    reference_point: Mapping[str, float] | None = None,
    title: str | None = None,
    words: Mapping[str, Any] | None = None,
    hyperparams: Mapping[str, Any] | None = None,
    **defaults: Any,
) -> None:
    """Registers an environment as a fairness MDP, under an ID that takes the keywords of the shipped IDs for
    measurement and reward.

    ``gym.make``, ``gym.make_vec``, ``sb3_fair.make_vec`` and SB3's ``make_vec_env`` make it; so do the commands, with
    ``--env module:ID``.

    :param id: such as ``"Loans-v0"`` or ``"bank/Loans-v0"``
    :param entry_point: a class or function that makes a Gymnasium environment, a World class,
        ``"module:name"`` of either, or the ID of an environment that is registered with Gymnasium
    :param fairness: a :class:`~sb3_fair.fairness.FairnessSpec`, ``"module:name"`` of one, or a function that makes one
        of the environment's settings; None: the environment has a ``fairness_spec`` itself, as Worlds do
    :param max_episode_steps: steps after which an episode is truncated, inside the fairness wrappers; Worlds end their
        episodes themselves
    :param rules: baselines by name: functions of an observation that return an action; of a World, functions of the
        world that return probabilities of actions (n, n_actions)
    :param reference_point: number by objective, against which the hypervolume of trade-offs is measured
    :param title: where the environment comes from, in a few words
    :param words: what reports call things: ``"R"``, the reward, ``"favourable"``, the favourable decision ("hired"),
        ``"people"`` ("applicants"), ``"groups"`` (name by label), and measures of the environment's own. Of the reward
        and of measures a title, or a dict with ``title``, ``sentence``, ``unit`` and ``better``: ``"higher"``,
        ``"lower"`` or ``"zero"``
    :param hyperparams: settings by algorithm. They are a dict like an entry of the files in ``zoo/hyperparams``, or the
        path of a YAML file with such entries, as ``sb3-fair tune`` writes it. A relative path starts at the folder of
        the module
    :param defaults: keyword arguments of the ID
    :raises TypeError: if the ID, the entry point or the spec is something else
    :raises ValueError: if the ID is no name or is registered already, or another argument is not allowed
    """
    caller = sys._getframe(1).f_globals
    before = ROWS.get(id) if isinstance(id, str) else None
    if before is not None and _same_file(before.module, caller):  # a script that workers or the command line import
        return
    add(
        Row(
            id=_new_id(id),
            entry_point=_entry_point(entry_point),
            fairness=_fairness(fairness),
            max_episode_steps=max_episode_steps,
            rules=rules or {},
            reference_point=reference_point,
            title=title,
            words=check_words(words or {}),
            hyperparams=_beside(caller, hyperparams or {}),
            defaults=defaults,
            module=None if caller["__name__"] in ("__main__", "__mp_main__") else caller["__name__"],
        )
    )


def add(row: Row) -> None:
    """Registers the ID of a row with Gymnasium and puts the row into the table.

    :raises ValueError: if Gymnasium refuses the ID
    """
    try:
        gym.register(
            row.id,
            entry_point="sb3_fair.zoo.registry.build:make",
            vector_entry_point="sb3_fair.zoo.registry.build:make_gymnasium_vec",
            kwargs={"env_id": row.id},
        )
    except gym.error.Error as error:
        raise ValueError(f"id must be one that Gymnasium takes, got {row.id!r}: {error}") from error
    ROWS[row.id] = row


def bare(env_id: str) -> str:
    """The ID without a module in front."""
    return env_id.rpartition(":")[2]


def find(env_id: str) -> Row:
    """The row of an ID; its module is imported first if need be. An ID that only Gymnasium knows gets a row of its own,
    without a fairness spec.

    :param env_id: bare (``"Loans-v0"``) or with its module (``"my_envs:Loans-v0"``)
    """
    if not isinstance(env_id, str):
        raise InputError(f"env must be an ID, got {env_id!r}")
    module, separator, name = env_id.rpartition(":")
    if name not in ROWS and separator and module != SHIPPED:
        imported = load_module("env", module, env_id)
        if name not in ROWS and name not in gym.registry:
            there = [row.id for row in ROWS.values() if row.module == module]
            told = f"registers {', '.join(there)}" if there else "registers none"
            raise InputError(
                f"env must be an ID that its module registers, got {env_id!r}: {module} "
                f"({getattr(imported, '__file__', None)}) {told}"
            )
    if name in ROWS:
        return ROWS[name]
    if name in gym.registry and module != SHIPPED:
        return Row(name, env_id, module=module or None)
    own = "" if separator else f" (an environment of your own: my_module:{name})"
    choose("environment", name, gym.registry, own)
    raise InputError(f"env must be an ID without that module, got {env_id!r}")  # sb3_fair:CartPole-v1 is none of ours


def load_module(what: str, module: str, given: str) -> Any:
    """A module, imported; ``what``: the argument that names it as ``given``."""
    try:
        return import_module(module)
    except Exception as error:
        raise InputError(f"{what} must name a module that can be imported, got {given!r}: {why(error)}") from error


def _same_file(module: str | None, caller: Mapping[str, Any]) -> bool:
    """Whether a module other than the caller was loaded from the caller's file."""
    names = ("__main__", "__mp_main__") if module is None else (module,)
    files = {getattr(sys.modules.get(name), "__file__", None) for name in names if name != caller["__name__"]}
    return caller.get("__file__") is not None and caller["__file__"] in files


def _new_id(id: Any) -> str:
    if not isinstance(id, str):
        raise TypeError(f"id must be a text such as 'Loans-v0', got {id!r}")
    if id in gym.registry:
        where = f" by {ROWS[id].module}" if id in ROWS and ROWS[id].module else ""
        raise ValueError(
            f"id must be new, got {id!r}, which is registered already{where}; gymnasium.registry.pop({id!r}) frees it"
        )
    known = gym.envs.registration.ENV_ID_RE.fullmatch(id)
    if known is None or known["version"] is None:
        raise ValueError(f"id must be a name with a version, such as 'Loans-v0', got {id!r}")
    return id


def _entry_point(given: Any) -> Any:
    if isinstance(given, str):
        if ":" not in given and given not in gym.registry:
            raise ValueError(f"entry_point must be 'module:name' or an ID that Gymnasium knows, got {given!r}")
    elif not callable(given):
        raise TypeError(f"entry_point must be a class, a function, 'module:name' or an ID, got {given!r}")
    return given


def _fairness(given: Any) -> Any:
    if given is None or callable(given) or (isinstance(given, str) and ":" in given):
        return given
    if not isinstance(given, FairnessSpec):
        raise TypeError(f"fairness must be a FairnessSpec, 'module:name' or a function that makes one, got {given!r}")
    return given


def _beside(caller: Mapping[str, Any], given: Any) -> Any:
    """Settings whose relative paths start at the folder of the module that registers an ID."""
    if not isinstance(given, Mapping):
        return given
    folder = Path(caller.get("__file__") or ".").parent
    return {key: str(folder / entry) if isinstance(entry, str | Path) else entry for key, entry in given.items()}


HIRING = "hiring:HiringWorld"
DOUGHNUT = "doughnut:DoughnutWorld"
LOANS = "loans:LoanAllocationWorld"
LENDING = "lending:LendingWorld"
ATTENTION = "attention:AttentionWorld"
EPIDEMIC = "epidemic:EpidemicWorld"
FRAUD = "fraud:FraudWorld"
POPULATIONS = {"": "belgian", "-Gender": "gender", "-NationalityGender": "nationality-gender", "-Marital": "marital"}
BIASES = {"": 0, "-BiasMen": 1, "-BiasBelgianMen": 2}


def _shipped() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, World and settings of every scenario that comes with the package."""
    for (people, population), (preference, bias) in product(POPULATIONS.items(), BIASES.items()):
        yield f"JobHiring{people}{preference}", HIRING, {"population": population, "bias": bias}
    yield "JobHiring-Small", HIRING, {"team_size": 20, "episode_length": 100}
    yield "FraudDetection", FRAUD, {}
    yield "FraudDetection-BiasEU", FRAUD, {"bias": 1}
    yield "FraudDetection-BiasEUM0", FRAUD, {"bias": 2}
    yield "FraudDetection-Static", FRAUD, {"customer_dynamics": False, "fraud_proportion": 0.5}
    yield "FraudDetection-MultiMAuS", FRAUD, {"preset": "multimaus"}
    yield "Doughnut", DOUGHNUT, {}
    yield "Doughnut-Small", DOUGHNUT, {"n_people": 3, "episode_length": 12}
    yield "Doughnut-Clock", DOUGHNUT, {"clock": True, "end": "terminated"}
    yield "LoanAllocation", LOANS, {}
    yield "LoanAllocation-Code", LOANS, {"start_levels": (4, 4, 7, 7)}
    yield "LoanAllocation-Gaussian", LOANS, {"credit": "gaussian"}
    yield "HomeVisits", "visits:HomeVisitsWorld", {}
    yield "VaccineDelivery", "vaccines:VaccineDeliveryWorld", {}
    yield "Lending", LENDING, {}
    yield "Lending-Long", LENDING, {"episode_length": 10_000}
    yield "Lending-Oracle", LENDING, {"oracle_outcomes": True}
    yield "Lending-Basic", LENDING, {"observation": "basic"}
    yield "AttentionAllocation", ATTENTION, {}
    yield "AttentionAllocation-Units", ATTENTION, {"action_mode": "units"}
    yield "AttentionAllocation-Discrete", ATTENTION, {"action_mode": "allocation"}
    yield "AttentionAllocation-Equal", ATTENTION, {"increase_rate": 0.1}
    yield "EpidemicControl", EPIDEMIC, {}
    yield "EpidemicControl-Hub", EPIDEMIC, {"initial_infected": (0,), "burn_in": 1}
    yield "AllelopathicHarvest", "harvest.ego:EgoHarvestWorld", {}
    yield "AllelopathicHarvest-All", "harvest.slots:HarvestVecEnv", {}
    yield "AllelopathicHarvest-AllTwins", "harvest.slots:HarvestTwinsVecEnv", {}


WORLDS = {
    row.id: row
    for row in (
        Row(f"sb3_fair/{name}-v0", f"sb3_fair.zoo.envs.{world}", defaults=settings, module=SHIPPED)
        for name, world, settings in _shipped()
    )
}
"""The shipped scenarios."""
TABLE = Row("sb3_fair/Table-v0", "sb3_fair.zoo.envs.table:TableWorld", module=SHIPPED)
"""People of a table that whoever makes the environment must give."""


def register_all() -> None:
    """Registers the shipped scenarios; what is registered already stays as it is."""
    for row in (*WORLDS.values(), TABLE):
        if row.id not in gym.registry:
            add(row)
