"""Fairness schemes: stakeholders, their welfare and when it is assessed."""

from sb3_fair.fairness.schemes.scheme import Estimate, Scheme, Values

__all__ = ["Estimate", "Scheme", "Values"]
