"""Notions of fairness: their formulas, on whole histories, and by chance."""

from sb3_fair.fairness.notions.table import NOTIONS, GroupNotion, NeighbourNotion, Notion, PairNotion, find_notion

__all__ = ["NOTIONS", "GroupNotion", "NeighbourNotion", "Notion", "PairNotion", "find_notion"]
