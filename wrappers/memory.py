"""MemoryAugmentation: adds a memory of the past to observations."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.events import events_of, stakeholders_of
from sb3_fair.wrappers.layer import VecLayer, attribute, max_steps_of
from sb3_fair.wrappers.memories import Memory, MemoryLike, make_memory

STATE, MEMORY = "state", "memory"


class Remembering:
    """The arithmetic that both wrappers share, for n copies of an environment.

    :raises ValueError: if the memory is unknown, does not fit the spaces, or returns something of a wrong shape
    """

    def __init__(
        self, n: int, memory: Memory, observation_space: spaces.Space, action_space: spaces.Space, flatten: bool
    ) -> None:
        self.memory = memory
        self.now: NDArray[Any] = memory.initial((n,))
        self.flatten = flatten
        self.keys = isinstance(observation_space, spaces.Dict)
        self._require_shape("initial", self.now)
        _try_out(memory, action_space)
        low, high = (np.asarray(bound, dtype=np.float32) for bound in (memory.low, memory.high))
        if flatten:
            if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 1:
                raise ValueError(f"flatten needs observations that are vectors, got {observation_space}")
            self.space: spaces.Space = spaces.Box(
                np.concatenate((observation_space.low, low)).astype(np.float32),
                np.concatenate((observation_space.high, high)).astype(np.float32),
            )
        else:
            inside = dict(observation_space.spaces) if self.keys else {STATE: observation_space}  # type: ignore[attr-defined]
            if MEMORY in inside:
                raise ValueError(f"env already has observations with the key {MEMORY!r}: it is wrapped twice")
            self.space = spaces.Dict({**inside, MEMORY: spaces.Box(low, high, dtype=np.float32)})

    def restart(self, which: Any) -> None:
        """New episodes begin in the copies ``which``."""
        self.now = self.now.copy()
        self.now[which] = self.memory.initial(self.now[which].shape[:-1])

    def step(self, actions: NDArray[Any], infos: Sequence[dict[str, Any]]) -> None:
        """The memories (n, dim) after the actions (n, ...)."""
        following = self.memory.update(self.now, actions, events_of(infos).array)
        self._require_shape("update", following)
        if ((following < self.memory.low) | (following > self.memory.high)).any():
            raise ValueError(
                f"memory must stay between low {self.memory.low} and high {self.memory.high}, got {following.tolist()}"
            )
        self.now = following

    def _require_shape(self, method: str, memory: Any) -> None:
        expected = (len(self.now), self.memory.dim)
        if np.shape(memory) != expected:
            raise ValueError(
                f"{method} of the memory {self.memory.name!r} must return the shape {expected}, got {np.shape(memory)}"
            )

    def observation(self, observation: Any, which: Any = slice(None)) -> Any:
        """An observation (of all copies, or of the copy ``which``) with the memory."""
        memory = self.now[which].astype(np.float32)
        if self.flatten:
            return np.concatenate((observation, memory), axis=-1, dtype=np.float32)
        return {**(observation if self.keys else {STATE: observation}), MEMORY: memory}


def _try_out(memory: Memory, action_space: spaces.Space) -> None:
    """One update with each method's result looked at."""
    space = deepcopy(action_space)  # sampling must not move the generator of the real one
    action = np.array([space.sample(), space.sample()])
    for name, found in (
        ("update", memory.update(memory.initial((2,)), action, np.ones((2, 3)))),
        ("sample_counterfactuals", memory.sample_counterfactuals(memory.initial((2,)), np.random.default_rng(0))),
    ):
        if np.shape(found) != (2, memory.dim):
            raise ValueError(
                f"{name} of the memory {memory.name!r} must return the shape {(2, memory.dim)}, got {np.shape(found)}"
            )
    shown = memory.encode(memory.initial((2,)))
    if np.ndim(shown) != 2 or len(shown) != 2 or np.asarray(shown).dtype != np.float32:
        raise ValueError(f"encode of the memory {memory.name!r} must return rows of float32, got {shown!r}")


def memory_for(env: gym.Env | VecEnv, memory: MemoryLike, high: int | None, encoder: str) -> Memory:
    """The memory of this name for what ``env`` says of its actions and of the length of its episodes."""

    if isinstance(memory, Memory):
        return memory
    stakeholders, first_action = stakeholders_of(env.action_space, attribute(env, "stakeholders"))
    if high is None:
        high = max_steps_of(env)
    return make_memory(memory, stakeholders, high, encoder=encoder, first_action=first_action)


@checked
class MemoryAugmentation(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Adds a memory of what was done so far to the observation, so that the fairness of the whole history is Markov.

    The observation becomes a Dict: ``"state"``, the environment's own observation (a Dict keeps its keys), and
    ``"memory"``, the raw numbers (dim,) float32. The attribute ``memory`` holds the
    :class:`~sb3_fair.wrappers.memories.Memory`. (Alamdari et al., "Remembering to Be Fair", Section 5.1.) Batched twin:
    :class:`VecMemoryAugmentation`.

    :param memory: a name such as ``"full"`` or ``"full+clock"``, see
        :func:`~sb3_fair.wrappers.memories.make_memory`, or an object of your own
    :param high: largest count; None: the limit of steps of the environment
    :param encoder: how counts are shown to the networks of this package: ``"log"``, ``"raw"``, ``"relative"`` or
        ``"binary"``. The observation holds raw counts whichever is chosen
    :param flatten: whether the observation is one vector with the memory last, instead of a Dict
    :raises ValueError: if the memory is unknown, does not fit the environment, or leaves its bounds

    Example:
        >>> import gymnasium as gym, sb3_fair
        >>> env = MemoryAugmentation(gym.make("sb3_fair/Doughnut-Small-v0"), memory="full")
        >>> obs, _ = env.reset(seed=0)
        >>> obs["memory"]
        array([0., 0., 0.], dtype=float32)
    """

    def __init__(
        self,
        env: gym.Env,
        memory: MemoryLike = "full",
        *,
        high: int | None = None,
        encoder: str = "log",
        flatten: bool = False,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, memory=memory, high=high, encoder=encoder, flatten=flatten)
        super().__init__(env)
        self.memory = memory_for(env, memory, high, encoder)
        self._remembering = Remembering(1, self.memory, env.observation_space, env.action_space, flatten)
        self.observation_space = self._remembering.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        self._remembering.restart(slice(None))
        return self._remembering.observation(obs, 0), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._remembering.step(np.asarray(action)[None], [info])
        return self._remembering.observation(obs, 0), reward, terminated, truncated, info


@checked
class VecMemoryAugmentation(VecLayer):
    """:class:`MemoryAugmentation` for a VecEnv."""

    published = ("memory",)

    def __init__(
        self,
        venv: VecEnv,
        memory: MemoryLike = "full",
        *,
        high: int | None = None,
        encoder: str = "log",
        flatten: bool = False,
    ) -> None:
        self.memory = memory_for(venv, memory, high, encoder)
        self._remembering = Remembering(venv.num_envs, self.memory, venv.observation_space, venv.action_space, flatten)
        super().__init__(venv, observation_space=self._remembering.space)

    def reset(self) -> VecEnvObs:
        obs = self.venv.reset()
        self._remembering.restart(slice(None))
        return self._remembering.observation(obs)

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = np.asarray(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self._remembering.step(self._actions, infos)
        if dones.any():
            for index in np.flatnonzero(dones).tolist():
                last = infos[index]["terminal_observation"]
                infos[index]["terminal_observation"] = self._remembering.observation(last, index)
            self._remembering.restart(dones)
        return self._remembering.observation(obs), rewards, dones, infos
