"""Behaviour of the other agents around one that learns."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness.validation import did_you_mean

Others: TypeAlias = Any
"""``"random"``, ``"stay"``, an SB3 model, or f(observations (N - 1, d), rng) -> actions (N - 1,)."""
SIMPLE = ("random", "stay")
Act: TypeAlias = Callable[[NDArray[np.float32], NDArray[np.float64], list[Any]], NDArray[np.int64]]
"""From observations (n, m, d), uniforms (n, m) and a generator per copy to actions (n, m)."""


def acting(others: Others, observation_space: spaces.Space, n_actions: int) -> Act:
    """How the others act.

    The actions of a model are drawn from its policy's probabilities where it has some (actor-critics), with the
    chances of the environment; other models act greedily.

    :raises ValueError: if ``others`` is nothing that can act, or a model for other observations
    """
    if isinstance(others, str) and others in SIMPLE:
        return partial(_random, n_actions) if others == "random" else _stay
    if hasattr(others, "predict"):
        if others.observation_space.shape != observation_space.shape:
            raise ValueError(f"others must be a model for {observation_space}, got one for {others.observation_space}")
        act = partial(_model, others)
        # A model that has just learned holds the graph of its training, which Gymnasium cannot copy, until it acts.
        act(np.zeros((1, 1, *others.observation_space.shape), np.float32), np.zeros((1, 1)), [])
        return act
    if callable(others):
        return partial(_asked, others, n_actions)
    hint = did_you_mean(others, SIMPLE) if isinstance(others, str) else ""
    raise ValueError(f"others must be a callable, a model, or one of {SIMPLE}, got {others!r}{hint}")


def _stay(obs: NDArray[np.float32], luck: NDArray[np.float64], rngs: list[Any]) -> NDArray[np.int64]:
    return np.zeros(luck.shape, dtype=np.int64)


def _random(n_actions: int, obs: NDArray[np.float32], luck: NDArray[np.float64], rngs: list[Any]) -> NDArray[np.int64]:
    return (luck * n_actions).astype(np.int64)


def _model(model: Any, obs: NDArray[np.float32], luck: NDArray[np.float64], rngs: list[Any]) -> NDArray[np.int64]:
    seen = obs.reshape(-1, obs.shape[-1])
    policy: Any = getattr(model, "policy", None)
    if hasattr(policy, "get_distribution"):
        import torch  # slow to import

        with torch.no_grad():
            distribution = policy.get_distribution(policy.obs_to_tensor(seen)[0]).distribution
        below = distribution.probs.cpu().numpy().cumsum(axis=1)[:, :-1]
        actions = (below <= luck.reshape(-1, 1)).sum(axis=1)
    else:
        actions = np.asarray(model.predict(seen, deterministic=True)[0])
    return actions.reshape(luck.shape).astype(np.int64)


def _asked(
    function: Callable[..., Any], n_actions: int, obs: NDArray[np.float32], luck: NDArray[np.float64], rngs: list[Any]
) -> NDArray[np.int64]:
    """One copy after the other, each with its own generator, so that its path does not depend on how many there are."""
    answers = [np.asarray(function(seen, rng)) for seen, rng in zip(obs, rngs, strict=True)]
    for answer in answers:
        whole = answer.shape == luck.shape[1:] and answer.dtype.kind in "iu"
        if not whole or ((answer < 0) | (answer >= n_actions)).any():
            raise ValueError(f"others must return {luck.shape[1]} actions from 0 to {n_actions - 1}, got {answer!r}")
    return np.stack(answers).astype(np.int64)
