"""Are actor gradients those of PPO?"""

import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_fair.fair_ppo.fair_ppo import actor_gradients


def test_actor_gradients_are_those_of_the_surrogate_at_ratio_1():
    th.manual_seed(0)
    policy = ActorCriticPolicy(spaces.Box(-1, 1, (2,)), spaces.Discrete(3), lambda _: 0.1)
    obs, actions = th.rand(6, 2), th.tensor([0, 1, 2, 0, 1, 2])
    for advantages, found in zip(
        (kinds := (th.rand(6), -th.rand(6))), actor_gradients(policy, obs, actions, *kinds), strict=True
    ):
        policy.zero_grad()
        _, log_prob, _ = policy.evaluate_actions(obs, actions)
        ratio = th.exp(log_prob - log_prob.detach())
        th.min(advantages * ratio, advantages * ratio.clamp(0.8, 1.2)).mean().backward()
        grads = [parameter.grad.flatten() for parameter in policy.parameters() if parameter.grad is not None]
        th.testing.assert_close(found, th.cat(grads))
