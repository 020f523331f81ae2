"""PCN's buffer of episodes, sorted by crowding distance."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from sb3_fair.common.pareto import crowding_distance, min_max, nondominated, nondominated_ranks
from sb3_fair.common.rollout import Step

Array = NDArray[np.float64]
Observations = dict[str, NDArray[Any]]


class Episode(NamedTuple):
    """One complete episode of T steps.

    :param observations: what each action was chosen on, key -> (T, ...)
    :param actions: (T, ...) int, of a Box float
    :param rewards: vector rewards, (T, K) float64
    """

    observations: Observations
    actions: NDArray[Any]
    rewards: Array


class Batch(NamedTuple):
    """Observations, returns-to-go and actions, each with m rows."""

    observations: Observations
    returns: NDArray[np.float32]
    horizons: NDArray[np.float32]
    actions: NDArray[Any]


def to_go(rewards: Array, discounts: ArrayLike) -> Array:
    """Discounted sums of the rewards from each step on, (T, k), with one discount factor per objective."""
    from scipy.signal import lfilter  # slow to import

    columns = [
        lfilter([1.0], [1.0, -discount], column[::-1])[::-1]
        for column, discount in zip(rewards.T, np.asarray(discounts), strict=True)
    ]
    return np.stack(columns, axis=1)


def priorities(returns: ArrayLike, threshold: float = 0.2, penalty: str = "double") -> Array:
    """How much each episode is worth keeping, (m,); 0 is best (Reymond et al., 2022, Section 4).

    Minus the distance to the nearest non-dominated return, on min-max normalised objectives. All but one copy of the
    non-dominated returns lose another 1e-5; crowded ones, judged within their non-dominated rank, are doubled.

    :param returns: (m, k) returns on the optimised objectives
    :param threshold: largest crowding distance that counts as crowded
    :param penalty: ``"double"``, or ``"one"`` to subtract 1 instead
    """
    points = min_max(returns)
    ranks = nondominated_ranks(points)
    best = ranks == 0
    worth: Array = -cdist(points, points[best]).min(axis=1)
    worth[~best] -= 1e-5
    crowding = np.empty(len(points))
    for rank in range(ranks.max() + 1):
        crowding[ranks == rank] = crowding_distance(points[ranks == rank])
    crowded = crowding <= threshold
    worth[crowded] = worth[crowded] * 2 if penalty == "double" else worth[crowded] - 1
    return worth


class EpisodeBuffer:
    """Whole episodes in named arrays; slot e holds episode e in the first ``lengths[e]`` of its rows.

    ``observations[key]`` (capacity * rows, ...), ``to_go`` (capacity * rows, k) float32 and ``actions``
    (capacity * rows, ...) hold the steps; ``lengths`` (capacity,), ``returns`` (capacity, K) and ``asks``
    (capacity, k) what is known of the episodes. The episode to make room is the one with the lowest priority, or the
    longest one with the same return; new ones are safe until :meth:`rank` is called.

    :param capacity: number of episodes
    :param columns: the optimised entries of the vector reward, (k,)
    :param discounts: discount factor of the return-to-go, per optimised objective
    :param held: which optimised objectives are commanded by the mean of their return-to-go over an episode
    :param threshold: see :func:`priorities`
    :param penalty: see :func:`priorities`
    """

    def __init__(
        self,
        capacity: int,
        columns: NDArray[np.int64],
        discounts: Array,
        held: NDArray[np.bool_],
        threshold: float = 0.2,
        penalty: str = "double",
    ) -> None:
        self.capacity = capacity
        self.columns = columns
        self.discounts = discounts
        self.held = held
        self.threshold = threshold
        self.penalty = penalty
        self.size = 0
        self.rows = 0
        self.observations: Observations = {}
        self.actions: Any = None
        self.to_go: Any = None
        self.lengths = np.zeros(capacity, dtype=np.int64)
        self.priority = np.full(capacity, -np.inf)
        self.asks = np.zeros((capacity, len(columns)))

    def __len__(self) -> int:
        return self.size

    @property
    def points(self) -> Array:
        """Returns of the stored episodes on the optimised objectives, (size, k)."""
        return self.returns[: self.size, self.columns] if self.size else np.empty((0, len(self.columns)))

    def add(self, episode: Episode) -> None:
        """Stores an episode in place of the one with the lowest priority; its own is the highest until :meth:`rank`."""
        length = len(episode.actions)
        labels = to_go(episode.rewards[:, self.columns], self.discounts)
        if length > self.rows:
            self._grow(episode, labels)
        slot = self.size if self.size < self.capacity else self._dispensable()
        self.size = max(self.size, slot + 1)
        steps = slice(slot * self.rows, slot * self.rows + length)
        for key, values in episode.observations.items():
            self.observations[key][steps] = values
        self.actions[steps] = episode.actions
        self.to_go[steps] = labels
        self.lengths[slot] = length
        self.returns[slot] = episode.rewards.sum(axis=0)
        self.asks[slot] = np.where(self.held, labels.mean(axis=0), labels[0])
        self.priority[slot] = np.inf

    def _dispensable(self) -> int:
        """The slot that makes room."""
        worst = int(self.priority.argmin())
        copies = (self.points == self.points[worst]).all(axis=1) & np.isfinite(self.priority)
        longest = int(np.where(copies, self.lengths, -1).argmax())
        return longest if self.lengths[longest] > self.lengths[worst] else worst

    def _grow(self, episode: Episode, labels: Array) -> None:
        """Makes as many rows per slot as the episode needs, at least twice as many as before."""
        rows = max(len(labels), 2 * self.rows)

        def wider(kept: Any, like: NDArray[Any]) -> NDArray[Any]:
            slots = np.zeros((self.capacity, rows, *like.shape[1:]), dtype=like.dtype)
            if kept is not None:
                slots[:, : self.rows] = kept.reshape(self.capacity, self.rows, *like.shape[1:])
            return slots.reshape(-1, *like.shape[1:])

        shown = episode.observations.items()
        self.observations = {key: wider(self.observations.get(key), values) for key, values in shown}
        self.actions, self.to_go = wider(self.actions, episode.actions), wider(self.to_go, labels.astype(np.float32))
        if not self.rows:
            self.returns = np.zeros((self.capacity, episode.rewards.shape[1]))
        self.rows = rows

    def rank(self) -> None:
        """Recomputes the priorities of all episodes."""
        self.priority[: self.size] = priorities(self.points, self.threshold, self.penalty)

    def best(self, n: int) -> NDArray[np.int64]:
        """Slots of those non-dominated among the ``n`` episodes of highest priority; :meth:`rank` first."""
        slots = np.argsort(-self.priority[: self.size], kind="stable")[:n]
        return self.shortest()[slots[nondominated(self.points[slots])]]

    def shortest(self) -> NDArray[np.int64]:
        """For every slot, that of the shortest episode with the same return; longer ones are detours, or lucky."""
        order = np.argsort(self.lengths[: self.size], kind="stable")
        _, first, kinds = np.unique(self.points[order], axis=0, return_index=True, return_inverse=True)
        found = np.empty_like(order)
        found[order] = order[first[kinds.ravel()]]
        return found

    def sample(self, m: int, rng: np.random.Generator) -> Batch:
        """m steps: an episode uniformly with replacement, then one of its steps uniformly."""
        slots = rng.integers(self.size, size=m)
        lengths = self.lengths[slots]
        times = (rng.random(m) * lengths).astype(np.int64)
        index = slots * self.rows + times
        observations = {key: values[index] for key, values in self.observations.items()}
        return Batch(observations, self.to_go[index], (lengths - times).astype(np.float32), self.actions[index])

    def seen(self) -> Observations:
        """The observations of all stored steps."""
        stored = self._stored()
        return {key: values[stored] for key, values in self.observations.items()}

    def labels(self) -> NDArray[np.float32]:
        """The returns-to-go of all stored steps, (number of steps, k)."""
        return self.to_go[self._stored()]

    def spread(self) -> Array:
        """Standard deviations of the returns-to-go and of the horizon, as :meth:`sample` draws them, (k + 1,)."""
        lengths, stored = self.lengths[: self.size], self._stored()
        horizons = (self.lengths[:, None] - np.arange(self.rows)).ravel()
        drawn = np.column_stack([self.to_go[stored], horizons[stored]])
        share = np.repeat(1 / (lengths * self.size), lengths)
        return np.asarray(np.sqrt(share @ (drawn - share @ drawn) ** 2))

    def _stored(self) -> NDArray[np.bool_]:
        return (np.arange(self.rows) < self.lengths[:, None]).ravel()


def episodes_of(steps: Sequence[Step], ignore: Sequence[str] = ()) -> list[Episode]:
    """The complete episodes that count in what n copies played.

    :param ignore: keys of the observations that are not stored
    """
    keys = [key for key in steps[0].observations if key not in ignore]
    observations = {key: np.stack([step.observations[key] for step in steps]) for key in keys}
    actions = np.stack([np.asarray(step.actions) for step in steps])
    rewards = np.stack([step.rewards for step in steps])
    ends = np.stack([step.dones & step.counts for step in steps])
    episodes = []
    for copy in range(ends.shape[1]):
        start = 0
        for end in np.flatnonzero(ends[:, copy]) + 1:
            shown = {key: values[start:end, copy] for key, values in observations.items()}
            episodes.append(Episode(shown, actions[start:end, copy], rewards[start:end, copy]))
            start = int(end)
    return episodes
