"""Disparity between groups: of decisions, of returns, over the short and the long term."""

from sb3_fair.fairness.disparity.gap import wasserstein_gap
from sb3_fair.fairness.disparity.price import price_of_fairness
from sb3_fair.fairness.disparity.returns import (
    conditional_disparity,
    counterfactual_disparity,
    demographic_disparity,
)

__all__ = [
    "conditional_disparity",
    "counterfactual_disparity",
    "demographic_disparity",
    "price_of_fairness",
    "wasserstein_gap",
]
