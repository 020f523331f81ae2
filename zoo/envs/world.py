"""World: a scenario on arrays, and its Gymnasium and SB3 faces.

A scenario is a :class:`World`: n independent copies moved by the same numpy lines. Its faces are generic:
:class:`WorldEnv` (one copy, Gymnasium) and :class:`WorldVecEnv` (Stable-Baselines3; as a Gymnasium vector environment:
:class:`~sb3_fair.wrappers.gymnasium_vector.GymnasiumVector`). Both take the same path: copy i of a batch seeded s is
the single environment seeded s + i.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from inspect import ismethod
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from sb3_fair.fairness import FairnessSpec, Scheme
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.descriptions import Words
from sb3_fair.wrappers.infos import Info, Infos, Record, Shared, cut
from sb3_fair.wrappers.starts import between, ends
from sb3_fair.zoo.envs.settings import Config, configure
from sb3_fair.zoo.envs.tapes import Tapes

Array: TypeAlias = NDArray[Any]
Step: TypeAlias = tuple[Array, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Record]
Rule: TypeAlias = Callable[..., Array]
RenderMode: TypeAlias = Literal["rgb_array"] | None


def of_two(world: "World", probability: ArrayLike) -> NDArray[np.float64]:
    """Probabilities (n, 2) of the actions 0 and 1, from that of 1: one number or (n,)."""
    second = np.broadcast_to(np.asarray(probability, dtype=np.float64), world.n_worlds)
    return np.stack((1 - second, second), axis=1)


class World:
    """n copies of a scenario; the contract that the faces rely on.

    A scenario sets the attributes below, calls :meth:`__init__` with its tapes and writes :meth:`restart`
    and :meth:`step`. What :meth:`step` hands out is fresh: it is never changed afterwards.

    :param n_worlds: number of copies
    :param tapes: the chances of the steps; :attr:`reset_streams` serve the restarts
    """

    observation_space: spaces.Space
    action_space: spaces.Space
    fairness_spec: FairnessSpec
    max_steps: int
    """Steps after which an episode ends, if it did not before."""
    max_return: float = np.inf
    """Upper bound of an episode's return."""
    n_agents: int | None = None
    """None, or N: actions, observations, rewards and records have one more axis, the agents."""
    scheme: Scheme | None = None
    """The fairness scheme that the reward follows, if it follows one."""
    stakeholders: tuple[int, ...] | None = None
    """Whom each action serves, -1 if nobody; None if actions are not for stakeholders."""
    default_memory: str | None = None
    """The memory with which the reward is Markov, None if it is without."""
    end: str = "truncated"
    """How an episode ends after :attr:`max_steps`: ``"truncated"`` or ``"terminated"``."""
    clock: bool = False
    """Whether observations show the time."""
    endless: bool = False
    """Whether an episode goes on for ever."""
    one_individual: ClassVar[bool] = False
    """Whether an episode is about one individual alone, whom nobody in it can be compared with."""
    source: ClassVar[str] = ""
    """Where the scenario comes from, in a few words."""
    words: ClassVar[Words] = {}
    """What reports call the reward, the favourable decision, the groups, and measures of its own."""
    unseen: ClassVar[Mapping[str, Any]] = {}
    """Settings under which nobody is met whom policies learned from, for evaluations."""
    own_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that are the scenario's own although those of measurement have one of the same name."""
    rules: ClassVar[Mapping[str, Rule]] = {}
    """Baselines ``rule(world) -> action probabilities (n, n_actions)``, which may look into the hidden state."""
    render_mode: str | None = None
    picture: ClassVar[str] = ""
    """``"module:function"`` that draws a copy: f(world, index) -> (height, width, 3)."""
    detail: bool = False
    """Whether records have ``detail``."""

    def __init__(self, n_worlds: int, tapes: Tapes[Any]) -> None:
        self.n_worlds = n_worlds
        self.tapes = tapes
        self.reset_streams: list[np.random.Generator | None] = [None] * n_worlds

    def reset(self, which: Array, rngs: Sequence[np.random.Generator | None] | None = None) -> Array:
        """Restarts the copies ``which`` (k,) and returns their observations (k, ...).

        :param rngs: a generator per copy, from which all its later chances follow; None: its own go on
        """
        if rngs is not None:
            seeded = [(index, rng) for index, rng in zip(which.tolist(), rngs, strict=True) if rng is not None]
            if seeded:
                self.seed(seeded)
        if None in self.reset_streams:
            unseeded = [index for index, stream in enumerate(self.reset_streams) if stream is None]
            self.seed([(index, np.random.default_rng()) for index in unseeded])
        return self.restart(which)

    def seed(self, rngs: Sequence[tuple[int, np.random.Generator]]) -> None:
        """Gives the copies named their streams: one for the steps, one for the restarts."""
        streams = [rng.spawn(2) for _, rng in rngs]
        self.tapes.seed(np.array([index for index, _ in rngs], dtype=np.intp), [steps for steps, _ in streams])
        for (index, _), (_, restarts) in zip(rngs, streams, strict=True):
            self.reset_streams[index] = restarts

    def restart_streams(self, which: Array) -> list[np.random.Generator]:
        """The generators of the restarts of the copies ``which`` (k,)."""
        return [self.reset_streams[index] for index in which.tolist()]

    @checked
    def configured(self, n_worlds: int, detail: bool, config: type[Config], settings: dict[str, Any]) -> Config:
        """The settings of the scenario, and what all scenarios are asked for, checked.

        :raises TypeError: if there is no such setting
        :raises ValueError: if an argument is not allowed
        """
        self.detail = detail
        return configure(config, settings)

    def restart(self, which: Array) -> Array:
        """Begins a new episode in the copies ``which`` (k,); returns observations (k, ...)."""
        raise NotImplementedError

    def install(self, layout: Mapping[str, Any], which: Array | None = None) -> Array:
        """Begins an episode with a given state in the copies ``which`` (k,), None: all; observations (k, ...).

        ``reset(options={"layout": layout})`` of the faces calls it.
        """
        raise ValueError(f"options must not have 'layout' for a {type(self).__name__}, got {layout!r}")

    def step(self, actions: Array) -> Step:
        """Observations (n, ...), rewards (n,), terminated (n,), truncated (n,), and the record: arrays by info key.

        :param actions: (n, ...), inside the action space: the faces check them
        """
        raise NotImplementedError

    def massage(self) -> Record | None:
        """What a filter may know before the coming decision of every copy: arrays (n, ...), or None."""
        return None

    def render(self, index: int) -> NDArray[np.uint8]:
        """Picture (height, width, 3) of one copy."""
        if not self.picture:
            raise NotImplementedError(f"render must be overridden by {type(self).__name__}, or its picture set")
        picture: NDArray[np.uint8] = resolve_name(self.picture)(self, index)  # only now: matplotlib is slow to import
        return picture


