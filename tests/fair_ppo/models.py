"""Small Fair-PPO models, their weights and logs, and a callback that looks at rollouts."""

from functools import partial

import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import SubprocVecEnv

from sb3_fair import FairPPO
from sb3_fair.fair_ppo import GroupedActorCriticPolicy

FORK = partial(SubprocVecEnv, start_method="fork")
RETRO = ("telescoped", "terminal", "linear", "own_reweight", "constant")
PROSP = ("state_cost", "advantage_clip")
GROUPED = {"group_index": 2, "net_arch": [8]}


def model_of(venv, algorithm=FairPPO, policy="MlpPolicy", **settings):
    given = {"n_steps": 16, "batch_size": 32, "n_epochs": 2, "seed": 0, "device": "cpu"}
    if policy is GroupedActorCriticPolicy or policy == "GroupedPolicy":
        given["policy_kwargs"] = GROUPED
    return algorithm(policy, venv, **(given | settings))


def weights(model):
    return th.cat([parameter.detach().flatten() for parameter in model.policy.parameters()]).clone().cpu()


def learned(model, steps, callback=None, **more):
    """``model`` after training whose logs were not written, so that they can be looked at."""
    return model.learn(steps, callback, log_interval=1000, **more)


def logs(model):
    return {key: value for key, value in model.logger.name_to_value.items() if key.startswith("fair/")}


class Watch(BaseCallback):
    """Calls ``end(model)`` after every rollout; stops the training after ``stop`` steps of all slots together."""

    def __init__(self, end=None, stop=10**9):
        super().__init__()
        self.end, self.stop = end, stop

    def _on_step(self):
        return self.num_timesteps < self.stop

    def _on_rollout_end(self):
        if self.end is not None:
            self.end(self.model)
