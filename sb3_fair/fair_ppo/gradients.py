"""Gradients of the actor by kinds of advantages."""

from typing import Any

import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy


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
