"""Job hiring: applicants from a simulated population, whom a company hires or rejects."""

from sb3_fair.zoo.envs.hiring.applicants import HiringConfig
from sb3_fair.zoo.envs.hiring.world import HiringWorld

__all__ = ["HiringConfig", "HiringWorld"]
