"""Learning curves with intervals."""

from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.studies.study import mean_and_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#9c6b4e", "#9498a0", "#97bbf5")
"""Observable's categorical palette, which stays distinguishable for the colour-blind."""
STYLES = ("-", "--", ":")
"""Of lines, one after the other when the colours are used up."""

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Steps (p,) and one row of values per seed (seeds, p)."""


def draw(
    axes: "Axes",
    curves: Mapping[str, Curve],
    lines: Mapping[str, float],
    label: str,
    low: float | None = None,
    along: str = "steps",
) -> None:
    """Means over seeds with 95 % confidence intervals, and horizontal lines to compare with.

    :param label: what the values are
    :param low: where the axis of values begins; None: where they do
    :param along: what the first numbers of curves are
    """
    for (name, (steps, values)), (style, colour) in zip(curves.items(), product(STYLES, COLOURS), strict=False):
        middle, bottom, top = np.array([mean_and_interval(column) for column in values.T]).T
        axes.plot(steps, middle, style, color=colour, label=name, linewidth=1.8)
        axes.fill_between(steps, bottom, top, color=colour, alpha=0.2, linewidth=0)
    for (name, value), style in zip(lines.items(), cycle(("-", "--", ":", "-.")), strict=False):
        axes.axhline(value, color="#444444", linestyle=style, linewidth=1, label=f"{name} ({value:.1f})")
    axes.set_xlabel(along)
    axes.set_ylabel(label)
    if low is not None:
        axes.set_ylim(bottom=low)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def figure(
    path: str | Path,
    panels: Sequence[tuple[str, Mapping[str, Curve], Mapping[str, float], str, float | None]],
    along: str = "steps",
) -> None:
    """A picture with one panel per entry, one below the other: title, curves, lines, label of the values, where their
    axis begins.

    Neighbours that show the same learners share a legend.
    """
    from matplotlib.figure import Figure

    kept = [
        (list(curves), lines) != (list(following[1]), following[2])
        for (_, curves, lines, *_), following in pairwise(panels)
    ] + [True]
    picture = Figure(figsize=(7.6, 3.8 * len(panels)), dpi=110, layout="constrained")
    all_axes = np.atleast_1d(picture.subplots(len(panels), 1))
    for axes, (title, curves, lines, label, low), legend in zip(all_axes, panels, kept, strict=True):
        draw(axes, curves, lines, label, low, along)
        axes.set_title(title)
        axes.get_legend().set_visible(legend)
        axes.get_legend().set_in_layout(legend)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path)
