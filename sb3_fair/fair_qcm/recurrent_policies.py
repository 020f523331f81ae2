"""Recurrent Q-network (GRU)."""

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, create_mlp
from stable_baselines3.common.type_aliases import PyTorchObs
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import nn

from sb3_fair.fair_qcm.recurrent_buffer import Windows
from sb3_fair.fairness.validation import integer
from sb3_fair.wrappers.observations import each

State = tuple[NDArray[Any], ...]


class RecurrentQNetwork(QNetwork):
    """Observation -> features -> layers -> GRU -> linear -> one Q-value per action.

    :param features_dim: width of what the features extractor gives
    :param net_arch: widths of the layers before the GRU
    :param activation_fn: after each of them
    :param hidden_size: width of the GRU
    :param others: further arguments of SB3's ``QNetwork``
    """

    def __init__(
        self, *, features_dim: int, net_arch: list[int], activation_fn: type[nn.Module], hidden_size: int, **others: Any
    ) -> None:
        # SB3's network without hidden layers is the linear one behind the GRU
        super().__init__(features_dim=hidden_size, net_arch=[], activation_fn=activation_fn, **others)
        self.hidden_size = hidden_size
        self.layers = nn.Sequential(*create_mlp(features_dim, -1, net_arch, activation_fn))
        self.gru = nn.GRU(net_arch[-1] if net_arch else features_dim, hidden_size)

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
        """Q-values (n, n_actions) and next hidden states (n, hidden_size) after one observation (n, ...) each."""
        following = self.unroll(each(lambda values: values[None], observations), hidden)[0]
        return self.q_net(following), following

    def unroll(self, observations: PyTorchObs, hidden: th.Tensor) -> th.Tensor:
        """The hidden states (time, n, hidden_size) after each of the observations (time, n, ...)."""
        shape = _first(observations).shape[:2]
        rows = each(lambda values: values.flatten(0, 1), observations)
        inputs = self.layers(self.extract_features(rows, self.features_extractor))
        states: th.Tensor = self.gru(inputs.unflatten(0, shape), hidden[None])[0]
        return states

    def no_memory(self, like: th.Tensor) -> th.Tensor:
        """Hidden states (n, hidden_size) at the beginning of n episodes."""
        return th.zeros(len(like), self.hidden_size, device=like.device)


class RecurrentDQNPolicy(DQNPolicy):
    """An online and a target :class:`RecurrentQNetwork`; acts greedily and hands its hidden state back.

    :param observation_space: of the environment, Dict or not
    :param args: further arguments of SB3's ``DQNPolicy``; ``net_arch``, 32-16 by default, is about the layers before
        the GRU
    :param hidden_size: width of the GRU
    """

    q_net: RecurrentQNetwork
    q_net_target: RecurrentQNetwork

    def __init__(self, observation_space: spaces.Space, *args: Any, hidden_size: int = 256, **kwargs: Any) -> None:
        self.hidden_size = integer("hidden_size", hidden_size, low=1)  # make_q_net() runs inside super().__init__()
        extractor = CombinedExtractor if isinstance(observation_space, spaces.Dict) else FlattenExtractor
        usual = {"net_arch": [32, 16], "features_extractor_class": extractor}
        super().__init__(observation_space, *args, **{**usual, **kwargs})

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
        """The greedy actions, and the state to call this with at the next step; see :meth:`RecurrentDQN.predict`.

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
