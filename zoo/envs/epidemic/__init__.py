"""Epidemic control: vaccines against an infection that spreads over a social network."""

from sb3_fair.zoo.envs.epidemic.world import EpidemicConfig, EpidemicWorld

__all__ = ["EpidemicConfig", "EpidemicWorld"]
