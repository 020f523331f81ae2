"""The env stack of an ID: a World or copies of a Gymnasium env, in the wrappers that make it a fairness MDP."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

from sb3_fair.common.monitor import LightMonitor
from sb3_fair.fairness import NOTIONS, FairnessSpec, SlidingWindow
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.descriptions import DISPARITY
from sb3_fair.fairness.histories.history import History
from sb3_fair.fairness.validation import did_you_mean, one_of
from sb3_fair.wrappers.faces import Face, VecFace
from sb3_fair.wrappers.fmdp import FairMDP, Probabilities, VecFairMDP
from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.layer import VecLayer, attribute, max_steps_of
from sb3_fair.wrappers.memories import MemoryLike
from sb3_fair.wrappers.memory import MemoryAugmentation, VecMemoryAugmentation
from sb3_fair.wrappers.scalarise import Scalarise, VecScalarise, Weights
from sb3_fair.wrappers.scheme import FairnessScheme, SchemeLike, VecFairnessScheme
from sb3_fair.wrappers.vector_reward import ARRAY_REWARD, PERFORMANCE, Emit, VectorReward, VecVectorReward
from sb3_fair.zoo.envs.world import World, WorldEnv, WorldVecEnv
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.registration import ROWS, Row, find, load_module

KINDS = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}
Layer = tuple[tuple[type[Face], type[VecFace]], dict[str, Any]]


@checked
@dataclass(frozen=True)
class Measurement:
    """What is measured and what the reward is made of; keyword arguments of every registered ID.

    :param objectives: ``"R"``, notions and disparities (``"d_s"``) that make up ``info["vector_reward"]``; None:
        performance reward only
    :param audit: further notions that are measured but not rewarded
    :param window: number of most recent decisions that the notions look at; or
    :param history: any history recipe, or a dict notion -> history
    :param distance: distance between individuals for IF, LIP and CSC
    :param emit: ``"level"``, ``"difference"`` or ``"terminal"``: see ``VectorReward``
    :param undefined: stands for undefined notions in the vector
    :param scalarise: weights or a function that make the scalar reward of the vector: see ``Scalarise``
    :param vector: the reward is the vector itself (MO-Gymnasium's convention)
    :param probabilities: ``"policy"`` or ``"executed"``: see ``FairMDP``
    :param reset_on_episode: whether every episode begins with an empty history
    :param spec: replaces the environment's own fairness spec: a spec, ``"module:name"`` of one, or a function that
        makes one of the environment's settings
    :param scheme: replaces the scenario's own reward: see ``FairnessScheme``
    :param memory: what observations remember of the past: see ``MemoryAugmentation``; None: nothing is added
    :param encoder: how networks are shown the memory
    :param flatten: whether observations with a memory are vectors
    """

    objectives: Sequence[str] | None = None
    audit: Sequence[str] = ()
    window: int | None = None
    history: History | dict[str, History] | None = None
    distance: Any = None
    emit: Emit = "level"
    undefined: float = 0.0
    scalarise: Weights | None = None
    vector: bool = False
    probabilities: Probabilities = "policy"
    reset_on_episode: bool = True
    spec: FairnessSpec | str | Callable[..., FairnessSpec] | None = None
    scheme: SchemeLike | None = None
    memory: MemoryLike | None = None
    encoder: str = "log"
    flatten: bool = False

    def __post_init__(self) -> None:
        for argument in ("objectives", "audit"):
            given = getattr(self, argument)
            object.__setattr__(self, argument, None if given is None else tuple(map(str, given)))
        for name in filter(_is_notion, self.objectives or ()):
            one_of("each of objectives", name.partition("@")[0], NOTIONS, "'R', a disparity (d_...)")
        if self.window is not None and self.history is not None:
            raise ValueError(f"window and history exclude each other, got {self.window!r} and {self.history!r}")
        if self.objectives is None and (self.scalarise is not None or self.vector):
            raise ValueError("scalarise and vector need objectives, e.g. objectives=('R', 'SP')")
        if self.memory is None and (self.encoder, self.flatten) != ("log", False):
            raise ValueError("encoder and flatten need a memory, e.g. memory='full'")
        if self.scalarise is not None and self.vector:
            raise ValueError("scalarise and vector exclude each other: the reward is one number or the vector")

    def applied_to(self, spec: FairnessSpec) -> FairnessSpec:
        """The environment's spec with the notions, the history and the distance that were asked for."""
        changes: dict[str, Any] = {}
        if self.objectives is not None or self.audit:
            names = dict.fromkeys((*(self.objectives or ()), *self.audit))
            changes["notions"] = tuple(filter(_is_notion, names))
        changes["history"] = self.history if self.window is None else SlidingWindow(self.window)
        changes["distance"] = self.distance
        return replace(spec, **{name: value for name, value in changes.items() if value is not None})


def _is_notion(objective: str) -> bool:
    return objective != PERFORMANCE and not objective.startswith(DISPARITY)


def _found(what: str, path: str) -> Any:
    """What ``"module:name"`` names, given as the argument ``what``."""
    module, _, name = path.rpartition(":")
    found = load_module(what, module, path)
    if not hasattr(found, name):
        raise InputError(f"{what} must be 'module:name' with a name that the module has, got {path!r}")
    return getattr(found, name)


def _entry(row: Row) -> Any:
    """The World or VecEnv class of a row, or a function that makes a Gymnasium env of ``render_mode`` and settings."""
    entry = row.entry_point
    if not isinstance(entry, str):
        return entry
    module, _, name = entry.rpartition(":")
    if name not in gym.registry and module:
        return _found("entry_point", entry)
    return partial(gym.make, gym.spec(name), disable_env_checker=True)


def fairness_of(row: Row, given: Any, config: Mapping[str, Any], own: FairnessSpec | None) -> FairnessSpec:
    """The fairness spec of an environment: ``given`` in place of that of the row, that of the row, or its ``own``.

    :param config: the environment's settings, for specs that depend on them
    """
    found = given if given is not None else row.fairness
    if isinstance(found, str):
        if ":" not in found:
            raise InputError(f"fairness must be 'module:name' of a FairnessSpec, got {found!r}")
        found = _found("fairness", found)
    if callable(found) and not isinstance(found, type):
        found = found(**config)
    found = own if found is None else found
    if not isinstance(found, FairnessSpec):
        what = "nothing: give spec=, or --fairness module:spec" if found is None else repr(found)
        raise InputError(f"fairness must be a FairnessSpec for {row.id}, got {what}")
    return found


def _parts(env_id: str, settings: Mapping[str, Any]) -> tuple[Row, Any, Measurement, dict[str, Any]]:
    """The row of an ID, what makes the environment, what is measured, and the environment's own settings."""
    row = find(env_id)
    entry = _entry(row)
    settings = {**row.defaults, **settings}
    if row.max_episode_steps is not None and not (_is_world(entry) or _is_batch(entry)):
        settings.setdefault("max_episode_steps", row.max_episode_steps)
    fields = Measurement.__dataclass_fields__.keys() - set(getattr(entry, "own_settings", ()))
    ours = {key: value for key, value in settings.items() if key in fields}
    config = {key: value for key, value in settings.items() if key not in ours}
    return row, entry, Measurement(**ours), config


def unseen(env_id: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under which nobody is met whom policies learned from, but for those that are chosen already."""
    row = find(env_id)
    chosen = row.defaults.keys() | settings.keys()
    return {key: value for key, value in getattr(_entry(row), "unseen", {}).items() if key not in chosen}


@contextmanager
def _known_keywords(config: Mapping[str, Any]) -> Iterator[None]:
    """An error about a keyword that the environment does not know names those that every ID takes."""
    try:
        yield
    except TypeError as error:
        unknown = next((name for name in config if repr(name) in str(error)), None)
        if unknown is None:
            raise
        known = tuple(Measurement.__dataclass_fields__)
        also = f"every ID also takes {', '.join(known)}{did_you_mean(unknown, known)}"
        raise TypeError(f"{error}; {also}") from error


def _is_world(entry: Any) -> bool:
    return isinstance(entry, type) and issubclass(entry, World)


def _is_batch(entry: Any) -> bool:
    """Whether it is a VecEnv itself, as of games whose agents have a slot each."""
    return isinstance(entry, type) and issubclass(entry, VecEnv)


def _single(entry: Any, render_mode: str | None, config: Mapping[str, Any]) -> gym.Env:
    """One environment, with the limit of steps that its fairness wrappers are to know of."""
    given = {**config} if render_mode is None else {**config, "render_mode": render_mode}
    limit = None if getattr(entry, "func", None) is gym.make else given.pop("max_episode_steps", None)
    env = entry(**given)
    if not isinstance(env, gym.Env):
        raise TypeError(f"entry_point must make a Gymnasium environment, got {env!r}")
    return env if limit is None else gym.wrappers.TimeLimit(env, limit)


def _copy(entry: Any, render_mode: str | None, config: Mapping[str, Any]) -> gym.Env:
    """One of several, with the scalar reward that a VecEnv needs."""
    return gym.wrappers.TransformReward(_single(entry, render_mode, config), _one_number)


def _one_number(reward: Any) -> Any:
    if not isinstance(reward, float) and np.size(reward) > 1:  # the usual case, without a thought of numpy
        raise ValueError(ARRAY_REWARD.format(reward))
    return reward


class Copies(VecLayer):
    """Copies of a Gymnasium environment, with what a World would tell of itself."""

    published: ClassVar[tuple[str, ...]] = ("env_id", "rules", "source", "words", "max_steps")

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.rules: Mapping[str, Any] = {}
        self.source = attribute(venv, "source", "")
        self.words: Mapping[str, str] = {}
        self.max_steps = max_steps_of(venv)


def _tell(what: Any, row: Row) -> None:
    """Adds what the row says of an environment to what a World, or a wrapper, says itself."""
    for name, said in (("env_id", row.id), ("rules", row.rules), ("words", row.words), ("source", row.title)):
        if said:
            setattr(what, name, {**getattr(what, name, {}), **said} if isinstance(said, Mapping) else said)


def _layers(measurement: Measurement, spec: FairnessSpec) -> Iterator[Layer]:
    """The wrappers that make a fairness MDP, innermost first: their two faces, and their arguments."""
    asked = measurement
    if asked.scheme is not None:
        yield (FairnessScheme, VecFairnessScheme), {"scheme": asked.scheme}
    measured = {"probabilities": asked.probabilities, "reset_on_episode": asked.reset_on_episode}
    yield (FairMDP, VecFairMDP), {"spec": asked.applied_to(spec), **measured}
    if asked.objectives is not None:
        rewards = {"objectives": asked.objectives, "emit": asked.emit, "undefined": asked.undefined}
        yield (VectorReward, VecVectorReward), {**rewards, "vector": asked.vector}
    if asked.scalarise is not None:
        yield (Scalarise, VecScalarise), {"weights": asked.scalarise}
    if asked.memory is not None:
        memory = {"memory": asked.memory, "encoder": asked.encoder, "flatten": asked.flatten}
        yield (MemoryAugmentation, VecMemoryAugmentation), memory


def make(env_id: str, render_mode: str | None = None, **settings: Any) -> gym.Env:
    """One copy of a registered ID as a Gymnasium fairness MDP; the entry point of all of them.

    :param settings: fields of :class:`Measurement`, and the environment's own parameters
    """
    row, entry, measurement, config = _parts(env_id, settings)
    if _is_batch(entry):
        raise InputError(f"env must be of one agent for gym.make: {row.id} has one slot per agent in sb3_fair.make_vec")
    env: gym.Env
    with _known_keywords(config):
        env = (
            WorldEnv(entry, render_mode, **config)  # type: ignore[arg-type]  # it checks that
            if _is_world(entry)
            else _single(entry, render_mode, config)
        )
    spec = fairness_of(row, measurement.spec, config, attribute(env, "fairness_spec"))
    for (face, _), arguments in _layers(measurement, spec):
        env = face(env, **arguments)
    _tell(env.unwrapped.world if _is_world(entry) else env, row)  # type: ignore[attr-defined]
    return env


def make_single(env_id: str, **settings: Any) -> gym.Env:
    """What ``gym.make`` makes of a registered ID, and of any other one with ``spec`` among the settings."""
    row = find(env_id)
    known = (
        gym.spec(row.id)
        if row.id in ROWS
        else gym.envs.registration.EnvSpec(row.id, "sb3_fair.zoo.registry.build:make", kwargs={"env_id": env_id})
    )
    return gym.make(known, disable_env_checker=True, **settings)


@checked
def make_batch(
    env_id: str,
    n_envs: int,
    render_mode: str | None = None,
    vec_env: Literal["dummy", "subproc"] = "dummy",
    **settings: Any,
) -> VecEnv:
    """``n_envs`` copies as an SB3 VecEnv, those of a World on one World, with the wrappers' VecEnv twins."""
    row, entry, measurement, config = _parts(env_id, settings)
    venv: VecEnv
    with _known_keywords(config):
        if _is_world(entry):
            venv = WorldVecEnv(entry, n_envs, render_mode, **config)  # type: ignore[arg-type]  # it checks that
        elif _is_batch(entry):
            venv = entry(n_envs, render_mode=render_mode, **config)
        else:
            make_copy = partial(_copy, entry, render_mode, config)
            try:
                venv = Copies(KINDS[vec_env]([make_copy] * n_envs))
            except (EOFError, ConnectionError):  # a process ended: a copy made here says why
                make_copy().close()
                raise
    try:
        _tell(venv.world if isinstance(venv, WorldVecEnv) else venv, row)
        spec = fairness_of(row, measurement.spec, config, attribute(venv, "fairness_spec"))
        for (_, face), arguments in _layers(measurement, spec):
            venv = face(venv, **arguments)
    except BaseException:
        with suppress(Exception):  # a process may have ended
            venv.close()
        raise
    return venv


def make_gymnasium_vec(num_envs: int = 1, **settings: Any) -> gym.vector.VectorEnv:
    """``num_envs`` copies as a Gymnasium VectorEnv; behind ``gym.make_vec``."""
    return GymnasiumVector(make_batch(n_envs=num_envs, **settings))


@checked
def make_vec(
    env_id: str,
    n_envs: int = 1,
    seed: int | None = None,
    *,
    monitor: bool = True,
    vec_env: Literal["dummy", "subproc"] = "dummy",
    **settings: Any,
) -> VecEnv:
    """``n_envs`` copies of a registered ID as an SB3 VecEnv, those of a World on one World: much faster than SB3's
    ``make_vec_env``.

    Copy i seeded with ``seed`` follows exactly the path of a single env seeded with ``seed + i``.

    :param env_id: a registered ID, bare or with its module (``"sb3_fair:sb3_fair/JobHiring-v0"``); with ``spec`` among
        the settings, any ID that Gymnasium knows
    :param monitor: whether to add a VecMonitor, outermost
    :param vec_env: where copies that are no World take their steps: one after the other, or each in its own process
    :param settings: keyword arguments of the ID, as for ``gym.make``
    :raises ValueError: if there is no such ID, or it has no fairness spec
    """
    venv = make_batch(env_id, n_envs, vec_env=vec_env, **settings)
    if monitor:
        venv = LightMonitor(venv)
    if seed is not None:
        venv.seed(seed)
    return venv