class ActionCheck:
    """Are these actions for n copies inside the action space?

    :raises ValueError: when called with actions that are not, naming the first one and what is allowed
    """

    def __init__(self, world: World) -> None:
        space = world.action_space
        self.space = space
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            self.kinds = "iu"
        elif isinstance(space, spaces.MultiBinary):
            self.kinds = "fiub"  # SB3 gives them as floats
        elif isinstance(space, spaces.Box):
            self.kinds = "fiu"
        else:
            allowed = "Discrete, MultiDiscrete, MultiBinary or Box"
            raise TypeError(f"action_space of a World must be {allowed}, got {space!r}")
        self.low, self.high = ends(space)
        agents = () if world.n_agents is None else (world.n_agents,)
        self.shape = (world.n_worlds, *agents, *space.shape)  # type: ignore[misc]

    def __call__(self, actions: Any) -> Array:
        actions = np.asarray(actions)
        if actions.dtype.kind not in self.kinds or actions.shape != self.shape:
            raise ValueError(
                f"actions must be an array of shape {self.shape} with entries of {self.space}, "
                f"got shape {actions.shape} of type {actions.dtype}: {actions!r}"
            )
        inside = between(self.low, self.high, actions)
        binary = isinstance(self.space, spaces.MultiBinary)
        if binary:
            inside &= actions == np.floor(actions)
        if np.count_nonzero(inside) < inside.size:
            raise ValueError(f"every action must be in {self.space}, got {actions[~inside].flat[0].item()!r}")
        return actions.astype(self.space.dtype) if binary else actions


