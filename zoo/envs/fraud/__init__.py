"""Fraud detection: card payments of customers who come back or leave, each checked or let pass."""

from sb3_fair.zoo.envs.fraud.settings import FraudConfig
from sb3_fair.zoo.envs.fraud.world import FraudWorld

__all__ = ["FraudConfig", "FraudWorld"]
