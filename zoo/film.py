"""How do pictures become a film?"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sb3_fair.fairness.validation import number


def save_gif(frames: Iterable[Any], path: str | Path, fps: float = 4.0) -> Path:
    """Writes an animated GIF that plays for ever; the path of the file.

    ::

        env = gym.make("sb3_fair/AllelopathicHarvest-v0", render_mode="rgb_array")
        ...
        save_gif(frames, "harvest.gif")                          # frames: what env.render() returned after each step

    :param frames: pictures (height, width, 3) uint8, all of one size, at least one
    :param fps: frames per second, at most 50, since viewers slow down what is faster
    :raises ValueError: if there is no frame, one is not such a picture, or ``fps`` is out of range
    """
    from PIL import Image  # slow to import

    if not 0 < number("fps", fps) <= 50:
        raise ValueError(f"fps must be positive and at most 50, got {fps!r}")
    pictures = [np.asarray(frame) for frame in frames]
    if not pictures:
        raise ValueError("frames must hold at least one picture, got none")
    for picture in pictures:
        if picture.dtype != np.uint8 or picture.shape != (*pictures[0].shape[:2], 3):
            raise ValueError(
                "frames must be uint8 pictures (height, width, 3) of one size, "
                f"got shape {picture.shape} of type {picture.dtype}"
            )
    first, *rest = [Image.fromarray(picture) for picture in pictures]
    first.save(path, save_all=True, append_images=rest, duration=round(1000 / fps), loop=0)
    return Path(path)
