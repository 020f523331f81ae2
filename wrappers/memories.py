"""Memories of the past: counts, windows, resets, min-max.

A memory is a few numbers m that follow from the actions and from whether they took effect: m' = mu(m, a, event)
(Alamdari et al., "Remembering to Be Fair", Section 5.1). It says nothing of the environment's state.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_fair.fairness.arguments import Count, checked
from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.wrappers.encoders import ENCODERS, Encoding
from sb3_fair.wrappers.events import checked_stakeholders, increments, served_by

Array: TypeAlias = NDArray[Any]


@runtime_checkable
class Memory(Protocol):
    """What a user's own memory has to offer; every method takes any leading axes and leaves its arguments as they
    are: ``memory + gains``, not ``memory += gains``."""

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def dim(self) -> int:
        """How many numbers it holds."""

    @property
    def high(self) -> Array:
        """Largest value of each, (dim,); the smallest ones are an attribute ``low``, or 0 without it."""

    def initial(self, batch: tuple[int, ...]) -> Array:
        """Memories at the beginning of an episode, ``(*batch, dim)``."""

    def update(self, memory: Array, action: Array, event: Array) -> Array:
        """Memories (..., dim) after actions (...) and their events (..., 3): granted, base, mask."""

    def encode(self, memory: Array) -> NDArray[np.float32]:
        """What a network is shown of memories (..., dim)."""

    def status(self, memory: Array) -> Array | None:
        """The status U (..., n) of the stakeholders, None if the memory does not hold it."""

    def sample_counterfactuals(self, memory: Array, rng: np.random.Generator) -> Array:
        """Another memory for each of (..., dim), which may depend on nothing else."""


def bounds(memory: Memory) -> tuple[Array, Array]:
    """Smallest and largest value of each number of a memory, both (dim,) float64."""
    low = np.asarray(getattr(memory, "low", np.zeros(memory.dim)), dtype=np.float64)
    return low, np.asarray(memory.high, dtype=np.float64)


class _Known:
    """What the memories of this module share: they begin with zeros."""

    ticking = False
    """Whether it changes with every step, granted or not."""
    round_length: int | None = None
    """Steps after which the status it holds begins anew; None: never."""
    relative = False
    """Whether it holds only how the entries of the status differ."""

    dim: int
    high: Array

    @cached_property
    def low(self) -> Array:
        return np.zeros(self.dim, dtype=np.float32)

    def initial(self, batch: tuple[int, ...]) -> Array:
        return np.zeros((*batch, self.dim), dtype=np.float32)

    def differences(self, memory: Array) -> Array | None:
        """The status up to a number added to all its entries, None if the memory does not hold that either."""
        return None

    def status(self, memory: Array) -> Array | None:
        return None if self.relative else self.differences(memory)

    def sample_counterfactuals(self, memory: Array, rng: np.random.Generator) -> Array:
        """The same memory: time passes for everybody alike."""
        return memory.copy()


@checked
@dataclass(frozen=True)
class FullMemory(_Known):
    """How often each stakeholder was served so far in this episode; saturates at ``maximum``.

    :param stakeholders: whom each action serves, -1 if nobody
    :param maximum: largest count, usually the number of steps of an episode
    :param encoder: how counts are shown to a network, see :data:`~sb3_fair.wrappers.encoders.ENCODERS`
    :param window: counterfactual counts differ from the real ones by at most this much
    :param first_action: number of the action that serves the first of ``stakeholders``; the next ones follow
    """

    stakeholders: tuple[int, ...]
    maximum: int
    encoder: Encoding = "log"
    window: int = 2
    first_action: int = field(default=0, kw_only=True)

    name = "full"

    def __post_init__(self) -> None:
        checked_stakeholders(self.stakeholders)

    @cached_property
    def served(self) -> NDArray[np.float32]:
        """(n_actions, n): whom an action serves."""
        return served_by(self.stakeholders)

    @cached_property
    def dim(self) -> int:  # type: ignore[override]
        return self.served.shape[1]

    @cached_property
    def high(self) -> Array:  # type: ignore[override]
        return np.full(self.dim, self.maximum, dtype=np.float32)

    def gains(self, action: ArrayLike, event: Array) -> NDArray[np.float32]:
        """What actions (...) with their events (..., 3) add to the counts, (..., n)."""
        return increments(self.served, action, event[..., 0], self.first_action)

    def update(self, memory: Array, action: ArrayLike, event: Array) -> Array:
        """Whoever is served counts one more."""
        return self.canonical(memory + self.gains(action, event))

    def canonical(self, counts: Array) -> Array:
        """The memory of these counts (..., n)."""
        return np.minimum(counts, self.high)

    def encode(self, memory: Array) -> NDArray[np.float32]:
        return ENCODERS[self.encoder](memory, self.maximum)

    def differences(self, memory: Array) -> Array | None:
        return memory

    def sample_counterfactuals(self, memory: Array, rng: np.random.Generator) -> Array:
        """Every count plus a number drawn from -window .. window, within 0 .. maximum."""
        shift = rng.integers(-self.window, self.window + 1, size=memory.shape, dtype=np.int16)
        return self.canonical(np.maximum(memory + shift.astype(np.float32), self.low))

    def rows(self, memory: Array) -> tuple[Array, NDArray[np.bool_]]:
        """All combinations of counts above the real ones (B, n) by 1 .. window: (B, window^n, n), and which are valid.

        These are the memories that the paper stores beside every real one.

        :raises ValueError: if the paper defines none
        """
        if self.relative or self.ticking:
            raise ValueError(f"memory must be 'full' or 'difference' for stored rows, got {self.name!r}")
        steps = np.indices((self.window,) * self.dim, dtype=np.float32).reshape(self.dim, -1).T + 1
        candidates = memory[:, None] + steps
        return candidates, np.all(candidates <= self.high, axis=-1)


class MinMemory(FullMemory):
    """How much more often than the least served each stakeholder was served."""

    name = "min"
    relative = True

    def canonical(self, counts: Array) -> Array:
        return np.minimum(counts - counts.min(axis=-1, keepdims=True), self.high)


class ResetMemory(FullMemory):
    """Counts that all begin anew when they are equal."""

    name = "reset"
    relative = True

    def canonical(self, counts: Array) -> Array:
        equal = counts.max(axis=-1, keepdims=True) == counts.min(axis=-1, keepdims=True)
        return np.where(equal, np.float32(0), np.minimum(counts, self.high))


@checked
@dataclass(frozen=True)
class DifferenceMemory(FullMemory):
    """How much more often the first of two stakeholders was served than the second: one signed number."""

    window: int = 5

    name = "difference"
    dim = 1
    relative = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.served.shape[1] != 2:
            raise ValueError(f"stakeholders must be two for the memory 'difference', got {self.stakeholders!r}")

    @cached_property
    def low(self) -> Array:
        return -self.high

    def update(self, memory: Array, action: ArrayLike, event: Array) -> Array:
        gains = self.gains(action, event)
        return self.canonical(memory + gains[..., :1] - gains[..., 1:])

    def canonical(self, counts: Array) -> Array:
        return np.clip(counts, self.low, self.high)

    def encode(self, memory: Array) -> NDArray[np.float32]:
        """The size as the encoder shows counts, with the sign of the difference."""
        return np.sign(memory) * super().encode(np.abs(memory))

    def differences(self, memory: Array) -> Array | None:
        """(..., 2), the smaller one 0."""
        return np.concatenate((np.maximum(memory, 0), np.maximum(-memory, 0)), axis=-1)

    def sample_counterfactuals(self, memory: Array, rng: np.random.Generator) -> Array:
        """The difference plus a number drawn from -window .. window without 0."""
        shift = rng.integers(1, self.window + 1, size=memory.shape) * rng.choice((-1, 1), size=memory.shape)
        return self.canonical(memory + shift.astype(np.float32))

    def rows(self, memory: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Differences around the real one (B, 1), with its sign: (B, 2 window, 1), and which are valid."""
        near = np.arange(-self.window, self.window + 1, dtype=np.float32)
        size = np.abs(memory)[:, None] + near[near != 0][:, None]
        candidates = np.where(memory[:, None] < 0, -size, size)
        return candidates, ((size >= 0) & (size <= self.high))[..., 0]


