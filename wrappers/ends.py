"""Time limits outside a wrapper, as of gym.make's max_episode_steps."""

import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from sb3_fair.fairness.warning import warn

MISSED = 5
"""Episodes in a row without an end after which something outside must be ending them; evaluations leave some too."""
COUNTED = {"_max_episode_steps", "_elapsed_steps"}
"""What a ``TimeLimit`` has, also one that takes the place of Gymnasium's."""
REPEATED = (
    "a wrapper takes several steps in the last step before a TimeLimit outside, each of which would be paid as the "
    "last of the episode: the TimeLimit has to stand inside the wrapper that repeats steps"
)


class Ends:
    """Tells a wrapper that pays at the end of an episode which step is the last.

    A ``TimeLimit`` outside of the wrapper truncates without a word to the inside. It is found when an episode begins,
    from the calls of ``reset`` that come through it, and asked how many steps it counted. Wrappers that end episodes
    for other reasons cannot be foreseen: there is one warning after :data:`MISSED` episodes in a row that were left
    before their end (seeded resets do not count, which people call by hand).
    """

    def __init__(self) -> None:
        self.limits: list[Any] = []
        self.steps = self.missed = 0
        self.at_limit = False

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
        self.limits = list(_limits_outside(wrapper))
        self.at_limit = False

    def step(self, ended: bool) -> bool:
        """Whether the step was the last of its episode, as the environment or a limit outside says.

        :raises ValueError: if a limit counts several steps as one
        """
        self.steps += 1
        at_limit = any(limit._elapsed_steps + 1 == limit._max_episode_steps for limit in self.limits)
        if at_limit and self.at_limit:
            raise ValueError(REPEATED)
        self.at_limit = at_limit
        over = ended or at_limit
        if over:
            self.steps = self.missed = 0
        return over


def _limits_outside(wrapper: gym.Wrapper) -> Iterator[gym.Wrapper]:
    """The ``TimeLimit``\\ s around ``wrapper`` whose ``reset`` is running."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        outer = frame.f_locals.get("self")
        inner: Any = outer if isinstance(outer, gym.Wrapper) and vars(outer).keys() >= COUNTED else None
        while isinstance(inner, gym.Wrapper):
            inner = inner.env
            if inner is wrapper:
                yield outer
        frame = frame.f_back
