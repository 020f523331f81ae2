"""Warnings that point at the user's line."""

import sys
import warnings

OURS = ("sb3_fair", "stable_baselines3")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns of the innermost line that is neither of this package nor of Stable-Baselines3."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
