"""Refuses action and observation spaces that do not count from 0, as SB3's networks do."""

from typing import Any

import numpy as np
from gymnasium import spaces


def check_starts(*used: spaces.Space[Any]) -> None:
    """:raises ValueError: if a Discrete or MultiDiscrete space, perhaps in a Dict, starts at another number than 0"""
    for space in used:
        for part in space.spaces.values() if isinstance(space, spaces.Dict) else (space,):
            if np.any(getattr(part, "start", 0)):
                raise ValueError(f"env must have spaces that start at 0, as SB3's networks count, got {part}")


def check_discrete(space: spaces.Space[Any], needed_by: str) -> None:
    """:raises ValueError: if the actions are not 0, 1, ..., n - 1"""
    if not isinstance(space, spaces.Discrete) or space.start != 0:
        raise ValueError(f"env must have a Discrete action space that starts at 0 for {needed_by}, got {space}")
