"""The doughnut shop: customers of whom one is served in each step, and its exact optimum."""

from sb3_fair.zoo.envs.doughnut.world import DoughnutConfig, DoughnutWorld

__all__ = ["DoughnutConfig", "DoughnutWorld"]
