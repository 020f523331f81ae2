"""Pareto Conditioned Networks."""

from sb3_fair.pcn.pcn import PCN

__all__ = ["PCN"]
