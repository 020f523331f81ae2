"""Gradients of a policy: further losses in PPO's update, and gradients of the actor by kinds of advantages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy


@contextmanager
def also_minimised(optimizer: th.optim.Optimizer, further_loss: Callable[[], th.Tensor]) -> Iterator[None]:
    """A context in which every step of ``optimizer`` minimises the sum of its loss and ``further_loss()``.

    The gradient of a sum is the sum of gradients: that of the further loss is there as soon as the old ones are gone.
    So ``PPO.train`` gets another loss term without being copied, and clips the norm of the sum.
    """
    plain = optimizer.zero_grad

    def zero_grad(set_to_none: bool = True) -> None:
        plain(set_to_none)
        further_loss().backward()  # type: ignore[no-untyped-call]

    optimizer.zero_grad = zero_grad  # type: ignore[method-assign]
    try:
        yield
    finally:
        del optimizer.zero_grad


def actor_gradients(
    policy: ActorCriticPolicy, observations: Any, actions: th.Tensor, *advantages: th.Tensor
) -> list[th.Tensor]:
    """Gradients of mean(A log pi) by all parameters of the actor, flat, one for every kind of ``advantages`` A (n,).

    It is that of PPO's objective as long as the policy is still the one that acted.

    :param observations: a batch of tensors, (n, ...)
    :param actions: (n, ...), as ``evaluate_actions`` wants them
    """
    _, log_prob, _ = policy.evaluate_actions(observations, actions)
    parameters = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    return [
        th.cat([
            gradient.flatten()
            for gradient in th.autograd.grad((kind * log_prob).mean(), parameters, retain_graph=True, allow_unused=True)
            if gradient is not None
        ])
        for kind in advantages
    ]  # fmt: skip
