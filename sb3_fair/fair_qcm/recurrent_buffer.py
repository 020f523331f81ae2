"""Replay buffer of sequences of steps."""

from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import PyTorchObs, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from sb3_fair.fairness.arguments import checked
from sb3_fair.wrappers.observations import each

UNFINISHED = np.iinfo(np.int64).max
SETTINGS = ("sequence_length", "burn_in", "reward_scale")
"""Arguments that are the algorithm's too."""


class Windows(NamedTuple):
    """Stretches of n episodes, side by side, and the steps among them whose Q-values are asked for.

    :param observations: tensor (time, n, ...) or a dict of such; after the end of a stretch, any observations
    :param wanted: (time, n) bool
    :param past: observations before the stretches, (past time, n, ...), each from its first row on; None: none
    :param past_lengths: how many rows of ``past`` precede each stretch, (n,) int64
    """

    observations: PyTorchObs
    wanted: th.Tensor
    past: PyTorchObs | None
    past_lengths: th.Tensor


@checked
class WindowReplayBuffer(ReplayBuffer):
    """A replay buffer that knows where episodes begin and end, and samples windows of them.

    A window never crosses the end of an episode, nor a reset in the middle of one. Windows of a fixed length begin
    anywhere: a stored step is drawn, then a window around it, moved so that it lies inside the episode, and shorter
    only where the episode is. They come with the steps before them, from which a network works out the hidden state
    at their beginning. Where the beginning of an episode has been overwritten, its oldest step left is the first.

    The samples hold the valid steps of all windows as rows, (N, 1), in the order of the masks ``wanted`` of
    ``observations`` and ``next_observations``, which are :class:`Windows` of the same stretches, one step apart.

    :param buffer_size: number of transitions, over all environments
    :param observation_space: any space of SB3; a Dict needs :class:`DictWindowReplayBuffer`
    :param action_space: Discrete
    :param sequence_length: steps per window; None: whole episodes, as far as they were played, all equally likely
    :param burn_in: steps before a window that come with it at most; None: all from the beginning of its episode
    :param reward_scale: factor on the rewards of samples
    :param seed: of the drawing
    :param kwargs: further arguments of SB3's ``ReplayBuffer``
    :raises ValueError: if an argument is not allowed
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        sequence_length: int | None = None,
        burn_in: int | None = None,
        reward_scale: float = 1.0,
        seed: int | tuple[int, ...] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, **kwargs)
        self.sequence_length, self.burn_in, self.reward_scale = sequence_length, burn_in, reward_scale
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        super().reset()
        self.n_added = 0
        # Times count the calls of add(); time t is kept in row t % buffer_size.
        self.begins = np.zeros((self.buffer_size, self.n_envs), dtype=np.int64)
        self.ends = np.full((self.buffer_size, self.n_envs), UNFINISHED)
        self._current = np.zeros(self.n_envs, dtype=np.int64)

    def pass_on(self, loaded: "WindowReplayBuffer") -> None:
        """Lets a loaded buffer go on with the settings of this one.

        :raises ValueError: if it is of another number of environments
        """
        if loaded.n_envs != self.n_envs:
            raise ValueError(f"path must hold a buffer of {self.n_envs} environments, got one of {loaded.n_envs}")
        for name in SETTINGS:
            setattr(loaded, name, getattr(self, name))

    def begin(self, starts: NDArray[np.bool_]) -> None:
        """Tells in which environments, (n_envs,) bool, the transition that is added next is the first of an episode."""
        for env in np.flatnonzero(starts):
            left = np.arange(max(self._current[env], self.n_added - self.buffer_size), self.n_added)
            self.ends[left % self.buffer_size, env] = self.n_added
            self._current[env] = self.n_added

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Stores one transition of each environment; arguments as in SB3. Call :meth:`begin` before."""
        self.begins[self.pos] = self._current
        self.ends[self.pos] = UNFINISHED
        super().add(*args, **kwargs)
        self.n_added += 1

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Windows of ``batch_size`` transitions in all, or of fewer where episodes are shorter than windows.

        :param batch_size: there are ``batch_size // sequence_length`` windows; of whole episodes, as many as have
            ``batch_size`` steps on average, and at least one
        :param env: normalises observations and rewards
        :raises ValueError: if whole episodes are asked for and none fits into the buffer
        """
        first, starts, stops, envs = (
            self._episodes(batch_size) if self.sequence_length is None else self._inside(batch_size)
        )
        lengths = stops - starts
        windows = np.arange(len(starts))
        steps = np.arange(lengths.max() + 1)[:, None]
        times = np.minimum(starts + steps, stops - 1)

        def shown(stored: Any, following: Any) -> Any:
            seen = stored[times % self.buffer_size, envs]
            seen[lengths, windows] = following[(stops - 1) % self.buffer_size, envs]
            return seen

        valid = steps < lengths
        rows, columns = times[valid] % self.buffer_size, np.broadcast_to(envs, times.shape)[valid]
        past_lengths = np.minimum(starts - first, UNFINISHED if self.burn_in is None else self.burn_in)
        before = np.minimum(starts - past_lengths + np.arange(past_lengths.max())[:, None], starts)
        past = each(lambda stored: stored[before % self.buffer_size, envs], self.observations) if len(before) else None
        now = Windows(
            self._tensors(each(shown, self.observations, self.next_observations), env),
            self.to_torch(valid),
            None if past is None else self._tensors(past, env),
            self.to_torch(past_lengths),
        )
        dones = self.dones[rows, columns] * (1 - self.timeouts[rows, columns])
        rewards = self._normalize_reward(self.rewards[rows, columns, None], env) * self.reward_scale
        return ReplayBufferSamples(
            observations=now,  # type: ignore[arg-type]
            actions=self.to_torch(self.actions[rows, columns]),
            next_observations=now._replace(wanted=now.wanted.roll(1, dims=0)),  # type: ignore[arg-type]
            dones=self.to_torch(dones[:, None]),
            rewards=self.to_torch(rewards),
        )

    def _episodes(self, batch_size: int) -> tuple[NDArray[np.int64], ...]:
        """Earliest usable times, starts, stops and environments of whole episodes."""
        stored = np.arange(self.n_added - self.size(), self.n_added)
        rows = stored % self.buffer_size
        at, envs = np.nonzero(self.begins[rows] == stored[:, None])
        if not len(at):
            raise ValueError(
                f"buffer_size must hold whole episodes of each environment, got {self.buffer_size} steps per "
                "environment: raise it or set sequence_length"
            )
        starts, stops = stored[at], np.minimum(self.ends[rows[at], envs], self.n_added)
        drawn = self.rng.integers(len(at), size=max(1, int(batch_size / (stops - starts).mean())))
        return starts[drawn], starts[drawn], stops[drawn], envs[drawn]

    def _inside(self, batch_size: int) -> tuple[NDArray[np.int64], ...]:
        """Earliest usable times, starts, stops and environments of windows."""
        assert self.sequence_length is not None
        n_windows = batch_size // self.sequence_length
        oldest = self.n_added - self.size()
        around = self.rng.integers(oldest, self.n_added, size=n_windows)
        envs = self.rng.integers(self.n_envs, size=n_windows)
        first = np.maximum(self.begins[around % self.buffer_size, envs], oldest)
        end = np.minimum(self.ends[around % self.buffer_size, envs], self.n_added)
        starts = around - self.rng.integers(self.sequence_length, size=n_windows)
        starts = np.clip(starts, first, np.maximum(first, end - self.sequence_length))
        return first, starts, np.minimum(starts + self.sequence_length, end), envs

    def _tensors(self, observations: Any, env: VecNormalize | None) -> Any:
        return each(self.to_torch, self._normalize_obs(observations, env))


class DictWindowReplayBuffer(WindowReplayBuffer, DictReplayBuffer):  # type: ignore[misc]  # SB3 types dict samples apart
    """:class:`WindowReplayBuffer` for Dict observations."""
