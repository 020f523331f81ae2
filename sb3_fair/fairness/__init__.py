"""What fairness is: notions, distances, histories, welfare, schemes, and trackers that follow them. No torch, no envs.

One law holds for all notions: **0 is exactly fair, negative is unfair**. Of welfare functions and scores of schemes:
higher is better.
"""

from sb3_fair.fairness.chance import chance_level
from sb3_fair.fairness.conditions import NewMultiple
from sb3_fair.fairness.disparity import wasserstein_gap
from sb3_fair.fairness.distances import DISTANCES, Distance, distance_matrix
from sb3_fair.fairness.fairness_tracker import FairnessTracker
from sb3_fair.fairness.favour import balance, overall_unfairness, unfairness
from sb3_fair.fairness.history import DiscountedHistory, FullHistory, SlidingWindow
from sb3_fair.fairness.interaction import Interaction
from sb3_fair.fairness.measures import Candidates, Measures
from sb3_fair.fairness.notions import NOTIONS, GroupNotion, NeighbourNotion, Notion, PairNotion, find_notion
from sb3_fair.fairness.parity import DemographicParity
from sb3_fair.fairness.probabilities import distributions, hellinger
from sb3_fair.fairness.scheme_tracker import SchemeTracker
from sb3_fair.fairness.schemes import Estimate, Scheme, Values
from sb3_fair.fairness.spec import FairnessSpec, Individual
from sb3_fair.fairness.statuses import count_status
from sb3_fair.fairness.tracker import Tracker
from sb3_fair.fairness.welfare import WELFARES, Formula, Welfare, find_welfare
from sb3_fair.fairness.whole import consistency, group_notion, individual_fairness, lipschitz_violation

__all__ = [
    "DISTANCES",
    "NOTIONS",
    "WELFARES",
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
    "Scheme",
    "SchemeTracker",
    "SlidingWindow",
    "Tracker",
    "Values",
    "Welfare",
    "balance",
    "chance_level",
    "consistency",
    "count_status",
    "distance_matrix",
    "distributions",
    "find_notion",
    "find_welfare",
    "group_notion",
    "hellinger",
    "individual_fairness",
    "lipschitz_violation",
    "overall_unfairness",
    "unfairness",
    "wasserstein_gap",
]
