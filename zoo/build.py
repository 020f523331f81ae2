"""How is a registered ID built: a World, its face, and the wrappers that make it a fairness MDP?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import gymnasium as gym
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.history import History
from sb3_fair.wrappers.fmdp import FairMDP, Probabilities, VecFairMDP
from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.memories import MemoryLike
from sb3_fair.wrappers.memory import MemoryAugmentation, VecMemoryAugmentation
from sb3_fair.wrappers.scalarise import Scalarise, VecScalarise, Weights
from sb3_fair.wrappers.scheme import FairnessScheme, SchemeLike, VecFairnessScheme
from sb3_fair.wrappers.vector_reward import DISPARITY, PERFORMANCE, Emit, VectorReward, VecVectorReward
from sb3_fair.zoo.envs.world import World, WorldEnv, WorldVecEnv
from sb3_fair.zoo.registration import WORLDS


@checked
@dataclass(frozen=True)
class Measurement:
    """What is measured of a scenario and what its reward is made of; keyword arguments of every registered ID.

    :param objectives: ``"R"`` and notions that make up ``info["vector_reward"]``; None: performance reward only
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
    :param spec: replaces the scenario's own fairness spec
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
    spec: FairnessSpec | None = None
    scheme: SchemeLike | None = None
    memory: MemoryLike | None = None
    encoder: str = "log"
    flatten: bool = False

    def __post_init__(self) -> None:
        if self.window is not None and self.history is not None:
            raise ValueError(f"window and history exclude each other, got {self.window!r} and {self.history!r}")
        if self.objectives is None and (self.scalarise is not None or self.vector):
            raise ValueError("scalarise and vector need objectives, e.g. objectives=('R', 'SP')")
        if self.memory is None and (self.encoder, self.flatten) != ("log", False):
            raise ValueError("encoder and flatten need a memory, e.g. memory='full'")
        if self.scalarise is not None and self.vector:
            raise ValueError("scalarise and vector exclude each other: the reward is one number or the vector")

    def applied_to(self, spec: FairnessSpec) -> FairnessSpec:
        """The scenario's spec with the notions, the history and the distance that were asked for."""
        spec = self.spec or spec
        changes: dict[str, Any] = {}
        if self.objectives is not None or self.audit:
            names = dict.fromkeys((*(self.objectives or ()), *self.audit))
            changes["notions"] = tuple(name for name in names if name != PERFORMANCE and not name.startswith(DISPARITY))
        if self.window is not None:
            changes["history"] = SlidingWindow(self.window)
        if self.history is not None:
            changes["history"] = self.history
        if self.distance is not None:
            changes["distance"] = self.distance
        return replace(spec, **changes) if changes else spec


def _split(world: type[World], settings: dict[str, Any]) -> tuple[Measurement, dict[str, Any]]:
    """What is measured, and the scenario's own settings."""
    measured = Measurement.__dataclass_fields__.keys() - set(world.own_settings)
    ours = {key: value for key, value in settings.items() if key in measured}
    return Measurement(**ours), {key: value for key, value in settings.items() if key not in ours}


def _world_class(path: str) -> type[World]:
    """The World behind a registered ID; nothing else is imported.

    :raises ValueError: if there is none
    """
    if path not in {world for world, _ in WORLDS.values()}:
        raise ValueError(f"world must be left to the ID, which says what it is, got {path!r}")
    module, name = path.split(":")
    world: type[World] = getattr(import_module(module), name)
    return world


def make(world: str, render_mode: str | None = None, **settings: Any) -> gym.Env:
    """One copy of a scenario as a Gymnasium fairness MDP; entry point of every registered ID.

    :param world: ``"module:Class"`` of the World
    :param settings: fields of :class:`Measurement`, and the scenario's own parameters
    """
    world_class = _world_class(world)
    measurement, config = _split(world_class, settings)
    env: gym.Env = WorldEnv(world_class, render_mode=render_mode, **config)
    if measurement.scheme is not None:
        env = FairnessScheme(env, measurement.scheme)
    env = FairMDP(
        env,
        measurement.applied_to(env.unwrapped.fairness_spec),  # type: ignore[attr-defined]
        probabilities=measurement.probabilities,
        reset_on_episode=measurement.reset_on_episode,
    )
    if measurement.objectives is not None:
        env = VectorReward(
            env,
            measurement.objectives,
            emit=measurement.emit,
            undefined=measurement.undefined,
            vector=measurement.vector,
        )
    if measurement.scalarise is not None:
        env = Scalarise(env, measurement.scalarise)
    if measurement.memory is not None:
        env = MemoryAugmentation(env, measurement.memory, encoder=measurement.encoder, flatten=measurement.flatten)
    return env


def make_batch(world: str, n_envs: int, render_mode: str | None = None, **settings: Any) -> VecEnv:
    """``n_envs`` copies of a scenario on one World, as an SB3 VecEnv with the wrappers' VecEnv twins."""
    world_class = _world_class(world)
    measurement, config = _split(world_class, settings)
    if measurement.vector:
        raise ValueError("vector must be False for a VecEnv, whose rewards are scalar: read info['vector_reward']")
    venv: VecEnv = WorldVecEnv(world_class, n_envs, render_mode=render_mode, **config)
    if measurement.scheme is not None:
        venv = VecFairnessScheme(venv, measurement.scheme)
    venv = VecFairMDP(
        venv,
        measurement.applied_to(venv.get_attr("fairness_spec")[0]),
        probabilities=measurement.probabilities,
        reset_on_episode=measurement.reset_on_episode,
    )
    if measurement.objectives is not None:
        venv = VecVectorReward(venv, measurement.objectives, emit=measurement.emit, undefined=measurement.undefined)
    if measurement.scalarise is not None:
        venv = VecScalarise(venv, measurement.scalarise)
    if measurement.memory is not None:
        venv = VecMemoryAugmentation(venv, measurement.memory, encoder=measurement.encoder, flatten=measurement.flatten)
    return venv


def make_gymnasium_vec(num_envs: int = 1, **settings: Any) -> gym.vector.VectorEnv:
    """``num_envs`` copies of a scenario on one World, as a Gymnasium VectorEnv; behind ``gym.make_vec``."""
    return GymnasiumVector(make_batch(n_envs=num_envs, **settings))


@checked
def make_vec(env_id: str, n_envs: int = 1, seed: int | None = None, *, monitor: bool = True, **settings: Any) -> VecEnv:
    """``n_envs`` copies of a registered scenario on one World: much faster than SB3's ``make_vec_env``.

    Copy i seeded with ``seed`` follows exactly the path of a single env seeded with ``seed + i``.

    :param env_id: an ID of this package, bare or prefixed (``"sb3_fair:sb3_fair/JobHiring-v0"``)
    :param monitor: whether to add SB3's VecMonitor, outermost
    :param settings: keyword arguments of the ID, as for ``gym.make``
    :raises ValueError: if the ID is not one of this package's scenarios
    """
    registered = gym.spec(env_id.removeprefix("sb3_fair:"))
    if "world" not in registered.kwargs:
        raise ValueError(f"env_id must be a scenario of sb3_fair, got {env_id!r}; use SB3's make_vec_env for it")
    if "world" in settings:
        raise ValueError(f"world must be left out: the ID says which it is, got {settings['world']!r}")
    venv = make_batch(**{**registered.kwargs, "n_envs": n_envs, **settings})
    if monitor:
        venv = VecMonitor(venv)
    if seed is not None:
        venv.seed(seed)
    return venv
