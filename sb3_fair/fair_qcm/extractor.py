"""Feature extractor that encodes the memory in an observation."""

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor

from sb3_fair.wrappers.memories import Memory, bounds
from sb3_fair.wrappers.memory import MEMORY


def require_memory(observation_space: Any, memory: Memory) -> None:
    """:raises ValueError: if neither the key ``"memory"`` nor the last numbers of a vector have the memory's bounds"""
    keyed, n = isinstance(observation_space, spaces.Dict), memory.dim
    held = observation_space.spaces.get(MEMORY) if keyed else observation_space
    low, high = (bound.astype(np.float32) for bound in bounds(memory))
    if not (
        isinstance(held, spaces.Box)
        and len(held.shape) == 1
        and (held.shape[0] == n if keyed else held.shape[0] > n)
        and np.array_equal(held.low[-n:], low)
        and np.array_equal(held.high[-n:], high)
    ):
        raise ValueError(
            f"observation_space must hold the {memory.dim} numbers of the memory {memory.name!r}, got "
            f"{observation_space}: wrap the environment in MemoryAugmentation"
        )


class MemoryExtractor(BaseFeaturesExtractor):
    """The rest of the observation, flattened (images by a small convolutional network), and the encoded memory.

    Observations and buffers hold raw memories; ``memory.encode`` scales them for the network.

    :param observation_space: a Dict with the key ``"memory"``, or a Box whose last numbers are the memory
    :param memory: the environment's memory (its attribute ``memory``)
    :raises ValueError: if the memory is not there
    """

    def __init__(self, observation_space: spaces.Space, memory: Memory) -> None:
        super().__init__(observation_space, 1)  # the number that follows
        require_memory(observation_space, memory)
        self.memory = memory
        self.rest: CombinedExtractor | None = None
        if isinstance(observation_space, spaces.Dict):
            shown = {key: space for key, space in observation_space.spaces.items() if key != MEMORY}
            self.rest = CombinedExtractor(spaces.Dict(shown))
        n_rest = self.rest.features_dim if self.rest else spaces.flatdim(observation_space) - memory.dim
        self._features_dim = n_rest + memory.encode(memory.initial((1,))).shape[-1]

    def forward(self, observations: Any) -> th.Tensor:
        """Features (batch, features_dim)."""
        if self.rest is None:
            rest, memory = observations[:, : -self.memory.dim], observations[:, -self.memory.dim :]
        else:
            rest, memory = self.rest(observations), observations[MEMORY]
        encoded = th.from_numpy(self.memory.encode(memory.cpu().numpy()))
        return th.cat((rest, encoded.to(memory.device)), dim=1)
