"""Fairness notions, distances, histories, welfare, schemes and their trackers. No torch, no environments.

For all notions but individual fairness, which is below 0 even where everybody is treated alike, **0 is exactly fair,
negative is unfair**. For welfare functions and scores of schemes, higher is
better. Gaps between the returns of two groups are positive if the first one is ahead.
"""

from sb3_fair.fairness.disparity.gap import wasserstein_gap
from sb3_fair.fairness.disparity.measures import Candidates, Measures
from sb3_fair.fairness.disparity.parity import DemographicParity
from sb3_fair.fairness.disparity.price import Price, price_of_fairness
from sb3_fair.fairness.disparity.returns import (
    Average,
    average,
    conditional_disparity,
    counterfactual_disparity,
    demographic_disparity,
    gini,
    nash_welfare,
    pairwise_disparity,
    twin_disparity,
    value_disparity,
)
from sb3_fair.fairness.distances import DISTANCES, Distance, distance_matrix
from sb3_fair.fairness.histories.history import DiscountedHistory, FullHistory, SlidingWindow
from sb3_fair.fairness.interaction import Interaction
from sb3_fair.fairness.notions.chance import chance_level
from sb3_fair.fairness.notions.frequencies import action_counts, action_frequencies
from sb3_fair.fairness.notions.probabilities import hellinger
from sb3_fair.fairness.notions.table import NOTIONS, GroupNotion, NeighbourNotion, Notion, PairNotion, find_notion
from sb3_fair.fairness.notions.whole import consistency, group_notion, individual_fairness, lipschitz_violation
from sb3_fair.fairness.schemes.scheme import Estimate, NewMultiple, Scheme, SchemeTracker, Values
from sb3_fair.fairness.schemes.statuses import balance, count_status, overall_unfairness, unfairness
from sb3_fair.fairness.spec import FairnessSpec, Individual
from sb3_fair.fairness.tracking.fairness_tracker import FairnessTracker
from sb3_fair.fairness.tracking.tracker import Tracker
from sb3_fair.fairness.welfare import WELFARES, Formula, Welfare, find_welfare

__all__ = [
    "DISTANCES",
    "NOTIONS",
    "WELFARES",
    "Average",
    "Candidates",
    "DemographicParity",
    "DiscountedHistory",
    "Distance",
    "Estimate",
    "FairnessSpec",
    "FairnessTracker",
    "Formula",
    "FullHistory",
    "GroupNotion",
    "Individual",
    "Interaction",
    "Measures",
    "NeighbourNotion",
    "NewMultiple",
    "Notion",
    "PairNotion",
    "Price",
    "Scheme",
    "SchemeTracker",
    "SlidingWindow",
    "Tracker",
    "Values",
    "Welfare",
    "action_counts",
    "action_frequencies",
    "average",
    "balance",
    "chance_level",
    "conditional_disparity",
    "consistency",
    "count_status",
    "counterfactual_disparity",
    "demographic_disparity",
    "distance_matrix",
    "find_notion",
    "find_welfare",
    "gini",
    "group_notion",
    "hellinger",
    "individual_fairness",
    "lipschitz_violation",
    "nash_welfare",
    "overall_unfairness",
    "pairwise_disparity",
    "price_of_fairness",
    "twin_disparity",
    "unfairness",
    "value_disparity",
    "wasserstein_gap",
]
