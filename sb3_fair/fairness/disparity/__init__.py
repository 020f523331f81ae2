"""Disparity between groups: of decisions, of returns, over the short and the long term."""

from sb3_fair.fairness.disparity.gap import wasserstein_gap

__all__ = ["wasserstein_gap"]
