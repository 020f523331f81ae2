"""Recurrent Q-network (GRU)."""

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.torch_layers import (
    BaseFeaturesExtractor,
    CombinedExtractor,
    FlattenExtractor,
    create_mlp,
)
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import nn

from sb3_fair.fair_qcm.recurrent_buffer import Windows
from sb3_fair.fairness.validation import integer

State = tuple[NDArray[Any], ...]


class RecurrentQNetwork(QNetwork):
    """Observation -> features -> layers -> GRU -> linear -> one Q-value per action.

    :param observation_space: of the environment
    :param action_space: Discrete
    :param features_extractor: before the layers
    :param features_dim: its width
    :param net_arch: widths of the layers before the GRU; None: 32, 16
    :param activation_fn: after each of them
    :param normalize_images: whether images are divided by 255
    :param hidden_size: width of the GRU
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Discrete,
        features_extractor: BaseFeaturesExtractor,
        features_dim: int,
        net_arch: list[int] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        normalize_images: bool = True,
        hidden_size: int = 256,
    ) -> None:
        # SB3's network without hidden layers is the linear one behind the GRU
        super().__init__(
            observation_space, action_space, features_extractor, hidden_size, [], activation_fn, normalize_images
        )
        self.features_dim = features_dim
        self.net_arch = [32, 16] if net_arch is None else net_arch
        self.hidden_size = hidden_size
        self.layers = nn.Sequential(*create_mlp(features_dim, -1, self.net_arch, activation_fn))
        self.gru = nn.GRU(self.net_arch[-1] if self.net_arch else features_dim, hidden_size)

    def forward(self, obs: PyTorchObs | Windows) -> th.Tensor:
        """Q-values (N, n_actions).

        :param obs: windows: of their N wanted steps, in time order; observations (N, ...): as first steps of episodes
        """
        if not isinstance(obs, Windows):
            return self.step(obs, self.no_memory(_first(obs)))[0]
        hidden = self.no_memory(obs.wanted[0])
        if obs.past is not None:
            with th.no_grad():
                states = th.cat([hidden[None], self.unroll(obs.past, hidden)])
            hidden = states[obs.past_lengths, th.arange(len(obs.past_lengths), device=states.device)]
        q_values: th.Tensor = self.q_net(self.unroll(obs.observations, hidden)[obs.wanted])
        return q_values

    def step(self, observations: PyTorchObs, hidden: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """One step of n episodes.

        :param observations: (n, ...)
        :param hidden: (n, hidden_size)
        :return: Q-values (n, n_actions) and the next hidden states
        """
        inputs = self.layers(self.extract_features(observations, self.features_extractor))
        _, following = self.gru(inputs[None], hidden[None])
        return self.q_net(following[0]), following[0]

    def unroll(self, observations: PyTorchObs, hidden: th.Tensor) -> th.Tensor:
        """The hidden states (time, n, hidden_size) after each of the observations (time, n, ...)."""
        shape = _first(observations).shape[:2]
        if isinstance(observations, dict):
            rows: PyTorchObs = {key: values.flatten(0, 1) for key, values in observations.items()}
        else:
            rows = observations.flatten(0, 1)
        inputs = self.layers(self.extract_features(rows, self.features_extractor))
        states: th.Tensor = self.gru(inputs.unflatten(0, shape), hidden[None])[0]
        return states

    def no_memory(self, like: th.Tensor) -> th.Tensor:
        """Hidden states (n, hidden_size) at the beginning of n episodes."""
        return th.zeros(len(like), self.hidden_size, device=like.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "hidden_size": self.hidden_size}


class RecurrentDQNPolicy(DQNPolicy):
    """An online and a target :class:`RecurrentQNetwork`; acts greedily and hands its hidden state back.

    :param observation_space: of the environment, Dict or not
    :param action_space: Discrete
    :param lr_schedule: learning rate as a function of the remaining progress
    :param net_arch: widths of the layers before the GRU; None: 32, 16
    :param activation_fn: after each of them
    :param features_extractor_class: None: CombinedExtractor for Dict observations, else FlattenExtractor
    :param hidden_size: width of the GRU
    """

    q_net: RecurrentQNetwork
    q_net_target: RecurrentQNetwork

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        net_arch: list[int] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] | None = None,
        features_extractor_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        hidden_size: int = 256,
    ) -> None:
        if features_extractor_class is None:
            features_extractor_class = (
                CombinedExtractor if isinstance(observation_space, spaces.Dict) else FlattenExtractor
            )
        self.hidden_size = integer("hidden_size", hidden_size, low=1)  # make_q_net() runs inside super().__init__()
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            [32, 16] if net_arch is None else net_arch,
            activation_fn,
            features_extractor_class,
            features_extractor_kwargs,
            normalize_images,
            optimizer_class,
            optimizer_kwargs,
        )

    def make_q_net(self) -> RecurrentQNetwork:
        """A network with a features extractor of its own."""
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        return RecurrentQNetwork(**arguments, hidden_size=self.hidden_size).to(self.device)

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: State | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], State | None]:
        """The greedy actions, and the state to call this with at the next step.

        :param observation: of one environment, or of n
        :param state: what the last call returned, ``(hidden,)`` with shape (n, hidden_size); None: episodes begin
        :param episode_start: whether each environment's episode begins, (n,) bool; its state is then forgotten
        :param deterministic: without effect
        """
        self.set_training_mode(False)
        tensors, vectorised = self.obs_to_tensor(observation)
        hidden = self.q_net.no_memory(_first(tensors))
        if state is not None:
            hidden = th.as_tensor(state[0], device=hidden.device)
            if episode_start is not None:
                begins = th.as_tensor(np.atleast_1d(episode_start), dtype=th.bool, device=hidden.device)
                hidden = hidden.masked_fill(begins[:, None], 0.0)
        with th.no_grad():
            q_values, hidden = self.q_net.step(tensors, hidden)
        actions = q_values.argmax(dim=1).cpu().numpy()
        return actions if vectorised else actions[0], (hidden.cpu().numpy(),)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "hidden_size": self.hidden_size}


def _first(observations: PyTorchObs) -> th.Tensor:
    return next(iter(observations.values())) if isinstance(observations, dict) else observations
