"""Policies by name: an unknown one is refused with the names that there are."""

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from sb3_fair.fairness.validation import did_you_mean


class NamedPolicies(BaseAlgorithm):
    """An algorithm that knows what its policies are called."""

    def _get_policy_from_name(self, policy_name: str) -> type[BasePolicy]:
        known = sorted(self.policy_aliases)
        if policy_name not in known:
            raise ValueError(
                f"policy must be one of {known} or a class, got {policy_name!r}{did_you_mean(policy_name, known)}"
            )
        return self.policy_aliases[policy_name]
