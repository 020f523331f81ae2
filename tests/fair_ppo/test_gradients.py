"""Is a further loss minimised with the first one, and are actor gradients those of PPO?"""

import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_fair.fair_ppo.gradients import actor_gradients, also_minimised


def test_within_a_step_descends_the_sum_of_both_losses():
    def stepped(further):
        weight = th.nn.Parameter(th.tensor([1.0, 2.0]))
        optimizer = th.optim.Adam([weight])
        for _ in range(3):
            loss = (weight[0] ** 2).sum() + (0 if further else 3 * (weight**3).sum())
            if further:
                with also_minimised(optimizer, lambda: 3 * (weight**3).sum()):
                    optimizer.zero_grad()
                    loss.backward()
            else:
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
        return weight.detach()

    th.testing.assert_close(stepped(True), stepped(False))


def test_afterwards_the_optimiser_is_as_before():
    weight = th.nn.Parameter(th.ones(1))
    optimizer = th.optim.SGD([weight], lr=1.0)
    with pytest.raises(ZeroDivisionError), also_minimised(optimizer, lambda: (1 / 0) * weight):
        optimizer.zero_grad()
    optimizer.zero_grad()
    assert weight.grad is None and "zero_grad" not in vars(optimizer)


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
