"""Small Fair-PPO models, and their logs."""

from sb3_fair import FairPPO
from sb3_fair.fair_ppo import GroupedActorCriticPolicy

RETRO = ("telescoped", "terminal", "linear", "own_reweight", "constant")
PROSP = ("state_cost", "advantage_clip")
GROUPED = {"group_index": 2, "net_arch": [8]}


def model_of(venv, algorithm=FairPPO, policy="MlpPolicy", **settings):
    given = {"n_steps": 16, "batch_size": 32, "n_epochs": 2, "seed": 0, "device": "cpu"}
    if policy is GroupedActorCriticPolicy or policy == "GroupedPolicy":
        given["policy_kwargs"] = GROUPED
    return algorithm(policy, venv, **(given | settings))


def logs(model):
    return {key: value for key, value in model.logger.name_to_value.items() if key.startswith("fair/")}
