"""Random numbers of a step of the Allelopathic Harvest."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.substitutes import DRAWS


class Draws(NamedTuple):
    """The order of the turns of a step, and what will be drawn in them.

    :param order: the agents (..., N), from first to last
    :param luck: uniforms (..., N, 6 or 0) for the substitutes of invalid actions, in the order of the turns
    """

    order: NDArray[np.int16]
    luck: NDArray[np.float64]


class Chances:
    """From N uniforms for the order, and 6 N for substitutes if there are any, to the turns of a step."""

    def __init__(self, config: HarvestConfig) -> None:
        self.n_agents, self.fixed = config.n_agents, config.order == "fixed"
        self.draws = DRAWS if config.invalid == "substitute" else 0
        self.columns = self.n_agents * (1 + self.draws)

    def __call__(self, uniforms: NDArray[np.float64]) -> Draws:
        keys, luck = uniforms[..., : self.n_agents], uniforms[..., self.n_agents :]
        order = np.broadcast_to(np.arange(self.n_agents), keys.shape) if self.fixed else keys.argsort(axis=-1)
        return Draws(order.astype(np.int16), luck.reshape(*keys.shape, self.draws).copy())