@checked
@dataclass(frozen=True)
class ClockMemory(_Known):
    """How many steps have passed in this episode, of ``maximum``."""

    maximum: int

    name = "clock"
    dim = 1
    ticking = True

    @cached_property
    def high(self) -> Array:  # type: ignore[override]
        return np.array([self.maximum], dtype=np.float32)

    def update(self, memory: Array, action: ArrayLike, event: Array) -> Array:
        return np.minimum(memory + 1, self.high)

    def encode(self, memory: Array) -> NDArray[np.float32]:
        """The share of the episode that has passed."""
        return np.asarray(memory / self.high, dtype=np.float32)


@checked
@dataclass(frozen=True)
class CounterMemory(_Known):
    """How many steps have passed since the last assessment, if there is one every ``period`` steps."""

    period: Count

    dim = 1
    ticking = True

    @property
    def name(self) -> str:
        return f"counter({self.period})"

    @cached_property
    def high(self) -> Array:  # type: ignore[override]
        return np.array([self.period - 1], dtype=np.float32)

    def update(self, memory: Array, action: ArrayLike, event: Array) -> Array:
        return (memory + 1) % self.period

    def encode(self, memory: Array) -> NDArray[np.float32]:
        """The share of the period that has passed."""
        return np.asarray(memory / self.period, dtype=np.float32)


