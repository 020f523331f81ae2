"""Lending: applicants whose credit score follows what became of their loans."""

from sb3_fair.zoo.envs.lending.settings import LendingConfig
from sb3_fair.zoo.envs.lending.world import LendingWorld

__all__ = ["LendingConfig", "LendingWorld"]
