"""Epsilon schedules of Q-learners."""

from typing import Any

import numpy as np

from sb3_fair.wrappers.choices import Choices


def exploration_generator(seed: int | None) -> np.random.Generator:
    """A learner's own generator: that of the seed alone would draw what Gymnasium's first environment draws."""
    return np.random.default_rng(None if seed is None else (seed, 2))


def epsilon_greedy(greedy: Any, epsilon: float, n_actions: int, rng: np.random.Generator) -> Choices:
    """Greedy actions (n,) or (), each replaced with probability ``epsilon`` by one drawn uniformly from all.

    Every environment decides separately whether to explore; in SB3's DQN one decision counts for all. The actions
    carry their probabilities, so that fairness notions know them.
    """
    greedy = np.asarray(greedy)
    explores = rng.random(greedy.shape) < epsilon
    actions = np.where(explores, rng.integers(n_actions, size=greedy.shape), greedy)
    return Choices(actions, np.eye(n_actions)[greedy] * (1 - epsilon) + epsilon / n_actions)
