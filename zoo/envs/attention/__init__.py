"""Attention allocation: units of attention to locations where incidents arise."""

from sb3_fair.zoo.envs.attention.world import AttentionConfig, AttentionWorld

__all__ = ["AttentionConfig", "AttentionWorld"]
