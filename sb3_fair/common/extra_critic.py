"""ExtraCritic: a value network for another signal than the reward, with generalised advantage estimates."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.preprocessing import preprocess_obs
from stable_baselines3.common.utils import get_device, obs_as_tensor
from torch import nn

from sb3_fair.common.columns import ColumnRolloutBuffer
from sb3_fair.fairness.arguments import Positive, checked
from sb3_fair.wrappers.observations import each, steps_of

MEMORY = 10
"""Rollouts over which the mean and standard deviation of the targets are averaged."""


def gae(
    signal: NDArray[Any],
    values: NDArray[Any],
    last_values: ArrayLike,
    last_dones: ArrayLike,
    episode_starts: NDArray[Any],
    gamma: float,
    gae_lambda: float,
) -> NDArray[Any]:
    """Generalised advantage estimates (T, n) of any signal; the same numbers as SB3's ``RolloutBuffer``.

    Source: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016.

    :param signal: (T, n) what every step brought
    :param values: (T, n) expected sum of the discounted signal from every step on
    :param last_values: (n,) the same from the observations after the last step
    :param last_dones: (n,) whether the last step ended an episode
    :param episode_starts: (T, n) whether the step is the first of its episode
    :param gamma: discount factor
    :param gae_lambda: 0: one-step estimates, 1: Monte Carlo
    """
    goes_on = 1 - np.concatenate([episode_starts[1:], [last_dones]]).astype(values.dtype)
    following = np.concatenate([values[1:], [last_values]]).astype(values.dtype)
    surprises = signal + gamma * following * goes_on - values
    advantages = np.empty_like(surprises)
    advantage = np.zeros_like(surprises[0])
    for step in reversed(range(len(signal))):
        advantage = surprises[step] + gamma * gae_lambda * goes_on[step] * advantage
        advantages[step] = advantage
    return advantages


class Credit(NamedTuple):
    """What a critic thinks of a rollout, all (T, n): ``returns`` are its targets, advantages plus values."""

    advantages: NDArray[np.float64]
    returns: NDArray[np.float64]
    values: NDArray[np.float32]


class Critic(nn.Module):
    """What judges the steps of a rollout by a signal and learns from it; :meth:`values` and :meth:`fit` are its own."""

    def values(self, obs: Any) -> NDArray[np.float32]:
        """Expected discounted sum of the signal from each of a batch of observations on, (n,)."""
        raise NotImplementedError

    def fit(self, observations: Any, returns: NDArray[Any], epochs: int, batch_size: int) -> None:
        """Moves the values of ``observations`` towards ``returns`` (n,), ``epochs`` times in minibatches."""
        raise NotImplementedError

    def judge(
        self,
        buffer: ColumnRolloutBuffer,
        signal: NDArray[np.float64],
        last_obs: Any,
        last_dones: NDArray[np.bool_],
        gamma: float,
        gae_lambda: float,
    ) -> Credit:
        """What ``signal`` (T, n) says about the steps of a full buffer from which no minibatch was drawn yet.

        Where a time limit cut off an episode the value of its last observation stands for the rest.

        :param last_obs: the observations after the last step
        :param last_dones: (n,) whether the last step ended an episode
        """
        values = self.values(steps_of(buffer.observations)).reshape(signal.shape)
        whole = signal.copy()
        if buffer.truncations:
            rows, copies, observations = zip(*buffer.truncations, strict=True)
            whole[list(rows), list(copies)] += gamma * self.values(each(lambda *rows: np.stack(rows), *observations))
        last_values = self.values(last_obs)
        advantages = gae(whole, values, last_values, last_dones, buffer.episode_starts, gamma, gae_lambda)
        return Credit(advantages, advantages + values, values)


@checked
class ExtraCritic(Critic):
    """A value network on flattened observations with an optimiser and random numbers of its own.

    It learns targets of mean 0 and standard deviation 1, whatever their scale; its predictions stay the same when the
    scale moves (Pop-Art: van Hasselt et al., "Learning values across many orders of magnitude", NeurIPS 2016). Nothing
    draws from PyTorch's or NumPy's global generators. ``state_dict`` holds all of it but the optimiser.

    :param observation_space: that of the policy, a Dict allowed
    :param hidden: sizes of the hidden layers
    :param learning_rate: of Adam
    :param seed: of the initial weights and the order of minibatches; None: PyTorch's current one
    :param device: ``"cpu"``, ``"cuda"``, ``"auto"``
    :raises ValueError: if a size is not a positive integer or the learning rate not positive
    """

    mean: th.Tensor
    second_moment: th.Tensor
    std: th.Tensor
    rollouts: th.Tensor

    def __init__(
        self,
        observation_space: spaces.Space,
        hidden: Sequence[int] = (64, 64),
        learning_rate: Positive = 1e-3,
        seed: int | None = None,
        device: th.device | str = "auto",
    ) -> None:
        super().__init__()
        self.observation_space = observation_space
        self.generator = th.Generator().manual_seed(th.initial_seed() if seed is None else seed)
        sizes = [spaces.utils.flatdim(observation_space), *hidden]
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [self._linear(inputs, outputs, gain=2**0.5), nn.Tanh()]
        self.head = self._linear(sizes[-1], 1, gain=0.01)
        self.body = nn.Sequential(*layers)
        for name, start in (("mean", 0.0), ("second_moment", 1.0), ("std", 1.0), ("rollouts", 0.0)):
            self.register_buffer(name, th.tensor(start, dtype=th.float64))
        self.to(get_device(device))
        self.optimizer = th.optim.Adam(self.parameters(), lr=learning_rate, eps=1e-5)

    def _linear(self, inputs: int, outputs: int, gain: float) -> nn.Linear:
        # Its own start would draw global numbers.
        layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call]
        nn.init.orthogonal_(layer.weight, gain, generator=self.generator)
        nn.init.zeros_(layer.bias)
        return layer

    # ---------------------------------------------------------------- judging

    def forward(self, obs: Any) -> th.Tensor:
        """Values (n,) of a batch of observations in units of the targets' standard deviation, 0 at their mean."""
        return self._of_features(self._features(obs))

    def _features(self, obs: Any) -> th.Tensor:
        """Observations in a row each, (n, inputs)."""
        tensors = preprocess_obs(obs_as_tensor(obs, self.mean.device), self.observation_space)
        parts = [tensors[key] for key in sorted(tensors)] if isinstance(tensors, dict) else [tensors]
        return th.cat([part.flatten(1) for part in parts], dim=1)

    def _of_features(self, features: th.Tensor) -> th.Tensor:
        values: th.Tensor = self.head(self.body(features)).squeeze(1)
        return values

    def values(self, obs: Any) -> NDArray[np.float32]:
        with th.no_grad():
            return (self.mean + self.std * self(obs)).float().cpu().numpy()

    # ---------------------------------------------------------------- learning

    def fit(self, observations: Any, returns: NDArray[Any], epochs: int, batch_size: int) -> None:
        targets = th.as_tensor(returns, dtype=th.float64, device=self.mean.device)
        self._rescale(targets)
        targets = ((targets - self.mean) / self.std).float()
        features = self._features(observations)
        for _ in range(epochs):
            for rows in th.split(th.randperm(len(targets), generator=self.generator), batch_size):
                loss = nn.functional.mse_loss(self._of_features(features[rows]), targets[rows])
                self.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()

    @th.no_grad()
    def _rescale(self, targets: th.Tensor) -> None:
        """Takes the targets into the running mean and standard deviation and keeps all values as they are."""
        old_mean, old_std = self.mean.clone(), self.std.clone()
        self.rollouts += 1
        share = 1 / self.rollouts.clamp(max=MEMORY)
        self.mean += share * (targets.mean() - self.mean)
        self.second_moment += share * ((targets**2).mean() - self.second_moment)
        self.std.copy_((self.second_moment - self.mean**2).clamp(min=1e-8).sqrt())
        if self.rollouts > 1:  # before, there was no value worth keeping
            self.head.weight *= old_std / self.std
            self.head.bias.copy_((old_std * self.head.bias + old_mean - self.mean) / self.std)

    # ---------------------------------------------------------------- saving

    def get_extra_state(self) -> th.Tensor:
        """State of the random numbers, for ``state_dict``."""
        return self.generator.get_state()

    def set_extra_state(self, state: th.Tensor) -> None:
        """Continues the random numbers."""
        self.generator.set_state(state.cpu())
