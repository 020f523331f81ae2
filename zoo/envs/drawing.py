"""Figures for the pictures of scenarios: a matplotlib figure of a given size, and its pixels."""

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray


def blank(width: float = 7.2, height: float = 3.6) -> Figure:
    """An empty figure of 100 ``width`` x 100 ``height`` pixels."""
    return Figure(figsize=(width, height), dpi=100, layout="constrained")


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """The figure as RGB (height, width, 3)."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
