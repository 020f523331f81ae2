"""Time limits outside a wrapper, as of gym.make's max_episode_steps."""

import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from sb3_fair.fairness.warning import warn

MISSED = 2
"""Episodes in a row without an end after which something outside must be ending them."""


class Ends:
    """Tells a wrapper that pays at the end of an episode which step is the last.

    A ``TimeLimit`` outside of the wrapper truncates without a word to the inside. It is found when an episode begins,
    from the calls of ``reset`` that come through it. Wrappers that end episodes for other reasons cannot be foreseen:
    there is one warning after two episodes in a row that were left before their end (seeded resets do not count, which
    people call by hand).
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self.steps = self.missed = 0

    def restart(self, wrapper: gym.Wrapper, seed: int | None, unpaid: str | None) -> None:
        """A new episode begins; ``unpaid`` is what is never paid where ends are not seen, None: nothing."""
        if unpaid is None:
            return
        self.missed = self.missed + 1 if self.steps and seed is None else 0
        if self.missed == MISSED:
            warn(
                f"{MISSED} episodes in a row were left before they ended, the last after {self.steps} steps, and "
                f"{unpaid} was not paid: wrappers that end episodes have to stand inside {wrapper.class_name()}"
            )
        self.steps = 0
        self.limit = min(_limits_outside(wrapper), default=None)

    def step(self, ended: bool) -> bool:
        """Whether the step was the last of its episode, as the environment or a limit outside says."""
        self.steps += 1
        over = ended or self.steps == self.limit
        if over:
            self.steps = self.missed = 0
        return over


def _limits_outside(wrapper: gym.Wrapper) -> Iterator[int]:
    """The limits of the ``TimeLimit``\\ s around ``wrapper`` whose ``reset`` is running."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        outer = frame.f_locals.get("self")
        limit = vars(outer).get("_max_episode_steps") if isinstance(outer, gym.Wrapper) else None
        while limit is not None and isinstance(outer, gym.Wrapper):
            outer = outer.env
            if outer is wrapper:
                yield limit
        frame = frame.f_back
