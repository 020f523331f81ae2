"""MemoryAugmentation: adds a memory of the past to observations."""

from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.added import Added
from sb3_fair.wrappers.encoders import Encoding
from sb3_fair.wrappers.events import events_of, stakeholders_of
from sb3_fair.wrappers.faces import Core, Face, Step, VecFace, Wrapped
from sb3_fair.wrappers.layer import attribute, max_steps_of
from sb3_fair.wrappers.memories import Memory, MemoryLike, bounds, make_memory

MEMORY = "memory"


@checked
class Remembering(Core):
    """Observations show a memory of the past."""

    published: ClassVar[tuple[str, ...]] = ("memory",)
    _adds = True

    def __init__(
        self,
        env: Wrapped,
        memory: MemoryLike = "full",
        *,
        high: int | None = None,
        encoder: Encoding = "log",
        flatten: bool = False,
    ) -> None:
        super().__init__(env, memory=memory, high=high, encoder=encoder, flatten=flatten)
        if not isinstance(memory, Memory):
            stakeholders, first_action = stakeholders_of(env.action_space, attribute(env, "stakeholders"))
            most = max_steps_of(env) if high is None else high
            memory = make_memory(memory, stakeholders, most, encoder=encoder, first_action=first_action)
        self.memory: Memory = memory
        self._now: NDArray[Any] = self.memory.initial((self._n_copies,))
        _require_shape(self.memory, "initial", self._now, self._n_copies)
        _try_out(self.memory, env.action_space)
        self._low, self._high = bounds(self.memory)
        part = spaces.Box(self._low.astype(np.float32), self._high.astype(np.float32), dtype=np.float32)
        added = Added(env.observation_space, MEMORY, part, flatten, "it is wrapped twice")
        self._added, self.observation_space = added, added.space

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        self._now = self._now.copy()
        self._now[which] = self.memory.initial(which.shape)

    def _record(self, step: Step) -> None:
        following = self.memory.update(self._now, step.actions, events_of(step.infos).array)
        _require_shape(self.memory, "update", following, self._n_copies)
        if ((following < self._low) | (following > self._high)).any():
            raise ValueError(
                f"memory must stay between low {self._low} and high {self._high}, got {following.tolist()}"
            )
        self._now = following

    def _shown(self, observation: Any, which: Any = slice(None)) -> Any:
        return self._added.to(observation, self._now[which].astype(np.float32))


def _require_shape(memory: Memory, method: str, found: Any, n: int) -> None:
    expected, shape = (n, memory.dim), np.shape(found)
    if shape != expected:
        raise ValueError(f"{method} of the memory {memory.name!r} must return the shape {expected}, got {shape}")


def _try_out(memory: Memory, action_space: spaces.Space) -> None:
    """One update with each method's result looked at, from arrays that cannot be changed."""
    space = deepcopy(action_space)  # sampling must not move the generator of the real one
    arrays = memory.initial((2,)), [space.sample(), space.sample()], np.ones((2, 3))
    start, action, event = given = [np.asarray(array).view() for array in arrays]
    for array in given:
        array.setflags(write=False)
    try:
        following = memory.update(start, action, event)
        others = memory.sample_counterfactuals(start, np.random.default_rng(0))
        shown = memory.encode(start)
        memory.status(start)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(f"memory {memory.name!r} must not change the arrays it is given: {error}") from error
    _require_shape(memory, "update", following, 2)
    _require_shape(memory, "sample_counterfactuals", others, 2)
    if np.ndim(shown) != 2 or len(shown) != 2 or np.asarray(shown).dtype != np.float32:
        raise ValueError(f"encode of the memory {memory.name!r} must return rows of float32, got {shown!r}")


class MemoryAugmentation(Remembering, Face):
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


class VecMemoryAugmentation(Remembering, VecFace):
    """:class:`MemoryAugmentation` for a VecEnv."""
