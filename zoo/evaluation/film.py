"""Films (GIF, MP4) from pictures."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_fair.common.extras import extra
from sb3_fair.fairness.validation import number


def save_film(frames: Iterable[Any], path: str | Path, fps: float = 4.0) -> Path:
    """Writes what the name of the file asks for, ``.gif`` or ``.mp4`` (H.264, by imageio-ffmpeg); the path of the file.

    :param frames: as for :func:`save_gif`; of an MP4 an odd last row or column is doubled
    :raises ValueError: if the name ends otherwise, or as :func:`save_gif`
    :raises ImportError: for an MP4 without imageio-ffmpeg
    """
    if film_format(path) == ".gif":
        return save_gif(frames, path, fps)
    pictures = _checked(frames, fps)
    height, width = (size + size % 2 for size in pictures[0].shape[:2])  # the format has no odd sizes
    writer = _mp4_writer()(str(path), (width, height), fps=fps, macro_block_size=2, ffmpeg_log_level="error")
    writer.send(None)
    for picture in pictures:
        rows, columns = picture.shape[:2]
        room = ((0, height - rows), (0, width - columns), (0, 0))
        writer.send(np.ascontiguousarray(np.pad(picture, room, mode="edge")))
    writer.close()
    return Path(path)


def film_format(path: str | Path) -> str:
    """``".gif"`` or ``".mp4"``; an ImportError for the latter without imageio-ffmpeg."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise ValueError(f"film must end in .gif or .mp4, got {str(path)!r}")
    if suffix == ".mp4":
        _mp4_writer()
    return suffix


def _mp4_writer() -> Any:
    with extra("mp4", "a film that ends in .mp4"):
        from imageio_ffmpeg import write_frames
    return write_frames


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

    first, *rest = [Image.fromarray(picture) for picture in _checked(frames, fps)]
    first.save(path, save_all=True, append_images=rest, duration=round(1000 / fps), loop=0)
    return Path(path)


def _checked(frames: Iterable[Any], fps: float) -> list[NDArray[np.uint8]]:
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
    return pictures