@checked
@dataclass(frozen=True)
class RoundsMemory(FullMemory):
    """How often each stakeholder was served in this round, and how many of its ``period`` steps have passed.

    The first step of a round finds the counts of the last one, which were just assessed, and begins anew.
    """

    period: Count = 1

    ticking = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"rounds({self.period})"

    @property
    def round_length(self) -> int:  # type: ignore[override]
        return self.period

    @cached_property
    def dim(self) -> int:  # type: ignore[override]
        return self.served.shape[1] + 1

    @cached_property
    def high(self) -> Array:  # type: ignore[override]
        return np.full(self.dim, min(self.maximum, self.period), dtype=np.float32)

    def update(self, memory: Array, action: ArrayLike, event: Array) -> Array:
        """Whoever is served counts one more, after a new beginning where a round was over; the clock ticks."""
        over = memory[..., -1:] >= self.period
        memory = np.where(over, np.float32(0), memory)
        memory[..., :-1] += self.gains(action, event)
        memory[..., -1] += 1
        return self.canonical(memory)

    def encode(self, memory: Array) -> NDArray[np.float32]:
        """Counts and passed share of a round; what was is no longer shown when a round is over."""
        current = np.where(memory[..., -1:] >= self.period, np.float32(0), memory)
        return np.concatenate((super().encode(current[..., :-1]), current[..., -1:] / self.period), axis=-1)

    def differences(self, memory: Array) -> Array | None:
        return memory[..., :-1]

    def sample_counterfactuals(self, memory: Array, rng: np.random.Generator) -> Array:
        """Other counts at the same time, none larger than the steps of the round so far."""
        other = super().sample_counterfactuals(memory, rng)
        other[..., -1] = memory[..., -1]
        return np.minimum(other, memory[..., -1:])


@dataclass(frozen=True)
class ProductMemory(_Known):
    """Several memories side by side, each with its own columns and updated by itself."""

    parts: tuple[Memory, ...]

    @property
    def name(self) -> str:
        return "+".join(part.name for part in self.parts)

    @cached_property
    def dim(self) -> int:  # type: ignore[override]
        return sum(part.dim for part in self.parts)

    @cached_property
    def low(self) -> Array:
        return np.concatenate([bounds(part)[0] for part in self.parts])

    @cached_property
    def high(self) -> Array:  # type: ignore[override]
        return np.concatenate([part.high for part in self.parts])

    @property
    def ticking(self) -> bool:  # type: ignore[override]
        return any(getattr(part, "ticking", False) for part in self.parts)

    @cached_property
    def _columns(self) -> list[tuple[Memory, slice]]:
        ends = np.cumsum([part.dim for part in self.parts]).tolist()
        return [(part, slice(end - part.dim, end)) for end, part in zip(ends, self.parts, strict=True)]

    def _joined(self, each: Callable[[Memory, Array], Array], memory: Array) -> Array:
        return np.concatenate([each(part, memory[..., columns]) for part, columns in self._columns], axis=-1)

    def initial(self, batch: tuple[int, ...]) -> Array:
        return np.concatenate([part.initial(batch) for part in self.parts], axis=-1)

    def update(self, memory: Array, action: Array, event: Array) -> Array:
        return self._joined(lambda part, own: part.update(own, action, event), memory)

    def encode(self, memory: Array) -> NDArray[np.float32]:
        return self._joined(lambda part, own: part.encode(own), memory)

    def _first(self, name: str, memory: Array) -> Array | None:
        for part, columns in self._columns:
            found = getattr(part, name, part.status)(memory[..., columns])
            if found is not None:
                return found
        return None

    def status(self, memory: Array) -> Array | None:
        return self._first("status", memory)

    def differences(self, memory: Array) -> Array | None:
        return self._first("differences", memory)

    def sample_counterfactuals(self, memory: Array, rng: np.random.Generator) -> Array:
        return self._joined(lambda part, own: part.sample_counterfactuals(own, rng), memory)

    def rows(self, memory: Array) -> tuple[Array, NDArray[np.bool_]]:
        """The rows of the first part that has some, beside the others' columns as they are.

        :raises ValueError: if no part has any
        """
        for part, columns in self._columns:
            if hasattr(part, "rows"):
                candidates, valid = part.rows(memory[:, columns])
                as_is = np.repeat(memory[:, None], candidates.shape[1], axis=1)
                parts = as_is[..., : columns.start], candidates, as_is[..., columns.stop :]
                return np.concatenate(parts, axis=-1), valid
        raise ValueError(f"memory must have a part with a method rows for stored rows, got {self.name!r}")


