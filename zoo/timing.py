"""Timing.

Figures are the best of three rounds, since other work on the machine only ever makes a round slower.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

ROUNDS = 3


@dataclass(frozen=True)
class Figure:
    """One line of the benchmark.

    :param target: what it should reach, None if nothing was promised
    :param lower_is_better: whether the target is an upper bound
    """

    work: str
    value: float
    unit: str
    target: float | None = None
    lower_is_better: bool = False

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.lower_is_better else self.value >= self.target


def steps_per_second(step: Callable[[], int], scale: float) -> float:
    """Best of three rounds of about a second; ``step`` returns how many steps it took."""
    best = 0.0
    for _ in range(ROUNDS):
        steps, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < scale:
            steps += step()
        best = max(best, steps / elapsed)
    return best


def steps_of(venv: Any, scale: float) -> float:
    """Steps of all copies per second with random actions, Gaussian ones in a Box."""
    venv.reset()
    rng, size = np.random.default_rng(0), (1000 // venv.num_envs + 1, venv.num_envs)
    boxed = isinstance(venv.action_space, spaces.Box)
    actions = (
        rng.normal(size=(*size, *venv.action_space.shape)) if boxed else rng.integers(venv.action_space.n, size=size)
    )

    def step() -> int:
        for row in actions:
            venv.step(row)
        return len(actions) * int(venv.num_envs)

    step()
    return steps_per_second(step, scale)


def learning(model: Any, steps: int) -> float:
    """Steps per second of ``model.learn(steps)``."""
    started = time.perf_counter()
    model.learn(steps)
    return float(model.num_timesteps / (time.perf_counter() - started))


def in_turns(models: Sequence[Any], steps: int) -> list[float]:
    """Best of three rounds of :func:`learning` of each of several models, which take turns."""
    rounds = [[learning(model, steps) for model in models] for _ in range(ROUNDS)]
    return [max(speeds) for speeds in zip(*rounds, strict=True)]
