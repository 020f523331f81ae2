"""Vaccine delivery: shipments to regions, and their exact optimum."""

from sb3_fair.zoo.envs.vaccines.world import VaccineDeliveryWorld, VaccinesConfig

__all__ = ["VaccineDeliveryWorld", "VaccinesConfig"]