class WorldEnv(gym.Env):
    """One copy of a world as a Gymnasium environment.

    :param world_cls: the scenario
    :param render_mode: None or ``"rgb_array"``
    :param config: the scenario's settings
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    @checked
    def __init__(self, world_cls: Callable[..., World], render_mode: RenderMode = None, **config: Any) -> None:
        self.world = world_cls(1, **config)
        if self.world.n_agents is not None:
            raise ValueError(f"a world of several agents has only a VecEnv face, got {type(self.world).__name__}")
        self.render_mode = self.world.render_mode = render_mode
        self.observation_space = self.world.observation_space
        self.action_space = self.world.action_space
        self._check = ActionCheck(self.world)
        self._all = np.arange(1)
        self._seeded = False

    def __getattr__(self, name: str) -> Any:
        """What the scenario says of itself, as ``WorldVecEnv.get_attr`` tells it."""
        if name.startswith("_") or name == "world":  # not there yet: copies and pickles are made without __init__
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = getattr(self.world, name)
        if name == "action_masks":  # of the one copy, for sb3-contrib
            return lambda: value()[0]
        if ismethod(value):  # what moves a world is not for the outside
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """What is shown of the scenario is set in the scenario, as ``WorldVecEnv.set_attr`` does."""
        if name in dir(self) or not hasattr(self, name):
            return super().set_wrapper_attr(name, value, force=force)
        setattr(self.world, name, value)
        return True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        rngs = None if self._seeded and seed is None else [self.np_random]
        self._seeded = True
        obs = self.world.reset(self._all, rngs)
        if options and "layout" in options:
            obs = self.world.install(options["layout"])
        return obs[0], Info(Shared(_massage(self.world)), 0)

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, record = self.world.step(self._check([action]))
        record.update(_massage(self.world))
        return obs[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), Info(Shared(record), 0)

    def render(self) -> NDArray[np.uint8] | None:
        return None if self.render_mode is None else self.world.render(0)


class WorldVecEnv(VecEnv):
    """n copies of a world as a Stable-Baselines3 VecEnv; each agent of a world with agents has a slot of its own.

    Infos are light (:mod:`sb3_fair.wrappers.infos`): they share the step's arrays, what is missing is NaN there.
    Rewards are float64, as SubprocVecEnv's are. World attributes answer for all slots: ``get_attr`` repeats them,
    ``env_method`` expects arrays with the copies as first axis.

    :param n_envs: number of copies
    """

    @checked
    def __init__(
        self, world_cls: Callable[..., World], n_envs: int = 1, render_mode: RenderMode = None, **config: Any
    ) -> None:
        self.world = world_cls(n_envs, **config)
        self.world.render_mode = render_mode
        self._check = ActionCheck(self.world)
        self._all = np.arange(n_envs)
        self._agents = 1 if self.world.n_agents is None else self.world.n_agents
        self._actions: Array
        self._fairness: Record = {}
        super().__init__(n_envs * self._agents, self.world.observation_space, self.world.action_space)

    def reset(self) -> Array:
        seeds = self._seeds[: self.world.n_worlds]
        rngs = [None if seed is None else np_random(operator.index(seed))[0] for seed in seeds]
        given = self._options[:: self._agents]
        self._reset_seeds()
        self._reset_options()
        obs = self.world.reset(self._all, rngs)
        for index, options in enumerate(given):
            if "layout" in options:
                obs[index] = self.world.install(options["layout"], np.array([index]))[0]
        self._note_restart(self._all)
        return self._slots(obs)

    def step_async(self, actions: Any) -> None:
        self._actions = self._check(actions if self.world.n_agents is None else np.reshape(actions, self._check.shape))

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        obs, reward, terminated, truncated, record = self.world.step(self._actions)
        done = terminated | truncated
        record = self._slots(record | _massage(self.world))
        self._fairness = record.get("fairness", {})
        record["TimeLimit.truncated"] = np.repeat(truncated & ~terminated, self._agents)
        infos = Infos(record, self.num_envs)
        if done.any():
            which = np.flatnonzero(done)
            last = self._slots(obs[which])
            for slot, final in zip(self._slots_of(which), last, strict=True):
                infos[slot]["terminal_observation"] = final
            obs[which] = self.world.reset(which)
            self._note_restart(which)
        return self._slots(obs), self._slots(reward), np.repeat(done, self._agents), infos

    def fairness_arrays(self) -> Record:
        """``info["fairness"]`` of the latest step, arrays (num_envs, ...) by name.

        Empty before the first step, and where a scenario has no measures of its own.
        """
        return self._fairness

    def _slots(self, value: Any) -> Any:
        """(n, agents, ...) -> (slots, ...)."""
        if self.world.n_agents is None:
            return value
        if isinstance(value, Mapping):
            return {key: self._slots(entry) for key, entry in value.items()}
        return value.reshape(-1, *value.shape[2:])

    def _slots_of(self, which: Array) -> list[int]:
        return (which[:, None] * self._agents + np.arange(self._agents)).ravel().tolist()

    def _note_restart(self, which: Array) -> None:
        record = Shared(self._slots(_massage(self.world)))
        for slot in self._slots_of(which):
            self.reset_infos[slot] = Info(record, slot)

    def close(self) -> None:
        pass

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        if self.render_mode != "rgb_array":
            return [None] * self.world.n_worlds
        return [self.world.render(index) for index in range(self.world.n_worlds)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        value = self.world if attr_name == "world" else getattr(self.world, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ValueError(f"indices must be None, since all copies share one World, got {indices!r}")
        setattr(self.world, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        value = self._slots(getattr(self.world, method_name)(*method_args, **method_kwargs))
        return [None if value is None else cut(value, slot) for slot in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


def _massage(world: World) -> Record:
    massage = world.massage()
    return {} if massage is None else {"massage": massage}
