"""What fairness is: notions, distances, histories, and trackers that follow them. Numpy only.

One law holds for all notions: **0 is exactly fair, negative is unfair**.
"""

from sb3_fair.fairness.chance import chance_level
from sb3_fair.fairness.distances import DISTANCES, Distance, distance_matrix
from sb3_fair.fairness.fairness_tracker import FairnessTracker
from sb3_fair.fairness.history import DiscountedHistory, FullHistory, SlidingWindow
from sb3_fair.fairness.interaction import Interaction
from sb3_fair.fairness.notions import NOTIONS, GroupNotion, NeighbourNotion, Notion, PairNotion, find_notion
from sb3_fair.fairness.probabilities import distributions, hellinger
from sb3_fair.fairness.spec import FairnessSpec, Individual
from sb3_fair.fairness.tracker import Tracker
from sb3_fair.fairness.whole import consistency, group_notion, individual_fairness, lipschitz_violation

__all__ = [
    "DISTANCES",
    "NOTIONS",
    "DiscountedHistory",
    "Distance",
    "FairnessSpec",
    "FairnessTracker",
    "FullHistory",
    "GroupNotion",
    "Individual",
    "Interaction",
    "NeighbourNotion",
    "Notion",
    "PairNotion",
    "SlidingWindow",
    "Tracker",
    "chance_level",
    "consistency",
    "distance_matrix",
    "distributions",
    "find_notion",
    "group_notion",
    "hellinger",
    "individual_fairness",
    "lipschitz_violation",
]
