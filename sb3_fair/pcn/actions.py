"""Action heads of PCN: categorical (Discrete, MultiDiscrete, MultiBinary) and continuous (Box)."""

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from scipy.special import ndtri
from torch.nn import functional

from sb3_fair.common.rollout import Act
from sb3_fair.wrappers.choices import Choices
from sb3_fair.wrappers.starts import existing

Array = NDArray[np.float64]


class Categorical:
    """A distribution over the values of each part of an action; a Discrete action has one part.

    Outputs are log-probabilities (n, *shape, width) of the values from ``low`` on. Values that a part does not have
    have probability 0.

    :param space: Discrete, MultiDiscrete or MultiBinary; values may start at any number
    """

    def __init__(self, space: Any) -> None:
        self.low, self.exist = existing(space)
        self.shape = self.exist.shape[:-1]
        self._has_gaps = not self.exist.all()
        self.n_outputs = int(self.exist.sum())

    def outputs(self, logits: th.Tensor) -> th.Tensor:
        """Log-probabilities from the network's (n, n_outputs)."""
        if self._has_gaps:
            exist = th.as_tensor(self.exist, device=logits.device)
            logits = logits.new_full((len(logits), *exist.shape), -th.inf).masked_scatter(exist, logits)
        if self.shape:
            logits = logits.view(len(logits), *self.exist.shape)
        return th.log_softmax(logits, dim=-1)

    def loss(self, outputs: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Mean negative log-likelihood of the actions."""
        chosen = (actions - self.low if self.low else actions).flatten()
        return functional.nll_loss(outputs.flatten(0, -2), chosen) * (len(chosen) // len(actions))

    def entropy(self, outputs: th.Tensor) -> float:
        """Mean entropy of the distributions."""
        return float(-(outputs.exp() * outputs.clamp(min=-1e9)).flatten(1).sum(dim=1).mean())

    def rows(self, outputs: th.Tensor) -> Array:
        """The probabilities (n, *shape, width)."""
        rows: Array = outputs.exp().cpu().numpy().astype(np.float64)
        return rows

    def draw(self, rows: Array, uniforms: NDArray[Any] | None) -> Choices:
        """Actions by inverse transform of ``uniforms`` (n, *shape); None: the most probable ones."""
        if uniforms is None:
            chosen = rows.argmax(axis=-1)
        else:
            below = (rows.cumsum(axis=-1) <= uniforms[..., None]).sum(axis=-1)
            last = self.exist.shape[-1] - 1 - self.exist[..., ::-1].argmax(axis=-1)
            chosen = np.minimum(below, last)
        return Choices(chosen + self.low, rows)

    def fill(self, n: int, mixed: bool, rng: np.random.Generator) -> Act:
        """How n copies act at random: uniformly, or mixed: by probabilities drawn per episode from a flat Dirichlet."""
        rows = np.tile(self.exist / self.exist.sum(axis=-1, keepdims=True), (n, *([1] * self.exist.ndim)))

        def act(observations: Any, begins: NDArray[np.bool_]) -> Choices:
            if mixed and begins.any():
                for part in np.ndindex(self.shape):
                    there = self.exist[part]
                    drawn = np.zeros((int(begins.sum()), len(there)))
                    drawn[:, there] = rng.dirichlet(np.ones(int(there.sum())), size=len(drawn))
                    rows[(begins, *part)] = drawn
            return self.draw(rows, rng.random((n, *self.shape)))

        return act


class Continuous:
    """The actions themselves, scaled to [-1, 1] by the bounds of the space, with Gaussian noise for exploration.

    Outputs are the most likely actions (n, *shape). A whole number stands for all that is nearest to it, so that each
    is as probable as the others.

    :param space: Box with finite bounds
    :param noise: standard deviation of the noise on scaled actions
    """

    def __init__(self, space: spaces.Box, noise: float) -> None:
        self.space, self.noise = space, noise
        self.whole = np.issubdtype(space.dtype, np.integer)
        self.low, self.high = (space.low - 0.5, space.high + 0.5) if self.whole else (space.low, space.high)
        self.shape = space.shape
        self.n_outputs = int(np.prod(space.shape))

    def outputs(self, outputs: th.Tensor) -> th.Tensor:
        """The network's outputs (n, n_outputs) as actions."""
        return outputs.view(-1, *self.shape)

    def loss(self, outputs: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Mean squared error of the scaled actions."""
        low, high = (th.as_tensor(bound, device=actions.device) for bound in (self.low, self.high))
        width = th.where(high > low, high - low, 1)  # an entry may be fixed
        return functional.mse_loss(outputs, (2 * (actions - low) / width - 1).float())

    def rows(self, outputs: th.Tensor) -> Array:
        """The most likely actions."""
        rows: Array = outputs.cpu().numpy().astype(np.float64)
        return rows

    def draw(self, rows: Array, uniforms: NDArray[Any] | None) -> NDArray[Any]:
        """Actions around ``rows``, their noise by inverse transform of ``uniforms`` (n, *shape); None: without it."""
        scaled = np.clip(rows if uniforms is None else rows + self.noise * ndtri(uniforms), -1, 1)
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        actions = low + (scaled + 1) / 2 * (high - low)
        inside: NDArray[Any] = np.clip(np.rint(actions) if self.whole else actions, self.space.low, self.space.high)
        return inside.astype(self.space.dtype)

    def fill(self, n: int, mixed: bool, rng: np.random.Generator) -> Act:
        """How n copies act at random: uniformly, or mixed: around an action drawn uniformly per episode."""
        rows = np.zeros((n, *self.shape))

        def act(observations: Any, begins: NDArray[np.bool_]) -> NDArray[Any]:
            new = begins if mixed else np.ones(n, dtype=bool)
            rows[new] = rng.uniform(-1, 1, (int(new.sum()), *self.shape))
            return self.draw(rows, rng.random(rows.shape) if mixed else None)

        return act


def head_for(space: spaces.Space[Any], noise: float) -> Categorical | Continuous:
    """:raises ValueError: if PCN has no head for the action space"""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return Categorical(space)
    if isinstance(space, spaces.Box) and space.is_bounded():
        return Continuous(space, noise)
    raise ValueError(f"env must have Discrete, MultiDiscrete, MultiBinary or bounded Box actions for PCN, got {space}")