COUNTING = {kind.name: kind for kind in (FullMemory, MinMemory, ResetMemory, DifferenceMemory)}
MemoryLike: TypeAlias = str | Memory | Sequence[str | Memory]
_NAMES = (*COUNTING, "clock", "counter(period)", "rounds(period)")


def parts_of(memory: Memory) -> tuple[Memory, ...]:
    """The memories that a joined one consists of; any other memory itself."""
    return tuple(getattr(memory, "parts", (memory,)))


def require_rows(memory: Memory, setting: str) -> None:
    """Refuses a memory without rows to store, which ``setting`` needs, such as "storage='rows'".

    :raises ValueError: if it has none
    """
    if not hasattr(memory, "rows"):
        raise ValueError(f"memory must have a method rows for {setting}, got {memory.name!r}")
    memory.rows(memory.initial((1,)))  # some refuse


def has_window(memory: Memory) -> bool:
    """Whether :func:`make_memory` can give the memory another window."""
    return is_dataclass(memory) and hasattr(memory, "window")


@checked
def make_memory(
    memory: MemoryLike,
    stakeholders: Sequence[int],
    maximum: int | None,
    *,
    encoder: Encoding = "log",
    window: int | None = None,
    first_action: int = 0,
) -> Memory:
    """The memory behind a name; a memory is returned as it is.

    :param memory: ``"full"``, ``"min"``, ``"reset"``, ``"difference"``, ``"clock"``, ``"counter(p)"``,
        ``"rounds(p)"``, several joined by ``+`` or in a sequence, or an object that has the methods of :class:`Memory`
    :param stakeholders: whom each action serves, -1 if nobody
    :param maximum: largest count, usually the number of steps of an episode
    :param encoder: how counts are shown to a network
    :param window: how far counterfactual counts may be from the real ones; None: as far as usual
    :param first_action: number of the action that serves the first of ``stakeholders``
    :raises ValueError: if the name is unknown
    :raises TypeError: if it is neither a name nor has the methods of a memory
    """
    parts = memory.replace(" ", "").split("+") if isinstance(memory, str) else memory
    if isinstance(parts, Memory):
        own: Any = parts
        return replace(own, window=window) if window and has_window(own) else own
    if not len(parts):
        raise TypeError(f"memory must be a name, a Memory, or a sequence of at least one, got {memory!r}")
    made = [
        _named(part, maximum, stakeholders=stakeholders, encoder=encoder, window=window, first_action=first_action)
        if isinstance(part, str)
        else make_memory(part, stakeholders, maximum, encoder=encoder, window=window, first_action=first_action)
        for part in parts
    ]
    return made[0] if len(made) == 1 else ProductMemory(tuple(made))


def _named(name: str, maximum: int | None, stakeholders: Sequence[int], window: int | None, **counting: Any) -> Memory:
    found = re.fullmatch(r"(counter|rounds)\((\d+)\)", name)
    if name not in COUNTING and name != "clock" and not found:
        raise ValueError(f"memory must be made of {_NAMES}, got {name!r}{did_you_mean(name, _NAMES)}")
    kind, period = (found[1], int(found[2])) if found else (name, None)
    if kind == "counter":
        return CounterMemory(period or 0)
    most = period or maximum
    if most is None:
        raise ValueError(
            f"env must have a limit of steps for the memory {name!r}, as max_episode_steps or TimeLimit set, or the "
            f"memory an argument high: MemoryAugmentation(env, {name!r}, high=100)"
        )
    if kind == "clock":
        return ClockMemory(most)
    counting |= {} if window is None else {"window": window}
    people = checked_stakeholders(stakeholders)
    if period is not None:
        return RoundsMemory(people, most, period=period, **counting)
    return COUNTING[kind](people, most, **counting)


def augment(actions: ArrayLike, events: ArrayLike, memory: Memory) -> Array:
    """The memories along logged decisions, with the numbers that the wrapper shows.

    :param actions: (..., T) int
    :param events: (..., T, 3): granted, base, mask
    :return: (..., T + 1, dim), the memory before every step and after the last
    """
    taken, happened = np.asarray(actions), np.asarray(events, dtype=np.float64)
    if happened.shape != (*taken.shape, 3):
        raise ValueError(
            f"events must have the shape of actions and 3 columns, {(*taken.shape, 3)}, got {happened.shape}"
        )
    states = [memory.initial(taken.shape[:-1])]
    for step in range(taken.shape[-1]):
        states.append(memory.update(states[-1].copy(), taken[..., step], happened[..., step, :]))
    return np.stack(states, axis=-2)
