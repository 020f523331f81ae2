"""Attention allocation: units of attention to locations where incidents arise."""

from sb3_fair.zoo.envs.attention.allocation import allocation_to_index, index_to_allocation, logits_to_allocation
from sb3_fair.zoo.envs.attention.world import AttentionConfig, AttentionWorld

__all__ = ["AttentionConfig", "AttentionWorld", "allocation_to_index", "index_to_allocation", "logits_to_allocation"]
